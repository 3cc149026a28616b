//! Lengths of a database's values, which are looked at before any value is read.
//!
//! SQLite tells the length of a stored value without reading it. A value that the database computes is computed for
//! that, so SQLite gets a limit for it.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;

use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

/// Limit for a value that is computed, and for the statements in the schema, in bytes.
const MOST_COMPUTED: i32 = 16 << 20;

/// Memory that a row takes beside its values, in bytes.
const ROW: u64 = 256;

/// Maximum number of sessions.
const MOST_SESSIONS: usize = 1 << 20;

/// Columns of sessions that are read.
const FACTS: &[&str] = &[
    "id",
    "slug",
    "project_id",
    "directory",
    "parent_id",
    "version",
    "revert",
];

/// Tables with rows of sessions, the column that names the session, and the columns that are read.
const TABLES: [(&str, &str, &[&str]); 5] = [
    ("session", "id", FACTS),
    ("message", "session_id", &["session_id", "id", "data"]),
    (
        "part",
        "session_id",
        &["session_id", "message_id", "id", "data"],
    ),
    ("session_v2", "id", FACTS),
    (
        "session_message",
        "session_id",
        &["session_id", "id", "type", "data"],
    ),
];

/// Fails if a session of a database has more than `most` bytes. Returns the reason. Tables and columns that are missing are
/// passed over.
pub(super) fn check(path: &Path, is_open: bool, most: u64) -> Result<(), String> {
    let told = |error: rusqlite::Error| match error {
        rusqlite::Error::SqliteFailure(code, _) if code.code == rusqlite::ErrorCode::TooBig => {
            format!("it computes a value, or has a schema, of more than {MOST_COMPUTED} bytes")
        }
        error => error.to_string(),
    };
    let connection = open(path, is_open).map_err(told)?;
    let mut sizes = Sizes {
        hasher: RandomState::new(),
        bytes: HashMap::new(),
        most,
    };
    for (table, session, columns) in TABLES {
        let columns = columns_of(&connection, table, columns).map_err(told)?;
        if columns.contains(&session) {
            add(&connection, &mut sizes, (table, session, &columns)).map_err(told)??;
        }
    }
    Ok(())
}

fn open(path: &Path, is_open: bool) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(uri(path, is_open), flags)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MOST_COMPUTED)?;
    Ok(connection)
}

/// Returns the URI of a file. A database that nobody has open needs no files beside it.
fn uri(path: &Path, is_open: bool) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut uri = String::from("file:");
    if cfg!(windows) {
        uri.push('/');
    }
    for byte in absolute.as_os_str().as_encoded_bytes() {
        match byte {
            b'\\' if cfg!(windows) => uri.push('/'),
            b'/' | b'.' | b'_' | b'-' | b':' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri + if is_open {
        "?mode=ro"
    } else {
        "?mode=ro&immutable=1"
    }
}

/// Returns which of these columns a table has.
fn columns_of<'c>(
    connection: &Connection,
    table: &str,
    columns: &[&'c str],
) -> rusqlite::Result<Vec<&'c str>> {
    let mut known = connection.prepare("select name from pragma_table_xinfo(?)")?;
    let known = known.query_map([table], |row| row.get::<_, String>(0))?;
    let known: Vec<String> = known.collect::<rusqlite::Result<_>>()?;
    let has = |column: &&str| known.iter().any(|known| known == column);
    Ok(columns.iter().copied().filter(has).collect())
}

/// Numbers of bytes, by session.
struct Sizes {
    hasher: RandomState,
    bytes: HashMap<u64, u64>,
    most: u64,
}

impl Sizes {
    fn add(&mut self, session: &[u8], bytes: u64) -> Result<(), String> {
        if self.bytes.len() >= MOST_SESSIONS {
            return Err(format!("it has more than {MOST_SESSIONS} sessions"));
        }
        let sum = self.bytes.entry(self.hasher.hash_one(session)).or_default();
        *sum = sum.saturating_add(bytes);
        match *sum > self.most {
            true => Err(format!("a session in it has more than {} bytes", self.most)),
            false => Ok(()),
        }
    }
}

/// Adds the sizes of a table's rows.
fn add(
    connection: &Connection,
    sizes: &mut Sizes,
    (table, session, columns): (&str, &str, &[&str]),
) -> rusqlite::Result<Result<(), String>> {
    let lengths = columns.iter();
    let lengths = lengths.map(|column| format!("coalesce(octet_length({column}), 0)"));
    let lengths: Vec<String> = lengths.collect();
    // The name of the session is only read if it has a usual length.
    let rows = format!(
        "select {}, case when octet_length({session}) < 4096 then cast({session} as blob) end from {table}",
        lengths.join(" + ")
    );
    let mut rows = connection.prepare(&rows)?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let bytes = u64::try_from(row.get::<_, i64>(0)?).unwrap_or(u64::MAX);
        let name = row.get_ref(1)?.as_blob_or_null()?.unwrap_or_default();
        if let Err(reason) = sizes.add(name, bytes.saturating_add(ROW)) {
            return Ok(Err(reason));
        }
    }
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str =
        "create table session (id text, slug text, project_id text, directory text, parent_id text,
            version text);
        create table message (id text, session_id text, data text);
        create table part (id text, message_id text, session_id text, data text);";

    /// Returns the reason why a database with these statements is refused, if sessions have at most 30 MB.
    fn refused(statements: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a #?%é.db");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch(statements).unwrap();
        drop(connection);
        check(&path, false, 30_000_000).err()
    }

    fn with(rows: &str) -> Option<String> {
        refused(&format!("{SCHEMA}{rows}"))
    }

    #[test]
    fn sessions_have_a_maximum_size() {
        assert_eq!(with(""), None);
        let part = |session: &str, bytes: u32| {
            format!(
                "insert into part values ('p', 'm', '{session}', cast(zeroblob({bytes}) as text));"
            )
        };
        // Larger than what may be computed.
        assert_eq!(with(&part("a", 29_000_000)), None);
        assert_eq!(
            with(&(part("a", 16_000_000) + &part("b", 16_000_000))),
            None
        );
        for rows in [
            part("a", 31_000_000),
            part("a", 16_000_000) + &part("a", 16_000_000),
            "insert into message values ('m', 'a', zeroblob(31000000));".to_owned(),
            "insert into session (id, directory) values ('a', zeroblob(31000000));".to_owned(),
            "with recursive n (i) as (select 1 union all select i + 1 from n where i < 200000)
                insert into part (id, session_id) select 'p', 'a' from n;"
                .to_owned(),
        ] {
            let reason = with(&rows).unwrap();
            assert!(reason.contains("30000000 bytes"), "{reason}");
        }
        // Another program's database.
        assert_eq!(refused("create table session (id text)"), None);
    }

    #[test]
    fn values_are_not_computed_at_any_length() {
        for kind in ["virtual", "stored"] {
            let table = format!(
                "create table part (id text, message_id text, session_id text, size int,
                    data text generated always as (hex(zeroblob(size))) {kind});"
            );
            let schema = SCHEMA.replace(
                "create table part (id text, message_id text, session_id text, data text);",
                &table,
            );
            let small =
                format!("{schema} insert into part (id, session_id, size) values ('p', 'a', 100)");
            assert_eq!(refused(&small), None);
            let rows = "insert into part (id, session_id, size) values ('p', 'a', 14000000)";
            // What was stored when it was computed needs no computing.
            let reason = refused(&format!("{schema}{rows}"));
            assert_eq!(reason.is_some(), kind == "virtual", "{reason:?}");
        }
        // A default in the schema.
        let long = format!(
            "create table long (a text default '{}');",
            "x".repeat(17 << 20)
        );
        let reason = refused(&format!("{SCHEMA}{long}")).unwrap();
        assert!(reason.contains("schema"), "{reason}");
    }
}
