//! Families of forks of one session, and the operations on the latest fork.

use std::sync::Arc;

use agent_memory::testing::memory;
use agent_memory::{
    Budget, DagPolicy, Memory, Message, Mode, Seq, SeqRange, Session, compaction::FreshTail,
    retrieval::GrepArgs, store::SqliteStore,
};

use crate::branched::Shape;

/// A family of forks. The measured session is the latest fork.
pub(crate) struct Family {
    pub(crate) store: Arc<SqliteStore>,
    memory: Memory,
    latest: Session,
    _folder: tempfile::TempDir,
}

/// The operations, in the order in which they are measured.
pub(crate) const OPERATIONS: [&str; 9] = [
    "open",
    "append",
    "read",
    "context",
    "search",
    "fork",
    "compact",
    "metadata",
    "plan an erasure",
];

fn said(n: usize) -> Message {
    let text = format!(
        "Step {n}: the module {n} was renamed, its callers were changed and its tests run."
    );
    match n % 2 {
        1 => Message::user(text),
        _ => Message::assistant(text),
    }
}

impl Family {
    /// Makes a family with `size` forks, or for a comb `size` pairs of forks, of a session with 200 messages.
    pub(crate) async fn new(shape: Shape, size: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path().join("memory.db")).await;
        let store = Arc::new(store.unwrap());
        let policy = DagPolicy {
            fresh_tail: FreshTail::messages(20),
            max_source_tokens: Some(1_000),
            ..DagPolicy::default()
        };
        let built = memory().dag(policy).store(store.clone()).without_index();
        let memory: Memory = built.open().await.unwrap();
        let root = memory.session("root").await.unwrap();
        let talk: Vec<Message> = (1..=200).map(said).collect();
        let told = root.ingest_batch(talk).await.unwrap();
        assert_eq!(told.inserted(), 200);
        root.compact(Mode::Full).await.unwrap();
        let mut latest = root.clone();
        for n in 0..size {
            let parent = match shape {
                Shape::Star => &root,
                Shape::Chain | Shape::Comb => &latest,
            };
            let head = parent.info().await.unwrap().conversation.head;
            if matches!(shape, Shape::Comb) {
                parent.fork(head, format!("tooth {n}")).await.unwrap();
            }
            let fork = parent.fork(head, format!("fork {n}")).await.unwrap();
            fork.ingest(said(1)).await.unwrap();
            latest = fork;
        }
        Self {
            store,
            memory,
            latest,
            _folder: folder,
        }
    }

    /// Does one of the [`OPERATIONS`]. `round` makes the name of a new fork.
    pub(crate) async fn operate(&self, operation: &str, round: usize) -> agent_memory::Result<()> {
        let session = &self.latest;
        let range = |first, last| SeqRange::new(Seq(first), Seq(last)).unwrap();
        match operation {
            "open" => drop(self.memory.session(session.key().clone()).await?),
            "append" => drop(session.ingest(said(2)).await?),
            "read" => drop(session.entries_in(range(150, 190)).await?),
            "context" => drop(session.assemble(Budget::tokens(4_000)).await?),
            "search" => drop(
                session
                    .retrieval()
                    .grep(GrepArgs::new("renamed"))
                    .await
                    .unwrap(),
            ),
            "fork" => drop(session.fork(Seq(190), format!("measured {round}")).await?),
            "compact" => drop(session.compact(Mode::Full).await?),
            "metadata" => drop(session.info().await?),
            "plan an erasure" => drop(session.erase(range(201, 201), None).await?),
            _ => panic!("{operation}"),
        }
        Ok(())
    }
}
