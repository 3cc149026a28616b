//! opencode's database, `opencode.db`: its sessions are read as `opencode export` writes them.
//!
//! The database is opened for reading alone, in one transaction, also while opencode writes to it. Each session is
//! written as a document of the export in memory, which [`OpenCode`](message_formats::OpenCode) reads: a session has the
//! same messages and ids whether it was exported or not.

mod lengths;

use std::io::Cursor;
use std::path::Path;

use futures::TryStreamExt as _;
use message_formats::{
    AgentHome, Confidence, Error, Format, Head, Input, OpenCode, ReadOptions, Report, Sink,
};
use serde_json::value::RawValue;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{Connection as _, Row as _};

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
            let advice = "it is a database, but not one of opencode: give a transcript";
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

async fn sessions(connection: &mut SqliteConnection) -> Result<Option<Vec<u8>>, sqlx::Error> {
    let mut tx = connection.begin().await?;
    let tables = "select count(*) from sqlite_schema where type = 'table' and name in ('session', 'message', 'part')";
    let tables: i64 = sqlx::query_scalar(tables).fetch_one(&mut *tx).await?;
    if tables != 3 {
        return Ok(None);
    }
    let rows = "select id, slug, project_id, directory, parent_id, version from session order by time_created, id";
    let rows = sqlx::query(rows).fetch_all(&mut *tx).await?;
    let mut documents = Vec::new();
    for row in rows {
        let id: String = row.try_get(0)?;
        let mut info = Object::default();
        let keys = [
            "id",
            "slug",
            "projectID",
            "directory",
            "parentID",
            "version",
        ];
        for (column, key) in keys.iter().enumerate() {
            if let Some(value) = row.try_get::<Option<String>, _>(column)? {
                info.text(key, &value);
            }
        }
        let mut parts = sqlx::query(
            "select message_id, id, data from part where session_id = ? order by message_id, id",
        )
        .bind(&id)
        .fetch_all(&mut *tx)
        .await?
        .into_iter()
        .peekable();
        let messages = "select id, data from message where session_id = ? order by id";
        let mut messages = sqlx::query(messages).bind(&id).fetch(&mut *tx);
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
                    object.text("sessionID", &id);
                    object.text("messageID", &own);
                    said.push(object.finish());
                }
            }
            let mut object = Object::of(&data);
            object.text("id", &own);
            object.text("sessionID", &id);
            list.push(format!(
                "{{\"info\":{},\"parts\":[{}]}}",
                object.finish(),
                said.join(",")
            ));
        }
        if !list.is_empty() {
            let document = format!(
                "{{\"info\":{},\"messages\":[{}]}}\n",
                info.finish(),
                list.join(",")
            );
            documents.extend(document.into_bytes());
        }
    }
    Ok(Some(documents))
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

    fn finish(self) -> String {
        format!("{{{}}}", self.0)
    }
}
