//! The number of database statements of an operation does not grow with the forks of a session, and linearly with a chain
//! of forks.

use std::sync::Arc;

use agent_memory::testing::memory;
use agent_memory::{
    Budget, DagPolicy, Memory, Mode, Seq, SeqRange, Session, compaction::FreshTail,
    retrieval::GrepArgs, store::SqliteStore,
};

use crate::support::{said, talk};

/// A family of forks. The measured session is the latest fork.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// All fork one session.
    Star,
    /// Each forks the one before.
    Chain,
    /// As a chain, and each has a second fork.
    Comb,
}

struct Family {
    store: Arc<SqliteStore>,
    memory: Memory,
    latest: Session,
    _folder: tempfile::TempDir,
}

impl Family {
    /// Makes a family with `size` forks, or `size` pairs of forks, of a session with 200 messages.
    async fn new(shape: Shape, size: usize) -> Self {
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
        talk(&root, 200).await;
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

    async fn count<T>(&self, work: impl IntoFuture<Output = agent_memory::Result<T>>) -> u64 {
        let before = self.store.statements();
        work.await.unwrap();
        self.store.statements() - before
    }

    /// Returns the number of statements of each operation on the latest fork.
    async fn costs(&self) -> Vec<(&'static str, u64)> {
        let (memory, session) = (&self.memory, &self.latest);
        let key = session.key().clone();
        let budget = Budget::tokens(4_000);
        let (retrieval, last) = (session.retrieval(), Seq(190));
        let range = |first, last| SeqRange::new(Seq(first), Seq(last)).unwrap();
        let grep = async { Ok(retrieval.grep(GrepArgs::new("renamed")).await.unwrap()) };
        vec![
            ("open", self.count(memory.session(key)).await),
            ("append", self.count(session.ingest(said(2))).await),
            (
                "read",
                self.count(session.entries_in(range(150, 190))).await,
            ),
            ("context", self.count(session.assemble(budget)).await),
            ("search", self.count(grep).await),
            ("fork", self.count(session.fork(last, "measured")).await),
            ("compact", self.count(session.compact(Mode::Full)).await),
            ("metadata", self.count(session.info()).await),
            (
                "plan an erasure",
                self.count(session.erase(range(201, 201), None)).await,
            ),
        ]
    }
}

/// Sizes at equal distances.
const SIZES: [usize; 3] = [3, 20, 37];

#[tokio::test]
async fn a_chain_of_forks_costs_statements_in_proportion_and_other_forks_cost_none() {
    for shape in [Shape::Star, Shape::Chain, Shape::Comb] {
        let mut costs = Vec::new();
        for size in SIZES {
            costs.push(Family::new(shape, size).await.costs().await);
        }
        for ((few, more), most) in costs[0].iter().zip(&costs[1]).zip(&costs[2]) {
            let (operation, [few, more, most]) = (few.0, [few.1, more.1, most.1]);
            println!("{shape:?}, {operation}: {few}, {more}, {most}");
            let what = format!("{operation} in a {shape:?} of {SIZES:?}: {few}, {more}, {most}");
            match (shape, operation) {
                (Shape::Star, _) | (_, "open" | "append" | "read" | "fork" | "metadata") => {
                    assert!(few == more && more == most, "{what}");
                }
                // A page of a log takes a statement for each part of the log that it crosses.
                _ => {
                    assert!(most - more <= (more - few) * 5 / 4 + 2, "{what}");
                }
            }
        }
        // A search reads the log once.
        let search = costs[2].iter().find(|cost| cost.0 == "search").unwrap().1;
        assert!(search <= 3 + 1 + SIZES[2] as u64, "{shape:?}: {search}");
    }
}
