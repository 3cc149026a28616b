//! Operations on a database, and the contents that it has between their transactions.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use agent_memory::compaction::{RedoPolicy, RedoStop};
use agent_memory::model::ViewVersion;
use agent_memory::store::Durability;
use agent_memory::testing::START;
use agent_memory::{Memory, Message, Mode, Result, Seq, SeqRange, Session};
use simulated_disk::{Call, Image};

use super::database::{Database, check_index};
use crate::corpus::parse;
use crate::support::{fixture, said};

/// A word of each message that is erased.
const SECRET: &str = "xylophonist";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    /// Creates the database, and appends messages.
    Append,
    /// Imports a transcript that grows.
    Import,
    /// Compacts, and returns to an earlier version of the view.
    Publish,
    /// Has a model write the summaries that were written without one.
    Redo,
    /// Forks sessions.
    Fork,
    /// Erases words.
    Erase,
    /// Appends and closes the database, which moves its log into it.
    Checkpoint,
    /// Extends the search index, and builds it anew.
    Index,
    /// Imports a growing transcript and compacts it after each turn, as the hooks of agents do.
    Hook,
}

impl Operation {
    pub(crate) const ALL: &[Self] = &[
        Self::Append,
        Self::Import,
        Self::Publish,
        Self::Redo,
        Self::Fork,
        Self::Erase,
        Self::Checkpoint,
        Self::Index,
        Self::Hook,
    ];

    /// Returns the number of contents that the database has before, between and after the operation's transactions,
    /// without those that have equal content.
    pub(crate) fn transactions(self) -> usize {
        match self {
            Self::Append => 8,
            // A session, its entries and its title are written apart, and so is each sub-agent.
            Self::Import => 18,
            Self::Publish => 6,
            Self::Redo => 2,
            Self::Fork => 5,
            Self::Erase => 4,
            Self::Checkpoint => 4,
            Self::Index => 2,
            Self::Hook => 24,
        }
    }

    /// Number of steps.
    fn steps(self) -> usize {
        match self {
            Self::Append => 6,
            Self::Import | Self::Hook => 3,
            Self::Publish | Self::Fork => 4,
            Self::Erase | Self::Index => 2,
            Self::Checkpoint => 3,
            Self::Redo => 1,
        }
    }

    /// Writes the database that the operation finds.
    async fn prepare(self, database: &mut Database) {
        let messages = match self {
            Self::Append | Self::Import | Self::Hook => return,
            Self::Publish | Self::Redo => 60,
            Self::Fork | Self::Erase | Self::Index => 40,
            _ => 4,
        };
        let memory = database.memory().await.unwrap();
        let session = memory.session("s").await.unwrap();
        let told = (1..=messages).map(|n| match self == Self::Erase && erased(n) {
            true => Message::user(format!(
                "The name of number {n} is {SECRET}{n}, and stays here."
            )),
            false => at_start(n),
        });
        let told = session.ingest_batch(told.collect()).await.unwrap();
        assert_eq!(told.inserted(), messages);
        if matches!(self, Self::Redo | Self::Fork | Self::Erase) {
            session.compact(Mode::Full).await.unwrap();
            session.index().update().await.unwrap();
        }
        database.close().await.unwrap();
    }

    /// Carries out a step, unless it has been carried out.
    async fn step(self, database: &mut Database, step: usize) -> Result<()> {
        database.asks_model = self == Self::Redo;
        let memory = database.memory().await?;
        match self {
            Self::Redo => {
                let session = memory.session("s").await?;
                let report = session.redo(RedoPolicy::default()).await?;
                assert_eq!(report.stop_reason, RedoStop::Done, "{report:?}");
            }
            Self::Append => append(&memory, "s", step * 3, 3).await?,
            Self::Import => import(&memory, step, 3).await?,
            Self::Publish => {
                let session = memory.session("s").await?;
                // A compaction after the return to an earlier version would compact again.
                let version = session.current_view().await?.version();
                match step {
                    0 if version < ViewVersion(7) => drop(session.compact(Mode::Full).await?),
                    1 => append(&memory, "s", 60, 20).await?,
                    2 if version < ViewVersion(8) => drop(session.compact(Mode::Full).await?),
                    3 if version < ViewVersion(9) => {
                        session.revert_to(ViewVersion(1)).await?;
                    }
                    _ => {}
                }
            }
            Self::Fork => {
                let session = memory.session("s").await?;
                match step {
                    0 => drop(session.fork(Seq(20), "branch").await?),
                    1 => append(&memory, "branch", 20, 10).await?,
                    2 => {
                        let branch = memory.session("branch").await?;
                        branch.compact(Mode::Full).await?;
                    }
                    _ => {
                        let branch = memory.session("branch").await?;
                        branch.fork(Seq(25), "twig").await?;
                    }
                }
            }
            Self::Erase => {
                let session = memory.session("s").await?;
                let first = [5, 20][step];
                let range = SeqRange::new(Seq(first), Seq(first + 3)).unwrap();
                if !is_erased(&session, range).await? {
                    session.erase(range, "asked for").await?;
                } else if memory.store().pending_wipe().await?.is_some() {
                    // The next opening removes the bytes.
                    database.close().await?;
                    database.memory().await?;
                }
            }
            Self::Checkpoint => {
                append(&memory, "s", 4 + step * 20, 20).await?;
                database.close().await?;
            }
            Self::Index => {
                let session = memory.session("s").await?;
                match step {
                    0 => drop(session.index().update().await?),
                    _ => {
                        append(&memory, "s", 40, 20).await?;
                        session.index().rebuild().await?;
                    }
                }
            }
            Self::Hook => {
                import(&memory, step, 3).await?;
                for info in memory.sessions(&Default::default()).await? {
                    let session = memory.get_session(info.conversation.key).await?;
                    session.compact(Mode::Full).await?;
                }
            }
        }
        Ok(())
    }
}

fn erased(n: usize) -> bool {
    (5..=8).contains(&n) || (20..=23).contains(&n)
}

async fn is_erased(session: &Session, range: SeqRange) -> Result<bool> {
    let entries = session.entries_in(range).await?;
    Ok(!format!("{:?}", entries.items).contains(SECRET))
}

/// Appends the messages after the first `from` ones in one call, unless they are there.
async fn append(memory: &Memory, key: &str, from: usize, count: usize) -> Result<()> {
    let session = memory.session(key).await?;
    if session.info().await?.conversation.head.0 as usize >= from + count {
        return Ok(());
    }
    let messages = (from + 1..=from + count).map(at_start).collect();
    let told = session.ingest_batch(messages).await?;
    assert_eq!(told.inserted(), count);
    Ok(())
}

/// Returns a message with a time of its own, because that of the clock would be a part of it.
fn at_start(n: usize) -> Message {
    let mut message = said(n);
    message.created_at = START;
    message
}

/// Imports the first `step + 1` of `steps` parts of a transcript.
async fn import(memory: &Memory, step: usize, steps: usize) -> Result<()> {
    let text = std::fs::read_to_string(fixture("claude-code/parallel-and-sidechain")).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let end = lines.len() * (step + 1) / steps;
    memory
        .import(&parse(lines[..end].concat().as_bytes()))
        .await?;
    Ok(())
}

/// Returns the first lines of each text that the other one does not have.
fn different(one: &str, other: &str) -> String {
    let missing = |from: &str, to: &str| {
        let line = from.lines().find(|line| to.lines().all(|one| one != *line));
        line.map(|line| line.chars().take(300).collect())
    };
    let (found, expected): (Option<String>, Option<String>) =
        (missing(one, other), missing(other, one));
    format!("found: {found:?}\nexpected: {expected:?}")
}

/// How far an operation got.
#[derive(Debug)]
pub(crate) struct Done {
    /// Number of steps that returned without an error.
    pub(crate) steps: usize,
    pub(crate) error: Option<String>,
}

/// The files before each call, and the content of the database after a kill there.
struct Kills {
    database: Database,
    images: Vec<Image>,
    /// Content after a kill, by number of the calls before it.
    contents: BTreeMap<usize, String>,
    what: String,
}

impl Kills {
    async fn content(&mut self, calls: usize) -> String {
        if let Some(content) = self.contents.get(&calls) {
            return content.clone();
        }
        self.database.lose_connections();
        self.database.disk.put(&self.images[calls]);
        let what = format!("{} after {calls} calls", self.what);
        let content = self.database.content(&what).await;
        self.contents.insert(calls, content.clone());
        content
    }

    /// Finds the contents between two kills.
    async fn look(&mut self, range: RangeInclusive<usize>, all: bool) {
        let mut ranges = vec![range];
        while let Some(range) = ranges.pop() {
            let (first, last) = (*range.start(), *range.end());
            let same = self.content(first).await == self.content(last).await;
            if last - first > 1 && (all || !same) {
                let middle = first.midpoint(last);
                ranges.extend([first..=middle, middle..=last]);
            }
        }
    }
}

/// An operation without failures.
pub(crate) struct History {
    pub(crate) operation: Operation,
    pub(crate) durability: Durability,
    /// The database that the operation finds.
    pub(crate) base: Image,
    /// Number of calls that change files.
    pub(crate) changes: u64,
    /// Contents of the database before, between and after all transactions.
    contents: Vec<String>,
    /// For each number of steps, the index of the content after them.
    after: Vec<usize>,
}

impl History {
    /// Carries out an operation, and reads the content of the database after a kill before each of its calls.
    ///
    /// Unless `all` is set, kills between two that leave the same content are left out.
    pub(crate) async fn record(operation: Operation, durability: Durability, all: bool) -> Self {
        let mut database = Database::new(durability);
        operation.prepare(&mut database).await;
        database.lose_connections();
        database.disk.kill();
        let mut history = Self {
            operation,
            durability,
            base: database.disk.image(),
            changes: 0,
            contents: Vec::new(),
            after: Vec::new(),
        };
        database.disk.record();
        // Number of calls up to the end of each step.
        let mut ends = vec![0];
        for step in 0..operation.steps() {
            operation.step(&mut database, step).await.unwrap();
            ends.push(database.disk.count(Call::CHANGING) as usize);
        }
        database.close().await.unwrap();
        let images = database.disk.recorded();
        history.changes = images.len() as u64 - 1;
        let mut kills = Kills {
            database,
            images,
            contents: BTreeMap::new(),
            what: format!("{operation:?} with {durability:?}, killed"),
        };
        let last = kills.images.len() - 1;
        kills.look(0..=last, all).await;
        for (call, content) in &kills.contents {
            if history.contents.last() != Some(content) {
                history.contents.push(content.clone());
            }
            while ends.get(history.after.len()).is_some_and(|end| end <= call) {
                history.after.push(history.contents.len() - 1);
            }
        }
        assert_eq!(history.after.len(), operation.steps() + 1);
        history
    }

    /// Returns the number of different contents.
    pub(crate) fn contents(&self) -> usize {
        self.contents.len()
    }

    /// Returns the index of the content after a number of steps; of the last one after all of them.
    pub(crate) fn after(&self, steps: usize) -> usize {
        self.after[steps.min(self.after.len() - 1)]
    }

    /// Carries out the operation until a step fails.
    pub(crate) async fn run(&self, database: &mut Database) -> Done {
        for step in 0..self.operation.steps() {
            if let Err(error) = self.operation.step(database, step).await {
                return Done {
                    steps: step,
                    error: Some(format!("{error:?}")),
                };
            }
        }
        let closed = database.close().await;
        Done {
            steps: self.operation.steps(),
            error: closed.err().map(|error| format!("{error:?}")),
        }
    }

    /// Asserts that the database is valid and has one of the contents in a range.
    pub(crate) async fn check(
        &self,
        database: &mut Database,
        allowed: RangeInclusive<usize>,
        what: &str,
    ) {
        let content = database.content(what).await;
        let found = self.contents.iter().position(|one| *one == content);
        assert!(
            found.is_some_and(|found| allowed.contains(&found)),
            "{what}: content {found:?}, but one of {allowed:?} of {} is expected. Different:\n{}",
            self.contents.len(),
            different(&content, &self.contents[*allowed.end()]),
        );
        if self.operation == Operation::Index {
            check_index(&database.memory().await.unwrap(), "s", what).await;
        }
    }

    /// Asserts that one repetition completes the operation.
    pub(crate) async fn complete(&self, database: &mut Database, what: &str) {
        let done = self.run(database).await;
        assert!(done.error.is_none(), "{what}: repeated: {done:?}");
        if self.operation == Operation::Erase {
            let left = database
                .disk
                .image()
                .find(SECRET.as_bytes())
                .map(str::to_owned);
            assert_eq!(left, None, "{what}: erased words are in a file");
        }
        let last = self.contents.len() - 1;
        self.check(database, last..=last, &format!("{what}, repeated"))
            .await;
    }
}
