//! The SQL statement that inserts entries, and the values of each row.

use std::sync::{Arc, LazyLock};

use memory_model::{EntryKind, Hash, Role};
use memory_store::NewEntry;
use memory_store::implementors::Placed;
use sea_query::{InsertStatement, Query, Value};

use super::external_ids::put_external;
use super::put_family;
use crate::convert::{packed, to_int};
use crate::error::Result;
use crate::family::Family;
use crate::insert::add_row;
use crate::pack::Packed;
use crate::row::Values;
use crate::tables::Message as M;

/// Maximum number of values that [`put_row`] adds for each inserted entry.
pub const COLUMNS: usize = STORED.len() + 1;

/// Columns that [`insert`] writes, in order, after the family.
const STORED: [M; 19] = [
    M::Id,
    M::Conversation,
    M::Seq,
    M::Kind,
    M::Role,
    M::ExternalId,
    M::Response,
    M::Name,
    M::Loop,
    M::Turn,
    M::At,
    M::Clocked,
    M::Tokens,
    M::Running,
    M::Hash,
    M::Codec,
    M::Payload,
    M::Meta,
    M::Body,
];

/// An entry to insert into the table of messages.
#[derive(Debug)]
pub struct NewRow<'a> {
    /// Message to store, with its cost as given by the caller.
    pub entry: &'a NewEntry,
    /// Position of the entry in its log, with its cost and the running sum there (the cost of the log up to this
    /// entry).
    pub placed: Placed,
    /// Hash of the message.
    pub hash: Hash,
    /// Body ([`Message::body`](memory_model::Message::body)) and metadata of the message, in stored form.
    pub packed: Packed,
    /// Id of the payload row that stores the string cut out of the body ([`Packed::cut`]). `None` if no string was cut
    /// out.
    pub payload: Option<i64>,
}

/// Builds the SQL statement that inserts `rows` entries. The text of the statement depends only on this number.
/// [`put_row`] adds the values of each row.
///
/// # Errors
/// `Invalid` if a row has more values than columns, which would be a defect of this crate.
pub fn insert(family: Family, rows: usize) -> Result<InsertStatement> {
    let mut statement = Query::insert();
    statement.into_table(M::Table);
    let columns = family.key(M::Tree, STORED);
    for _ in 0..rows {
        let placeholders = columns.iter().map(|_| Value::BigInt(None).into());
        add_row(statement.columns(columns.iter().copied()), placeholders)?;
    }
    Ok(statement)
}

/// Adds the values of one entry to an SQL statement of [`insert`]. The entry belongs to the own log of `conversation`.
///
/// # Errors
/// `Limit` if a number is too large for its column.
pub fn put_row(
    values: &mut impl Values,
    family: Family,
    conversation: u32,
    row: NewRow<'_>,
) -> Result<()> {
    let message = &row.entry.message;
    let turn = message.turn.as_ref();
    put_family(values, family)?;
    values.put_int(packed(conversation, row.placed.seq.0))?;
    values.put_int(i64::from(conversation))?;
    values.put_int(i64::from(row.placed.seq.0))?;
    values.put_word(match message.kind {
        EntryKind::Message => &WORDS.message,
        EntryKind::Note => &WORDS.note,
    })?;
    values.put_word(match message.role {
        Role::System => &WORDS.system,
        Role::User => &WORDS.user,
        Role::Assistant => &WORDS.assistant,
        Role::Tool => &WORDS.tool,
    })?;
    put_external(values, message.external_id.as_deref())?;
    values.put_text(message.response.clone())?;
    values.put_text(message.name.clone())?;
    values.put_text(turn.map(|turn| turn.loop_id.clone()))?;
    values.put_int(turn.map(|turn| i64::from(turn.turn)))?;
    values.put_int(message.created_at.0)?;
    values.put_int(i64::from(row.entry.clocked))?;
    values.put_int(to_int("tokens of a message", row.placed.tokens)?)?;
    values.put_int(to_int("running tokens of a message", row.placed.running)?)?;
    values.put_bytes(row.hash.0.to_vec())?;
    values.put_int(row.packed.codec)?;
    values.put_int(row.payload)?;
    values.put_text(row.packed.meta)?;
    values.put_bytes(row.packed.body)
}

/// Shared texts of the fixed words that the rows of entries contain, such as roles.
struct CommonWords {
    message: Arc<str>,
    note: Arc<str>,
    system: Arc<str>,
    user: Arc<str>,
    assistant: Arc<str>,
    tool: Arc<str>,
}

static WORDS: LazyLock<CommonWords> = LazyLock::new(|| CommonWords {
    message: EntryKind::Message.as_str().into(),
    note: EntryKind::Note.as_str().into(),
    system: Role::System.as_str().into(),
    user: Role::User.as_str().into(),
    assistant: Role::Assistant.as_str().into(),
    tool: Role::Tool.as_str().into(),
});
