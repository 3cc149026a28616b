//! Sessions of one memory that use different planners.

use std::sync::{Arc, Mutex};

use agent_memory::store::{FullStore, InMemoryStore};
use agent_memory::testing::memory;

use crate::support::Inspect as _;
use agent_memory::compaction::FreshTail;
use agent_memory::compaction::{BoxError, JobSink, Label, PassInput, ViewSource};
use agent_memory::{
    Budget, DagPolicy, Memory, Message, Mode, Seq, Session, Strategy,
    compaction::{DagPlanner, Planner},
    model::ViewName,
};
use async_trait::async_trait;
use store_conformance::{Layer, Layered};

/// The DAG planner with a separate view.
#[derive(Debug)]
struct Short(DagPlanner);

#[async_trait]
impl Planner for Short {
    fn view(&self) -> ViewName {
        ViewName::new("short")
    }

    fn fingerprint(&self) -> String {
        format!("short of {}", self.0.fingerprint())
    }

    fn passes(&self) -> &[Label] {
        self.0.passes()
    }

    async fn plan(
        &self,
        input: PassInput<'_>,
        view: &dyn ViewSource,
        jobs: &mut dyn JobSink,
    ) -> Result<(), BoxError> {
        self.0.plan(input, view, jobs).await
    }
}

async fn texts(session: &Session) -> Vec<String> {
    let context = session.assemble(Budget::tokens(100_000)).await.unwrap();
    context
        .messages
        .iter()
        .map(|message| format!("{:?}", message.parts))
        .collect()
}

#[tokio::test]
async fn each_session_follows_the_view_of_its_planner() {
    let policy = |tail| DagPolicy {
        fresh_tail: FreshTail::messages(tail),
        max_source_tokens: Some(600),
        ..DagPolicy::default()
    };
    let memory = Memory::builder()
        .store(InMemoryStore::new())
        .dag(policy(200))
        .open()
        .await
        .unwrap();
    let long = memory.session("chat").await.unwrap();
    for n in 1..=120 {
        let text = format!(
            "Step {n} of the release: {}",
            "checked and signed. ".repeat(12)
        );
        long.ingest(Message::user(text)).await.unwrap();
    }
    let planner = Short(DagPlanner::new(policy(10)));
    let short = memory.session("chat").planner(planner).await.unwrap();
    assert_eq!(short.view_name().await, ViewName::new("short"));

    let published = short.compact(Mode::Full).await.unwrap().published.total();
    assert!(published > 0);
    assert_eq!(long.compact(Mode::Full).await.unwrap().published.total(), 0);
    let (whole, compacted) = (texts(&long).await, texts(&short).await);
    assert_eq!(whole.len(), 120, "its own planner had nothing to do");
    assert!(compacted.len() < 60, "{} messages", compacted.len());
    assert_eq!(compacted.last(), whole.last());

    let fork = short.fork(Seq(100), "fork").await.unwrap();
    assert_eq!(fork.view_name().await, ViewName::new("short"));
    // The choice is the handle's: who opens the session anew has the memory's planner.
    let again = memory.session("chat").await.unwrap();
    assert_eq!(again.view_name().await, long.view_name().await);
    let report = memory.verify().await.unwrap();
    assert!(report.is_ok(), "{:?}", report.violations);
}

/// A store in which another process chooses one of the strategies before each write, until there are none left.
#[derive(Debug)]
struct Choosing {
    store: Arc<InMemoryStore>,
    other: Session,
    left: Mutex<Vec<Strategy>>,
}

#[async_trait]
impl Layer for Choosing {
    fn inner(&self) -> &dyn FullStore {
        &*self.store
    }

    async fn before_write(&self) -> memory_store::Result<Option<memory_store::Error>> {
        let next = self.left.lock().unwrap().pop();
        if let Some(strategy) = next {
            self.other.use_strategy(strategy).await.unwrap();
        }
        Ok(None)
    }
}

#[tokio::test]
async fn a_strategy_that_several_processes_choose_at_once_is_stored() {
    use Strategy::{Blocks, Dag, Handoff};
    for others in [vec![Dag], vec![Handoff], vec![Blocks, Handoff, Blocks, Dag]] {
        let store = Arc::new(InMemoryStore::new());
        let memory_of = |store: Arc<dyn FullStore>| memory().store(store).open();
        let other = memory_of(Arc::clone(&store) as Arc<dyn FullStore>).await;
        let other = other.unwrap().session("chat").await.unwrap();
        let choosing = Layered(Choosing {
            store,
            other: other.clone(),
            left: Mutex::new(Vec::new()),
        });
        let choosing = Arc::new(choosing);
        let own = memory_of(Arc::clone(&choosing) as Arc<dyn FullStore>).await;
        let own = own.unwrap().session("chat").await.unwrap();
        own.user("Which one is it?").await.unwrap();
        *choosing.0.left.lock().unwrap() = others.clone();
        let chosen = own.use_strategy(Handoff).await.unwrap();
        assert_eq!(chosen.strategy(), Some(Handoff), "{others:?}");
        chosen.compact(Mode::Full).await.unwrap();
        // The last one counts.
        let again = other.memory().session("chat").await.unwrap();
        assert_eq!(again.strategy(), Some(Handoff), "{others:?}");
    }
}
