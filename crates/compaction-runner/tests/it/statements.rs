//! The number of SQL statements of a compaction depends on the pending messages, not on the length of the history.

use compaction_plan::{Mode, StopReason};
use dag_compactor::{DagPolicy, FreshTail};

use store_sqlite::SqliteOptions;
use summarize_escalation::ExtractiveSummarizer;
use summarize_escalation::testing::Scripted;

use crate::world::{Lab, append, chat, filled, small};

async fn costs(messages: u32) -> Vec<(&'static str, u64)> {
    // Summaries are never merged, so that one pass writes one summary.
    let policy = DagPolicy {
        condensed_min: 1_000,
        condensed_max: None,
        fresh_tail: FreshTail::messages(20),
        ..DagPolicy::default()
    };
    let (lab, model) = (Lab::new(policy), Scripted::head_cut());
    let (store, id) = filled(SqliteOptions::new().in_memory().await.unwrap(), messages).await;
    let outcome = lab.full(&store, id, &model).await;
    assert_eq!(outcome.stop_reason, StopReason::NothingEligible);
    let compaction = lab.compaction(&store, id, &model);
    let mut costs = Vec::new();
    let mut before = store.statements();
    let mut note = |what| {
        costs.push((what, store.statements() - before));
        before = store.statements();
    };
    compaction.plan().await.unwrap();
    note("plan");
    compaction.run(Mode::Full).await.unwrap();
    note("nothing to do");
    append(&store, id, chat(messages + 1, 40)).await;
    note("append");
    assert_eq!(compaction.plan().await.unwrap().jobs.len(), 1);
    note("plan of one leaf");
    let outcome = compaction.run(Mode::Incremental).await.unwrap();
    assert_eq!(
        (
            outcome.published.get("leaf"),
            outcome.published.get("condensed")
        ),
        (1, 0)
    );
    note("one leaf");
    costs
}

#[tokio::test]
async fn statement_counts_do_not_grow_with_history() {
    let short = costs(2_000).await;
    assert_eq!(short, costs(20_000).await);
    for (what, count) in short {
        assert!(count <= 80, "{what} takes {count} statements");
    }
}

/// Runs over a log without a model. Returns the number of published summaries and of statements.
async fn run_over(messages: u32) -> (u64, u64) {
    let lab = Lab::new(small());
    let (store, id) = filled(SqliteOptions::new().in_memory().await.unwrap(), messages).await;
    let before = store.statements();
    let outcome = lab.full(&store, id, &ExtractiveSummarizer::default()).await;
    assert_eq!(outcome.stop_reason, StopReason::NothingEligible);
    (outcome.summaries.len() as u64, store.statements() - before)
}

#[tokio::test]
async fn publishing_takes_few_statements_for_each_64_summaries() {
    let (fixed, each) = (80, 36);
    for messages in [40, 400, 2_000, 8_000] {
        let (summaries, statements) = run_over(messages).await;
        let most = fixed + each * summaries.div_ceil(64);
        assert!(
            statements <= most,
            "{summaries} summaries took {statements} statements, at most {most} are allowed"
        );
    }
}
