//! Laws of handoffs, over random conversations that grow.

use handoff_compactor::{CutPolicy, HandoffPolicy};
use memory_model::{Seq, SpanBody};
use proptest::prelude::*;
use turn_map::atoms;

use crate::world::{World, log};

fn word() -> impl Strategy<Value = String> {
    let tokens = prop_oneof![Just(2_u32), 20..200_u32, Just(1_500)];
    let kind = prop_oneof![
        3 => Just("u"),
        3 => Just("a"),
        1 => Just("n"),
        3 => Just("a+"),
        3 => Just("t-"),
    ];
    (kind, 0..4_u32, tokens).prop_map(|(kind, id, tokens)| match kind {
        "a+" | "t-" => format!("{kind}{id}*{tokens}"),
        kind => format!("{kind}*{tokens}"),
    })
}

fn policy() -> impl Strategy<Value = HandoffPolicy> {
    let keep = prop_oneof![
        (0..12_usize).prop_map(|messages| CutPolicy::LastMessages { messages }),
        (0..3_000_u64).prop_map(|tokens| CutPolicy::RecentTokens { tokens }),
    ];
    let most = prop_oneof![Just(None), (500..4_000_u64).prop_map(Some)];
    (keep, any::<bool>(), most, 0..600_u64).prop_map(|(keep, split, most, least)| HandoffPolicy {
        keep,
        split_turns: split,
        max_source_tokens: most,
        min_tokens: least,
        ..HandoffPolicy::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// However a conversation grows: jobs are disjoint and in order, their spans and sources tile their ranges, no cut is
    /// inside a group, pages of any size give the same plan, summaries stand before all messages, and a view that nothing is
    /// left to do in stays as it is.
    #[test]
    fn a_conversation_grows_by_handoffs(
        words in prop::collection::vec(word(), 1..120),
        policy in policy(),
        step in 5..40_usize,
        page in 1..7_usize,
    ) {
        let entries = log(&words.join(" "));
        let mut world = World::new(Vec::new());
        for batch in entries.chunks(step) {
            world.entries.extend(batch.iter().cloned());
            for round in 0.. {
                let jobs = world.plan(&policy, None, page);
                prop_assert_eq!(&jobs, &world.plan(&policy, None, 1_000));
                if jobs.is_empty() {
                    break;
                }
                prop_assert!(round < 200, "it never ends");
                check(&world, &jobs)?;
                for job in &jobs {
                    let most = job.request.as_ref().unwrap().max_tokens;
                    world.publish(job, most.min(job.source_tokens / 2));
                }
            }
            let spans = world.view.spans();
            let first_raw = spans.iter().position(|s| s.body == SpanBody::Raw).unwrap();
            let behind = spans.iter().skip(first_raw);
            let summaries = behind.filter(|s| s.body.summary().is_some()).count();
            prop_assert!(summaries == 0, "{}", world.shown());
        }
    }
}

fn check(world: &World, jobs: &[compaction_plan::Job]) -> Result<(), TestCaseError> {
    let groups = atoms(&world.entries);
    let mut next = Seq::FIRST;
    for job in jobs {
        prop_assert!(job.range.first >= next);
        next = job.range.last.next();
        let (mut span_next, mut source_next) = (job.range.first, job.range.first);
        for span in &job.expect {
            prop_assert_eq!(span.range.first, span_next);
            span_next = span.range.last.unwrap().next();
        }
        for source in job.sources() {
            prop_assert_eq!(source.range().first, source_next);
            source_next = source.range().last.next();
        }
        prop_assert_eq!((span_next, source_next), (next, next));
        let inside = |position: usize| {
            let group = groups.iter().find(|atom| atom.range().contains(&position));
            group.is_some_and(|atom| atom.range().start < position)
        };
        // Positions of the list begin at 0, those of the log at 1.
        prop_assert!(
            !inside(job.range.last.0 as usize),
            "a group is split at {}",
            job.range.last
        );
        let cost: u64 = job.expect.iter().map(|span| span.tokens).sum();
        prop_assert_eq!(cost, job.source_tokens);
        prop_assert!(job.range.last.0 as usize <= groups.settled_end().position());
    }
    Ok(())
}
