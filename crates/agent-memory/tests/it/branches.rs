//! Transcripts with many branches: importing and verifying them takes a number of statements that grows linearly.

use std::sync::Arc;

use agent_memory::testing::memory;
use agent_memory::{DagPolicy, FreshTail, Memory, Mode};
use store_sqlite::SqliteStore;

use crate::branched::{Branched, SHAPES, Shape, TRUNK};

/// Statements that importing and verifying take.
#[derive(Debug, PartialEq, Eq)]
struct Statements {
    import: u64,
    again: u64,
    verify: u64,
}

async fn open(store: &Arc<SqliteStore>) -> Memory {
    let policy = DagPolicy::default()
        .with_fresh_tail(FreshTail {
            messages: 4,
            max_tokens: Some(200),
            max_part: None,
        })
        .with_max_source_tokens(Some(300));
    // What extending the index takes depends on what there is to merge.
    let builder = memory().dag(policy).store(store.clone()).without_index();
    builder.open().await.unwrap()
}

/// Imports a root, compacts it, and imports it again with its forks, which inherit its view.
async fn statements(shape: Shape, forks: usize) -> Statements {
    let store = Arc::new(SqliteStore::in_memory().await.unwrap());
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
        // Ids are looked up 64 at once: each of these numbers takes two looks.
        let [small, middle, large] = [
            statements(shape, 14).await,
            statements(shape, 24).await,
            statements(shape, 34).await,
        ];
        println!("{shape:?}: 14 forks {small:?}, 24 forks {middle:?}, 34 forks {large:?}");
        for (what, of) in [
            ("import", (|s| s.import) as fn(&Statements) -> u64),
            ("import again", |s| s.again),
            ("verify", |s| s.verify),
        ] {
            let steps = [of(&middle) - of(&small), of(&large) - of(&middle)];
            // Ids and rows come in pages of 64: a fork may need one of them more or less than the one before.
            let apart = steps[0].abs_diff(steps[1]);
            assert!(apart <= 10, "{shape:?}: {what} {steps:?}");
        }
    }
}
