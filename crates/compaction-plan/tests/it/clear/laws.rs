//! Random conversations, each compacted step by step under each of the planners.

use std::sync::Arc;

use block_overlay::planner::{BlockPlanner, BlockPolicy, Digest};
use compaction_plan::ClearingPlanner;
use compaction_plan::Planner;
use dag_compactor::{DagPlanner, DagPolicy, FreshTail};
use handoff_compactor::{CutPolicy, HandoffPlanner, HandoffPolicy};
use memory_model::SpanBody;
use proptest::prelude::*;
use turn_map::{ClearPolicy, atoms};

use super::world::World;

fn inner(which: usize) -> Arc<dyn Planner> {
    match which {
        0 => {
            let tail = FreshTail::messages(6);
            let policy = DagPolicy {
                fresh_tail: tail,
                max_source_tokens: Some(900),
                ..DagPolicy::default()
            };
            Arc::new(DagPlanner::new(policy))
        }
        1 => {
            let policy = HandoffPolicy {
                keep: CutPolicy::LastMessages { messages: 8 },
                min_tokens: 200,
                ..HandoffPolicy::default()
            };
            Arc::new(HandoffPlanner::new(policy))
        }
        _ => Arc::new(BlockPlanner::new(BlockPolicy {
            keep_first_turns: 1,
            keep_recent_turns: 3,
            digest: match which {
                2 => Digest::OneLiners,
                _ => Digest::Summarizer,
            },
            ..BlockPolicy::default()
        })),
    }
}

fn policies() -> impl Strategy<Value = ClearPolicy> {
    (0..5_usize, 10..100_u64, any::<bool>()).prop_map(|(keep, min_tokens, all)| ClearPolicy {
        keep,
        min_tokens,
        min_messages: 4,
        tools: (!all).then(|| "Read".to_owned()).into_iter().collect(),
    })
}

/// Parts of a turn: the text, and the number of ids that it uses.
pub(crate) fn steps() -> impl Strategy<Value = Vec<(u8, u16)>> {
    prop::collection::vec((0..10_u8, 1..400_u16), 1..40)
}

pub(crate) fn script(steps: &[(u8, u16)], ids: &mut usize) -> String {
    let mut words = Vec::new();
    for (kind, tokens) in steps {
        let mut id = || {
            *ids += 1;
            *ids
        };
        match kind {
            0 | 1 => words.push(format!("u*{}", tokens / 8 + 1)),
            2 => words.push(format!("a*{}", tokens / 8 + 1)),
            3 => {
                let id = id();
                words.push(format!("e+{id} t-{id}*{tokens}"));
            }
            4 => {
                let id = id();
                words.push(format!("a+{id} f-{id}*{tokens}"));
            }
            5 => {
                let (one, two) = (id(), id());
                words.push(format!("a+{one} e+{two} t-{one}*{tokens} t-{two}*{tokens}"));
            }
            6 => {
                let id = id();
                words.push(format!("a+{id}"));
            }
            7 => {
                let id = id();
                words.push(format!("a+{id} l-{id}*{tokens}"));
            }
            _ => {
                let id = id();
                words.push(format!("a+{id} t-{id}*{tokens}"));
            }
        }
    }
    words.join(" ")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn clearing_never_makes_a_view_dearer_and_cuts_no_group(
        which in 0..4_usize,
        policy in policies(),
        rounds in prop::collection::vec(steps(), 1..5),
        page in prop_oneof![Just(1_usize), Just(3), Just(100)],
    ) {
        let planner = ClearingPlanner::new(inner(which), policy.clone());
        let (mut world, mut ids) = (World::new(""), 0);
        for steps in &rounds {
            world.say(&script(steps, &mut ids));
            let mut iterations = 0;
            while world.iterate(&planner, page) > 0 {
                iterations += 1;
                prop_assert!(iterations < 40, "it never ends: {}", world.shown());
            }
            let atoms = atoms(&world.entries);
            for span in world.view.spans() {
                let SpanBody::Trimmed(trim) = &span.body else { continue };
                let range = span.closed_range().unwrap();
                prop_assert_eq!(span.tokens, world.cleared_tokens(range, trim.as_str()));
                prop_assert!(span.tokens < world.raw_tokens(range) || which >= 2);
                if trim.as_str() == policy.trim().to_string() {
                    let first = atoms.cut_before(range.first.0 as usize - 1);
                    prop_assert_eq!(first.position(), range.first.0 as usize - 1);
                    let last = atoms.cut_after(range.last.0 as usize);
                    prop_assert_eq!(last.position(), range.last.0 as usize);
                }
            }
        }
    }
}
