//! Copies of a database while programs use it.

use std::io;
use std::path::Path;

use memory_store::{Error, ErrorKind};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{ConnectOptions as _, Connection as _};

use crate::error::{Result, failed};
use crate::files::{self, FileStamps, beside, create_new, restore_copy};
use crate::options::SqliteOptions;

/// Suffix of a backup's file until it is complete.
const PART: &str = ".part";

/// Content of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// Number of conversations.
    pub conversations: u64,
    /// Number of log entries. Entries that forks share are counted once.
    pub entries: u64,
    /// Size of the file.
    pub bytes: u64,
}

impl SqliteOptions {
    /// Copies the database at `from` to a new file, with all changes that are committed when the call begins. Other
    /// processes may read and write the database meanwhile, and wait for nothing. Its write-ahead log cannot be
    /// truncated until the copy ends.
    ///
    /// The copy is a database that only its owner can read and write, without free pages. It is written as `to` with the
    /// suffix `.part`, synced, and then renamed. A process that is killed leaves this file with all words of the database:
    /// remove it, because no later erasure finds it.
    ///
    /// # Errors
    /// - `ForeignDatabase`, `NewerSchema` or `OlderSchema` if `from` cannot be opened for reading.
    /// - `Invalid` if `to` has the name of the copy that a restore makes next to `from`.
    /// - `Io` if `to` exists or cannot be written. It is never overwritten.
    ///
    /// After an error there is no new file.
    pub async fn backup(
        &self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
    ) -> Result<BackupReport> {
        let (from, to) = (from.as_ref(), to.as_ref());
        // Checks that the file is a database of agent-memory.
        let store = self.clone().read_only().open(from).await?;
        memory_store::Maintain::close(&store).await?;
        let exists = || unwritable(to, io::Error::from(io::ErrorKind::AlreadyExists));
        if to.symlink_metadata().is_ok() {
            return Err(exists());
        }
        // An erasure and a restore remove a file of this name.
        let database = std::fs::canonicalize(from);
        if database.is_ok_and(|database| to.file_name() == restore_copy(&database).file_name()) {
            let text = format!("{} is a name for restores: name another file", to.display());
            return Err(Error::new(ErrorKind::Invalid, text));
        }
        let reading = files::reading(from, self.connection())?;
        let part = beside(to, PART);
        copy(&reading.options, &part).await?;
        let finished = async {
            reading.still.as_ref().map_or(Ok(()), FileStamps::check)?;
            let report = report(&part).await?;
            rename(&part, to).map_err(|error| unwritable(to, error))?;
            Ok(report)
        };
        let finished = finished.await;
        if finished.is_err() {
            // If the file cannot be removed, the first error is still the one to report.
            let _ = std::fs::remove_file(&part);
        }
        finished
    }
}

/// Renames a complete file and syncs its folder. Fails if a file has the new name. After another error no file has it.
fn rename(part: &Path, to: &Path) -> io::Result<()> {
    let renamed = match std::fs::hard_link(part, to) {
        Ok(()) => std::fs::remove_file(part),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
        // Not every file system has hard links. The new file keeps the name free from other processes' files.
        Err(_) => {
            create_new(to)?;
            std::fs::rename(part, to)
        }
    };
    let synced = renamed.and_then(|()| files::sync_folder_of(to));
    if synced.is_err() {
        let _ = std::fs::remove_file(to);
    }
    synced
}

/// Copies a database to a new file, which only its owner can read and write, and syncs it. Removes the file after an
/// error. The copy is in WAL mode as every database of agent-memory, because the mode of a file is not copied.
pub(crate) async fn copy(from: &SqliteConnectOptions, to: &Path) -> Result<()> {
    // SQLite takes a path that begins with `file:` for a URI.
    let to = std::path::absolute(to).map_err(|error| unwritable(to, error))?;
    let Some(name) = to.to_str() else {
        return Err(unwritable(
            &to,
            io::Error::from(io::ErrorKind::InvalidFilename),
        ));
    };
    create_new(&to).map_err(|error| unwritable(&to, error))?;
    let copied = async {
        let mut source = from.connect().await.map_err(failed)?;
        // SQLite accepts an existing file if it is empty.
        let done = sqlx::query("vacuum into ?")
            .bind(name)
            .execute(&mut source)
            .await;
        source.close().await.map_err(failed)?;
        done.map_err(failed)?;
        let options = SqliteConnectOptions::new().filename(&to);
        let options = options.journal_mode(SqliteJournalMode::Wal);
        let connection = options.connect().await.map_err(failed)?;
        connection.close().await.map_err(failed)?;
        let file = std::fs::File::open(&to);
        file.and_then(|file| file.sync_all())
            .map_err(|error| unwritable(&to, error))
    };
    let copied = copied.await;
    if copied.is_err() {
        let _ = std::fs::remove_file(&to);
    }
    copied
}

/// Counts the content of a complete copy.
async fn report(path: &Path) -> Result<BackupReport> {
    let options = SqliteConnectOptions::new().filename(path).read_only(true);
    let mut connection = options.immutable(true).connect().await.map_err(failed)?;
    let counts = "select (select count(*) from conversation), (select count(*) from message)";
    let counts = sqlx::query_as(counts).fetch_one(&mut connection).await;
    connection.close().await.map_err(failed)?;
    let (conversations, entries): (i64, i64) = counts.map_err(failed)?;
    let bytes = std::fs::metadata(path)
        .map_err(|error| unwritable(path, error))?
        .len();
    Ok(BackupReport {
        conversations: conversations.unsigned_abs(),
        entries: entries.unsigned_abs(),
        bytes,
    })
}

fn unwritable(path: &Path, error: io::Error) -> Error {
    let path = path.display();
    let text = match error.kind() {
        io::ErrorKind::AlreadyExists => {
            format!("{path} exists: remove it if no other process writes it, or name another file")
        }
        _ => format!("{path} cannot be written: check the folder and its permissions"),
    };
    Error::new(ErrorKind::Io, text).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_appears_meanwhile_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let [part, to] = ["part", "to"].map(|name| folder.path().join(name));
        std::fs::write(&part, "backup").unwrap();
        std::fs::write(&to, "precious").unwrap();
        let error = rename(&part, &to).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&to).unwrap(), b"precious");
        std::fs::remove_file(&to).unwrap();
        rename(&part, &to).unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), b"backup");
        assert!(!part.exists());
    }
}
