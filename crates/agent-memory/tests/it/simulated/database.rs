//! A database on a simulated disk.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_memory::model::{Clock, Timestamp};
use agent_memory::retrieval::GrepArgs;
use agent_memory::store::{Durability, SqliteOptions};
use agent_memory::testing::{START, Scripted};
use agent_memory::{Memory, Result};
use simulated_disk::Disk;
use tempfile::TempDir;

use crate::support::{dump, small};

/// A clock that jumps by up to ten years in both directions.
#[derive(Debug, Default)]
pub(crate) struct Jumping(Mutex<Option<fastrand::Rng>>);

impl Jumping {
    /// Lets the clock jump from now on. Until then it does not move.
    pub(crate) fn jump_with(&self, seed: u64) {
        *self.0.lock().unwrap() = Some(fastrand::Rng::with_seed(seed));
    }
}

impl Clock for Jumping {
    fn now(&self) -> Timestamp {
        const YEARS: i64 = 10 * 365 * 86_400 * 1_000_000;
        let jump = self.0.lock().unwrap().as_mut().map(|random| {
            // Mostly by less than a minute.
            let most = [YEARS, 60_000_000][usize::from(random.u8(..4) > 0)];
            random.i64(-most..=most)
        });
        Timestamp(START.0 + jump.unwrap_or(0))
    }
}

pub(crate) struct Database {
    pub(crate) disk: Disk,
    pub(crate) clock: Arc<Jumping>,
    /// Whether summaries are written by a model, which always answers.
    pub(crate) asks_model: bool,
    durability: Durability,
    memory: Option<Memory>,
    /// The folder exists, with an empty file for the database; its content is on the simulated disk.
    folder: TempDir,
}

impl Database {
    pub(crate) fn new(durability: Durability) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            disk: Disk::mount(folder.path()),
            clock: Arc::default(),
            asks_model: false,
            durability,
            memory: None,
            folder,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("memory.db")
    }

    /// Returns the open memory, or opens it.
    pub(crate) async fn memory(&mut self) -> Result<Memory> {
        if let Some(memory) = &self.memory {
            return Ok(memory.clone());
        }
        let options = SqliteOptions::new()
            .with_durability(self.durability)
            .with_lock_timeout(Duration::from_secs(2))
            .with_clock(self.clock.clone());
        let store = options.open(self.path()).await?;
        let mut memory = small().store(store).clock(self.clock.clone());
        if self.asks_model {
            memory = memory.summarizer(Scripted::head_cut());
        }
        Ok(self.memory.insert(memory.open().await?).clone())
    }

    /// Closes the memory, if it is open.
    pub(crate) async fn close(&mut self) -> Result<()> {
        match self.memory.take() {
            Some(memory) => memory.close().await,
            None => Ok(()),
        }
    }

    /// Turns the disk off and leaves all connections, so that no closing connection changes a file.
    pub(crate) fn lose_connections(&mut self) {
        self.disk.turn_off();
        self.memory = None;
    }

    /// Returns the content of the database without times, after a verification.
    pub(crate) async fn content(&mut self, what: &str) -> String {
        let memory = self.memory().await;
        let memory = memory.unwrap_or_else(|error| panic!("{what}: cannot be opened: {error:?}"));
        let report = memory.verify().await.unwrap();
        assert!(report.is_ok(), "{what}: {:?}", report.violations);
        without_times(&dump(&memory).await)
    }
}

/// Asserts that the search index of a session is undamaged, and that a search finds all messages with a word.
pub(crate) async fn check_index(memory: &Memory, key: &str, what: &str) {
    let session = memory.get_session(key).await.unwrap();
    let checked = session.index().check().await.unwrap();
    assert!(checked.damage.is_empty(), "{what}: {checked:?}");
    let mut query = GrepArgs::new("renamed");
    query.limit = 100;
    let found = session.retrieval().grep(query).await.unwrap();
    let entries = session.entries().await.unwrap();
    let expected = entries
        .iter()
        .filter(|entry| format!("{entry:?}").contains("renamed"));
    assert!(found.complete, "{what}: {found:?}");
    assert_eq!(found.hits.len(), expected.count(), "{what}: hits");
}

/// Returns a debug text with a placeholder for each time.
fn without_times(text: &str) -> String {
    let mut parts = text.split("Timestamp(");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("Timestamp(");
        out.push_str(part.trim_start_matches(|c: char| c == '-' || c.is_ascii_digit()));
    }
    out
}
