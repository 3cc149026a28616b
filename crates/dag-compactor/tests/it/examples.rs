//! Conversations written out, with plain rules and with the defaults.

use compaction_plan::{Planner, Work};
use dag_compactor::{CONDENSED, DagPlanner, DagPolicy, FreshTail, LEAF};
use memory_model::{Seq, SeqRange};

use crate::world::{World, log, ranges};

/// Leaves of whole runs, and summaries of all neighbours of equal depth, whatever they cost.
fn plain(messages: usize) -> DagPolicy {
    DagPolicy {
        fresh_tail: FreshTail::messages(messages),
        keep_request: false,
        max_source_tokens: None,
        condensed_max: None,
        bridge: false,
        require_gain: false,
        max_iterations: Some(10),
        ..DagPolicy::default()
    }
}

fn users(count: usize) -> World {
    World::new(log(&"u ".repeat(count)))
}

/// Publishes a summary of `tokens` over a range, whatever the policy says.
fn cover(world: &mut World, first: u32, last: u32, depth: u32, tokens: u64) {
    let range = SeqRange::new(Seq(first), Seq(last)).unwrap();
    let mut job = users(20)
        .plan(
            &DagPolicy {
                leaf_min_messages: 1,
                ..plain(1)
            },
            &LEAF,
            99,
        )
        .remove(0);
    job.range = range;
    job.work = Work::summarize(Vec::new(), depth);
    job.expect = world.view.clip(range);
    world.publish(&job, tokens);
}

#[test]
fn three_messages_are_not_compacted() {
    for tail in [2, 20] {
        let world = users(3);
        assert_eq!(world.plan(&plain(tail), &LEAF, 9), []);
        assert_eq!(world.plan(&plain(tail), &CONDENSED, 9), []);
    }
}

#[test]
fn fifteen_messages_with_a_tail_of_two_become_a_leaf() {
    let jobs = users(15).plan(&plain(2), &LEAF, 4);
    assert_eq!(ranges(&jobs), [(1, 13)]);
    assert_eq!(
        (&jobs[0].kind, jobs[0].depth(), jobs[0].source_tokens),
        (&LEAF, Some(0), 520)
    );
}

/// In the original, a conversation shorter than the tail had no tail at all.
#[test]
fn fewer_messages_than_the_tail_all_stay() {
    for count in 0..=20 {
        assert_eq!(
            users(count).plan(&plain(20), &LEAF, 9),
            [],
            "{count} messages"
        );
    }
    assert_eq!(users(29).plan(&plain(20), &LEAF, 9), []);
    assert_eq!(ranges(&users(30).plan(&plain(20), &LEAF, 9)), [(1, 10)]);
}

#[test]
fn a_summary_splits_a_run_of_messages() {
    let mut world = users(6);
    cover(&mut world, 3, 3, 0, 10);
    let policy = DagPolicy {
        leaf_min_messages: 2,
        ..plain(1)
    };
    // Of 1, 2 | 4, 5, 6 the newest stays.
    assert_eq!(ranges(&world.plan(&policy, &LEAF, 9)), [(1, 2), (4, 5)]);
    let policy = DagPolicy {
        leaf_min_messages: 3,
        ..policy
    };
    assert_eq!(world.plan(&policy, &LEAF, 9), []);
}

#[test]
fn neighbouring_summaries_of_equal_depth_are_condensed() {
    let mut world = users(30);
    for first in [1, 6, 11] {
        cover(&mut world, first, first + 4, 0, 60);
    }
    let jobs = world.plan(&plain(20), &CONDENSED, 9);
    assert_eq!(ranges(&jobs), [(1, 15)]);
    assert_eq!(
        (
            jobs[0].depth(),
            jobs[0].children().len(),
            jobs[0].source_tokens
        ),
        (Some(1), 3, 180)
    );
    // One alone is not; nor are two of different depth, nor two with messages between them.
    let mut world = users(30);
    cover(&mut world, 1, 5, 0, 60);
    assert_eq!(world.plan(&plain(20), &CONDENSED, 9), []);
    cover(&mut world, 6, 10, 1, 60);
    assert_eq!(world.plan(&plain(20), &CONDENSED, 9), []);
    cover(&mut world, 12, 15, 1, 60);
    assert_eq!(world.plan(&plain(20), &CONDENSED, 9), []);
}

#[test]
fn a_condensed_summary_takes_so_many_and_so_much() {
    let mut world = users(60);
    for first in (1..40).step_by(4) {
        cover(&mut world, first, first + 3, 0, 300);
    }
    let plan = |policy: DagPolicy| ranges(&world.plan(&policy, &CONDENSED, 9));
    let policy = DagPolicy::default();
    assert_eq!(plan(policy.clone()), [(1, 32), (33, 40)]);
    assert_eq!(
        plan(DagPolicy {
            condensed_min: 3,
            condensed_max: Some(4),
            ..policy.clone()
        }),
        [(1, 16), (17, 32)]
    );
    // The fewest win over the most.
    assert_eq!(
        plan(DagPolicy {
            condensed_min: 5,
            condensed_max: Some(3),
            ..policy.clone()
        }),
        [(1, 20), (21, 40)]
    );
    let limited = DagPolicy {
        max_source_tokens: Some(900),
        ..policy.clone()
    };
    assert_eq!(plan(limited), [(1, 12), (13, 24), (25, 36)]);
    // A pair is taken whatever it costs.
    let limited = DagPolicy {
        max_source_tokens: Some(10),
        ..policy.clone()
    };
    assert_eq!(plan(limited).len(), 5);
    assert_eq!(
        plan(DagPolicy {
            max_depth: Some(0),
            ..policy
        }),
        []
    );
}

#[test]
fn leaves_are_cut_at_the_limit() {
    // 60 messages of 40 tokens before a tail of a quarter.
    let policy = DagPolicy {
        max_source_tokens: Some(1_000),
        ..DagPolicy::default()
    };
    let jobs = users(80).plan(&policy, &LEAF, 7);
    assert_eq!(ranges(&jobs), [(1, 25), (26, 50), (51, 60)]);
    // Few that are left over stay for another day, unless they cost a quarter of what a leaf may.
    let jobs = users(74).plan(&policy, &LEAF, 7);
    assert_eq!(ranges(&jobs), [(1, 25), (26, 50)]);
    let jobs = users(78).plan(&policy, &LEAF, 7);
    assert_eq!(ranges(&jobs), [(1, 25), (26, 50), (51, 59)]);
    // A group that alone is too much is a leaf by itself; what is too little goes with it.
    let script = format!("u*500 a+x t-x*3000 u*1 a+y t-y*3000 {}", "u ".repeat(60));
    let jobs = World::new(log(&script)).plan(&policy, &LEAF, 7);
    assert_eq!(ranges(&jobs)[..3], [(1, 1), (2, 3), (4, 6)]);
}

#[test]
fn groups_are_not_split_and_open_ones_stay() {
    let policy = plain(2);
    let script = format!("{}a+x u u t-x u", "u ".repeat(12));
    let jobs = World::new(log(&script)).plan(&policy, &LEAF, 5);
    assert_eq!(ranges(&jobs), [(1, 12)]);
    // Nothing from an open group on is covered, however far back it began.
    let script = format!("{}a+x {}", "u ".repeat(12), "u ".repeat(30));
    let jobs = World::new(log(&script)).plan(&policy, &LEAF, 5);
    assert_eq!(ranges(&jobs), [(1, 12)]);
    // Interrupted, it blocks nothing.
    let script = format!("{}a+x {}a u u", "u ".repeat(12), "u ".repeat(30));
    let jobs = World::new(log(&script)).plan(&policy, &LEAF, 5);
    assert_eq!(ranges(&jobs), [(1, 44)]);
}

#[test]
fn a_run_between_summaries_is_bridged_if_it_gains() {
    let mut world = users(60);
    cover(&mut world, 1, 10, 0, 100);
    cover(&mut world, 15, 40, 0, 100);
    let policy = DagPolicy::default();
    assert_eq!(ranges(&world.plan(&policy, &LEAF, 9)), [(11, 14)]);
    let mut off = policy.clone();
    off.bridge = false;
    assert_eq!(world.plan(&off, &LEAF, 9), []);
    // Four messages of 2 tokens are cheaper than any summary of them.
    let mut world = World::new(log(&"u*2 ".repeat(60)));
    cover(&mut world, 1, 10, 0, 10);
    cover(&mut world, 15, 40, 0, 10);
    assert_eq!(world.plan(&policy, &LEAF, 9), []);
    let mut any = policy;
    any.require_gain = false;
    assert_eq!(ranges(&world.plan(&any, &LEAF, 9)), [(11, 14)]);
}

/// A turn of `calls` calls after a request of `tokens` tokens, as `log` reads it.
fn turn(n: usize, tokens: usize, calls: usize) -> String {
    let call = |c: usize| format!("a+c{n}x{c} t-c{n}x{c}*100 ");
    format!("u*{tokens} {}", (0..calls).map(call).collect::<String>())
}

#[test]
fn the_running_request_stays_however_long_its_turn_is() {
    let policy = DagPolicy {
        max_source_tokens: Some(4_000),
        ..DagPolicy::default()
    };
    for calls in [20, 200, 2_000] {
        let script = format!("{}{}", turn(1, 40, 20), turn(2, 900, calls));
        let world = World::new(log(&script));
        let jobs = world.plan(&policy, &LEAF, 64);
        assert_eq!(ranges(&jobs)[0], (1, 41), "{calls} calls");
        assert!(calls == 20 || ranges(&jobs)[1].0 == 43, "{calls} calls");
        // Without the rule it goes with the messages before it.
        let without = world.plan(
            &DagPolicy {
                keep_request: false,
                ..policy.clone()
            },
            &LEAF,
            64,
        );
        assert!(calls == 20 || without.iter().any(|job| job.range.contains(Seq(42))));
    }
}

#[test]
fn a_request_of_more_than_a_quarter_is_compacted() {
    let policy = DagPolicy {
        max_source_tokens: Some(4_000),
        ..DagPolicy::default()
    };
    let world = World::new(log(&turn(1, 1_001, 200)));
    assert_eq!(ranges(&world.plan(&policy, &LEAF, 64))[0].0, 1);
    let world = World::new(log(&turn(1, 990, 200)));
    assert_eq!(ranges(&world.plan(&policy, &LEAF, 64))[0].0, 2);
}

#[test]
fn an_earlier_request_is_an_ordinary_message() {
    let policy = DagPolicy {
        max_source_tokens: Some(1_000),
        ..DagPolicy::default()
    };
    let mut world = World::new(log(&turn(1, 200, 100)));
    for job in world.plan(&policy, &LEAF, 64) {
        world.publish(&job, 100);
    }
    assert!(
        world.shown().starts_with("R:1-1 S0:2-"),
        "{}",
        world.shown()
    );
    world.entries = log(&format!("{}{}", turn(1, 200, 100), turn(2, 200, 100)));
    let jobs = world.plan(&policy, &LEAF, 64);
    assert_eq!(ranges(&jobs)[0], (1, 1));
    // What follows the first turn's summaries ends where the new request begins.
    let second = Seq(202);
    assert!(jobs.iter().any(|job| job.range.last == second.prev()));
    assert!(jobs.iter().all(|job| !job.range.contains(second)));
    let mut off = policy;
    off.bridge = false;
    assert_ne!(ranges(&world.plan(&off, &LEAF, 64))[0], (1, 1));
}

/// Otherwise each long turn would leave a message behind that keeps summaries apart.
#[test]
fn short_earlier_requests_go_into_the_condensed_summary() {
    let policy = DagPolicy {
        max_source_tokens: Some(1_000),
        ..DagPolicy::default()
    };
    let mut script = String::new();
    let mut world = World::new(Vec::new());
    for n in 0..40 {
        script += &turn(n, 5, 30);
        world.entries = log(&script);
        for kind in [LEAF, CONDENSED, CONDENSED] {
            for job in world.plan(&policy, &kind, 7) {
                world.publish(&job, 60);
            }
        }
    }
    assert!(world.view.spans().len() < 20, "{}", world.shown());
    let mixed = |kind| world.plan(&policy, kind, 7);
    assert!(mixed(&LEAF).is_empty(), "{}", world.shown());
}

#[test]
fn the_tail_does_not_shrink_with_the_view() {
    let policy = DagPolicy::default();
    let mut world = World::new(log(&"u*400 ".repeat(60)));
    let jobs = world.plan(&policy, &LEAF, 9);
    // A quarter of 24,000 tokens: 15 messages.
    assert_eq!(ranges(&jobs), [(1, 45)]);
    world.publish(&jobs[0], 1_000);
    assert_eq!(world.plan(&policy, &LEAF, 9), []);
}

#[test]
fn policies_are_told_apart() {
    let name = |policy| DagPlanner::new(policy).fingerprint();
    assert_ne!(name(DagPolicy::default()), name(plain(20)));
    assert_ne!(name(plain(2)), name(plain(3)));
    assert_eq!(DagPlanner::new(plain(20)).max_iterations(), Some(10));
}

#[test]
fn a_plan_of_a_conversation() {
    let turn = |n: usize| format!("u*60 a/r{n}+a{n} t-a{n}*700 a/r{n}+b{n} t-b{n}*500 n a*90 ");
    let mut world = World::new(log(&(0..14).map(turn).collect::<String>()));
    let policy = DagPolicy {
        max_source_tokens: Some(4_000),
        ..DagPolicy::default()
    };
    let mut shown = String::new();
    for pass in [LEAF, CONDENSED] {
        for job in world.plan(&policy, &pass, 9) {
            shown += &format!(
                "{} {} depth {}: {}\n",
                job.kind,
                job.range,
                job.depth().unwrap(),
                job.why
            );
            world.publish(&job, 400);
        }
        shown += &format!("{}\n", world.shown());
    }
    insta::assert_snapshot!(shown, @r"
    leaf 1-15 depth 0: 13 messages outside the fresh tail cost 2928 tokens
    leaf 16-29 depth 0: 12 messages outside the fresh tail cost 2868 tokens
    leaf 30-43 depth 0: 12 messages outside the fresh tail cost 2868 tokens
    leaf 44-57 depth 0: 12 messages outside the fresh tail cost 2868 tokens
    leaf 58-71 depth 0: 12 messages outside the fresh tail cost 2868 tokens
    leaf 72-75 depth 0: 4 messages outside the fresh tail cost 1284 tokens
    S0:1-15 S0:16-29 S0:30-43 S0:44-57 S0:58-71 S0:72-75 R:76-
    condensed 1-75 depth 1: 6 neighbouring summaries of depth 0 cost 2400 tokens
    S1:1-75 R:76-
    ");
}
