//! Transcripts with many branches: importing and verifying them takes a number of statements that grows linearly.

use std::fmt::Write as _;
use std::sync::Arc;

use agent_memory::testing::memory;
use agent_memory::{DagPolicy, FreshTail, Memory, Mode};
use message_formats::{ReadOptions, Transcript};
use store_sqlite::SqliteStore;

/// How the forks of a transcript hang together.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// Every fork begins in the root's log.
    Star,
    /// Every fork begins in the log of the fork before it.
    Chain,
    /// A chain in which a second fork begins at each step.
    Comb,
}

const SHAPES: [Shape; 3] = [Shape::Star, Shape::Chain, Shape::Comb];

/// Messages of the root's log.
const TRUNK: usize = 40;

/// A pi transcript: a root of [`TRUNK`] messages and `forks` forks of two messages each.
struct Branched {
    text: String,
}

impl Branched {
    fn new(shape: Shape, forks: usize) -> Self {
        let mut file = Self {
            text: "{\"type\":\"session\",\"version\":3,\"id\":\"branched\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/\"}\n".to_owned(),
        };
        let mut parent = None;
        for n in 1..=TRUNK {
            parent = Some(file.message(&format!("trunk{n}"), parent.as_deref()));
        }
        let trunk = format!("trunk{}", TRUNK - 4);
        let mut link = trunk.clone();
        for n in 0..forks {
            let from = match shape {
                Shape::Star => trunk.clone(),
                Shape::Chain => link.clone(),
                // Two forks begin at the same message; the chain goes on from the second.
                Shape::Comb => link.clone(),
            };
            let first = file.message(&format!("fork{n}a"), Some(&from));
            file.message(&format!("fork{n}b"), Some(&first));
            if matches!(shape, Shape::Chain) || n % 2 == 1 {
                link = first;
            }
        }
        file
    }

    fn message(&mut self, id: &str, parent: Option<&str>) -> String {
        let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent}\""));
        let role = if id.ends_with('a') {
            "user"
        } else {
            "assistant"
        };
        writeln!(
            self.text,
            "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"2026-01-01T00:00:01.000Z\",\
             \"message\":{{\"role\":\"{role}\",\"content\":[{{\"type\":\"text\",\"text\":\"This is what {id} says: the \
             module was renamed, its callers were changed and its tests were run.\"}}]}}}}"
        )
        .unwrap();
        id.to_owned()
    }

    fn transcript(&self) -> Transcript {
        message_formats::read(self.text.as_bytes(), &ReadOptions::default()).unwrap()
    }
}

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
    let builder = memory().dag(policy).store(store.clone());
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
    let root = memory.existing("branched").await.unwrap();
    let compacted = root.compact(Mode::Full).await.unwrap();
    assert!(compacted.leaf > 1, "{compacted:?}");
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
        let [small, middle, large] = [
            statements(shape, 10).await,
            statements(shape, 20).await,
            statements(shape, 30).await,
        ];
        println!("{shape:?}: 10 forks {small:?}, 20 forks {middle:?}, 30 forks {large:?}");
        for (what, of) in [
            ("import", (|s| s.import) as fn(&Statements) -> u64),
            ("import again", |s| s.again),
            ("verify", |s| s.verify),
        ] {
            let steps = [of(&middle) - of(&small), of(&large) - of(&middle)];
            assert_eq!(steps[0], steps[1], "{shape:?}: {what}");
        }
    }
}

/// Prints how long importing and verifying take.
#[tokio::test]
#[ignore = "prints durations and asserts nothing about them"]
async fn durations() {
    for shape in SHAPES {
        for forks in [250, 500, 1_000] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("memory.db");
            let memory = memory().sqlite(&path).open().await.unwrap();
            let transcript = Branched::new(shape, forks).transcript();
            let start = std::time::Instant::now();
            memory.import(&transcript).await.unwrap();
            let import = start.elapsed();
            let start = std::time::Instant::now();
            assert!(memory.verify().await.unwrap().is_ok());
            println!(
                "{shape:?}, {forks} forks: import {import:.2?}, verify {:.2?}",
                start.elapsed()
            );
            memory.close().await.unwrap();
        }
    }
}
