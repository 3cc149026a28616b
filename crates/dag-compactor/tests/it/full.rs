//! Compaction to the end, over random conversations and policies.

use compaction_plan::Job;
use dag_compactor::{CONDENSED, DagPolicy, FreshTail, LEAF};
use memory_model::{EntryKind, LogEntry, Part, Role, Seq, Span, SpanBody};
use proptest::prelude::*;
use turn_map::{AtomKind, GroupState, atoms};

use crate::world::{World, log};

fn words() -> impl Strategy<Value = String> {
    let size = prop_oneof![4 => 0_u32..120, 1 => 300_u32..3_000];
    let word = (0_u8..10, size).prop_map(|(kind, size)| (kind, size));
    prop::collection::vec(word, 0..120).prop_map(|words| {
        let mut script = Vec::new();
        for (at, (kind, size)) in words.into_iter().enumerate() {
            match kind {
                0..3 => script.push(format!("u*{size}")),
                3..5 => script.push(format!("a*{size}")),
                5 => script.push("n".to_owned()),
                6 => script.push(format!("a+i{at}*{size}")),
                7 => script.push(format!("t-i{}*{size}", at / 2)),
                8 => script.push(format!("a+c{at} t-c{at}*{size}")),
                _ => script.push(format!(
                    "a/r{at}+x{at} t-x{at}*{size} n a/r{at}+y{at} u t-y{at}"
                )),
            }
        }
        script.join(" ")
    })
}

fn policy() -> impl Strategy<Value = DagPolicy> {
    let tail = (
        0_usize..25,
        prop::option::of(1_u64..4_000),
        prop::option::of(2_u64..6),
    );
    let rest = (
        1_usize..14,
        prop::option::of(200_u64..5_000),
        0_usize..5,
        prop::option::of(0_usize..9),
        prop::option::of(0_u32..4),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    );
    (tail, rest).prop_map(|((messages, max_tokens, max_part), rest)| {
        let (least, source, fewest, most, depth, bridge, gain, keep) = rest;
        let mut policy = DagPolicy {
            fresh_tail: FreshTail {
                messages,
                max_tokens,
                max_part,
            },
            leaf_min_messages: least,
            max_source_tokens: source,
            condensed_min: fewest,
            condensed_max: most,
            max_depth: depth,
            keep_request: keep,
            ..DagPolicy::default()
        };
        policy.bridge = bridge;
        policy.require_gain = gain;
        policy
    })
}

/// What holds of the jobs of any pass.
fn check(world: &World, policy: &DagPolicy, jobs: &[Job]) {
    let atoms = atoms(&world.entries);
    for pair in jobs.windows(2) {
        assert!(pair[0].range.last < pair[1].range.first);
    }
    let request = protected_request(world, policy);
    for job in jobs {
        assert!(
            request.is_none_or(|seq| !job.range.contains(seq)),
            "{} covers the running request {request:?}",
            job.range
        );
        assert_eq!(job.expect, clip(world, job));
        let tokens: u64 = job.expect.iter().map(|span| span.tokens).sum();
        assert_eq!(job.source_tokens, tokens);
        let covered: u64 = job.children().iter().map(|child| child.range().len()).sum();
        assert_eq!(covered, job.range.len());
        let within = policy.max_source_tokens.is_none_or(|most| tokens <= most);
        match job.kind.as_str() {
            "leaf" => {
                assert_eq!(job.depth(), Some(0));
                let (first, last) = (job.range.first.0 as usize - 1, job.range.last.0 as usize);
                assert_eq!(atoms.cut_before(first).position(), first, "splits an atom");
                assert_eq!(atoms.cut_after(last).position(), last, "splits an atom");
                let inside = atoms.between(atoms.cut_before(first), atoms.cut_before(last));
                assert!(inside.iter().any(|atom| atom.messages() > 0));
                let open = AtomKind::Group(GroupState::Open);
                assert!(inside.iter().all(|atom| atom.kind() != open));
                assert!(last <= atoms.settled_end().position());
                let newest = atoms.iter().rposition(|atom| atom.messages() > 0).unwrap();
                assert!(
                    last <= atoms.as_slice()[newest].range().start,
                    "covers the tail"
                );
                if !within {
                    // Too much only because of its last group, before which there was too little.
                    let alone = inside.last().unwrap().range();
                    let before = world.entries[first..alone.start].iter();
                    let before: u64 = before.map(|entry| entry.tokens).sum();
                    assert!(before < 300, "{before} tokens before the last group");
                }
            }
            _ => {
                let is_summary = |span: &&Span| span.body.summary().is_some();
                let count = job.expect.iter().filter(is_summary).count();
                for around in job.expect.windows(2) {
                    // Messages only between summaries, and only where a leaf gains nothing.
                    assert!(around.iter().any(|span| is_summary(&span)));
                }
                for end in [job.expect.first(), job.expect.last()] {
                    assert!(is_summary(&end.unwrap()));
                }
                assert!(count == job.expect.len() || (policy.bridge && policy.require_gain));
                let fewest = policy.condensed_min.max(2);
                assert!(count >= fewest);
                assert!(
                    policy
                        .condensed_max
                        .is_none_or(|most| count <= most.max(fewest))
                );
                assert!(within || count == fewest);
                assert!(
                    policy
                        .max_depth
                        .is_none_or(|most| job.depth().unwrap() <= most)
                );
                for span in &job.expect {
                    match span.body {
                        SpanBody::Summary { depth, .. } => {
                            assert_eq!(Some(depth + 1), job.depth());
                        }
                        SpanBody::Raw => assert!(span.tokens < 300, "{span:?}"),
                        _ => panic!("{span:?}"),
                    }
                }
            }
        }
    }
}

/// The newest message of the user with text and no result, if its atom is one that stays.
fn protected_request(world: &World, policy: &DagPolicy) -> Option<Seq> {
    let opens = |entry: &&LogEntry| {
        let text = |part: &Part| matches!(part, Part::Text { text } if !text.is_empty());
        let result = |part: &Part| matches!(part, Part::ToolResult { .. });
        let (texts, results) = (entry.parts.iter().any(text), entry.parts.iter().any(result));
        entry.kind == EntryKind::Message && entry.role == Role::User && texts && !results
    };
    let request = world.entries.iter().rev().find(opens)?;
    let atoms = atoms(&world.entries);
    let atom = atoms.atom_of(request.seq.0 as usize - 1).unwrap().range();
    let tokens: u64 = world.entries[atom].iter().map(|entry| entry.tokens).sum();
    let fits = policy
        .max_source_tokens
        .is_none_or(|most| tokens <= most / 4);
    (policy.keep_request && fits).then_some(request.seq)
}

/// What the view holds over a job's range, with costs.
fn clip(world: &World, job: &Job) -> Vec<Span> {
    let mut spans = world.view.clip(job.range);
    for span in spans.iter_mut().filter(|span| span.body == SpanBody::Raw) {
        span.tokens = world.tokens(span.closed_range().unwrap());
    }
    spans
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(128)
    })]

    #[test]
    fn full_compaction_ends(
        script in words(),
        policy in policy(),
        page in 1_usize..40,
        cost in 1_u64..100,
    ) {
        let mut world = World::new(log(&script));
        let tail = tail(&world, &policy);
        let mut rounds = 0;
        loop {
            let mut some = false;
            for kind in [LEAF, CONDENSED] {
                let jobs = world.plan(&policy, &kind, page);
                prop_assert_eq!(&jobs, &world.plan(&policy, &kind, 1_000));
                check(&world, &policy, &jobs);
                for job in &jobs {
                    prop_assert!(job.range.last.0 < tail);
                    // Any cost below the source's.
                    let tokens = job.source_tokens * cost / 100;
                    world.publish(job, tokens.min(job.source_tokens.saturating_sub(1)));
                }
                some |= !jobs.is_empty();
            }
            if !some {
                break;
            }
            rounds += 1;
            prop_assert!(rounds <= 130, "{}", world.shown());
        }
        // What is over stays over, and nothing but the log's growth changes that.
        prop_assert!(world.plan(&policy, &LEAF, page).is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(64)
    })]

    /// A log that grows and is compacted after every few messages: the running request stays, and
    /// an earlier one is compacted like any message.
    #[test]
    fn the_running_request_stays_while_the_log_grows(
        script in words(),
        policy in policy(),
        page in 1_usize..40,
        every in 1_usize..12,
        cost in 1_u64..60,
    ) {
        let policy = DagPolicy { keep_request: true, ..policy };
        let all = log(&script);
        let mut world = World::new(Vec::new());
        for entries in all.chunks(every) {
            world.entries.extend_from_slice(entries);
            for kind in [LEAF, CONDENSED] {
                let jobs = world.plan(&policy, &kind, page);
                prop_assert_eq!(&jobs, &world.plan(&policy, &kind, 1_000));
                let request = protected_request(&world, &policy);
                for pair in jobs.windows(2) {
                    prop_assert!(pair[0].range.last < pair[1].range.first);
                }
                for job in &jobs {
                    prop_assert!(request.is_none_or(|seq| !job.range.contains(seq)));
                    let tokens = job.source_tokens * cost / 100;
                    world.publish(job, tokens.min(job.source_tokens.saturating_sub(1)));
                }
            }
        }
    }
}

/// Where the fresh tail begins before anything is compacted: from there on nothing ever may be.
fn tail(world: &World, policy: &DagPolicy) -> u32 {
    let atoms = atoms(&world.entries);
    let whole: u64 = world.entries.iter().map(|entry| entry.tokens).sum();
    let part = policy
        .fresh_tail
        .max_part
        .map_or(u64::MAX, |part| whole / part);
    let most = policy.fresh_tail.max_tokens.unwrap_or(u64::MAX).min(part);
    let (mut kept, mut tokens) = (0, 0);
    let mut start = world.entries.len();
    for atom in atoms.iter().rev() {
        let cost: u64 = world.entries[atom.range()]
            .iter()
            .map(|entry| entry.tokens)
            .sum();
        let fits = kept < policy.fresh_tail.messages && tokens + cost <= most;
        if kept > 0 && !fits {
            break;
        }
        kept += atom.messages();
        tokens += cost;
        start = atom.range().start;
    }
    start.min(atoms.settled_end().position()) as u32 + 1
}
