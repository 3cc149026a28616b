//! Shortening of a list, for callers without a session.

use std::sync::Arc;

use async_trait::async_trait;
use block_overlay::{
    AgentContext, CompactionConfig, CompactionStrategy, Compactor, ContextConfig,
    DefaultCompaction, Error, compact_messages,
};
use memory_model::Message;
use proptest::prelude::*;
use token_estimate::TokenEstimatorExt as _;
use turn_map::check_openai;

use crate::world::{
    COUNTER, assistant, block_on, call, config, kept, output, result, text, texts, user,
};

/// Returns turns by answers: two of text, then `groups` of a call with its result.
fn list(groups: usize, lines: usize) -> Vec<Message> {
    let mut list = vec![user("Find the fault."), assistant("I shall look.")];
    for n in 0..groups {
        let id = format!("t{n}");
        list.extend([
            user(&format!("Go on {n}.")),
            call(&id),
            result(&id, &output(lines)),
        ]);
    }
    list
}

fn reduced(
    list: &[Message],
    budget: u64,
    compaction: CompactionConfig,
) -> block_overlay::Result<Vec<Message>> {
    let config = ContextConfig {
        max_context_tokens: budget,
        system_prompt_tokens: 0,
        compaction,
    };
    let reduced = compact_messages(list.to_vec(), &config)?;
    assert!(COUNTER.messages(&reduced) <= budget);
    Ok(reduced)
}

#[test]
fn within_the_budget_nothing_changes() {
    let whole = list(5, 80);
    let same = reduced(&whole, COUNTER.messages(&whole), config()).unwrap();
    assert_eq!(same, whole);
}

#[test]
fn first_tool_output_is_cut() {
    let whole = list(5, 200);
    let cut = reduced(&whole, COUNTER.messages(&whole) - 1, config()).unwrap();
    assert_eq!(cut.len(), whole.len());
    assert!(text(&cut[4]).contains("[… 150 lines left out …]"));
}

#[test]
fn then_older_turns_are_one_line_each() {
    let whole = list(12, 40);
    let lines = reduced(&whole, COUNTER.messages(&whole) - 1, kept(2, 3)).unwrap();
    // The first and the recent turns are unchanged.
    assert_eq!(lines[..5], whole[..5]);
    assert_eq!(lines[lines.len() - 9..], whole[whole.len() - 9..]);
    let middle = texts(&lines[5..lines.len() - 9]);
    assert_eq!(middle.len(), 8);
    assert_eq!(
        middle[0],
        "[Summary] User: Go on 1. → [Assistant used 1 tool(s)]"
    );
}

#[test]
fn then_the_middle_goes_and_is_counted() {
    let whole = list(40, 20);
    let ends = reduced(&whole, 900, kept(2, 3)).unwrap();
    assert_eq!(ends[..5], whole[..5]);
    let left = whole.len() - 5 - 9;
    assert_eq!(text(&ends[5]), format!("[… left out: {left} messages …]"));
    assert_eq!(ends[6..], whole[whole.len() - 9..]);
}

#[test]
fn the_default_strategy_takes_these_steps() {
    for (whole, less, compaction) in [
        (list(5, 200), 1, config()),
        (list(12, 40), 1, kept(2, 3)),
        (list(40, 20), 4_600, kept(2, 3)),
        (list(40, 20), 5_000, kept(2, 3)),
    ] {
        let budget = COUNTER.messages(&whole) - less;
        let config = ContextConfig {
            max_context_tokens: budget,
            system_prompt_tokens: 0,
            compaction: compaction.clone(),
        };
        let expected = reduced(&whole, budget, compaction).unwrap();
        assert_ne!(expected, whole);
        let by_default = block_on(DefaultCompaction.compact(whole.clone(), &config));
        assert_eq!(by_default.unwrap(), expected);
        // An agent without a session and without a strategy has it.
        let mut agent = AgentContext::default();
        agent.push(whole);
        let hooks = Vec::new();
        block_on(Compactor { config, hooks }.compact_context(&mut agent)).unwrap();
        assert_eq!(agent.messages, expected);
    }
}

#[test]
fn at_last_only_the_newest_that_fit_stay() {
    let newest = reduced(&list(40, 20), 170, config()).unwrap();
    let texts = texts(&newest);
    assert!(texts[0].starts_with("[… left out: "), "{texts:?}");
    assert_eq!(texts[texts.len() - 2], "<t39>");
    let error = reduced(&list(4, 20), 3, config()).unwrap_err();
    assert!(matches!(error, Error::BudgetTooSmall { budget: 3, .. }));
    let text = error.to_string();
    assert!(text.starts_with("the newest turn costs "), "{text}");
}

/// A strategy that keeps only the last message.
#[derive(Debug)]
struct LastOnly;

#[async_trait]
impl CompactionStrategy for LastOnly {
    async fn compact(
        &self,
        mut messages: Vec<Message>,
        config: &ContextConfig,
    ) -> block_overlay::Result<Vec<Message>> {
        assert_eq!(config.message_budget(), 900);
        Ok(messages.pop().into_iter().collect())
    }
}

#[test]
fn a_strategy_of_ones_own_takes_the_place_of_the_default() {
    let compactor = Compactor {
        config: ContextConfig {
            max_context_tokens: 1_000,
            system_prompt_tokens: 100,
            compaction: CompactionConfig {
                in_memory_strategy: Some(Arc::new(LastOnly)),
                ..config()
            },
        },
        hooks: Vec::new(),
    };
    let mut agent = AgentContext::default();
    agent.push([user("Go on."), assistant("Done.")]);
    let outcome = block_on(compactor.compact_context(&mut agent)).unwrap();
    assert_eq!(texts(&agent.messages), ["Done."]);
    assert_eq!(outcome.unwrap().loops_compacted, [""; 0]);
}

/// Lists with tool groups at random positions.
fn lists() -> impl Strategy<Value = Vec<Message>> {
    let piece = (0..4_usize, 1..40_usize);
    prop::collection::vec(piece, 1..30).prop_map(|pieces| {
        let mut list = Vec::new();
        for (index, (kind, size)) in pieces.into_iter().enumerate() {
            let id = format!("t{index}");
            match kind {
                0 => list.push(user(&"ask ".repeat(size))),
                1 => list.push(assistant(&"tell ".repeat(size))),
                _ => list.extend([call(&id), result(&id, &output(size))]),
            }
        }
        list
    })
}

proptest! {
    #[test]
    fn a_reduced_list_never_divides_a_call_from_its_result(
        list in lists(), budget in 20..800_u64, first in 0..5_usize, recent in 0..9_usize,
    ) {
        prop_assert!(check_openai(&list).is_empty());
        if let Ok(reduced) = reduced(&list, budget, kept(first, recent)) {
            prop_assert!(check_openai(&reduced).is_empty(), "{reduced:?}");
        }
    }
}
