//! Generated conversations of several lengths with the same end, in SQLite files.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use agent_memory::testing::Generated;
use agent_memory::{
    DagPolicy, Memory, Message, Mode, RawJson, Session,
    compaction::{DagPlanner, Planner},
    model::{SummaryId, ViewName},
    store::SqliteStore,
};
use async_trait::async_trait;
use compaction_plan::{BoxError, JobSink, Label, PassInput, ViewSource};
use memory_model::Part;
use summarize_escalation::{Error, Ladder, Source, Summarizer, SummarizerResponse, SummaryRequest};

/// Seed of all random choices.
const SEED: u64 = 1;
/// Number of last messages that are the same in all conversations, so that reads at the end have the same cost.
const END: usize = 200;
/// Number of messages of a pending chunk. They cost less than the maximum source of one leaf.
const CHUNK: usize = 70;
/// Length of the large tool result near the end, in bytes.
const LARGE: usize = 500_000;
/// Number of messages in one transaction while a conversation is generated.
const BATCH: usize = 640;
/// Key of the session.
const KEY: &str = "bench";

/// Returns the messages of a conversation of this length.
pub(crate) fn messages(size: usize) -> impl Iterator<Item = Message> {
    let end = Generated::new(SEED + 1).take(END);
    Generated::new(SEED).take(size - END).chain(end)
}

/// A model without cost: it returns the beginning of each part of its source unchanged. The gate checks its summaries
/// and accepts them.
#[derive(Debug)]
struct Heads;

#[async_trait]
impl Summarizer for Heads {
    fn id(&self) -> &str {
        "heads@1"
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
        let mut text = String::new();
        for piece in request.source {
            let (said, bytes) = match piece {
                Source::Summary(summary) => (summary.text, 800),
                Source::Message(entry) => match entry.parts.first() {
                    Some(Part::Text { text }) => (text.as_str(), 100),
                    _ => continue,
                },
            };
            text.push_str(&said[..said.floor_char_boundary(bytes)]);
            text.push('\n');
        }
        Ok(SummarizerResponse::new(text))
    }
}

fn lenient() -> Ladder {
    Ladder {
        gate: None,
        ..Ladder::default()
    }
}

/// A planner for a view that shows every message unchanged.
#[derive(Debug, Default)]
struct Untouched(DagPlanner);

#[async_trait]
impl Planner for Untouched {
    fn view(&self) -> ViewName {
        ViewName::new("untouched")
    }

    fn fingerprint(&self) -> String {
        self.0.fingerprint()
    }

    fn passes(&self) -> &[Label] {
        self.0.passes()
    }

    fn max_iterations(&self) -> Option<u32> {
        self.0.max_iterations()
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

/// Figures of the first full compaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Swept {
    pub(crate) seconds: f64,
    pub(crate) summaries: u64,
    /// Peak memory of the process, in MB; 0 if the system does not report it.
    pub(crate) peak: u64,
}

/// A conversation of one length that is completely compacted. The states of benches are copies of it.
pub(crate) struct Base {
    pub(crate) name: &'static str,
    pub(crate) swept: Swept,
    path: PathBuf,
}

/// State of one bench at one length: a copy of the conversation that only this bench uses.
pub(crate) struct Fixture {
    pub(crate) path: PathBuf,
    /// Session that compacts by the default policy.
    pub(crate) session: Session,
    /// Session that makes leaves and never condenses them, so that a pass with a pending chunk makes one leaf.
    pub(crate) leaves: Session,
    pub(crate) untouched: Session,
    /// Leaves in the middle of the log, for benches that expand them.
    pub(crate) made: Vec<SummaryId>,
    /// Number of chunks that were appended.
    chunks: u64,
    pub(crate) more: Generated,
}

async fn opened(path: &Path) -> Memory {
    let memory = Memory::builder().sqlite(path);
    memory
        .summarizer(Arc::new(Heads))
        .ladder(lenient())
        .open()
        .await
        .unwrap()
}

/// Writes a conversation without compacting it.
async fn raw(size: usize, path: &Path) {
    let memory = opened(path).await;
    let session = memory.session(KEY).await.unwrap();
    let mut all = messages(size).peekable();
    while all.peek().is_some() {
        let batch = all.by_ref().take(BATCH).collect();
        let told = session.ingest_batch(batch).await.unwrap();
        assert_eq!(told.conflicts(), 0);
    }
    memory.close().await.unwrap();
}

/// Runs [`sweep`] in a separate process, so that its peak memory is measured separately. Returns its output.
fn sweep_elsewhere(path: &Path) -> Swept {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.arg("sweep").arg(path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut words = text.split_whitespace();
    Swept {
        seconds: words.next().unwrap().parse().unwrap(),
        summaries: words.next().unwrap().parse().unwrap(),
        peak: words.next().unwrap().parse().unwrap(),
    }
}

/// Compacts the conversation of a file completely, and prints the seconds, the summaries and the peak memory.
pub(crate) async fn sweep(path: &Path) {
    let memory = opened(path).await;
    let session = memory.get_session(KEY).await.unwrap();
    let start = Instant::now();
    let outcome = session.compact(Mode::Full).await.unwrap();
    let seconds = start.elapsed().as_secs_f64();
    memory.close().await.unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak: u64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0);
    println!("{seconds} {} {}", outcome.published.total(), peak / 1024);
}

impl Base {
    pub(crate) async fn new(size: usize, name: &'static str, folder: &Path) -> Self {
        let path = folder.join(format!("{name}.db"));
        raw(size, &path).await;
        let swept = sweep_elsewhere(&path);
        Self { name, swept, path }
    }

    /// Returns the initial state of a bench.
    pub(crate) async fn state(&self, bench: &str) -> Fixture {
        let path = self
            .path
            .with_file_name(format!("{}-{bench}.db", self.name));
        std::fs::copy(&self.path, &path).unwrap();
        let store = Arc::new(SqliteStore::open(&path).await.unwrap());
        let builder = || {
            Memory::builder()
                .store(store.clone())
                .summarizer(Arc::new(Heads))
                .ladder(lenient())
        };
        let memory = builder().open().await.unwrap();
        let never = DagPolicy {
            condensed_min: 1_000_000,
            condensed_max: None,
            ..DagPolicy::default()
        };
        let leaves = builder().dag(never).open().await.unwrap();
        let untouched = builder().planner(Untouched::default());
        let untouched = untouched.open().await.unwrap();
        let session = memory.get_session(KEY).await.unwrap();
        let mut state = Fixture {
            path,
            made: Vec::new(),
            leaves: leaves.get_session(KEY).await.unwrap(),
            untouched: untouched.get_session(KEY).await.unwrap(),
            session,
            chunks: 0,
            more: Generated::new(SEED + 2),
        };
        match bench {
            "expand" => state.made = middle(&state.session).await,
            "plan" => state.pend().await,
            "assemble_large_result" => state.end_with_large_result().await,
            _ => {}
        }
        state
    }
}

impl Fixture {
    /// Closes the database and removes it.
    pub(crate) async fn close(self) {
        self.session.memory().close().await.unwrap();
        for suffix in ["", "-wal", "-shm"] {
            // The last two are there only while the database is open.
            let _ = std::fs::remove_file(format!("{}{suffix}", self.path.display()));
        }
    }

    /// Appends a tool call with a result of 500 kB, and the assistant's reply to it.
    async fn end_with_large_result(&self) {
        let line = "src/lib.rs:42: error: the value moved here was borrowed before\n";
        let arguments = RawJson::parse("{\"path\":\"build.log\"}").unwrap();
        let messages = vec![
            Message::user("What does the build say?"),
            Message::tool_call("the-large-one", "read", arguments),
            Message::tool_result("the-large-one", line.repeat(LARGE / line.len())),
        ];
        let count = messages.len();
        let stored = self.session.ingest_batch(messages).await.unwrap();
        assert_eq!(stored.inserted(), count);
    }

    /// Appends a chunk of messages from which one leaf will be made.
    pub(crate) async fn pend(&mut self) {
        self.chunks += 1;
        let chunk = Generated::new(SEED + 100 + self.chunks).take(CHUNK);
        let chunk = self.session.ingest_batch(chunk.collect()).await.unwrap();
        assert_eq!(chunk.inserted(), CHUNK);
    }
}

/// Returns a few leaves around the middle of the log. They expand to about the same size in every conversation.
async fn middle(session: &Session) -> Vec<SummaryId> {
    let store = session.memory().store();
    let middle = session.info().await.unwrap().conversation.head.0 / 2;
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.summary_log(session.id(), after.as_ref(), 512).await;
        let page = page.unwrap();
        found.extend(page.items.into_iter().filter_map(|summary| {
            let alike = summary.depth == 0 && (15_000..20_000).contains(&summary.source_tokens);
            alike.then(|| (summary.range.first.0.abs_diff(middle), summary.id))
        }));
        found.sort();
        found.truncate(3);
        match page.next {
            Some(next) => after = Some(next),
            None => return found.into_iter().map(|(_, id)| id).collect(),
        }
    }
}
