//! The reduction of a list, for callers without a session.

use std::sync::Arc;

use async_trait::async_trait;
use block_overlay::{
    AgentContext, CompactionStrategy, Compactor, ContextConfig, ErrorKind, ReductionLevel,
    ReductionPolicy, compact_messages,
};
use token_estimate::{TokenEstimator, TokenEstimatorExt as _};

use crate::world::{COUNTER, Msg, assistant, block_on, call, config, output, result, texts, user};

fn list(groups: usize, lines: usize) -> Vec<Msg> {
    let mut list = vec![user("Find the fault."), assistant("I shall look.")];
    for n in 0..groups {
        let id = format!("t{n}");
        list.extend([
            call(&id),
            result(&id, &output(lines)),
            user(&format!("Go on {n}.")),
        ]);
    }
    list
}

#[test]
fn within_the_budget_nothing_changes() {
    let whole = list(5, 80);
    let policy = ReductionPolicy::new(COUNTER.messages(&whole));
    let reduced = compact_messages(whole.clone(), &policy, &COUNTER).unwrap();
    assert_eq!(
        (reduced.level, &reduced.messages),
        (ReductionLevel::Unchanged, &whole)
    );
}

#[test]
fn first_tool_output_is_cut() {
    let whole = list(5, 200);
    let policy = ReductionPolicy::new(COUNTER.messages(&whole) - 1);
    let reduced = compact_messages(whole.clone(), &policy, &COUNTER).unwrap();
    assert_eq!(
        (reduced.level, reduced.messages.len()),
        (ReductionLevel::Trimmed, whole.len())
    );
    assert!(
        reduced.messages[3]
            .text()
            .contains("[… 150 lines left out …]")
    );
}

#[test]
fn then_older_answers_are_one_line_each() {
    let whole = list(12, 40);
    let policy = ReductionPolicy::new(COUNTER.messages(&whole) - 1).with_kept(2, 6);
    let reduced = compact_messages(whole, &policy, &COUNTER).unwrap();
    assert_eq!(
        (reduced.level, reduced.dropped),
        (ReductionLevel::Summarized, 10)
    );
    let texts = texts(&reduced.messages);
    assert_eq!(texts[1], "[Summary] I shall look.");
    assert_eq!(
        texts[2..4],
        ["[Summary] [Assistant used 1 tool(s)]", "Go on 0."]
    );
    assert_eq!(texts[texts.len() - 3], "<t11>");
}

#[test]
fn then_the_middle_goes_and_is_counted() {
    let whole = list(40, 20);
    let policy = ReductionPolicy::new(900).with_kept(2, 9);
    let reduced = compact_messages(whole.clone(), &policy, &COUNTER).unwrap();
    assert_eq!(reduced.level, ReductionLevel::MiddleDropped);
    assert!(reduced.tokens <= 900);
    let texts = texts(&reduced.messages);
    assert_eq!(texts[..2], ["Find the fault.", "I shall look."]);
    assert_eq!(
        texts[2],
        format!("[… left out: {} messages …]", whole.len() - 11)
    );
    assert_eq!(reduced.messages[3..], whole[whole.len() - 9..]);
}

#[test]
fn at_last_only_the_newest_that_fit_stay() {
    let policy = ReductionPolicy::new(170);
    let reduced = compact_messages(list(40, 20), &policy, &COUNTER).unwrap();
    assert_eq!(reduced.level, ReductionLevel::NewestOnly);
    assert!(reduced.tokens <= 170);
    assert!(reduced.messages[0].text().starts_with("[… left out: "));
    assert_eq!(reduced.messages.last().unwrap().text(), "Go on 39.");
    let error = compact_messages(list(4, 20), &ReductionPolicy::new(3), &COUNTER).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BudgetTooSmall);
}

/// Keeps the last message only.
#[derive(Debug)]
struct LastOnly;

#[async_trait]
impl CompactionStrategy<Msg> for LastOnly {
    async fn compact(
        &self,
        mut messages: Vec<Msg>,
        policy: &ReductionPolicy,
        estimator: &dyn TokenEstimator,
    ) -> block_overlay::Result<Vec<Msg>> {
        assert_eq!(policy.budget, 900);
        assert_eq!(estimator.id(), COUNTER.id());
        Ok(messages.pop().into_iter().collect())
    }
}

#[test]
fn a_strategy_of_ones_own_takes_the_place_of_the_default() {
    let compaction = config().with_in_memory_strategy(Arc::new(LastOnly));
    let context = ContextConfig::new(1_000)
        .with_system_prompt_tokens(100)
        .with_compaction(compaction)
        .with_token_counter(Arc::new(COUNTER));
    let mut agent = AgentContext::of_messages(list(3, 3));
    let outcome = block_on(Compactor::new(context).compact_context(&mut agent)).unwrap();
    assert_eq!(texts(&agent.messages), ["Go on 2."]);
    assert_eq!(outcome.loops_compacted, [""; 0]);
}
