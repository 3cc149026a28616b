//! Summaries that the assistant acknowledges.

use context_assembler::{
    AssemblyPolicy, Budget, Context, ContextMessage, MessageOrigin, Preamble, assemble,
};
use memory_model::{Part, Role};
use proptest::prelude::*;

use crate::laws::{counted, in_steps, needed, paired};
use crate::script::{PRESETS, accounting, event, input, log, messages, shown};

fn is_summary(message: &ContextMessage) -> bool {
    let tagged = |part: &Part| matches!(part, Part::Text { text } if text.starts_with("<summary "));
    matches!(message.source, MessageOrigin::Summary { .. })
        && message.parts.first().is_some_and(tagged)
}

/// Asserts that the assistant speaks after each summary, unless only a text in place of the summary fits. Returns the
/// number of summaries.
fn answered(context: &Context) -> usize {
    let speaks = |at: usize| context.messages.get(at).map(|message| message.role);
    let mut summaries = 0;
    for (at, message) in context.messages.iter().enumerate() {
        if is_summary(message) {
            assert_eq!(message.role, Role::User);
            assert_eq!(
                speaks(at + 1),
                Some(Role::Assistant),
                "{:#?}",
                context.messages
            );
            // An acknowledgement is never beside another message of the assistant.
            let acknowledged = context.messages[at + 1].source == message.source;
            assert!(!acknowledged || speaks(at + 2) != Some(Role::Assistant));
            summaries += 1;
        }
    }
    summaries
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn the_assistant_acknowledges_each_summary_within_the_budget(
        events in prop::collection::vec(event(), 0..30),
        stretches in prop::collection::vec((1_usize..8, shown()), 0..6),
        policy in prop::sample::select(vec![AssemblyPolicy::once(), in_steps(1), in_steps(4)]),
        any in 1_u64..3_000,
    ) {
        for preset in PRESETS {
            let accounting = accounting(preset);
            let entries = log(messages(&events), &accounting);
            let input = input(&entries, &stretches, &accounting);
            let policy = AssemblyPolicy { acknowledge_summaries: true, ..policy.clone() };
            let run = |budget, policy: &AssemblyPolicy| {
                assemble(&input, &Preamble::default(), Budget::tokens(budget), policy, &accounting)
            };
            let enough = input.view_tokens + 10_000;
            for budget in [any, 40, 300, input.view_tokens, enough] {
                let context = match run(budget, &policy) {
                    Ok(context) => context,
                    Err(error) => {
                        let needed = needed(&error);
                        prop_assert!(budget < needed && run(needed, &policy).is_ok());
                        prop_assert!(run(needed - 1, &policy).is_err());
                        continue;
                    }
                };
                counted(&context, &accounting);
                paired(&context);
                // A view without messages has no context to shorten.
                let tokens = context.tokens + context.receipt.request_tokens;
                prop_assert!(context.tokens == 0 || tokens <= context.receipt.limit);
                let degraded = context.messages.len() <= 2 && !context.receipt.degraded.is_empty();
                let summaries = if degraded { 0 } else { answered(&context) };
                if budget == enough {
                    // Where everything fits, the acknowledgements are all that is added.
                    let plain = AssemblyPolicy { acknowledge_summaries: false, ..policy.clone() };
                    let plain = run(budget, &plain).unwrap();
                    prop_assert_eq!(plain.messages.iter().filter(|m| is_summary(m)).count(), summaries);
                    prop_assert!(context.messages.len() <= plain.messages.len() + summaries);
                }
            }
            // A tail that is always whole may exceed the budget; its summaries are acknowledged all the same.
            let whole = AssemblyPolicy { whole_tail: Some(2), ..policy };
            answered(&run(any, &whole).unwrap());
        }
    }
}
