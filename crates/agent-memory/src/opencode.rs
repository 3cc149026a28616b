//! opencode's database, `opencode.db`: its sessions are read as `opencode export` writes them.
//!
//! Version 1 keeps messages and their parts in tables of their own. Version 2 keeps whole messages in `session_message`,
//! and sessions in `session_v2`; a file that it upgraded has both. Messages that only the older tables have were taken
//! back: they are a fork behind the message that they followed there.
//!
//! The database is opened for reading alone, in one transaction, also while opencode writes to it. Each session is
//! written as a document of the export in memory, which [`OpenCode`](message_formats::OpenCode) reads: a session has the
//! same messages and ids whether it was exported or not.

#![allow(
    clippy::disallowed_types,
    reason = "opencode's tables have columns by its version: the statement is made of names in this file"
)]

mod lengths;

use std::collections::{HashMap, HashSet};
use std::io::Cursor;
use std::path::Path;

use futures::TryStreamExt as _;
use message_formats::{
    AgentHome, Confidence, Error, Format, Head, Input, OpenCode, ReadOptions, Report, Sink,
};
use serde_json::value::RawValue;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection as _, Row as _};

/// First bytes of every SQLite database.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// opencode's database.
///
/// ```
/// use agent_memory::transcripts::{Formats, OpenCodeDatabase};
///
/// let formats = Formats::default().with(OpenCodeDatabase::new());
/// assert_eq!(formats.names().last(), Some("opencode"));
/// ```
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct OpenCodeDatabase {}

impl OpenCodeDatabase {
    /// Creates the format.
    pub fn new() -> Self {
        Self {}
    }
}

impl Format for OpenCodeDatabase {
    fn name(&self) -> &str {
        "opencode"
    }

    fn sniff(&self, head: &Head<'_>) -> Confidence {
        match head.path() {
            Some(_) if head.bytes().starts_with(MAGIC) => Confidence::Certain,
            _ => Confidence::No,
        }
    }

    fn home(&self) -> Option<AgentHome> {
        Some(AgentHome::new(".local/share/opencode", &["opencode.db"]))
    }

    fn read(
        &self,
        input: Input<'_>,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<Report, Error> {
        let failed = |error: sqlx::Error| Error::io(&options.name, std::io::Error::other(error));
        let path = input.path().unwrap_or(Path::new("")).to_owned();
        // A database that nobody has open needs no files beside it.
        let mut log = path.clone().into_os_string();
        log.push("-wal");
        let most = u64::try_from(options.max_line_bytes).unwrap_or(u64::MAX);
        let documents = loop {
            let is_open = Path::new(&log).exists();
            let lengths = lengths::check(&path, is_open, most);
            let documents = match lengths {
                Ok(()) => documents(&path, is_open).map_err(failed),
                Err(reason) => Err(Error::invalid(
                    &options.name,
                    format!(
                        "{reason}, and none of it was read: give the sessions one by one, as `opencode export` writes them"
                    ),
                )),
            };
            // opencode may have been started meanwhile.
            if is_open || !Path::new(&log).exists() {
                break documents?;
            }
        };
        let Some(documents) = documents else {
            let advice =
                "it is a database, but without the tables of opencode 1 or 2: give a transcript";
            return Err(Error::invalid(&options.name, advice));
        };
        let mut reader = Cursor::new(documents);
        OpenCode::new().read(Input::new(&mut reader), options, sink)
    }
}

/// Returns a document for each session, oldest first; `None` if the tables are missing. Runs on a thread of its
/// own, because the caller may be in an asynchronous runtime.
fn documents(path: &Path, is_open: bool) -> Result<Option<Vec<u8>>, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        .immutable(!is_open);
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        runtime.block_on(async {
            let mut connection = SqliteConnection::connect_with(&options).await?;
            let documents = sessions(&mut connection).await;
            connection.close().await?;
            documents
        })
    };
    let done = std::thread::scope(|scope| scope.spawn(run).join());
    done.unwrap_or(Err(sqlx::Error::WorkerCrashed))
}

/// Tables with sessions, their messages and the messages' parts: those of version 2, and those of version 1, which a
/// file that was upgraded still has.
const SESSIONS: [&str; 2] = ["session_v2", "session"];
const SECOND: &str = "session_message";
const FIRST: [&str; 2] = ["message", "part"];

/// Facts of a session, as columns of its table and keys of its document.
const FACTS: [(&str, &str); 6] = [
    ("id", "id"),
    ("slug", "slug"),
    ("project_id", "projectID"),
    ("directory", "directory"),
    ("parent_id", "parentID"),
    ("version", "version"),
];

/// Messages of a session, by id, in the order of the session.
type Messages = Vec<(String, String)>;

/// Id of a message, or `None` for the beginning, and the messages behind it that are gone.
type Gone = (Option<String>, Vec<String>);

async fn sessions(connection: &mut SqliteConnection) -> Result<Option<Vec<u8>>, sqlx::Error> {
    let mut tx = connection.begin().await?;
    let tables = "select name from sqlite_schema where type = 'table'";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(&mut *tx).await?;
    let has = |name: &str| tables.iter().any(|table| table == name);
    let has_first = FIRST.iter().all(|name| has(name));
    let has_second = has(SECOND);
    let mut documents = Vec::new();
    let mut told: HashSet<String> = HashSet::new();
    let mut is_known = false;
    for table in SESSIONS.into_iter().filter(|table| has(table)) {
        if !has_first && !has_second {
            break;
        }
        is_known = true;
        for session in heads(&mut tx, table).await? {
            // A session that was upgraded is in both tables.
            if !told.insert(session.id.clone()) {
                continue;
            }
            let first = match has_first {
                true => first(&mut tx, &session.id).await?,
                false => Vec::new(),
            };
            let second = match has_second {
                true => second(&mut tx, &session.id).await?,
                false => Vec::new(),
            };
            // Version 1 wrote some rows of the second table too, but not all.
            let is_second = table == SESSIONS[0] && !second.is_empty() || first.is_empty();
            let (messages, gone) = match is_second {
                true => merged(first, second),
                false => (first, Vec::new()),
            };
            documents.extend(session.document(messages, gone).into_iter().flatten());
        }
    }
    Ok(is_known.then_some(documents))
}

/// A session, without its messages.
struct Row {
    id: String,
    info: Object,
    updated: Option<i64>,
    revert: Option<String>,
}

/// Returns the sessions of a table, oldest first.
async fn heads(tx: &mut SqliteConnection, table: &'static str) -> Result<Vec<Row>, sqlx::Error> {
    let columns = sqlx::query_scalar("select name from pragma_table_info(?)").bind(table);
    let columns: Vec<String> = columns.fetch_all(&mut *tx).await?;
    let has = |name: &str| columns.iter().any(|column| column == name);
    let mut wanted: Vec<&str> = FACTS.iter().map(|(column, _)| *column).collect();
    let extra = ["revert", "time_updated"].map(|name| if has(name) { name } else { "null" });
    wanted.extend(extra);
    let rows = format!(
        "select {} from {table} order by time_created, id",
        wanted.join(", ")
    );
    let rows = sqlx::query(AssertSqlSafe(rows)).fetch_all(&mut *tx).await?;
    let mut heads = Vec::with_capacity(rows.len());
    for row in rows {
        let mut info = Object::default();
        for (column, (_, key)) in FACTS.iter().enumerate() {
            if let Some(value) = row.try_get::<Option<String>, _>(column)? {
                info.text(key, &value);
            }
        }
        heads.push(Row {
            id: row.try_get(0)?,
            info,
            revert: row.try_get(FACTS.len())?,
            updated: row.try_get(FACTS.len() + 1)?,
        });
    }
    Ok(heads)
}

/// Returns a session's messages of version 1, in the order of their ids.
async fn first(tx: &mut SqliteConnection, session: &str) -> Result<Messages, sqlx::Error> {
    let mut parts = sqlx::query(
        "select message_id, id, data from part where session_id = ? order by message_id, id",
    )
    .bind(session)
    .fetch_all(&mut *tx)
    .await?
    .into_iter()
    .peekable();
    let messages = "select id, data from message where session_id = ? order by id";
    let mut messages = sqlx::query(messages).bind(session).fetch(&mut *tx);
    let mut list = Vec::new();
    while let Some(message) = messages.try_next().await? {
        let (own, data): (String, String) = (message.try_get(0)?, message.try_get(1)?);
        let mut said = Vec::new();
        // Both lists are in the order of messages' ids.
        while let Some(part) =
            parts.next_if(|part| part.try_get(0).is_ok_and(|at: String| at <= own))
        {
            if part.try_get::<String, _>(0)? == own {
                let (part, data): (String, String) = (part.try_get(1)?, part.try_get(2)?);
                let mut object = Object::of(&data);
                object.text("id", &part);
                object.text("sessionID", session);
                object.text("messageID", &own);
                said.push(object.finish());
            }
        }
        let mut object = Object::of(&data);
        object.text("id", &own);
        object.text("sessionID", session);
        let message = format!(
            "{{\"info\":{},\"parts\":[{}]}}",
            object.finish(),
            said.join(",")
        );
        list.push((own, message));
    }
    Ok(list)
}

/// Returns a session's messages of version 2, in their order.
async fn second(tx: &mut SqliteConnection, session: &str) -> Result<Messages, sqlx::Error> {
    let rows = "select id, type, data from session_message where session_id = ? order by seq, id";
    let rows = sqlx::query(rows).bind(session).fetch_all(&mut *tx).await?;
    let mut list = Vec::with_capacity(rows.len());
    for row in rows {
        let (id, kind): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let mut object = Object::of(&row.try_get::<String, _>(2)?);
        object.text("id", &id);
        object.text("type", &kind);
        object.text("sessionID", session);
        list.push((id, object.finish()));
    }
    Ok(list)
}

/// Returns a session's messages of both versions. The second version tells which ones stay, and their order. A message
/// that was upgraded is read as the first version wrote it, so that it is the same as before the upgrade. The messages
/// that only the first version has were taken back since: each run of them with the message that it followed.
fn merged(first: Messages, mut second: Messages) -> (Messages, Vec<Gone>) {
    let places = second.iter().enumerate();
    let places: HashMap<String, usize> = places.map(|(at, (id, _))| (id.clone(), at)).collect();
    let mut last = None;
    let mut gone: Vec<Gone> = Vec::new();
    for (id, message) in first {
        if let Some(stays) = places.get(&id).and_then(|at| second.get_mut(*at)) {
            (stays.1, last) = (message, Some(id));
            continue;
        }
        match gone.last_mut() {
            Some((after, run)) if *after == last => run.push(message),
            _ => gone.push((last.clone(), vec![message])),
        }
    }
    (second, gone)
}

impl Row {
    /// Returns the document of a session, if it has messages. Those that are gone are under a key that the export does
    /// not have.
    fn document(self, messages: Messages, gone: Vec<Gone>) -> Option<Vec<u8>> {
        let mut info = self.info;
        if let Some(revert) = self.revert {
            info.json("revert", &revert);
        }
        if let Some(updated) = self.updated {
            info.json("time", &format!("{{\"updated\":{updated}}}"));
        }
        if messages.is_empty() && gone.is_empty() {
            return None;
        }
        let gone = gone.into_iter().map(|(after, run)| {
            let mut object = Object::default();
            if let Some(after) = after {
                object.text("after", &after);
            }
            object.json("messages", &format!("[{}]", run.join(",")));
            object.finish()
        });
        let gone: Vec<String> = gone.collect();
        let list: Vec<String> = messages.into_iter().map(|(_, message)| message).collect();
        let (info, list, gone) = (info.finish(), list.join(","), gone.join(","));
        let document = format!("{{\"info\":{info},\"messages\":[{list}],\"gone\":[{gone}]}}\n");
        Some(document.into_bytes())
    }
}

/// An object to which members are added.
#[derive(Default)]
struct Object(String);

impl Object {
    /// Continues an object that is stored; one that is no object is kept under the key `data`.
    fn of(stored: &str) -> Self {
        let stored = stored.trim();
        let inside = stored
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'));
        match inside {
            Some(inside) if serde_json::from_str::<&RawValue>(stored).is_ok() => {
                Self(inside.trim().to_owned())
            }
            _ => {
                let mut object = Self::default();
                object.text("data", stored);
                object
            }
        }
    }

    fn text(&mut self, key: &str, value: &str) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        let value = serde_json::Value::from(value);
        self.0.push_str(&format!("\"{key}\":{value}"));
    }

    /// Adds a member with a stored value. One that is no JSON is left out.
    fn json(&mut self, key: &str, value: &str) {
        if serde_json::from_str::<&RawValue>(value).is_err() {
            return;
        }
        if !self.0.is_empty() {
            self.0.push(',');
        }
        self.0.push_str(&format!("\"{key}\":{value}"));
    }

    fn finish(self) -> String {
        format!("{{{}}}", self.0)
    }
}
