//! Puts a backup in the place of a database.
//!
//! The file at the place stays the same file: the pages of the backup are written into it in one transaction of SQLite.
//! A new file under the old name would not do, because a process that has the old file open would go on writing to a
//! file without a name, and its messages would be lost. A process that waits for a lock has the file open too.
//!
//! - **Other processes.** A connection in SQLite's exclusive locking mode is opened first and kept to the end. SQLite
//!   refuses it while any other connection has read the database, because every connection in WAL mode keeps a shared lock on
//!   the file until it is closed. So no process exists that remembers numbers of conversations or of entries from the old
//!   database. A process that opens the database later waits, and then reads the new content.
//! - **Kills and power cuts.** The backup is copied to a file next to the database, which nobody else opens. Then SQLite's
//!   backup interface writes its pages to the write-ahead log, as one transaction. Until the commit the next opener
//!   ignores them and finds the old database; after it, the new one. The copy that a killed process leaves is removed by the
//!   next restore or erasure, which excludes a running restore by then. Kills are tested at system calls. Power cuts are
//!   not: it is assumed that SQLite's backup interface commits as any other transaction does.
//! - **A place without a database** is treated in the same way, as an empty database. A write-ahead log that is left of a
//!   removed database is deleted by SQLite when it opens the empty file, and cannot be applied to the new one.

use std::path::{Path, PathBuf};

use memory_model::{Seq, SeqRange, SessionKey, Timestamp};
use memory_store::{ConversationRef, Erase, Error, ErrorKind, Maintain as _, Store as _, erase};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::backup::copy;
use crate::check;
use crate::db::open_database;
use crate::error::{self, Result};
use crate::files;
use crate::options::SqliteOptions;

/// Statements that take the exclusive lock, also on a database with a damaged schema. The settings of the file have an
/// effect only while it is empty.
const LOCK: &str = "pragma writable_schema = on; pragma locking_mode = exclusive; pragma page_size = 8192; \
    pragma auto_vacuum = incremental; pragma journal_mode = wal; begin exclusive; commit; \
    pragma synchronous = full; pragma fullfsync = on; pragma checkpoint_fullfsync = on";

/// Conversations, and the entries of their own logs that the backup does not have. An entry is the same if it has the
/// same position and hash.
const LOST: &str = "select c.key, (select count(*) from main.message m
       left join backup.message b on b.id = (select no from backup.conversation where key = c.key) << 32 | m.seq
             and b.hash = m.hash
       where m.conversation = c.no and b.id is null),
     c.key not in (select key from backup.conversation)
   from main.conversation c order by c.no";

/// Entries of the backup that have words which the database has erased, with the erasures. Entries are compared by their
/// hashes, which an erasure keeps, so that an erasure is found again in a log with other positions. The last erasure of an
/// entry counts. The last column is whether the whole conversation was erased.
///
/// Other conversations may have the same entry with its words. An entry of the backup keeps its words if the database has
/// it with words at the same position of the same conversation, or anywhere in this conversation and erased nowhere in it.
const ERASED: &str = "with whole as materialized (
     select c.no from main.conversation c where c.archived and c.title is null and c.meta is null and not exists (
        select 1 from main.message m where m.body is not null and m.id between c.no << 32 and c.no << 32 | 0xffffffff)),
   erased as materialized (
     select c.key, m.hash, e.at, e.reason, c.no in (select no from whole) as whole
     from main.erasure e join main.conversation c on c.no = e.conversation
     join main.message m on m.id between e.conversation << 32 | e.first and e.conversation << 32 | e.last),
   kept as materialized (
     select c.key, m.hash, m.seq from main.message m join main.conversation c on c.no = m.conversation
     where m.body is not null and m.hash in (select hash from erased))
   select c.key, b.seq, max(e.at), e.reason, e.whole from erased e
   join backup.message b on b.hash = e.hash and b.body is not null
   join backup.conversation c on c.no = b.conversation
   where not exists (select 1 from kept k where k.hash = b.hash and k.key = c.key and (k.seq = b.seq
     or not exists (select 1 from erased o where o.hash = k.hash and o.key = k.key)))
   group by b.id order by b.id";

/// A restore that has begun: it holds the lock on the database, and has a copy of the backup next to it. Dropping it
/// removes the copy and leaves the database unchanged.
#[derive(Debug)]
pub struct Restore {
    options: SqliteOptions,
    place: String,
    copy: PathBuf,
    lock: Option<Connection>,
}

/// Comparison of a database with the backup that is to replace it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replaced {
    /// Number of conversations of the database.
    pub conversations: u64,
    /// Conversations with entries that the backup does not have, and conversations that it does not have.
    pub lost: Vec<LostEntries>,
    /// Erasures of words that the backup still has.
    pub erasures: Vec<LaterErasure>,
}

/// Entries of one conversation that a backup does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostEntries {
    /// Key of the conversation.
    pub key: SessionKey,
    /// Number of entries of its own log that the backup does not have.
    pub entries: u64,
    /// Whether the backup does not have the conversation.
    pub conversation: bool,
}

/// An erasure that was made after a backup: the backup still has the words.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaterErasure {
    /// Key of the conversation in the backup.
    pub key: SessionKey,
    /// Positions of the entries in the backup.
    pub range: SeqRange,
    /// Time of the erasure.
    pub at: Timestamp,
    /// Reason that was given for it.
    pub reason: String,
    /// Whether the whole conversation was erased, with its title and metadata.
    pub conversation: bool,
}

impl SqliteOptions {
    /// Begins to put the database `backup` in the place of the one at `place`: locks that, and copies the backup to a
    /// file next to it. If there is no database at `place`, an empty file is created.
    ///
    /// # Errors
    /// - `Busy` if another process has the database open for longer than the lock time-out.
    /// - `ForeignDatabase` or `NewerSchema` if one of the two cannot be used by this program, and `OlderSchema` if the
    ///   backup must be opened for writing first.
    /// - `Invalid` if both are the same file, if the backup has the name of the copy next to the database, or if it has
    ///   tables or views that do not belong to the schema.
    /// - `Io` if a file cannot be read or written.
    pub async fn begin_restore(
        self,
        backup: impl AsRef<Path>,
        place: impl AsRef<Path>,
    ) -> Result<Restore> {
        let (backup, path) = (backup.as_ref(), place.as_ref());
        let place = path.display().to_string();
        let unreadable = |error: std::io::Error| error::opening(&place, error.into());
        refuse_file_of(path, backup)?;
        // Checked before the place is changed.
        self.clone().read_only().open(backup).await?.close().await?;
        // Refuses databases of other programs, and migrates an older schema, so that both have the same tables.
        if std::fs::metadata(path).is_ok_and(|meta| meta.len() > 0) {
            match open_database(path, self.clone()).await {
                Ok((database, _)) => store_sql::Database::close(&database).await?,
                // The lock is refused below, if the first page is damaged.
                Err(error) if error.kind() == ErrorKind::Corrupt => {}
                Err(error) => return Err(error),
            }
        }
        files::create(path, self.durability).map_err(unreadable)?;
        // Only now a link to a file that did not exist can be followed.
        refuse_file_of(path, backup)?;
        let path = std::fs::canonicalize(path).map_err(unreadable)?;
        let timeout = self.lock_timeout;
        let opened = path.clone();
        let lock = async {
            let locked = blocking(move || {
                let lock = Connection::open(&opened)?;
                lock.busy_timeout(timeout)?;
                lock.execute_batch(LOCK)?;
                let size: u32 = lock.query_row("pragma page_size", [], |row| row.get(0))?;
                Ok((lock, size))
            });
            locked.await.map_err(|error| match error.kind() {
                ErrorKind::Busy => in_use(&place, timeout.as_secs_f64()),
                _ => error,
            })
        };
        let (lock, page_size) = self.observed(&place, lock).await?;
        let restore = Restore {
            place,
            copy: files::restore_copy(&path),
            lock: Some(lock),
            options: self,
        };
        // A file that stays is reported when the copy is created.
        let _ = files::remove(&restore.copy);
        // The pages of a database in WAL mode can only be replaced by pages of the same size.
        let reading = files::reading(backup, restore.options.connection())?;
        copy(&reading.options.page_size(page_size), &restore.copy).await?;
        let (database, _) = open_database(&restore.copy, restore.options.clone()).await?;
        store_sql::Database::close(&database).await?;
        refuse_added(&restore.copy, &backup.display().to_string()).await?;
        Ok(restore)
    }
}

impl Restore {
    /// Compares the database with the backup.
    ///
    /// # Errors
    /// - `Corrupt` if the database is damaged. The content that a restore would remove is unknown then.
    /// - `Io` if a file cannot be read, or if there is no space for temporary files.
    pub async fn compare(&mut self) -> Result<Replaced> {
        let copy = self.copy.clone();
        let compared = self
            .locked(move |lock| Ok(compare_with(lock, &copy)))
            .await?;
        compared.map_err(|error| match error.sqlite_error_code() {
            // Without a code, a value has a wrong type. SQLite's general error is for a missing table or column.
            None
            | Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown) => {
                damaged(&self.place).with_source(error)
            }
            // The disk is full, for example: the erasures are there, and must not be taken for unknown.
            _ => failed(&self.place, error),
        })
    }

    /// Makes these erasures in the copy, and then replaces the content of the database by it.
    ///
    /// # Errors
    /// - `Io` if a file cannot be read or written. The database is unchanged.
    /// - `NotGone` if the content is replaced, but the old content cannot be removed from the files.
    pub async fn finish(mut self, erasures: &[LaterErasure]) -> Result<()> {
        if !erasures.is_empty() {
            let store = self.options.clone().open(&self.copy).await?;
            for erasure in erasures {
                let which = ConversationRef::Key(erasure.key.clone());
                let found = store.conversation(&which).await?;
                let own = found.and_then(|one| SeqRange::new(one.own_first(), one.head));
                // Entries that the database does not know were not erased, and stay.
                let again = match erasure.conversation && own == Some(erasure.range) {
                    true => Erase::all(&erasure.reason, erasure.at),
                    false => Erase::range(erasure.range, &erasure.reason, erasure.at),
                };
                erase(&store, &which, &again).await?;
            }
            store.close().await?;
        }
        let copy = self.copy.clone();
        self.locked(move |lock| {
            let from = Connection::open(&copy)?;
            let done = Backup::new(&from, lock)?.step(-1)?;
            match done {
                StepResult::Done => Ok(()),
                _ => Err(rusqlite::Error::SqliteFailure(
                    rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY),
                    None,
                )),
            }
        })
        .await?;
        // The commit is durable already. This removes the old content from the files.
        let moved =
            self.locked(|lock| lock.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(())));
        moved
            .await
            .map_err(|error| old_words(&self.place).with_source(error))
    }

    /// Runs statements on the connection that holds the lock.
    async fn locked<T: Send + 'static>(
        &mut self,
        run: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let mut lock = self.lock.take().ok_or_else(error::closed)?;
        let (lock, done) = blocking(move || {
            let done = run(&mut lock);
            Ok((lock, done))
        })
        .await?;
        self.lock = Some(lock);
        done.map_err(|error| failed(&self.place, error))
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        let _ = files::remove(&self.copy);
    }
}

/// Refuses a backup that is the database at `path`, or a file that a restore removes.
fn refuse_file_of(path: &Path, backup: &Path) -> Result<()> {
    let (Ok(database), Ok(file)) = (std::fs::canonicalize(path), std::fs::canonicalize(backup))
    else {
        return Ok(());
    };
    let mut copies = files::with_side_files(&files::restore_copy(&database)).into_iter();
    let is_copy = |copy: PathBuf| std::fs::canonicalize(copy).is_ok_and(|copy| copy == file);
    if file != database && !copies.any(is_copy) {
        return Ok(());
    }
    let text = format!(
        "{} is a file of {}: give the backup another name or place",
        backup.display(),
        path.display()
    );
    Err(Error::new(ErrorKind::Invalid, text))
}

/// Runs blocking calls of SQLite on another thread.
async fn blocking<T: Send + 'static>(
    run: impl FnOnce() -> rusqlite::Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(run).await {
        Ok(done) => done.map_err(|error| failed("the database", error)),
        Err(_) => Err(error::closed()),
    }
}

/// Attaches the copy of the backup, and compares the database with it.
fn compare_with(lock: &Connection, copy: &Path) -> rusqlite::Result<Replaced> {
    // A place without a database has no tables.
    let is_empty = "select application_id = 0 and not exists (select 1 from sqlite_schema)
       from pragma_application_id";
    if lock.query_row(is_empty, [], |row| row.get(0))? {
        return Ok(Replaced::default());
    }
    lock.execute("attach ? as backup", [copy.to_string_lossy()])?;
    let replaced = compare(lock);
    let detached = lock.execute("detach backup", []);
    replaced.and_then(|replaced| detached.map(|_| replaced))
}

/// Compares the database with the attached one.
fn compare(lock: &Connection) -> rusqlite::Result<Replaced> {
    let mut replaced = Replaced::default();
    let mut lost = lock.prepare(LOST)?;
    let mut rows = lost.query([])?;
    while let Some(row) = rows.next()? {
        replaced.conversations += 1;
        let (entries, conversation): (i64, bool) = (row.get(1)?, row.get(2)?);
        let entries = entries.unsigned_abs();
        if entries > 0 || conversation {
            let key = SessionKey::new(row.get::<_, String>(0)?);
            replaced.lost.push(LostEntries {
                key,
                entries,
                conversation,
            });
        }
    }
    let mut erased = lock.prepare(ERASED)?;
    let mut rows = erased.query([])?;
    let mut erasures: Vec<LaterErasure> = Vec::new();
    while let Some(row) = rows.next()? {
        let erasure = LaterErasure {
            key: SessionKey::new(row.get::<_, String>(0)?),
            range: SeqRange::single(Seq(row.get(1)?)),
            at: Timestamp(row.get(2)?),
            reason: row.get(3)?,
            conversation: row.get(4)?,
        };
        let joined = erasures.last().and_then(|last| erasure.joined(last));
        match (joined, erasures.last_mut()) {
            (Some(range), Some(last)) => last.range = range,
            _ => erasures.push(erasure),
        }
    }
    replaced.erasures = erasures;
    Ok(replaced)
}

impl LaterErasure {
    /// Returns the range of both if this is the same erasure of the next entry.
    fn joined(&self, last: &Self) -> Option<SeqRange> {
        let is_next = self.range.first == last.range.last.next();
        let rest = |one: &Self| {
            (
                one.key.clone(),
                one.at,
                one.reason.clone(),
                one.conversation,
            )
        };
        let range = SeqRange::new(last.range.first, self.range.last)?;
        (is_next && rest(self) == rest(last)).then_some(range)
    }
}

/// Refuses a backup, of which `copy` is a copy, with tables or views that do not belong to the schema: a database that
/// others made may have them, and the program would keep them.
async fn refuse_added(copy: &Path, backup: &str) -> Result<()> {
    let known = check::tables_and_views(backup).await?;
    let copy = copy.to_owned();
    let found = blocking(move || {
        let connection = Connection::open_with_flags(copy, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let objects = "select type, name from sqlite_schema where type in ('table', 'view')
            and name not like 'sqlite\\_%' escape '\\' order by name";
        let mut objects = connection.prepare(objects)?;
        let objects = objects.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        objects.collect::<rusqlite::Result<Vec<(String, String)>>>()
    });
    match found
        .await?
        .into_iter()
        .find(|object| !known.contains(object))
    {
        None => Ok(()),
        Some((kind, name)) => {
            let text = format!(
                "{backup} has the {kind} {name}, which does not belong to agent-memory: drop it in a copy of the backup, and \
                 restore that"
            );
            Err(Error::new(ErrorKind::Invalid, text))
        }
    }
}

fn in_use(place: &str, seconds: f64) -> Error {
    let text = format!(
        "{place} has been open in another process for {seconds} s: stop the programs that use it and restore again"
    );
    Error::new(ErrorKind::Busy, text)
}

fn old_words(place: &str) -> Error {
    let text = format!(
        "{place} has the content of the backup, but words of the old one may still be in the files: check the disk and restore again"
    );
    Error::new(ErrorKind::NotGone, text)
}

fn damaged(place: &str) -> Error {
    let text = format!("{place} is damaged: its sessions and erasures are unknown");
    Error::new(ErrorKind::Corrupt, text)
}

/// Converts an error of the connection that holds the lock.
fn failed(place: &str, error: rusqlite::Error) -> Error {
    let (kind, text) = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (
            ErrorKind::Busy,
            "stayed locked by another process: try again when it has ended",
        ),
        Some(ErrorCode::DatabaseCorrupt) => return damaged(place).with_source(error),
        Some(ErrorCode::NotADatabase) => (
            ErrorKind::ForeignDatabase,
            "is not a database: move it away or give another path",
        ),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            return error::not_writable(place);
        }
        _ => (
            ErrorKind::Io,
            "cannot be read or written: check the disk and the file's permissions",
        ),
    };
    Error::new(kind, format!("{place} {text}")).with_source(error)
}
