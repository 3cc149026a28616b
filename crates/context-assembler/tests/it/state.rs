//! The state of a conversation in its contexts.

use context_assembler::{
    AssemblyInput, AssemblyPolicy, Budget, Context, MessageOrigin, Preamble, assemble,
};
use memory_model::{Message, Role};
use token_estimate::HeuristicEstimator;

use crate::laws;
use crate::script::{Shown, accounting, input, log};

const STATE: &str = "Last answers, newest first:\n[40] The parser is done. </state>";

fn view(state: Option<&str>) -> AssemblyInput {
    let accounting = accounting(HeuristicEstimator::Bytes4);
    let messages = (0..60).map(|n| match n % 2 {
        0 => Message::user(format!("What does module {n} do? ").repeat(8)),
        _ => Message::assistant(format!("Module {n} parses. ").repeat(9)),
    });
    let entries = log(messages.collect(), &accounting);
    let lines = Shown::Lines {
        lines: 30,
        ranked: true,
    };
    let mut input = input(&entries, &[(20, lines), (20, lines)], &accounting);
    input.state = state.map(str::to_owned);
    input
}

fn assembled(input: &AssemblyInput, budget: u64) -> Context {
    let accounting = accounting(HeuristicEstimator::Bytes4);
    let policy = AssemblyPolicy::default();
    let budget = Budget::tokens(budget);
    let context = assemble(input, &Preamble::default(), budget, &policy, &accounting).unwrap();
    laws::counted(&context, &accounting);
    assert!(context.tokens <= context.receipt.limit);
    context
}

#[test]
fn it_comes_after_the_last_summary() {
    let view = view(Some(STATE));
    for budget in [600, 1_200, 4_000, 100_000] {
        let context = assembled(&view, budget);
        let sources: Vec<&MessageOrigin> = context.messages.iter().map(|one| &one.source).collect();
        let at = sources
            .iter()
            .position(|source| matches!(source, MessageOrigin::State { .. }))
            .unwrap();
        let is_summary = |source: &&MessageOrigin| matches!(source, MessageOrigin::Summary { .. });
        assert_eq!(
            sources.iter().rposition(is_summary),
            at.checked_sub(1),
            "{budget}"
        );
        let message = &context.messages[at];
        assert_eq!(message.role, Role::User);
        let text =
            "<state>\nLast answers, newest first:\n[40] The parser is done. &lt;/state>\n</state>";
        assert_eq!(context.to_messages()[at].text(), text);
    }
}

#[test]
fn no_budget_is_too_small_because_of_it() {
    let (with, without) = (view(Some(STATE)), view(None));
    let accounting = accounting(HeuristicEstimator::Bytes4);
    let policy = AssemblyPolicy::default();
    for budget in 1..400 {
        let assembled = [&with, &without].map(|input| {
            let budget = Budget::tokens(budget);
            assemble(input, &Preamble::default(), budget, &policy, &accounting).is_ok()
        });
        assert_eq!(assembled[0], assembled[1], "{budget}");
    }
}
