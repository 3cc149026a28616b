//! Importing and verifying transcripts with many branches takes a number of statements that grows linearly.

use std::sync::Arc;

use agent_memory::testing::memory;
use agent_memory::{DagPolicy, Memory, Mode, compaction::FreshTail};
use store_sqlite::{SqliteOptions, SqliteStore};

use crate::branched::{Branched, SHAPES, Shape, TRUNK};
use crate::corpus::is_deep;

/// Numbers of statements for importing and for verifying.
#[derive(Debug, PartialEq, Eq)]
struct Statements {
    import: u64,
    again: u64,
    verify: u64,
}

async fn open(store: &Arc<SqliteStore>) -> Memory {
    let policy = DagPolicy {
        fresh_tail: FreshTail {
            messages: 4,
            max_tokens: Some(200),
            max_part: None,
        },
        max_source_tokens: Some(300),
        ..DagPolicy::default()
    };
    // What extending the index takes depends on what there is to merge.
    let builder = memory().dag(policy).store(store.clone()).without_index();
    builder.open().await.unwrap()
}

/// Imports a root, compacts it, and imports it again with its forks, which inherit its view. Counts the statements.
async fn statements(shape: Shape, forks: usize) -> Statements {
    let store = Arc::new(SqliteOptions::new().in_memory().await.unwrap());
    let memory = open(&store).await;
    memory
        .import(&Branched::new(shape, 0).transcript())
        .await
        .unwrap();
    let root = memory.get_session("branched").await.unwrap();
    let compacted = root.compact(Mode::Full).await.unwrap();
    assert!(compacted.published.get("leaf") > 1, "{compacted:?}");
    let transcript = Branched::new(shape, forks).transcript();
    let mut before = store.statements();
    let mut taken = || {
        let now = store.statements();
        now - std::mem::replace(&mut before, now)
    };
    let imported = memory.import(&transcript).await.unwrap();
    assert_eq!(imported.sessions.len(), forks + 1);
    let import = taken();
    memory.import(&transcript).await.unwrap();
    let again = taken();
    let verified = memory.verify().await.unwrap();
    assert_eq!(verified.violations, []);
    let verify = taken();
    assert_eq!(verified.conversations, forks as u64 + 1);
    // Each entry is read once, however many conversations show it.
    assert_eq!(verified.messages, (TRUNK + 2 * forks) as u64 + 1);
    Statements {
        import,
        again,
        verify,
    }
}

#[tokio::test]
async fn statements_grow_linearly_with_forks() {
    for shape in SHAPES {
        let mut all = Vec::new();
        let most = if is_deep() { 40 } else { 12 };
        for forks in 1..=most {
            all.push(statements(shape, forks).await);
        }
        for (what, of) in [
            ("import", (|s| s.import) as fn(&Statements) -> u64),
            ("import again", |s| s.again),
            ("verify", |s| s.verify),
        ] {
            let steps = all.windows(2).map(|pair| of(&pair[1]) - of(&pair[0]));
            let steps: Vec<u64> = steps.collect();
            // No fork takes more than the second, but for ids that begin another page of 64: those of all entries, and of the
            // longest branch.
            let (usual, pages) = (steps[0], 2);
            let more: u64 = steps.iter().map(|step| step.saturating_sub(usual)).sum();
            assert!(more <= pages, "{shape:?}: {what} {steps:?}");
        }
    }
}
