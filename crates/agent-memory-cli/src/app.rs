//! What all commands need: where results go, and the database.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use agent_memory::{Builder, ConversationFilter, ConversationId, Memory, Session};
use memory_store::Conversation;

use crate::error::{Failure, Kind};
use crate::output::{Output, note, quoted};
use crate::place::Place;
use crate::progress::Progress;

/// How many candidates an ambiguous name lists.
const CANDIDATES: usize = 10;

/// One run of the program.
#[derive(Debug)]
pub(crate) struct App {
    /// Results.
    pub(crate) out: Output,
    /// JSON instead of text.
    pub(crate) json: bool,
    store: Option<String>,
}

impl App {
    pub(crate) fn new(store: Option<String>, json: bool) -> Self {
        Self {
            out: Output::new(),
            json,
            store,
        }
    }

    /// Where the database is, or would be.
    pub(crate) fn place(&self) -> Result<Place, Failure> {
        Place::find(self.store.as_deref())
    }

    /// Opens the database, which must exist: a command that reads never makes one.
    pub(crate) async fn open(&self) -> anyhow::Result<Memory> {
        let place = self.place()?;
        if !place.exists() {
            let text = format!("there is no database at {}", place.path.display());
            return Err(Failure::new(Kind::NoDatabase, text)
                .hint(format!(
                    "import something first: {}, or name another database with --store",
                    self.command(&["import"], &["FILE"])
                ))
                .into());
        }
        Ok(Memory::builder().sqlite(place.path).open().await?)
    }

    /// Opens the database, which must exist, to change something in it, and says where it is.
    pub(crate) async fn open_to_change(&self) -> anyhow::Result<Memory> {
        let memory = self.open().await?;
        note(&format!("database: {}", self.place()?.path.display()));
        Ok(memory)
    }

    /// Opens the database to write into it, and says where it is. It is made if there is none.
    pub(crate) async fn open_for_writing(
        &self,
        progress: &Arc<Progress>,
        configure: impl FnOnce(Builder) -> Builder,
    ) -> anyhow::Result<Memory> {
        progress.keep_current();
        let place = self.place()?;
        place.prepare()?;
        let builder = Memory::builder()
            .sqlite(&place.path)
            .hooks(Arc::<Progress>::clone(progress));
        let memory = configure(builder).open().await?;
        progress.aside(&format!("database: {}", place.path.display()));
        Ok(memory)
    }

    /// The session of this name, or the only one whose name begins so. Forks and sub-agents of one
    /// that begins so do not count: their names begin as their parent's does.
    pub(crate) async fn session(&self, memory: &Memory, name: &str) -> anyhow::Result<Session> {
        if let Some(session) = memory.find(name).await? {
            return Ok(session);
        }
        let mut found = self.beginning_with(memory, name).await?;
        if found.len() > 1 {
            found = without_descendants(found);
        }
        if found.len() > 1 {
            let mut names: Vec<String> = found
                .iter()
                .take(CANDIDATES)
                .map(|found| quoted(found.key.as_str()).into_owned())
                .collect();
            if found.len() > CANDIDATES {
                names.push(format!("{} more", found.len() - CANDIDATES));
            }
            let text = format!("{} sessions begin with {name}", found.len());
            return Err(Failure::new(Kind::Ambiguous, text)
                .hint(format!("say which one: {}", names.join(", ")))
                .into());
        }
        match found.pop() {
            Some(found) => Ok(memory.existing(found.key).await?),
            None => Err(self.no_session(name).into()),
        }
    }

    async fn beginning_with(
        &self,
        memory: &Memory,
        prefix: &str,
    ) -> anyhow::Result<Vec<Conversation>> {
        let mut found = Vec::new();
        let mut filter = ConversationFilter::default();
        filter.archived = true;
        let mut after = None;
        while !prefix.is_empty() {
            let page = memory.store().list(&filter, after, 256).await?;
            let items = page.items.into_iter();
            found.extend(items.filter(|found| found.key.as_str().starts_with(prefix)));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(found)
    }

    /// The error for a session that does not exist.
    pub(crate) fn no_session(&self, name: &str) -> Failure {
        Failure::new(Kind::NotFound, format!("there is no session {name}")).hint(format!(
            "list those there are: {}",
            self.command(&["sessions"], &[])
        ))
    }

    /// A command to paste into a shell, with this run's database: its name and options, then what
    /// it is about.
    pub(crate) fn command(&self, options: &[&str], about: &[&str]) -> String {
        let mut words = vec![program()];
        if let Some(store) = self.store.as_deref().filter(|_| given()) {
            words.push("--store".to_owned());
            words.push(quoted(store).into_owned());
        }
        words.extend(options.iter().map(|word| quoted(word).into_owned()));
        if about.iter().any(|word| word.starts_with('-')) {
            words.push("--".to_owned());
        }
        words.extend(about.iter().map(|word| quoted(word).into_owned()));
        words.join(" ")
    }
}

/// Leaves out the conversations whose parent is among them.
fn without_descendants(found: Vec<Conversation>) -> Vec<Conversation> {
    let ids: HashSet<ConversationId> = found.iter().map(|found| found.id).collect();
    let descends = |found: &Conversation| {
        let parent = found.origin.parent();
        parent.is_some_and(|parent| ids.contains(&parent))
    };
    found.into_iter().filter(|found| !descends(found)).collect()
}

/// Whether the database was named on the command line: one from the environment stays there.
fn given() -> bool {
    std::env::args_os().any(|argument| {
        let argument = argument.to_string_lossy();
        argument == "--store" || argument.starts_with("--store=")
    })
}

/// How this program was called: by name, or by a path when it is not on the search path, as under
/// `cargo run`.
fn program() -> String {
    const NAME: &str = "agent-memory";
    let Some(called) = std::env::args_os().next() else {
        return NAME.to_owned();
    };
    let called = Path::new(&called);
    if called.components().count() < 2 {
        return NAME.to_owned();
    }
    let here = std::env::current_dir().unwrap_or_default();
    let short = called.strip_prefix(here).unwrap_or(called);
    quoted(&short.to_string_lossy()).into_owned()
}
