//! Properties that hold for any log, policy and summarizer.

use std::collections::BTreeSet;

use compaction_plan::{Mode, StopReason};
use dag_compactor::{DagPolicy, FreshTail};
use memory_model::{LogEntry, Message, Part, Role, Span, SpanBody};
use memory_store::InMemoryStore;
use proptest::prelude::*;
use summarize_escalation::testing::{Answer, Scripted};
use summarize_escalation::{ExtractiveSummarizer, Ladder, Summarizer, Tier};
use turn_map::{AtomBuilder, AtomKind, GroupState, MessageView as _};

use crate::window::any_log;
use crate::world::{
    Lab, append, entries, open, script, sound, spans, strict, summaries, view, whole,
};
use memory_store::Store as _;

fn any_policy() -> impl Strategy<Value = DagPolicy> {
    let maybe = |range: std::ops::Range<u64>| prop::option::of(range);
    (
        (0_usize..12, maybe(0..400), maybe(1..6)),
        1_usize..8,
        maybe(1..400),
        (0_usize..4, prop::option::of(0_usize..5)),
        prop::option::of(0_u32..3),
        (
            any::<bool>(),
            any::<bool>(),
            any::<bool>(),
            prop::option::of(1_u32..4),
        ),
    )
        .prop_map(
            |(tail, least, source, condensed, depth, (bridge, gain, keep, cap))| {
                let (messages, max_tokens, max_part) = tail;
                let mut policy = DagPolicy {
                    fresh_tail: FreshTail {
                        messages,
                        max_tokens,
                        max_part,
                    },
                    leaf_min_messages: least,
                    max_source_tokens: source,
                    condensed_min: condensed.0,
                    condensed_max: condensed.1,
                    max_depth: depth,
                    keep_request: keep,
                    ..DagPolicy::default()
                };
                policy.bridge = bridge;
                policy.require_gain = gain;
                policy.max_iterations = cap;
                policy
            },
        )
}

fn any_answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        3 => Just(Answer::HeadCut),
        1 => Just(Answer::fail("503")),
        1 => Just(Answer::Empty),
        1 => Just(Answer::Blank),
        1 => Just(Answer::Longer),
        1 => Just(Answer::Echo),
        1 => Just(Answer::text("<&> \u{0} 日本 </summary>")),
    ]
}

fn any_ladder() -> impl Strategy<Value = Ladder> {
    prop_oneof![
        3 => Just(Ladder::default()),
        1 => Just(strict()),
        1 => Just(Ladder { tiers: vec![Tier::Normal], ..Ladder::default() }),
        1 => Just(Ladder { tiers: vec![Tier::Cut], ..Ladder::default() }),
    ]
}

#[derive(Debug, Clone)]
struct Step {
    log: String,
    full: bool,
    answers: Option<Vec<Answer>>,
}

fn any_step() -> impl Strategy<Value = Step> {
    let answers = prop::option::weighted(0.8, prop::collection::vec(any_answer(), 1..5));
    (any_log(40), any::<bool>(), answers).prop_map(|(log, full, answers)| Step {
        log,
        full,
        answers,
    })
}

async fn lives(policy: DagPolicy, ladder: Ladder, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let store = InMemoryStore::new();
    let id = open(&store, "chat").await;
    let default = ladder == Ladder::default();
    let tiers = ladder.tiers.len() as u64;
    let lab = Lab::new(policy.clone()).with_ladder(ladder);
    for step in steps {
        let messages: Vec<Message> = script(&step.log);
        append(&store, id, messages).await;
        let before = spans(&store, id).await;
        let scripted = Scripted::new(step.answers.clone().unwrap_or_default());
        let summarizer: &dyn Summarizer = match step.answers {
            Some(_) => &scripted,
            None => &ExtractiveSummarizer::new(),
        };
        let mode = if step.full {
            Mode::Full
        } else {
            Mode::Incremental
        };
        let run = lab.compaction(&store, id, summarizer);
        let planned = run.plan().await.unwrap();
        let outcome = run.run(mode).await.unwrap();

        // The run ends: each call belongs to a job, and each job joins at least two spans or fails.
        let most = (outcome.before.messages + 8) * 2 * tiers;
        prop_assert!(outcome.calls <= most, "{} calls", outcome.calls);
        prop_assert!(!matches!(
            outcome.stop_reason,
            StopReason::Held | StopReason::LostRace | StopReason::Cancelled
        ));
        if default {
            prop_assert!(outcome.after.tokens <= outcome.before.tokens);
            prop_assert_ne!(outcome.stop_reason, StopReason::SummarizerFailed);
        }
        if planned.jobs.is_empty() && outcome.stop_reason != StopReason::Exhausted {
            prop_assert_eq!(outcome.stop_reason, StopReason::NothingEligible);
        }
        let snapshot = store.snapshot(id, &view()).await.unwrap();
        let after = spans(&store, id).await;
        let cost: u64 = after.iter().map(|span| span.tokens).sum();
        prop_assert_eq!(
            (cost, outcome.after.tokens),
            (snapshot.tokens(), snapshot.tokens())
        );
        sound(&store, id).await;
        whole(
            &store,
            id,
            summaries(&store, id).await.len() - reached(&store, id).await,
        )
        .await;

        // No atom is split, no open group is covered, and the latest messages stay.
        let log = entries(&store, id).await;
        let mut builder = AtomBuilder::starting_at(1);
        log.iter().for_each(|entry| builder.push(entry));
        let atoms = builder.finish();
        let covered = |span: &Span| matches!(span.body, SpanBody::Summary { .. });
        let new: BTreeSet<u32> = after
            .iter()
            .filter(|span| {
                covered(span) && !before.iter().any(|old| covered(old) && old.same(span))
            })
            .map(|span| span.range.last.unwrap().0)
            .collect();
        // The user's current request stays too, unless it costs too much.
        let speaks = |entry: &&LogEntry| {
            let text = |part: &Part| matches!(part, Part::Text { text } if !text.is_empty());
            let result = |part: &Part| matches!(part, Part::ToolResult { .. });
            let (said, results) = (entry.parts.iter().any(text), entry.parts.iter().any(result));
            entry.role == Role::User && !entry.is_note() && said && !results
        };
        let request = log.iter().rev().find(speaks).filter(|request| {
            let range = atoms.atom_of(request.seq.0 as usize).unwrap().range();
            let cost: u64 = log[range.start - 1..range.end - 1]
                .iter()
                .map(|e| e.tokens)
                .sum();
            let most = policy.max_source_tokens.map_or(u64::MAX, |most| most / 4);
            policy.keep_request && cost <= most
        });
        if let Some(request) = request {
            let covers = |spans: &[Span]| {
                let mut spans = spans.iter().filter(|span| covered(span));
                spans.any(|span| span.closed_range().unwrap().contains(request.seq))
            };
            prop_assert!(
                !covers(&after) || covers(&before),
                "the request {} is compacted",
                request.seq
            );
        }
        let open = atoms
            .iter()
            .find(|a| a.kind() == AtomKind::Group(GroupState::Open));
        for last in new {
            // Later messages may join earlier ones to an atom. At the time of the cut, the position was a cut.
            let cut = atoms.cut_before(last as usize + 1).position();
            prop_assert_eq!(cut, last as usize + 1, "an atom is split");
            if let Some(open) = open {
                prop_assert!((last as usize) < open.range().start);
            }
            let left = log[last as usize..]
                .iter()
                .filter(|entry| !entry.is_note())
                .count();
            if policy.fresh_tail.max_tokens.is_none() && policy.fresh_tail.max_part.is_none() {
                prop_assert!(left >= policy.fresh_tail.messages, "{left} left");
            }
            let any_message = log.iter().any(|entry| !entry.is_note());
            prop_assert!(left > 0 || !any_message || policy.fresh_tail.messages == 0);
        }
    }
    Ok(())
}

async fn reached(store: &InMemoryStore, id: memory_model::ConversationId) -> usize {
    crate::world::reach(store, id).await.1.len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn nothing_is_lost_and_it_ends(
        policy in any_policy(),
        ladder in any_ladder(),
        steps in prop::collection::vec(any_step(), 1..5),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(lives(policy, ladder, steps))?;
    }
}
