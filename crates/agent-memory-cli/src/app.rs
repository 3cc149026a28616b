//! State of one run of the program: output, signals, and the opened databases.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "postgres")]
use agent_memory::store::PostgresOptions;
use agent_memory::store::{Conversation, read_conversations};
use agent_memory::{
    Builder, Memory, Session,
    model::ConversationId,
    store::{ConversationFilter, Durability, LockObserver, LockWait, SqliteOptions},
};

use crate::error::{Failure, Kind};
use crate::output::{Output, note, quoted};
use crate::place::{self, Location, Place};
use crate::progress::Progress;
#[cfg(any(feature = "mcp", feature = "serve"))]
use crate::scope::Project;
use crate::stop::Stop;
use crate::table::Table;

/// Maximum number of sessions that an error about an ambiguous name lists.
const CANDIDATES: usize = 10;

/// Variable of the environment that names the database.
const STORE: &str = "AGENT_MEMORY_STORE";

/// Minimum length of a prefix that names a session for an erasure, in characters.
const LEAST_BEGINNING: usize = 4;

/// State of one run of the program.
#[derive(Debug)]
pub(crate) struct App {
    /// Writer of the command's output to stdout.
    pub(crate) out: Output,
    /// Whether to print JSON instead of text.
    pub(crate) json: bool,
    /// Handler of signals.
    pub(crate) stop: Stop,
    store: Option<String>,
    lock_timeout: Duration,
    /// Opened databases. They are closed at the end of the run.
    opened: RefCell<Vec<Memory>>,
    /// Whether the warning about access by other users was already printed.
    warned: Cell<bool>,
}

/// What a command does with its database.
#[derive(Debug, Clone, Copy)]
enum Access<'a> {
    Read,
    /// It writes, and shows its progress if it has one.
    Write(Option<&'a Arc<Progress>>),
}

/// Prints on stderr that a command waits for a locked database.
#[derive(Debug)]
struct LockNotice(Option<Arc<Progress>>);

impl LockObserver for LockNotice {
    fn waiting(&self, wait: &LockWait) {
        let text = format!(
            "{} is locked by another process: waiting up to {}",
            wait.place,
            seconds(wait.timeout)
        );
        match &self.0 {
            Some(progress) => progress.aside(&text),
            None => note(&text),
        }
    }
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

impl App {
    pub(crate) fn new(store: Option<String>, lock_timeout: Duration, json: bool) -> Self {
        Self {
            out: Output::new(),
            json,
            stop: Stop::default(),
            // An empty variable counts as no variable. An empty argument is a mistake, which `place` reports.
            store: store
                .filter(|store| !store.is_empty() || given())
                .map(|store| place::with_password(store, std::env::var(STORE).ok())),
            lock_timeout,
            opened: RefCell::default(),
            warned: Cell::default(),
        }
    }

    /// Returns the state for another thread, which has the same database and its own output.
    #[cfg(feature = "serve")]
    pub(crate) fn twin(&self) -> Self {
        Self::new(self.store.clone(), self.lock_timeout, self.json)
    }

    /// Opens a database, which is closed at the end of the command. Warns about access by other users after the
    /// database is opened, because until then the file may not be a database.
    async fn opened(
        &self,
        place: &Place,
        builder: Builder,
        access: Access<'_>,
    ) -> anyhow::Result<Memory> {
        let builder = match &place.location {
            Location::File(path) => {
                let opened = self.file_options(access).open(path).await;
                builder.store(opened.map_err(agent_memory::Error::from)?)
            }
            #[cfg(feature = "postgres")]
            Location::Server(url) => {
                let options = PostgresOptions::new().with_lock_timeout(self.lock_timeout);
                let options = match access {
                    Access::Read => options.read_only(),
                    Access::Write(_) => options,
                };
                let opened = options.open(url).await;
                builder.store(opened.map_err(agent_memory::Error::from)?)
            }
        };
        let memory = builder.open().await?;
        self.opened.borrow_mut().push(memory.clone());
        self.warn(place);
        Ok(memory)
    }

    /// Prints a warning if other users can read the database. Prints it only once.
    fn warn(&self, place: &Place) {
        if let Some(warning) = place.warning()
            && !self.warned.replace(true)
        {
            note(&warning);
        }
    }

    /// Closes the opened databases, and syncs the written data to the disk.
    pub(crate) async fn close(&self) -> anyhow::Result<()> {
        let opened = self.opened.take();
        let mut closed = Ok(());
        for memory in opened {
            closed = closed.and(memory.close().await);
        }
        Ok(closed?)
    }

    /// Adds the locked database and the duration of the wait to an error about a lock.
    pub(crate) fn explained(&self, mut failure: Failure) -> Failure {
        if failure.kind == Kind::DatabaseBusy
            && failure.message.contains("stayed locked")
            && let Ok(place) = self.place()
            && place.file().is_some()
        {
            failure.message = format!(
                "{} stayed locked by another process for {}",
                place.name(),
                seconds(self.lock_timeout)
            );
            failure = failure.hint(
                "run it again when the other process has ended, or wait longer with --lock-timeout SECONDS",
            );
        }
        failure
    }

    /// Returns the location of the database, which may not exist yet.
    pub(crate) fn place(&self) -> Result<Place, Failure> {
        Place::find(self.store.as_deref())
    }

    /// Returns the location of the database for a configuration file, if an option or the environment names it, and
    /// whether a password was left out.
    pub(crate) fn named_store(&self) -> Result<Option<(String, bool)>, Failure> {
        let Some(store) = &self.store else {
            return Ok(None);
        };
        Ok(Some(Place::find(Some(store))?.without_password()))
    }

    /// Opens the existing database for reading. Does not create a database.
    pub(crate) async fn open(&self) -> anyhow::Result<Memory> {
        self.open_to_search(&Table::default()).await
    }

    /// Opens the existing database for reading, like [`open`](Self::open). Searches also use the vectors of `table`.
    pub(crate) async fn open_to_search(&self, table: &Table) -> anyhow::Result<Memory> {
        self.open_to_read(table.builder()).await
    }

    /// Opens the existing database for reading, like [`open`](Self::open), with the settings of this builder.
    pub(crate) async fn open_to_read(&self, builder: Builder) -> anyhow::Result<Memory> {
        let place = self.place()?;
        if !place.exists() {
            // The path may be of a variable, and relative to another folder than the person thinks.
            let name = match place.file() {
                Some(_) => place.absolute(),
                None => place.name(),
            };
            let text = format!("there is no database at {name}");
            return Err(Failure::new(Kind::NoDatabase, text)
                .hint(format!(
                    "import something first: {}, or name another database with --store",
                    self.command(&["import"], &["FILE"])
                ))
                .into());
        }
        self.opened(&place, builder, Access::Read).await
    }

    /// Opens the existing database for writing, and prints its path on stderr.
    pub(crate) async fn open_to_change(&self) -> anyhow::Result<Memory> {
        self.open_to_index(&Table::default()).await
    }

    /// Opens the existing database for writing, like [`open_to_change`](Self::open_to_change). The vectors of `table`
    /// can be stored in the index too.
    pub(crate) async fn open_to_index(&self, table: &Table) -> anyhow::Result<Memory> {
        let place = self.place()?;
        if !place.exists() {
            return self.open().await;
        }
        let memory = self
            .opened(&place, table.builder(), Access::Write(None))
            .await?;
        note(&format!("database: {}", place.name()));
        Ok(memory)
    }

    /// Returns the options for opening a database file for writing.
    pub(crate) fn sqlite_options(&self) -> SqliteOptions {
        self.file_options(Access::Write(None))
    }

    /// Returns the options for opening a database file. With them, every write survives a power cut.
    fn file_options(&self, access: Access<'_>) -> SqliteOptions {
        let progress = match access {
            Access::Read => None,
            Access::Write(progress) => progress.cloned(),
        };
        let options = SqliteOptions::new()
            .with_durability(Durability::Power)
            .with_lock_timeout(self.lock_timeout)
            .with_lock_observer(Arc::new(LockNotice(progress)));
        match access {
            Access::Read => options.read_only(),
            Access::Write(_) => options,
        }
    }

    /// Opens the database for writing, creates it if it does not exist, and prints its path on stderr.
    pub(crate) async fn open_for_writing(
        &self,
        progress: &Arc<Progress>,
        configure: impl FnOnce(Builder) -> Builder,
    ) -> anyhow::Result<Memory> {
        progress.keep_current();
        let place = self.place()?;
        place.prepare()?;
        let builder = Memory::builder().hooks(Arc::<Progress>::clone(progress));
        let access = Access::Write(Some(progress));
        let memory = self.opened(&place, configure(builder), access).await?;
        progress.aside(&format!("database: {}", place.name()));
        Ok(memory)
    }

    /// Opens the session with this name. If there is none, opens the only session with a name that begins with it.
    /// Forks and sub-agents of that session do not count, because their names begin with their parent's name.
    pub(crate) async fn session(&self, memory: &Memory, name: &str) -> anyhow::Result<Session> {
        if let Some(session) = memory.find_session(name).await? {
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
            Some(found) => Ok(memory.get_session(found.key).await?),
            None => Err(self.no_session(name).into()),
        }
    }

    /// Opens the session in which the agent of a session goes on: see [`Session::in_use`].
    pub(crate) async fn session_in_use(
        &self,
        memory: &Memory,
        name: &str,
    ) -> anyhow::Result<Session> {
        Ok(self.session(memory, name).await?.in_use().await?)
    }

    /// Opens a session like [`session`](Self::session), for an erasure. Because an erasure cannot be undone, a prefix
    /// of the name must have a minimum length.
    pub(crate) async fn session_to_erase(
        &self,
        memory: &Memory,
        name: &str,
    ) -> anyhow::Result<Session> {
        let session = self.session(memory, name).await?;
        if session.key().as_str() != name && name.chars().count() < LEAST_BEGINNING {
            let text = format!("{name} is too short to say what is to be erased");
            return Err(Failure::new(Kind::Usage, text)
                .hint(format!(
                    "give the session's name, or at least {LEAST_BEGINNING} characters of it: {}",
                    quoted(session.key().as_str())
                ))
                .into());
        }
        Ok(session)
    }

    /// Returns the project with the sessions that a client may see: the one in `folder`. Without a folder, it has all
    /// sessions if `--store` names the database, else it is the working folder's.
    #[cfg(any(feature = "mcp", feature = "serve"))]
    pub(crate) fn project(&self, folder: Option<&Path>) -> std::io::Result<Project> {
        match folder {
            Some(folder) => Ok(Project::named(folder, std::env::home_dir().as_deref())),
            None if given() => Ok(Project::everything()),
            None => Project::current(),
        }
    }

    async fn beginning_with(
        &self,
        memory: &Memory,
        prefix: &str,
    ) -> anyhow::Result<Vec<Conversation>> {
        if prefix.is_empty() {
            return Ok(Vec::new());
        }
        let mut filter = ConversationFilter::default();
        filter.archived = true;
        let mut found = read_conversations(&**memory.store(), &filter).await?;
        found.retain(|found| found.key.as_str().starts_with(prefix));
        Ok(found)
    }

    /// Returns the error for a session that does not exist.
    pub(crate) fn no_session(&self, name: &str) -> Failure {
        Failure::new(Kind::NotFound, format!("there is no session {name}")).hint(format!(
            "list those there are: {}",
            self.command(&["sessions"], &[])
        ))
    }

    /// Gives a second process of the program the settings of this run. A password is in its environment alone, because
    /// other users can read a command line.
    pub(crate) fn pass_on(&self, command: &mut std::process::Command) {
        let seconds = self.lock_timeout.as_secs_f64().to_string();
        command.args(["--lock-timeout", &seconds]);
        if let Some(store) = self.store.as_ref() {
            command.env(STORE, store);
            if given() {
                command.args(["--store", &shown(store)]);
            }
        }
    }

    /// Returns a command to paste into a shell. It uses this run's database, the given options, and the arguments
    /// `about`.
    pub(crate) fn command(&self, options: &[&str], about: &[&str]) -> String {
        let mut words = vec![program()];
        if let Some(store) = self.store.as_deref().filter(|_| given()) {
            // A password is not repeated.
            words.push("--store".to_owned());
            words.push(quoted(&shown(store)).into_owned());
        }
        words.extend(options.iter().map(|word| quoted(word).into_owned()));
        if about.iter().any(|word| word.starts_with('-')) {
            words.push("--".to_owned());
        }
        words.extend(about.iter().map(|word| quoted(word).into_owned()));
        words.join(" ")
    }

    /// Returns this run's command with another cursor, to paste into a shell. The command continues an incomplete
    /// answer.
    pub(crate) fn again(cursor: &str) -> String {
        let given = std::env::args_os().skip(1);
        let mut given = given.map(|word| word.to_string_lossy().into_owned());
        let mut words = vec![program()];
        // Words after `--` are arguments, not options.
        let mut rest = Vec::new();
        while let Some(word) = given.next() {
            match word.as_str() {
                "--" => rest.push(word),
                _ if !rest.is_empty() => rest.push(word),
                "--cursor" => drop(given.next()),
                option if option.starts_with("--cursor=") => {}
                "--store" => {
                    words.push(word);
                    words.extend(
                        given
                            .next()
                            .map(|store| quoted(&shown(&store)).into_owned()),
                    );
                }
                option if option.starts_with("--store=") => {
                    let store = option.strip_prefix("--store=").unwrap_or_default();
                    words.push(quoted(&format!("--store={}", shown(store))).into_owned());
                }
                option => words.push(quoted(option).into_owned()),
            }
        }
        words.extend(["--cursor".to_owned(), quoted(cursor).into_owned()]);
        words.extend(rest.iter().map(|word| quoted(word).into_owned()));
        words.join(" ")
    }
}

/// Removes the conversations that have an ancestor in the list.
fn without_descendants(found: Vec<Conversation>) -> Vec<Conversation> {
    let ids: HashSet<ConversationId> = found.iter().map(|found| found.id).collect();
    let descends = |found: &Conversation| {
        let parent = found.origin.parent();
        parent.is_some_and(|parent| ids.contains(&parent))
    };
    found.into_iter().filter(|found| !descends(found)).collect()
}

/// Returns the value of `--store` for a command to paste: without a password.
fn shown(store: &str) -> String {
    match Place::find(Some(store)) {
        Ok(place) if place.file().is_none() => place.name(),
        _ => store.to_owned(),
    }
}

/// Returns whether the command line has the option `--store`. Otherwise a pasted command takes the database from the
/// environment again.
fn given() -> bool {
    std::env::args_os().any(|argument| {
        let argument = argument.to_string_lossy();
        argument == "--store" || argument.starts_with("--store=")
    })
}

/// Returns the word that called this program: its name, or a path if it was called by a path, as under `cargo run`.
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

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use super::*;

    #[test]
    fn a_second_process_gets_the_password_by_its_environment() {
        let url = "postgres://me:cret@h/d?password=cret";
        let app = App::new(Some(url.to_owned()), Duration::from_secs(5), false);
        let mut command = std::process::Command::new("agent-memory");
        app.pass_on(&mut command);
        assert!(
            command
                .get_args()
                .all(|word| !word.to_string_lossy().contains("cret"))
        );
        let mut given = command.get_envs().filter_map(|(_, value)| value);
        assert!(given.any(|value| value == url));
    }
}
