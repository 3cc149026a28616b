//! The number of database statements of an operation does not grow with the length of the history.

use std::sync::Arc;

use agent_memory::testing::memory;
use agent_memory::{
    Budget, DagPolicy, Memory, Mode, Session, compaction::FreshTail, retrieval::GrepArgs,
    store::SqliteStore,
};

use crate::support::{made, said, talk};

/// Numbers of statements by operation, including `begin` and `commit`.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    append: u64,
    batch_of_64: u64,
    assemble: u64,
    plan: u64,
    compact: u64,
    context_of_summaries: u64,
    expand: u64,
    describe: u64,
    grep: u64,
    nothing_to_compact: u64,
}

struct Counted {
    store: Arc<SqliteStore>,
    session: Session,
    /// Folder of the database. It exists until this value is dropped.
    _folder: tempfile::TempDir,
}

impl Counted {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path().join("memory.db")).await;
        let store = Arc::new(store.unwrap());
        let tail = FreshTail::messages(20);
        // Leaves of 2,000 tokens that are never condensed, so that a long history has many spans.
        let policy = DagPolicy {
            fresh_tail: tail,
            max_source_tokens: Some(2_000),
            condensed_min: 1_000,
            condensed_max: None,
            ..DagPolicy::default()
        };
        let memory: Memory = memory()
            .dag(policy)
            .store(store.clone())
            // What extending the index takes depends on what there is to merge.
            .without_index()
            .open()
            .await
            .unwrap();
        Self {
            session: memory.session("s").await.unwrap(),
            store,
            _folder: folder,
        }
    }

    /// Returns the number of statements that an operation executed.
    async fn count<T>(&self, work: impl Future<Output = T>) -> u64 {
        let before = self.store.statements();
        work.await;
        self.store.statements() - before
    }
}

async fn counts(history: usize) -> Counts {
    let counted = Counted::new().await;
    let session = &counted.session;
    talk(session, history).await;
    let budget = Budget::tokens(8_000);
    let assemble = counted.count(async { session.assemble(budget).await.unwrap() });
    let assemble = assemble.await;
    session.compact(Mode::Full).await.unwrap();
    let nothing = counted.count(async { session.compact(Mode::Full).await.unwrap() });
    let nothing = nothing.await;

    let append = counted
        .count(async { session.ingest(said(1)).await.unwrap() })
        .await;
    let batch: Vec<_> = (1..=64).map(said).collect();
    let batch = counted
        .count(async { session.ingest_batch(batch).await.unwrap() })
        .await;
    let plan = counted.count(async { assert_eq!(session.plan().await.unwrap().jobs.len(), 1) });
    let plan = plan.await;
    let mut summaries = Vec::new();
    let compact = counted.count(async {
        let outcome = session.compact(Mode::Incremental).await.unwrap();
        assert_eq!(made(&outcome), (1, 0));
        summaries = outcome.summaries;
    });
    let compact = compact.await;
    let context = counted
        .count(async { session.assemble(budget).await.unwrap() })
        .await;
    let retrieval = session.retrieval();
    let id = summaries[0].clone();
    let expand = counted
        .count(async { retrieval.expand(id.as_str()).await.unwrap() })
        .await;
    let describe = counted
        .count(async { retrieval.describe(&id).await.unwrap() })
        .await;
    let grep = counted.count(async {
        let page = retrieval.grep(GrepArgs::new("renamed")).await;
        assert_eq!(page.unwrap().hits.len(), 20);
    });
    Counts {
        append,
        batch_of_64: batch,
        assemble,
        plan,
        compact,
        context_of_summaries: context,
        expand,
        describe,
        grep: grep.await,
        nothing_to_compact: nothing,
    }
}

#[tokio::test]
async fn the_numbers_are_constant() {
    let short = counts(1_000).await;
    assert_eq!(
        short,
        Counts {
            append: 5,
            batch_of_64: 5,
            assemble: 6,
            plan: 6,
            compact: 33,
            context_of_summaries: 9,
            expand: 3,
            describe: 3,
            grep: 2,
            nothing_to_compact: 6,
        }
    );
    let long = counts(5_000).await;
    // A context has a headline at least of every summary: each further page of 64 spans that are not condensed takes
    // four statements.
    assert_eq!(long.context_of_summaries, short.context_of_summaries + 4);
    let long = Counts {
        context_of_summaries: short.context_of_summaries,
        ..long
    };
    assert_eq!(long, short);
}
