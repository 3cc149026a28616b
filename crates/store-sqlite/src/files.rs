//! Files of a database: creates them so that only their owner can use them, and reads them without write permission.

use std::io::{self, ErrorKind as IoKind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use memory_store::{Error, ErrorKind, Result};
use sqlx::sqlite::{SqliteConnectOptions, SqliteLockingMode};

use crate::options::Durability;

/// Maximum number of symbolic links that are followed to a file that does not exist yet.
const LINKS: usize = 8;

/// Returns the path of a file next to the database: `memory.db` and `-wal` give `memory.db-wal`.
pub(crate) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(suffix);
    PathBuf::from(path)
}

/// Returns the copy of a backup that a restore creates next to a database. The path may not have links.
pub(crate) fn restore_copy(database: &Path) -> PathBuf {
    beside(database, "-restore")
}

/// Returns a database and the files that SQLite creates next to it.
pub(crate) fn with_side_files(database: &Path) -> [PathBuf; 4] {
    ["", "-wal", "-shm", "-journal"].map(|suffix| beside(database, suffix))
}

/// Removes a database and the files that SQLite creates next to it. Files that do not exist are no error.
pub(crate) fn remove(database: &Path) -> io::Result<()> {
    let removed = with_side_files(database).map(std::fs::remove_file);
    let failed = |done: &io::Result<()>| {
        let error = done.as_ref().err();
        error.is_some_and(|error| error.kind() != IoKind::NotFound)
    };
    removed.into_iter().find(failed).unwrap_or(Ok(()))
}

/// Creates an empty database file that only its owner may read and write, unless the file exists. SQLite gives the same
/// mode to the files next to it.
///
/// An existing file is not opened, because closing it would release the locks that this process has on it.
pub(crate) fn create(path: &Path, durability: Durability) -> io::Result<()> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        if std::fs::metadata(&path).is_ok() {
            return Ok(());
        }
        match create_new(&path) {
            Ok(()) => {
                return match durability {
                    Durability::Process => Ok(()),
                    Durability::Power => sync_folder_of(&path),
                };
            }
            // The path is a link to a file that does not exist, or another process created the file meanwhile.
            Err(error) if error.kind() == IoKind::AlreadyExists => {
                match std::fs::read_link(&path) {
                    Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
                    Err(_) => return Ok(()),
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Creates an empty file that only its owner may read and write.
#[cfg(unix)]
pub(crate) fn create_new(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};

    let mut options = std::fs::OpenOptions::new();
    let file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    // The umask may have removed rights of the owner.
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
pub(crate) fn create_new(path: &Path) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true).open(path).map(|_| ())
}

/// Syncs the folder of a file, so that the new name survives a power cut.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    let folder = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    std::fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Returns the files of a database that other users than the owner can read or write. Empty for a folder or a device.
#[cfg(unix)]
pub(crate) fn open_to_others(database: &Path) -> Vec<PathBuf> {
    use std::os::unix::fs::MetadataExt as _;

    let files = ["", "-wal", "-shm"].map(|suffix| beside(database, suffix));
    let open = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.mode() & 0o077 != 0)
    };
    files.into_iter().filter(open).collect()
}

#[cfg(not(unix))]
pub(crate) fn open_to_others(_: &Path) -> Vec<PathBuf> {
    Vec::new()
}

#[cfg(unix)]
fn may(path: &Path, access: rustix::fs::Access) -> bool {
    rustix::fs::access(path, access).is_ok()
}

#[cfg(unix)]
fn writable(path: &Path) -> bool {
    may(path, rustix::fs::Access::WRITE_OK)
}

#[cfg(unix)]
fn readable(path: &Path) -> bool {
    may(path, rustix::fs::Access::READ_OK)
}

#[cfg(not(unix))]
fn writable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| !meta.permissions().readonly())
}

#[cfg(not(unix))]
fn readable(_: &Path) -> bool {
    true
}

/// Returns whether a database and its folder are writable. Returns `true` if this cannot be determined, because SQLite
/// then reports the error.
pub(crate) fn place_writable(path: &Path) -> bool {
    let Ok(database) = std::fs::canonicalize(path) else {
        return true;
    };
    writable(&database) && database.parent().is_none_or(writable)
}

/// State of a database's files, used to detect changes while the database is read without locks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileStamps {
    database: PathBuf,
    /// Length and time of the last change, of the database and of its write-ahead log. `None` for a file that does not
    /// exist.
    seen: [Option<(u64, Option<SystemTime>)>; 2],
    shared_memory: bool,
}

impl FileStamps {
    fn look(database: &Path) -> Self {
        let seen = ["", "-wal"].map(|suffix| {
            let meta = std::fs::metadata(beside(database, suffix)).ok()?;
            Some((meta.len(), meta.modified().ok()))
        });
        Self {
            database: database.to_owned(),
            seen,
            shared_memory: beside(database, "-shm").exists(),
        }
    }

    /// Returns an error if the files have changed since the state was recorded.
    pub(crate) fn check(&self) -> Result<()> {
        if Self::look(&self.database) == *self {
            return Ok(());
        }
        let place = self.database.display();
        Err(Error::new(
            ErrorKind::Stale,
            format!("{place} was written by another process while it was read: read it again"),
        ))
    }
}

/// Options for reading a database without write permission.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) options: SqliteConnectOptions,
    /// State of the files before reading, if the database is read without SQLite's locks. After reading,
    /// [`FileStamps::check`] compares it with the current state, to detect that another process wrote. `None` if SQLite
    /// locks the database as usual.
    pub(crate) still: Option<FileStamps>,
}

/// Determines how to read the database at `path` without changing a file that must not be written.
///
/// Normally, SQLite creates a write-ahead log and shared memory next to the database. Three other ways are used if the
/// database or its folder is not writable:
/// - with the existing shared memory,
/// - as an immutable file, if the log has no data,
/// - with a private index of the log.
pub(crate) fn reading(path: &Path, options: SqliteConnectOptions) -> Result<Reading> {
    let failed = |path: &Path, error: io::Error| {
        Error::new(
            ErrorKind::Io,
            format!(
                "{} cannot be opened: check the path and its permissions",
                path.display()
            ),
        )
        .with_source(error)
    };
    let database = std::fs::canonicalize(path).map_err(|error| failed(path, error))?;
    if place_writable(&database) {
        let options = options.filename(&database);
        return Ok(Reading {
            options,
            still: None,
        });
    }
    let length = |suffix: &str| {
        let path = beside(&database, suffix);
        match std::fs::metadata(&path) {
            Ok(meta) => Ok(Some(meta.len())),
            Err(error) if error.kind() == IoKind::NotFound => Ok(None),
            Err(error) => Err(failed(&path, error)),
        }
    };
    let (log, shared_memory) = (length("-wal")?, length("-shm")?.is_some());
    let in_log = log.is_some_and(|length| length > 0);
    for (needed, suffix) in [
        (in_log || (shared_memory && log.is_some()), "-wal"),
        (shared_memory && log.is_some(), "-shm"),
    ] {
        let path = beside(&database, suffix);
        if needed && !readable(&path) {
            return Err(unreadable(&path));
        }
    }
    if length("-journal")?.is_some_and(|length| length > 0) {
        return Err(unreadable(&beside(&database, "-journal")));
    }
    let options = options.read_only(true);
    if shared_memory && log.is_some() {
        // Other processes may use the database. SQLite shares their index of the log, or builds a private index if they
        // have died.
        let uri = format!("file:{}?readonly_shm=1", encoded(&database));
        let options = options.filename(uri);
        return Ok(Reading {
            options,
            still: None,
        });
    }
    let still = Some(FileStamps::look(&database));
    let options = options.filename(&database);
    if !in_log {
        let options = options.immutable(true);
        return Ok(Reading { options, still });
    }
    if cfg!(unix) {
        // No process has the database open, because there is no shared memory. In exclusive mode, SQLite keeps the
        // index of the log in the memory of this process.
        let options = options.vfs("unix-none");
        let options = options.locking_mode(SqliteLockingMode::Exclusive);
        return Ok(Reading { options, still });
    }
    Err(unreadable(&beside(&database, "-wal")))
}

fn unreadable(path: &Path) -> Error {
    Error::new(
        ErrorKind::Io,
        format!(
            "the write-ahead log {} has changes and cannot be read: copy it and the database to a folder that you can read and write",
            path.display()
        ),
    )
}

/// Encodes a path as a part of a URI.
fn encoded(path: &Path) -> String {
    let mut out = String::new();
    for byte in path.to_string_lossy().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
