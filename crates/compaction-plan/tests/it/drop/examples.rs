use std::sync::Arc;

use compaction_plan::{DROP, DROP_RULE, DropPolicy, DroppingPlanner};
use compaction_plan::{Goal, JobSource, Planner, Request, Work, WrittenText};
use dag_compactor::{DagPlanner, DagPolicy};
use memory_model::{Child, RawJson, Recipe};

use super::world::{World, accounting};

fn planner(most: u64, target: u64) -> DroppingPlanner {
    let policy = DropPolicy {
        max_tokens: most,
        target_tokens: target,
    };
    DroppingPlanner::new(Arc::new(DagPlanner::default()), policy)
}

fn notes(count: usize) -> Vec<String> {
    let note = |n| format!("2026-03-02 09:{n:02} [low] Step {n} of the work was done.");
    (0..count).map(note).collect()
}

const EVERYTHING: (usize, Goal) = (9, Goal::Policy);

#[test]
fn nothing_is_read_or_planned_up_to_the_limit() {
    let world = World::new(&[notes(20), Vec::new(), notes(9)]);
    let limit = world.tokens();
    let (jobs, read) = world.plan(&planner(limit, 1), &DROP, EVERYTHING, |_| true);
    assert_eq!((jobs.len(), read), (0, 0));
    let (jobs, read) = world.plan(&planner(limit - 1, 1), &DROP, EVERYTHING, |_| true);
    assert_eq!((jobs.len(), read), (2, 2));
}

#[test]
fn a_job_writes_one_summary_anew_and_its_share_is_that_of_its_cost() {
    let world = World::new(&[
        notes(30),
        Vec::new(),
        notes(10),
        vec!["One line.".to_owned()],
    ]);
    let (most, target) = (world.tokens() - 1, world.tokens() / 2);
    let (jobs, _) = world.plan(&planner(most, target), &DROP, EVERYTHING, |_| true);
    assert_eq!(jobs.len(), 2, "one line is never left out");
    for (job, summary) in jobs.iter().zip(&world.summaries) {
        let (range, id) = (summary.range, summary.id.clone());
        assert_eq!((job.range, &job.kind), (range, &DROP));
        assert_eq!(
            job.work,
            Work::Summarize {
                sources: vec![Child::Summary { range, id }],
                children: Some(summary.children.clone()),
                depth: summary.depth,
            }
        );
        assert_eq!(job.source_tokens, summary.tokens);
        assert!(world.spans.contains(&job.expect[0]) && job.expect.len() == 1);
        let asked = job.request.as_ref().unwrap();
        assert!(asked.drop_lines);
        assert_eq!(asked.details.as_deref(), Some(DROP_RULE));
        // Half of its cost, less what rendering adds to its text.
        let rendering = summary.tokens - accounting_text(summary.text());
        let half = summary.tokens * target / world.tokens() - rendering;
        assert_eq!(asked.target_tokens, half);
        assert!(asked.max_tokens > asked.target_tokens);
    }
}

fn accounting_text(text: &str) -> u64 {
    use memory_model::Accounting as _;
    accounting().text(text)
}

#[test]
fn what_is_not_stored_yet_waits_and_a_view_that_must_fit_loses_no_line() {
    let world = World::new(&[notes(30), notes(30)]);
    let first = world.summaries[0].id.clone();
    let (jobs, read) = world.plan(&planner(1, 1), &DROP, EVERYTHING, |s| s.id == first);
    assert_eq!((jobs.len(), read), (1, 1));
    let (jobs, _) = world.plan(&planner(1, 1), &DROP, (9, Goal::Fit), |_| true);
    assert_eq!(jobs, []);
}

#[test]
fn the_inner_planner_plans_as_before_and_fingerprints_differ() {
    let policy = DagPolicy::default();
    let (inner, outer) = (DagPlanner::new(policy), planner(20, 10));
    assert_eq!(outer.view(), inner.view());
    let mut passes = inner.passes().to_vec();
    passes.push(DROP);
    assert_eq!(outer.passes(), passes);
    for pass in inner.passes() {
        assert_eq!(outer.tail(pass), inner.tail(pass));
    }
    assert!(outer.fingerprint().ends_with(&inner.fingerprint()));
    assert_ne!(outer.fingerprint(), planner(20, 9).fingerprint());
    assert_ne!(outer.fingerprint(), planner(19, 10).fingerprint());
    let policy = DropPolicy {
        max_tokens: 20,
        target_tokens: 10,
    };
    let json = serde_json::to_string(&policy).unwrap();
    assert_eq!(json, r#"{"max_tokens":20,"target_tokens":10}"#);
    assert_eq!(
        serde_json::from_str::<DropPolicy>("{}").unwrap(),
        DropPolicy::default()
    );
}

#[test]
fn a_summary_of_its_own_is_made_again_by_leaving_out_lines() {
    let world = World::new(&[notes(9)]);
    let mut summary = world.summaries[0].clone();
    assert_eq!(
        planner(9, 1).request_again(&summary),
        None,
        "the inner planner's"
    );
    summary.recipe = Recipe::new(format!("summarizer=x details={DROP_RULE}"));
    let again = planner(9, 1).request_again(&summary).unwrap();
    assert!(again.drop_lines);
    assert_eq!(
        (again.target_tokens, again.max_tokens),
        (summary.tokens, summary.tokens)
    );
}

#[test]
fn facts_of_the_summary_before_stay_and_its_figures_do_not() {
    let world = World::new(&[notes(9)]);
    let mut before = world.summaries[0].clone();
    before.meta = RawJson::parse(
        r#"{"tokens_out":9,"figures":{},"left_out":{"pieces":2},"files":["a.rs"],"dropped_lines":4}"#,
    )
    .ok();
    let planner = planner(1, 1);
    let (jobs, _) = world.plan(&planner, &DROP, EVERYTHING, |_| true);
    let (sources, accounting) = ([JobSource::Summary(&before)], accounting());
    let text = notes(9)[2..].join("\n");
    let written = WrittenText {
        job: &jobs[0],
        sources: &sources,
        text: &text,
        accounting: &accounting,
    };
    let details = planner.details(&written);
    let facts: Vec<(&str, &str)> = details
        .facts
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        facts,
        [
            ("dropped_lines", "6"),
            ("files", r#"["a.rs"]"#),
            ("left_out", r#"{"pieces":2}"#),
        ]
    );
    assert!(details.lines.is_empty());
    // A job of the inner planner is its own business.
    let mut other = jobs[0].clone();
    other.request = Some(Request::default());
    let written = WrittenText {
        job: &other,
        sources: &sources,
        text: &text,
        accounting: &accounting,
    };
    assert!(planner.details(&written).facts.is_empty());
}
