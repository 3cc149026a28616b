//! Memories for tests on both stores, and their contents as text.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use agent_memory::compaction::Trigger;
use agent_memory::testing::memory;
use agent_memory::{
    Builder, DagPolicy, Memory, Message, RawJson, Session, SessionKey,
    compaction::Outcome,
    model::ViewName,
    store::ConversationFilter,
    summaries::{Gate, Ladder},
};
use memory_model::{Seq, SeqRange, ViewVersion};
use memory_store::{Order, Snapshot};
use tempfile::TempDir;

/// Returns a ladder that takes any text of an accepted length, also from models that repeat or cut their source.
pub(crate) fn lenient() -> Ladder {
    let gate = Gate {
        floor: false,
        ..Gate::default()
    };
    Ladder {
        gate: Some(gate),
        ..Ladder::default()
    }
}

/// A memory on one of the stores.
pub(crate) struct Place {
    pub(crate) name: &'static str,
    pub(crate) memory: Memory,
    /// Folder of the database. It is removed when the place is dropped.
    folder: Option<TempDir>,
}

impl Place {
    /// Opens the session `s` with the first messages of an invented conversation.
    pub(crate) async fn talked(&self, messages: usize) -> Session {
        let session = self.memory.session("s").await.unwrap();
        talk(&session, messages).await;
        session
    }

    /// Opens the same database again, with another builder.
    pub(crate) async fn reopen(self, builder: Builder) -> Place {
        let Some(folder) = self.folder else {
            let memory = builder.store(self.memory.store().clone());
            return Place {
                memory: memory.open().await.unwrap(),
                folder: None,
                ..self
            };
        };
        self.memory.close().await.unwrap();
        let memory = builder.sqlite(folder.path().join("memory.db"));
        Place {
            name: self.name,
            memory: memory.open().await.unwrap(),
            folder: Some(folder),
        }
    }
}

/// Returns the same memory in RAM and in an SQLite file.
pub(crate) async fn both(build: impl Fn() -> Builder) -> [Place; 2] {
    let folder = tempfile::tempdir().unwrap();
    [
        Place {
            name: "in memory",
            memory: build().open().await.unwrap(),
            folder: None,
        },
        Place {
            name: "sqlite",
            memory: build()
                .sqlite(folder.path().join("memory.db"))
                .open()
                .await
                .unwrap(),
            folder: Some(folder),
        },
    ]
}

/// Returns both memories with default settings.
pub(crate) async fn plain() -> [Place; 2] {
    both(memory).await
}

/// Returns a builder with leaves of twelve messages and condensed summaries of up to four, so that a short conversation
/// has a deep tree.
pub(crate) fn small() -> Builder {
    memory().dag(DagPolicy {
        max_source_tokens: Some(400),
        condensed_min: 2,
        condensed_max: Some(4),
        ..DagPolicy::default()
    })
}

/// Returns the `n`th message of an invented conversation, about 30 tokens long. Users and assistants alternate.
pub(crate) fn said(n: usize) -> Message {
    let text = format!(
        "Step {n}: the module numbered {n} was renamed, its callers were changed and its tests \
         run. Nothing else was touched by it."
    );
    match n % 2 {
        1 => Message::user(text),
        _ => Message::assistant(text),
    }
}

/// Stores a message.
pub(crate) async fn say(session: &Session, message: Message) {
    session.ingest(message).await.unwrap();
}

/// Stores the first `count` messages of an invented conversation.
pub(crate) async fn talk(session: &Session, count: usize) {
    let told = session
        .ingest_batch((1..=count).map(said).collect())
        .await
        .unwrap();
    assert_eq!(told.inserted(), count);
}

/// Returns the numbers of leaves and condensed summaries that a compaction published.
pub(crate) fn made(outcome: &Outcome) -> (u64, u64) {
    let published = |label| outcome.published.get(label);
    (published("leaf"), published("condensed"))
}

/// Returns the path of a fixture.
pub(crate) fn fixture(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    folder.join(name).join("session.jsonl")
}

pub(crate) fn json(text: &str) -> RawJson {
    RawJson::parse(text).unwrap()
}

/// Returns a session in the export format.
pub(crate) async fn export(session: &Session) -> String {
    let mut out = String::new();
    for entry in session.entries().await.unwrap() {
        out.push_str(&serde_json::to_string(&entry.to_export()).unwrap());
        out.push('\n');
    }
    out
}

/// Returns the exports of these sessions.
pub(crate) async fn exports(memory: &Memory, keys: &[SessionKey]) -> Vec<String> {
    let mut out = Vec::new();
    for key in keys {
        out.push(export(&memory.get_session(key.clone()).await.unwrap()).await);
    }
    out
}

/// Returns all data of a memory except leases: conversations, logs, summaries, and views with every version.
pub(crate) async fn dump(memory: &Memory) -> String {
    let mut filter = ConversationFilter::default();
    filter.archived = true;
    let mut out = String::new();
    for info in memory.sessions(&filter).await.unwrap() {
        let store = memory.store();
        let id = info.conversation.id;
        let session = memory.get_session(info.conversation.key.clone()).await;
        for entry in session.unwrap().entries().await.unwrap() {
            writeln!(out, "{entry:?}").unwrap();
        }
        let head = info.conversation.head;
        let mut conversation = info.conversation;
        conversation.updated_at = conversation.created_at;
        writeln!(out, "{conversation:?}").unwrap();
        let summaries = store.summary_log(id, None, 10_000).await.unwrap();
        for summary in summaries.items {
            writeln!(out, "{summary:?}").unwrap();
        }
        for view in info.views {
            writeln!(out, "{view:?}").unwrap();
            for publication in publications(memory, &view.name, id).await {
                writeln!(out, "{publication:?}").unwrap();
            }
            let snapshot = Snapshot {
                conversation: id,
                head,
                log_tokens: conversation.tokens,
                view: view.name.clone(),
                version: view.version,
                saved: view.saved,
                spans: view.spans,
                erasures: conversation.erasures,
            };
            let all = SeqRange::new(Seq::FIRST, head).unwrap();
            let spans = store.spans(&snapshot, all, Order::OldestFirst, 10_000);
            for span in spans.await.unwrap().items {
                writeln!(out, "{span:?}").unwrap();
            }
        }
    }
    out
}

async fn publications(
    memory: &Memory,
    view: &ViewName,
    id: agent_memory::model::ConversationId,
) -> Vec<memory_store::Publication> {
    let page = memory
        .store()
        .publications(id, view, ViewVersion(0), 10_000);
    page.await.unwrap().items
}

/// Access to a session's view for tests.
#[allow(async_fn_in_trait)]
pub(crate) trait Inspect {
    async fn spans(&self) -> agent_memory::Result<Vec<agent_memory::model::Span>>;
    async fn snapshot(&self) -> agent_memory::Result<agent_memory::store::Snapshot>;
    async fn summaries(
        &self,
        ids: &[agent_memory::model::SummaryId],
    ) -> agent_memory::Result<Vec<Option<agent_memory::model::Summary>>>;
    async fn tree(&self, depth: usize) -> agent_memory::Result<agent_memory::view::Tree>;
    async fn view_name(&self) -> ViewName;
    async fn needs_compaction(&self, trigger: impl Into<Trigger>) -> agent_memory::Result<bool>;
    /// Opens the same session with a window.
    async fn in_window(&self, window: agent_memory::Window) -> Session;
}

impl Inspect for Session {
    async fn spans(&self) -> agent_memory::Result<Vec<agent_memory::model::Span>> {
        self.current_view().await?.spans().await
    }

    async fn snapshot(&self) -> agent_memory::Result<agent_memory::store::Snapshot> {
        Ok(self.current_view().await?.snapshot().clone())
    }

    async fn summaries(
        &self,
        ids: &[agent_memory::model::SummaryId],
    ) -> agent_memory::Result<Vec<Option<agent_memory::model::Summary>>> {
        Ok(self.memory().store().summaries(self.id(), ids).await?)
    }

    async fn tree(&self, depth: usize) -> agent_memory::Result<agent_memory::view::Tree> {
        self.current_view().await?.tree(depth).await
    }

    async fn view_name(&self) -> ViewName {
        self.snapshot().await.unwrap().view
    }

    async fn needs_compaction(&self, trigger: impl Into<Trigger>) -> agent_memory::Result<bool> {
        let key = self.key().clone();
        self.memory().needs_compaction(key, trigger).await
    }

    async fn in_window(&self, window: agent_memory::Window) -> Session {
        let key = self.key().clone();
        self.memory().session(key).window(window).await.unwrap()
    }
}
