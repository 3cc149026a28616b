use std::sync::Arc;

use compaction_plan::Goal;
use compaction_plan::{DROP, DropPolicy, DroppingPlanner};
use dag_compactor::DagPlanner;
use memory_model::Span;
use proptest::prelude::*;

use super::world::World;

fn texts() -> impl Strategy<Value = Vec<Vec<String>>> {
    let line = "( {0,2}|[a-z <]{1,60}|\\[(low|critical)\\] [a-z]{1,30})";
    prop::collection::vec(prop::collection::vec(line, 0..8), 1..150)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Jobs are disjoint and in order, each over one summary that is shown, however the view is read; all targets together
    /// are within the policy's, and all limits within its limit, but for a token for each summary that has no room.
    #[test]
    fn jobs_are_disjoint_and_within_the_limit(
        texts in texts(),
        page in 1..70_usize,
        (most, target) in (1..4_000_u64, 1..4_000_u64),
    ) {
        let world = World::new(&texts);
        let policy = DropPolicy {
        max_tokens: most,
        target_tokens: target,
    };
        let planner = DroppingPlanner::new(Arc::new(DagPlanner::default()), policy);
        let (jobs, _) = world.plan(&planner, &DROP, (page, Goal::Policy), |_| true);
        let (whole, _) = world.plan(&planner, &DROP, (1_000, Goal::Policy), |_| true);
        prop_assert_eq!(&jobs, &whole);
        if world.tokens() <= most {
            prop_assert_eq!(jobs.len(), 0);
        }
        let (mut targets, mut limits) = (0, 0);
        for (index, job) in jobs.iter().enumerate() {
            prop_assert!(index == 0 || jobs[index - 1].range.last < job.range.first);
            let is_summary = |span: &Span| span.body.summary().is_some();
            let alone = matches!(&job.expect[..], [span] if is_summary(span) && world.spans.contains(span));
            prop_assert!(alone, "{job:?}");
            let asked = job.request.as_ref().unwrap();
            prop_assert!(asked.target_tokens <= asked.max_tokens);
            targets += asked.target_tokens;
            limits += asked.max_tokens;
        }
        let least = jobs.len() as u64;
        prop_assert!(targets <= target.min(most) + least, "{targets}");
        prop_assert!(limits <= most + least, "{limits}");
    }
}
