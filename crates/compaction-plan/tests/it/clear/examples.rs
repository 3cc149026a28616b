use std::sync::Arc;

use block_overlay::planner::{BlockPlanner, BlockPolicy};
use compaction_plan::{CLEAR, ClearFigures, ClearingPlanner};
use compaction_plan::{Plan, Planner, Work};
use dag_compactor::{DagPlanner, DagPolicy, FreshTail};
use memory_model::{Seq, SeqRange, Span, ViewVersion};
use turn_map::ClearPolicy;

use super::world::World;

/// Returns a planner that keeps all messages unchanged, with a protected tail of this many messages.
fn dag(messages: usize) -> Arc<DagPlanner> {
    let policy = DagPolicy {
        fresh_tail: FreshTail::messages(messages),
        max_source_tokens: None,
        ..DagPolicy::default()
    };
    Arc::new(DagPlanner::new(policy))
}

fn clearing(messages: usize, policy: ClearPolicy) -> ClearingPlanner {
    ClearingPlanner::new(dag(messages), policy)
}

const NINE: &str = "u a+1 t-1*60 a+2 t-2*60 a+3 t-3*60 a+4 t-4*60 a+5 t-5*60 a+6 t-6*60 a+7 t-7*60 \
                    a+8 t-8*60 a+9 t-9*60 u";

#[test]
fn the_default_clears_three_of_nine_results_and_then_none() {
    let planner = clearing(100, ClearPolicy::default());
    let mut world = World::new(NINE);
    let before = world.tokens();
    let jobs = world.plan(&planner, &CLEAR, 100);
    assert_eq!(jobs.len(), 3);
    let plan = Plan {
        view: planner.view(),
        version: ViewVersion(0),
        head: world.head(),
        tokens: before,
        jobs,
    };
    let figures = ClearFigures::of(&plan);
    assert_eq!((figures.groups, figures.messages), (3, 6));
    assert_eq!(world.iterate(&planner, 100), 3);
    assert_eq!(world.shown(), "R:1-1 C:2-3 C:4-5 C:6-7 R:8-");
    assert_eq!(before - world.tokens(), figures.saved());
    assert!(figures.saved() > 100, "{figures:?}");
    assert_eq!(world.iterate(&planner, 100), 0);
}

#[test]
fn a_group_with_a_large_result_that_stays_is_left_alone() {
    let policy = ClearPolicy {
        keep: 0,
        min_tokens: 50,
        min_messages: 0,
        tools: vec!["Read".to_owned()],
    };
    let mut world = World::new("u e+1 t-1*60 a+2 t-2*60 a+3 t-3*40 u");
    world.iterate(&clearing(100, policy), 100);
    assert_eq!(world.shown(), "R:1-3 C:4-5 R:6-");
}

#[test]
fn a_group_that_waits_for_results_is_left_alone() {
    let policy = ClearPolicy {
        keep: 0,
        min_tokens: 50,
        min_messages: 0,
        tools: Vec::new(),
    };
    let mut world = World::new("u a+1 e+2 t-1*60");
    let planner = clearing(100, policy);
    world.iterate(&planner, 100);
    assert_eq!(world.shown(), "R:1-");
    world.say("t-2*60 a");
    world.iterate(&planner, 100);
    assert_eq!(world.shown(), "R:1-1 C:2-5 R:6-");
}

#[test]
fn cleared_groups_are_summarized_as_messages_once_they_are_old() {
    let mut world = World::new(NINE);
    let planner = clearing(100, ClearPolicy::default());
    world.iterate(&planner, 1);
    assert_eq!(world.shown(), "R:1-1 C:2-3 C:4-5 C:6-7 R:8-");
    let later = clearing(2, ClearPolicy::default());
    let leaf = later.passes()[1].clone();
    for page in [1, 100] {
        let jobs = world.plan(&later, &leaf, page);
        let [job] = &*jobs else { panic!("{jobs:?}") };
        let shown: Vec<Span> = world.spans();
        assert_eq!(job.expect[1..4], shown[1..4], "page {page}");
        assert!(matches!(job.work, Work::Summarize { .. }));
        let cost: u64 = shown[..4].iter().map(|span| span.tokens).sum();
        let rest = SeqRange::new(Seq(8), job.range.last).unwrap();
        assert_eq!(job.source_tokens, cost + world.raw_tokens(rest));
    }
    world.iterate(&later, 1);
    assert!(world.shown().starts_with("S:1-"), "{}", world.shown());
}

#[test]
fn a_summary_that_would_cost_what_the_placeholders_cost_is_not_planned() {
    let script = "a+1 t-1*400 a+2 t-2*400 a+3 t-3*400 a+4 t-4*400 a+5 t-5*400 u u";
    let policy = ClearPolicy {
        keep: 0,
        min_tokens: 50,
        min_messages: 0,
        tools: Vec::new(),
    };
    let mut world = World::new(script);
    world.iterate(&clearing(100, policy.clone()), 100);
    assert_eq!(world.shown(), "C:1-2 C:3-4 C:5-6 C:7-8 C:9-10 R:11-");
    let later = clearing(2, policy);
    let leaf = later.passes()[1].clone();
    let plain = dag(2);
    assert_eq!(World::new(script).plan(&*plain, &leaf, 100).len(), 1);
    assert_eq!(world.plan(&later, &leaf, 100), []);
}

#[test]
fn a_result_is_not_shown_in_part_where_its_placeholder_is_cheaper() {
    let blocks = |keep_first_turns, keep_recent_turns| {
        let inner = Arc::new(BlockPlanner::new(BlockPolicy {
            keep_first_turns,
            keep_recent_turns,
            ..BlockPolicy::default()
        }));
        let policy = ClearPolicy {
            keep: 0,
            min_tokens: 50,
            min_messages: 0,
            tools: Vec::new(),
        };
        ClearingPlanner::new(inner, policy)
    };
    let mut world = World::new("u a+1 l-1*400 a");
    world.iterate(&blocks(9, 0), 100);
    assert_eq!(world.shown(), "R:1-1 C:2-3 R:4-");
    world.iterate(&blocks(0, 9), 100);
    assert_eq!(world.shown(), "R:1-1 C:2-3 R:4-");
}
