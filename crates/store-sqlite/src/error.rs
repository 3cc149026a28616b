//! Conversion of the driver's errors into errors of a store.

use std::path::Path;
use std::time::Duration;

use memory_store::{Error, ErrorKind};

pub(crate) use memory_store::Result;

/// Returns the kind of a driver's error, by SQLite's primary result code.
fn kind(error: &sqlx::Error) -> ErrorKind {
    let sqlx::Error::Database(database) = error else {
        return match error {
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => ErrorKind::Corrupt,
            _ => ErrorKind::Io,
        };
    };
    match code(&**database) {
        5 | 6 => ErrorKind::Busy,
        8 => ErrorKind::ReadOnly,
        11 => ErrorKind::Corrupt,
        18 => ErrorKind::Limit,
        19 => ErrorKind::Invalid,
        26 => ErrorKind::ForeignDatabase,
        _ => ErrorKind::Io,
    }
}

/// Returns SQLite's primary result code.
fn code(error: &dyn sqlx::error::DatabaseError) -> i64 {
    let code = error.code().and_then(|code| code.parse::<i64>().ok());
    code.unwrap_or(0) & 0xff
}

/// Returns whether the error is that another connection holds the lock.
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    kind(error) == ErrorKind::Busy
}

/// Returns whether the error is a full disk.
pub(crate) fn is_full(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .is_some_and(|error| code(error) == 13)
}

/// Converts the error of a failed SQL statement.
pub(crate) fn failed(error: sqlx::Error) -> Error {
    let kind = kind(&error);
    let text = match kind {
        ErrorKind::Busy => "the database stayed locked by another process: try again later",
        ErrorKind::ReadOnly => {
            "the database cannot be written: check the permissions of the file and its folder"
        }
        ErrorKind::Corrupt => "the database is damaged: run a check, restore a backup",
        ErrorKind::Limit => "a value is too large for the database",
        ErrorKind::Invalid => "the database refuses the change",
        ErrorKind::ForeignDatabase => "the file is not a database",
        _ => "the database cannot be read or written: check the disk and the file's permissions",
    };
    Error::new(kind, text).with_source(error)
}

/// Converts the error of a failure to open the database `place`.
pub(crate) fn opening(place: &str, error: sqlx::Error) -> Error {
    let kind = kind(&error);
    let text = match kind {
        ErrorKind::ForeignDatabase => {
            format!("{place} is not a database: give the path of another file")
        }
        ErrorKind::Busy => format!("{place} stayed locked by another process: try again later"),
        ErrorKind::ReadOnly => return not_writable(place).with_source(error),
        ErrorKind::Corrupt => format!("{place} is damaged: restore a backup"),
        _ => format!("{place} cannot be opened: check the path and its permissions"),
    };
    Error::new(kind, text).with_source(error)
}

pub(crate) fn foreign(place: &str) -> Error {
    Error::new(
        ErrorKind::ForeignDatabase,
        format!("{place} is a database of another program: give the path of another file"),
    )
}

pub(crate) fn newer_schema(place: &str, found: i64, known: i64) -> Error {
    Error::new(
        ErrorKind::NewerSchema,
        format!(
            "{place} has schema {found}, but this program supports up to {known}: update the program"
        ),
    )
}

/// Returns the error for a lock that another process held for longer than the lock time-out.
pub(crate) fn locked(place: &str, timeout: Duration, error: Error) -> Error {
    let seconds = timeout.as_secs_f64();
    Error::new(
        ErrorKind::Busy,
        format!(
            "{place} stayed locked by another process for {seconds} s: try again when it has ended"
        ),
    )
    .with_source(error)
}

/// Returns the error for a read that found all connections in use by other reads for too long.
pub(crate) fn crowded(patience: Duration) -> Error {
    let seconds = patience.as_secs_f64();
    let text = format!(
        "other reads of this process have held all connections for {seconds} s: try again when one has ended"
    );
    Error::new(ErrorKind::Busy, text)
}

/// Returns the error for a file or folder that is not writable.
pub(crate) fn not_writable(place: &str) -> Error {
    Error::new(
        ErrorKind::ReadOnly,
        format!("{place} cannot be written: check the permissions of the file and its folder"),
    )
}

pub(crate) fn read_only(place: &str) -> Error {
    Error::new(
        ErrorKind::ReadOnly,
        format!("{place} is open for reading only: open it for writing"),
    )
}

pub(crate) fn not_gone(place: &str) -> Error {
    Error::new(
        ErrorKind::NotGone,
        format!(
            "{place}: the words are erased but still in the files, because another program reads the database: stop it and erase again"
        ),
    )
}

/// Returns the error for the copy of a killed restore that cannot be removed.
pub(crate) fn copy_left(copy: &Path, error: std::io::Error) -> Error {
    let copy = copy.display();
    let text = format!(
        "the words are erased, but the file {copy} of a killed restore may have them: remove it and erase again"
    );
    Error::new(ErrorKind::NotGone, text).with_source(error)
}

pub(crate) fn not_begun(place: &str) -> Error {
    Error::new(
        ErrorKind::ForeignDatabase,
        format!("{place} is an empty database: open it for writing first"),
    )
}

pub(crate) fn changed(place: &str, version: i64) -> Error {
    let text = format!(
        "{place}: its migration {version} is not the one of this program: use the program that made it"
    );
    Error::new(ErrorKind::ForeignDatabase, text)
}

pub(crate) fn older_schema(place: &str, found: i64, known: i64) -> Error {
    Error::new(
        ErrorKind::OlderSchema,
        format!(
            "{place} has schema {found}, this program reads {known}: open it for writing once, which updates it"
        ),
    )
}

pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Io, "the store was closed: open it again")
}
