//! Conversion of the driver's errors into errors of a store.

use std::time::Duration;

use memory_store::{Error, ErrorKind};

pub(crate) use memory_store::Result;

/// Returns PostgreSQL's code of an error: five letters or digits. Returns an empty text if the error has none.
fn code(error: &sqlx::Error) -> String {
    let code = error.as_database_error().and_then(|error| error.code());
    code.map(|code| code.into_owned()).unwrap_or_default()
}

/// Returns whether the connection is lost or cannot be made, and another connection may work, now or soon.
pub(crate) fn is_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed | sqlx::Error::Protocol(_) => true,
        sqlx::Error::Database(_) => {
            // 08: connection exception; 57P: the server stops or starts; 53300: too many connections.
            let code = code(error);
            code.starts_with("08") || code.starts_with("57P") || code == "53300"
        }
        _ => false,
    }
}

/// Returns the kind of a driver's error.
fn kind(error: &sqlx::Error) -> ErrorKind {
    match error {
        sqlx::Error::PoolTimedOut => return ErrorKind::Busy,
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => return ErrorKind::Corrupt,
        error if is_lost(error) => return ErrorKind::Disconnected,
        _ => {}
    }
    match code(error).as_str() {
        // Canceled by a time-out; lock time-out; deadlock; serialization.
        "57014" | "55P03" | "40P01" | "40001" => ErrorKind::Busy,
        // A transaction or role that reads only; a missing privilege.
        "25006" | "42501" => ErrorKind::ReadOnly,
        code if code.starts_with("23") => ErrorKind::Invalid,
        code if code.starts_with("54") => ErrorKind::Limit,
        code if code.starts_with("XX") => ErrorKind::Corrupt,
        _ => ErrorKind::Io,
    }
}

/// Converts the error of a failed SQL statement in the database `place`.
pub(crate) fn failed(place: &str, error: sqlx::Error) -> Error {
    let kind = kind(&error);
    let text = match (kind, code(&error).as_str()) {
        (ErrorKind::Busy, "57014") => {
            "a statement took longer than the time-out: try again, or raise the time-out"
        }
        (ErrorKind::Busy, "55P03") => {
            "another process writes to the same conversation for too long: try again later"
        }
        (ErrorKind::Busy, _) if matches!(error, sqlx::Error::PoolTimedOut) => {
            "no connection became free in time: the server is down, or more calls run at the same time than the store may open connections"
        }
        (ErrorKind::Busy, _) => "another process was in the way: try again",
        (ErrorKind::Disconnected, _) => {
            "the connection to the server was lost before the change was stored: try again"
        }
        (ErrorKind::ReadOnly, "42501") => {
            "the role may not do this: grant it the privileges in schema/grants.sql of store-postgres"
        }
        (ErrorKind::ReadOnly, _) => {
            "the server or the role reads only: connect to the primary, with a role that writes"
        }
        (ErrorKind::Corrupt, _) => "the database is damaged: run a check, restore a backup",
        (ErrorKind::Limit, _) => "a value is too large for the database",
        (ErrorKind::Invalid, _) => "the database refuses the change",
        (_, "26000" | "42P05") => {
            "a pooler changes connections between statements: add statement-cache-capacity=0 to the URL"
        }
        (_, "53100") => "the disk of the server is full: make room",
        _ => "the server reports an error",
    };
    Error::new(kind, format!("{place}: {text}")).with_source(error)
}

/// Converts the error of a commit. If the connection is lost meanwhile, nobody knows whether the server made the commit.
pub(crate) fn commit(place: &str, error: sqlx::Error) -> Error {
    match is_lost(&error) {
        true => Error::new(
            ErrorKind::Uncertain,
            format!(
                "{place}: the connection was lost while a change was stored: read again whether it was"
            ),
        )
        .with_source(error),
        false => failed(place, error),
    }
}

/// Converts the error of a failure to open the database `place`.
pub(crate) fn opening(place: &str, error: sqlx::Error) -> Error {
    let text = match code(&error).as_str() {
        "28P01" | "28000" => {
            "the server refuses the role or its password: check the URL and pg_hba.conf"
        }
        "3D000" => "the database does not exist: create it, for example with createdb",
        "3F000" => "the schema does not exist and was not created: open it for writing first",
        "42501" => {
            "the role may not create or read the tables: open it once with their owner, and grant the privileges in schema/grants.sql of store-postgres"
        }
        "25006" => {
            "the server or the role reads only, and the tables are not there: connect to the primary"
        }
        // The answer of pgbouncer to settings that it would have to keep.
        "08P01" if error.to_string().contains("startup parameter") => {
            let text = "a pooler refuses the settings of the connection: add statement-cache-capacity=0 to the URL";
            return Error::new(ErrorKind::Io, format!("{place}: {text}")).with_source(error);
        }
        _ if error.to_string().contains("certificate") => {
            "the server's certificate is not trusted: give the certificate of its authority with sslrootcert=FILE"
        }
        _ if is_lost(&error) => {
            "the server cannot be reached: check the address in the URL, and whether it runs"
        }
        _ => return failed(place, error),
    };
    let kind = match kind(&error) {
        ErrorKind::Invalid => ErrorKind::Io,
        kind => kind,
    };
    Error::new(kind, format!("{place}: {text}")).with_source(error)
}

pub(crate) fn url(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    let text = "the URL of the database is not valid: it has the form postgres://user:password@host:5432/database, with %2F for / and %40 for @ in a password";
    Error::new(ErrorKind::Invalid, text).with_source(error)
}

pub(crate) fn parameter(parameter: &str) -> Error {
    let text = format!("{parameter}: the URL of the database has no such parameter: leave it out");
    Error::new(ErrorKind::Invalid, text)
}

pub(crate) fn schema_name(name: &str) -> Error {
    let text = format!("schema={name}: the name of a schema is made of a-z, 0-9 and _");
    Error::new(ErrorKind::Invalid, text)
}

pub(crate) fn foreign(place: &str, table: &str) -> Error {
    let text = format!(
        "{place} has a table {table} of another program: add schema=NAME with another name to the URL"
    );
    Error::new(ErrorKind::ForeignDatabase, text)
}

pub(crate) fn changed(place: &str, version: i64) -> Error {
    let text = format!(
        "{place}: its migration {version} is not the one of this program: use the program that made it"
    );
    Error::new(ErrorKind::ForeignDatabase, text)
}

pub(crate) fn newer_schema(place: &str, found: i64, known: i64) -> Error {
    let text = format!(
        "{place} has schema {found}, but this program supports up to {known}: update the program"
    );
    Error::new(ErrorKind::NewerSchema, text)
}

pub(crate) fn older_schema(place: &str, found: i64, known: i64) -> Error {
    let has = match found {
        0 => "no tables yet".to_owned(),
        found => format!("schema {found}, this program reads {known}"),
    };
    let text =
        format!("{place} has {has}: open it for writing once, which creates or updates them");
    Error::new(ErrorKind::OlderSchema, text)
}

pub(crate) fn read_only(place: &str) -> Error {
    let text = format!("{place} is open for reading only: open it for writing");
    Error::new(ErrorKind::ReadOnly, text)
}

pub(crate) fn not_owner(place: &str) -> Error {
    let text = format!(
        "{place}: the words are erased but still in dead rows, because only the owner of the tables can vacuum them: run a command that writes as their owner"
    );
    Error::new(ErrorKind::NotGone, text)
}

pub(crate) fn not_gone(place: &str, patience: Duration) -> Error {
    let seconds = patience.as_secs();
    let text = format!(
        "{place}: the words are erased but still in dead rows, because a transaction that began before runs for more than {seconds} s: end it and erase again"
    );
    Error::new(ErrorKind::NotGone, text)
}
