//! Errors of the driver as errors of a store.

use memory_store::{Error, ErrorKind};

pub(crate) use memory_store::Result;

/// What an error of the driver means, by SQLite's primary result code.
fn kind(error: &sqlx::Error) -> ErrorKind {
    let sqlx::Error::Database(database) = error else {
        return match error {
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => ErrorKind::Corrupt,
            sqlx::Error::PoolTimedOut => ErrorKind::Busy,
            _ => ErrorKind::Io,
        };
    };
    let code: i64 = database
        .code()
        .and_then(|code| code.parse().ok())
        .unwrap_or(0);
    match code & 0xff {
        5 | 6 => ErrorKind::Busy,
        11 => ErrorKind::Corrupt,
        18 => ErrorKind::Limit,
        19 => ErrorKind::Invalid,
        26 => ErrorKind::ForeignDatabase,
        _ => ErrorKind::Io,
    }
}

/// An error while a statement ran.
pub(crate) fn failed(error: sqlx::Error) -> Error {
    if matches!(error, sqlx::Error::PoolClosed) {
        return closed();
    }
    let kind = kind(&error);
    let text = match kind {
        ErrorKind::Busy => "the database is locked by another process: try again later",
        ErrorKind::Corrupt => "the database is damaged: run a check, restore a backup",
        ErrorKind::Limit => "a value is too large for the database",
        ErrorKind::Invalid => "the database refuses the change",
        ErrorKind::ForeignDatabase => "the file is not a database",
        _ => "the database can not be read or written: look at the disk and the file's rights",
    };
    Error::new(kind, text).with_source(error)
}

/// An error while the database `place` was opened.
pub(crate) fn opening(place: &str, error: sqlx::Error) -> Error {
    let kind = kind(&error);
    let text = match kind {
        ErrorKind::ForeignDatabase => {
            format!("{place} is not a database: give the path of another file")
        }
        ErrorKind::Busy => format!("{place} is locked by another process: try again later"),
        ErrorKind::Corrupt => format!("{place} is damaged: restore a backup"),
        _ => format!("{place} can not be opened: look at the path and its rights"),
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
        format!("{place} has schema {found}, this program knows up to {known}: update the program"),
    )
}

pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Io, "the store was closed: open it again")
}
