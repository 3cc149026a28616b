//! Reads databases with the tables of the older memory engine, its own and those that `write_plain` writes.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use memory_model::{
    Message, Part, RawJson, ResultContent, Role, SessionKey, Timestamp, part_from_raw,
};
use memory_store::{Error, ErrorKind, Result};
use serde_json::value::RawValue;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{ConnectOptions as _, Connection as _, Row as _};

use crate::error::failed;

/// A conversation of a plain database.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlainConversation {
    /// Key of its session.
    pub key: SessionKey,
    /// Its title.
    pub title: Option<String>,
    /// Whether it is archived.
    pub archived: bool,
    /// Its messages, each with an external id that names its first row.
    pub messages: Vec<Message>,
}

/// What a plain database holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlainDatabase {
    /// The conversations, by their ids.
    pub conversations: Vec<PlainConversation>,
    /// Number of rows whose content should be JSON and is not: they are read as text.
    pub texts: u64,
    /// Number of summaries, which are not read: a compaction makes them anew.
    pub summaries: u64,
}

/// The statements for one generation of the tables. Times are read as text: some are text, some are numbers.
struct Statements {
    exists: &'static str,
    conversations: &'static str,
    messages: &'static str,
    parts: &'static str,
    summaries: &'static str,
}

macro_rules! statements {
    ($prefix:literal, $plural:literal) => {
        Statements {
            exists: concat!(
                "select count(*) from pragma_table_info('",
                $prefix,
                "message",
                $plural,
                "') where name in ('conversation_id', 'seq', 'role', 'event_type', 'content')"
            ),
            conversations: concat!(
                "select id, session_id, title, archived from ",
                $prefix,
                "conversation",
                $plural,
                " order by id"
            ),
            messages: concat!(
                "select id, role, event_type, content, cast(created_at as text) from ",
                $prefix,
                "message",
                $plural,
                " where conversation_id = ? order by seq"
            ),
            parts: concat!(
                "select p.message_id, p.metadata from ",
                $prefix,
                "message_part",
                $plural,
                " p join ",
                $prefix,
                "message",
                $plural,
                " m on m.id = p.message_id where m.conversation_id = ? and p.metadata is not null \
                 order by p.message_id, p.ordinal"
            ),
            summaries: concat!("select count(*) from ", $prefix, "summar", "ies"),
        }
    };
}

/// The names of the tables changed from generation to generation.
const GENERATIONS: [Statements; 3] = [
    statements!("", "s"),
    statements!("ctx_", "s"),
    statements!("ctx_", ""),
];

/// Number of the columns that a table of messages must have.
const COLUMNS: i64 = 5;

/// Whether a file begins as SQLite's files do. Nothing is read from what can be read only once, such as a pipe.
pub fn is_sqlite_file(path: &Path) -> bool {
    use std::io::Read as _;
    if !path.metadata().is_ok_and(|meta| meta.is_file()) {
        return false;
    }
    let mut head = [0; 16];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head == *b"SQLite format 3\0"
}

/// Reads all conversations of a plain database; changes nothing in it.
///
/// Rows of the assistant that were stored at the same time and follow each other as its text and its calls are one message.
/// Rows whose content should be JSON and is not are text: that of a result answers the oldest call without one. A row of an
/// unknown role is a note.
///
/// # Errors
/// `Invalid` for a database without these tables; as the driver's.
pub async fn read_plain(path: &Path) -> Result<PlainDatabase> {
    let options = SqliteConnectOptions::new().filename(path).read_only(true);
    let mut db = options.connect().await.map_err(failed)?;
    let read = read_from(&mut db, path).await;
    db.close().await.map_err(failed)?;
    read
}

async fn read_from(db: &mut SqliteConnection, path: &Path) -> Result<PlainDatabase> {
    let mut found = None;
    for generation in GENERATIONS {
        let columns: i64 = sqlx::query_scalar(generation.exists)
            .fetch_one(&mut *db)
            .await
            .map_err(failed)?;
        if columns == COLUMNS {
            found = Some(generation);
            break;
        }
    }
    let Some(statements) = found else {
        let message = format!(
            "{} has no table of messages with the columns role, event_type and content: give a database of the older \
             engine, or one that `export --sqlite` wrote",
            path.display()
        );
        return Err(Error::new(ErrorKind::Invalid, message));
    };
    let mut database = PlainDatabase::default();
    // Neither parts nor summaries need be there.
    let summaries = sqlx::query_scalar::<_, i64>(statements.summaries);
    if let Ok(count) = summaries.fetch_one(&mut *db).await {
        database.summaries = u64::try_from(count).unwrap_or(0);
    }
    let rows = sqlx::query(statements.conversations);
    for row in rows.fetch_all(&mut *db).await.map_err(failed)? {
        let id: i64 = row.try_get(0).map_err(failed)?;
        let parts = sqlx::query(statements.parts).bind(id);
        let parts = parts.fetch_all(&mut *db).await.unwrap_or_default();
        let mut reader = RowReader {
            parts: whole_parts(&parts),
            ..RowReader::default()
        };
        let messages = sqlx::query(statements.messages).bind(id);
        for row in messages.fetch_all(&mut *db).await.map_err(failed)? {
            reader.row(&StoredRow::read(&row)?);
        }
        database.texts += reader.texts;
        database.conversations.push(PlainConversation {
            key: SessionKey::new(row.try_get::<String, _>(1).map_err(failed)?),
            title: row.try_get(2).map_err(failed)?,
            archived: row.try_get::<i64, _>(3).map_err(failed)? != 0,
            messages: reader.messages,
        });
    }
    Ok(database)
}

/// The parts of rows that are stored whole, as `write_plain` does, by the rows' ids. A row with a part that is not
/// is not among them.
fn whole_parts(rows: &[SqliteRow]) -> BTreeMap<i64, Vec<Part>> {
    let mut parts: BTreeMap<i64, Option<Vec<Part>>> = BTreeMap::new();
    for row in rows {
        let (Ok(id), Ok(json)) = (row.try_get::<i64, _>(0), row.try_get::<String, _>(1)) else {
            continue;
        };
        let part = serde_json::from_str::<Part>(&json).ok();
        let known = parts.entry(id).or_insert_with(|| Some(Vec::new()));
        match (known.as_mut(), part) {
            (Some(known), Some(part)) => known.push(part),
            _ => *known = None,
        }
    }
    let whole = parts.into_iter();
    whole.filter_map(|(id, parts)| Some((id, parts?))).collect()
}

/// A row of the table of messages.
struct StoredRow {
    id: i64,
    role: String,
    event: String,
    content: String,
    at: Timestamp,
}

impl StoredRow {
    fn read(row: &SqliteRow) -> Result<Self> {
        let at: Option<String> = row.try_get(4).map_err(failed)?;
        Ok(Self {
            id: row.try_get(0).map_err(failed)?,
            role: row.try_get(1).map_err(failed)?,
            event: row.try_get(2).map_err(failed)?,
            content: row.try_get(3).map_err(failed)?,
            at: at.map(|at| time(&at)).unwrap_or_default(),
        })
    }
}

/// A time: text as SQLite or RFC 3339 writes it, or seconds, milliseconds or microseconds since 1970.
fn time(text: &str) -> Timestamp {
    const SECONDS_END: i64 = 100_000_000_000;
    const MILLIS_END: i64 = 100_000_000_000_000;
    match text.parse::<i64>() {
        Ok(seconds) if seconds.abs() < SECONDS_END => Timestamp(seconds * 1_000_000),
        Ok(millis) if millis.abs() < MILLIS_END => Timestamp(millis * 1_000),
        Ok(micros) => Timestamp(micros),
        Err(_) => {
            let zoned = text.replacen(' ', "T", 1);
            let zoned = match zoned.ends_with('Z') || zoned.contains('+') {
                true => zoned,
                false => format!("{zoned}Z"),
            };
            Timestamp::parse(&zoned).unwrap_or_default()
        }
    }
}

/// Puts messages together from rows.
#[derive(Default)]
struct RowReader {
    parts: BTreeMap<i64, Vec<Part>>,
    messages: Vec<Message>,
    /// Ids of calls that have no result so far, oldest first.
    open: VecDeque<String>,
    /// What the last row was, if it was the assistant's: its place in the order thoughts, text, calls.
    rank: Option<u8>,
    texts: u64,
}

impl RowReader {
    fn row(&mut self, row: &StoredRow) {
        let role = match row.role.as_str() {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            "system" => Role::System,
            _ => {
                self.rank = None;
                let mut note = Message::note(Role::System, vec![Part::text(row.content.as_str())]);
                note.external_id = Some(external_id(row.id));
                note.created_at = row.at;
                self.messages.push(note);
                return;
            }
        };
        let parts = match self.parts.remove(&row.id) {
            Some(parts) => parts,
            None => self.parts_of(row),
        };
        for part in &parts {
            match part {
                Part::ToolCall { id, .. } => self.open.push_back(id.clone()),
                Part::ToolResult { call_id, .. } => self.open.retain(|open| open != call_id),
                _ => {}
            }
        }
        let rank = match row.event.as_str() {
            "thinking" => 0,
            "tool_call" => 2,
            _ => 1,
        };
        let before = self.rank.take();
        if role == Role::Assistant {
            self.rank = Some(rank);
            let goes_on = before.is_some_and(|before| before < rank || (before, rank) == (2, 2));
            if let Some(last) = self.messages.last_mut()
                && goes_on
                && last.created_at == row.at
            {
                last.parts.extend(parts);
                return;
            }
        }
        let mut message = Message::new(role, parts);
        message.external_id = Some(external_id(row.id));
        message.created_at = row.at;
        self.messages.push(message);
    }

    fn parts_of(&mut self, row: &StoredRow) -> Vec<Part> {
        let content = row.content.as_str();
        let read = match row.event.as_str() {
            "thinking" => {
                return vec![Part::Reasoning {
                    text: content.to_owned(),
                    signature: None,
                }];
            }
            "multimodal" => blocks(content),
            "tool_call" => call(content).map(|call| vec![call]),
            "tool_result" => result(content).map(|result| vec![result]),
            _ => return vec![Part::text(content)],
        };
        if let Some(parts) = read {
            return parts;
        }
        self.texts += 1;
        match (row.event.as_str(), self.open.front()) {
            ("tool_result", Some(call)) => vec![Part::ToolResult {
                call_id: call.clone(),
                content: ResultContent::Text(content.to_owned()),
                is_error: None,
            }],
            _ => vec![Part::text(content)],
        }
    }
}

fn external_id(row: i64) -> String {
    format!("row-{row}")
}

/// A list of blocks.
fn blocks(json: &str) -> Option<Vec<Part>> {
    let list: Vec<&RawValue> = serde_json::from_str(json).ok()?;
    Some(list.into_iter().map(part_from_raw).collect())
}

fn call(json: &str) -> Option<Part> {
    #[derive(serde::Deserialize)]
    struct Call<'a> {
        id: String,
        tool: String,
        #[serde(borrow)]
        args: Option<&'a RawValue>,
    }
    let call: Call<'_> = serde_json::from_str(json).ok()?;
    Some(Part::ToolCall {
        id: call.id,
        name: call.tool,
        arguments: match call.args {
            Some(args) => RawJson::from_raw(args),
            None => RawJson::parse("{}").ok()?,
        },
    })
}

fn result(json: &str) -> Option<Part> {
    #[derive(serde::Deserialize)]
    struct Answer<'a> {
        id: String,
        #[serde(borrow)]
        result: Option<&'a RawValue>,
        #[serde(borrow)]
        blocks: Option<&'a RawValue>,
        #[serde(borrow)]
        error: Option<&'a RawValue>,
    }
    let answer: Answer<'_> = serde_json::from_str(json).ok()?;
    let text = |value: &RawValue| -> String {
        serde_json::from_str::<String>(value.get()).unwrap_or_else(|_| value.get().to_owned())
    };
    let error = answer
        .error
        .filter(|error| !matches!(error.get(), "null" | "false" | "\"\""));
    let content = match (answer.blocks, answer.result, error) {
        (Some(list), _, _) => ResultContent::Parts(blocks(list.get())?),
        (None, Some(said), _) => ResultContent::Text(text(said)),
        (None, None, Some(error)) => ResultContent::Text(text(error)),
        (None, None, None) => ResultContent::Text(String::new()),
    };
    Some(Part::ToolResult {
        call_id: answer.id,
        content,
        is_error: error.map(|_| true),
    })
}
