//! SQL statements for the entries of logs, and functions that read their rows.

use std::sync::{Arc, LazyLock};

use memory_model::{
    EntryKind, Hash, LogEntry, Message, Part, RawJson, Role, Seq, SeqRange, Timestamp, TurnId,
    parts_from_json,
};
use memory_store::implementors::{KnownEntry, Placed, erased_parts};
use memory_store::{Error, NewEntry};
use sea_query::{
    Alias, CaseStatement, CommonTableExpression, Expr, ExprTrait as _, Func, Iden, InsertStatement,
    Order, Query, SelectStatement, UnionType, Value, WithQuery,
};

use crate::conversation::{Seen, recursive, seen_from};
use crate::convert::{packed, to_count, to_hash, to_int, to_seq, to_u32, uuid_bytes, uuid_text};
use crate::error::{Result, corrupt};
use crate::family::Family;
use crate::insert::{add_row, insert_row};
use crate::pack::{self, Facts, Packed};
use crate::row::{Columns, TextOrBytes, Values};
use crate::tables::{Facts as F, Message as M, Payload as P};

/// Numbers of rows that one prepared SQL statement can insert or look up. There are few numbers, so that the driver's
/// statement cache has room for all these statements.
pub const BATCHES: [usize; 3] = [64, 8, 1];

/// Maximum number of positions that one SQL statement of [`positions`] looks up.
pub const POSITIONS: usize = 64;

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

/// First columns that [`range`] reads, in order. The body follows, then the payload's codec and data, then the column
/// that [`size`] reads.
const READ: [M; 14] = [
    M::Seq,
    M::Kind,
    M::Role,
    M::ExternalId,
    M::Response,
    M::Name,
    M::Loop,
    M::Turn,
    M::At,
    M::Tokens,
    M::Running,
    M::Hash,
    M::Codec,
    M::Meta,
];

/// Splits `len` rows into ranges of indices. The length of each range is one of [`BATCHES`].
pub fn batches(len: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let size = BATCHES.into_iter().find(|size| *size <= len - start)?;
        start += size;
        Some(start - size..start)
    })
}

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
    /// Body ([`Message::body`]) and metadata of the message, in stored form.
    pub packed: Packed,
    /// Id of the payload row that stores the string cut out of the body ([`Packed::cut`]). `None` if no string was cut
    /// out.
    pub payload: Option<i64>,
}

/// Adds an external id to the values of an SQL statement, in its stored form: 16 bytes for a UUID, else the text.
fn put_external(values: &mut impl Values, id: Option<&str>) -> Result<()> {
    values.put_text_or_bytes(id.map(|id| match uuid_bytes(id) {
        Some(bytes) => TextOrBytes::Bytes(bytes.to_vec()),
        None => TextOrBytes::Text(id.to_owned()),
    }))
}

/// Reads an external id from column `at` of a row.
fn external_id(row: &impl Columns, at: usize) -> Result<Option<String>> {
    Ok(match row.text_or_bytes(at)? {
        None => None,
        Some(TextOrBytes::Text(id)) => Some(id),
        Some(TextOrBytes::Bytes(bytes)) => match <[u8; 16]>::try_from(bytes) {
            Ok(bytes) => Some(uuid_text(bytes)),
            Err(_) => {
                let problem = "an external id in bytes does not have 16 of them";
                return Err(corrupt("message", problem));
            }
        },
    })
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

/// Adds the number of the family to the values of an SQL statement, for a database with a column for it.
fn put_family(values: &mut impl Values, family: Family) -> Result<()> {
    family
        .number()
        .map_or(Ok(()), |number| values.put_int(number))
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

/// Builds the SQL statement that selects at most `limit` entries of `range` in the own log of `source`, by position.
/// [`entry`] reads a row of the answer. If a row has more than `largest` packed bytes, these bytes are left out of the
/// answer: see [`size`].
pub fn range(
    family: Family,
    source: u32,
    range: SeqRange,
    order: Order,
    limit: u64,
    largest: i64,
) -> SelectStatement {
    let mut statement = rows(family, order, limit, largest);
    let (first, last) = (packed(source, range.first.0), packed(source, range.last.0));
    statement.and_where(Expr::col((M::Table, M::Id)).between(first, last));
    statement
}

/// Builds the SQL statement that selects the entries at these positions, at most [`POSITIONS`] of them. The columns are
/// those of [`range`].
pub fn positions(
    family: Family,
    source: u32,
    positions: &[Seq],
    order: Order,
    limit: u64,
    largest: i64,
) -> SelectStatement {
    let mut statement = rows(family, order, limit, largest);
    // The list is padded to one of few lengths by repeating its last position, so that the driver's statement cache has
    // room for all these statements.
    let length = match positions.len() {
        0..=8 => 8,
        _ => POSITIONS,
    };
    let repeated = std::iter::repeat(positions.last()).flatten();
    let wanted = positions
        .iter()
        .chain(repeated)
        .take(length.max(positions.len()));
    let ids = wanted.map(|seq| packed(source, seq.0));
    statement.and_where(Expr::col((M::Table, M::Id)).is_in(ids));
    statement
}

fn rows(family: Family, order: Order, limit: u64, largest: i64) -> SelectStatement {
    let of_message = |column: M| (M::Table, column);
    let length = |of: Expr| {
        Expr::expr(Func::coalesce([
            Func::cust(Alias::new("octet_length")).arg(of).into(),
            Expr::val(0_i64),
        ]))
    };
    let (body, data) = (
        || Expr::col(of_message(M::Body)),
        || Expr::col((P::Table, P::Data)),
    );
    // A database knows the length of a column without reading its bytes.
    let size = || length(body()).add(length(data()));
    let small = |of: Expr| CaseStatement::new().case(size().lte(largest), of);
    Query::select()
        .columns(READ.map(of_message))
        .expr(small(body()))
        .column((P::Table, P::Codec))
        .expr(small(data()))
        .expr(size())
        .from(M::Table)
        .and_where_option(family.rows((M::Table, M::Tree)))
        .left_join(
            P::Table,
            family.and(
                Expr::col((P::Table, P::Id)).equals((M::Table, M::Payload)),
                (P::Table, P::Tree),
            ),
        )
        .order_by(of_message(M::Id), order)
        .limit(limit)
        .take()
}

/// Reads the number of packed bytes of an entry from a row of [`range`]. The number is present even if the bytes were
/// left out of the answer.
///
/// # Errors
/// `Corrupt` if the row has no such column.
pub fn size(row: &impl Columns) -> Result<i64> {
    row.int(17)
}

/// Reads from a row of [`range`] the revision of the conversation's facts that is needed to unpack the row. Facts are
/// texts that entries are compressed against. Returns `None` if the row needs no facts, for example because its words
/// were erased.
///
/// # Errors
/// `Corrupt` if the row has no such column.
pub fn needed_facts(row: &impl Columns) -> Result<Option<i64>> {
    let revision = pack::facts_revision(row.int(12)?);
    Ok(match revision {
        Some(_) if size(row)? == 0 => None,
        revision => revision,
    })
}

/// Reads the body and the metadata of an entry from a row of [`range`], and unpacks them if they are compressed.
/// `facts` are the texts that entries of this log may be compressed against. Returns `None` if the entry was erased.
///
/// # Errors
/// `Corrupt` if the bytes were not written by [`pack`](crate::pack::pack), or if the entry needs facts and `facts` is
/// `None` or another revision.
pub fn unpacked(
    row: &impl Columns,
    facts: Option<&Facts>,
) -> Result<Option<(Vec<u8>, Option<String>)>> {
    let seq = row.int(0)?;
    let wrong = |problem: &str| corrupt(format!("message {seq}"), problem);
    let Some(body) = row.opt_bytes(14)? else {
        return Ok(None);
    };
    let codec = row.int(12)?;
    let facts = match (codec, pack::facts_revision(codec)) {
        (pack::PLAIN, _) => return Ok(Some((body, row.opt_text(13)?))),
        (pack::PACKED, _) => None,
        (_, Some(revision)) => {
            let facts = facts.filter(|facts| facts.revision() == revision);
            Some(facts.ok_or_else(|| wrong("the facts of its conversation are missing"))?)
        }
        _ => return Err(pack::unknown_codec()),
    };
    let unpack = || {
        let cut = match row.opt_int(15)? {
            Some(codec) => Some(pack::unpack_payload(codec, row.bytes(16)?)?),
            None => None,
        };
        pack::unpack(&body, cut.as_deref(), facts)
    };
    let whole = unpack().map_err(|e: Error| wrong("its bytes are damaged").with_source(e))?;
    Ok(Some(whole))
}

/// Reads an entry from a row of [`range`]. Also returns the length of its body in bytes. The parts of an erased entry
/// are a placeholder. `facts` are the facts of the conversation that owns the log: texts that entries are compressed
/// against.
///
/// # Errors
/// `Corrupt` if a column of the row cannot be read or holds an invalid value.
pub fn entry(row: &impl Columns, facts: Option<&Facts>) -> Result<(LogEntry, u64)> {
    let seq = to_seq(row.int(0)?)?;
    let wrong = |problem: &str| corrupt(format!("message {seq}"), problem);
    let kind = EntryKind::parse(&row.text(1)?).ok_or_else(|| wrong("unknown kind"))?;
    let role = Role::parse(&row.text(2)?).ok_or_else(|| wrong("unknown role"))?;
    let turn = match (row.opt_text(6)?, row.opt_int(7)?) {
        (Some(loop_id), Some(turn)) => Some(TurnId {
            loop_id,
            turn: to_u32("turn", turn)?,
        }),
        _ => None,
    };
    let (body, meta) = match unpacked(row, facts)? {
        Some((body, meta)) => (Some(body), meta),
        None => (None, row.opt_text(13)?),
    };
    let meta = meta
        .map(RawJson::parse)
        .transpose()
        .map_err(|e| wrong("meta is not JSON").with_source(e))?;
    let tokens = to_count("tokens of a message", row.int(9)?)?;
    let parts: Vec<Part> = match &body {
        Some(body) => parts_from_json(body)
            .map_err(|e| wrong("the body is not a list of parts").with_source(e))?,
        None => erased_parts(tokens),
    };
    let entry = LogEntry {
        seq,
        message: Message {
            kind,
            role,
            external_id: external_id(row, 3)?,
            response: row.opt_text(4)?,
            name: row.opt_text(5)?,
            turn,
            created_at: Timestamp(row.int(8)?),
            parts,
            meta,
        },
        tokens,
        running: to_count("running tokens of a message", row.int(10)?)?,
        hash: to_hash("message", &row.bytes(11)?)?,
    };
    Ok((entry, body.map_or(0, |body| body.len() as u64)))
}

/// Builds the SQL statement that looks up `ids` external ids in one log. [`put_ids`] adds the values, and [`found`]
/// reads a row of the answer.
pub fn by_external(family: Family, ids: usize) -> SelectStatement {
    found_columns()
        .from(M::Table)
        .and_where_option(family.rows((M::Table, M::Tree)))
        .and_where(Expr::col((M::Table, M::Conversation)).eq(0_i64))
        .and_where(Expr::col((M::Table, M::ExternalId)).is_in(vec![Vec::<u8>::new(); ids]))
        .take()
}

/// Builds the SQL statement that looks up `ids` external ids in the log that a fork sees, including its ancestors'
/// shared parts. [`put_seen_ids`] adds the values, and [`found`] reads a row of the answer.
pub fn by_external_seen(family: Family, ids: usize) -> WithQuery {
    found_columns()
        .from(Seen::Table)
        // CROSS JOIN fixes the order of the joins: SQLite then looks each id up in each log.
        .cross_join(M::Table)
        .and_where_option(family.rows((M::Table, M::Tree)))
        .and_where(Expr::col((M::Table, M::Conversation)).equals((Seen::Table, Seen::No)))
        .and_where(Expr::col((M::Table, M::ExternalId)).is_in(vec![Vec::<u8>::new(); ids]))
        .and_where(Expr::col((M::Table, M::Seq)).lte(Expr::col((Seen::Table, Seen::Last))))
        .take()
        .with(seen_from(family, 0))
}

fn found_columns() -> SelectStatement {
    Query::select()
        .columns(
            [M::ExternalId, M::Seq, M::Hash, M::At, M::Clocked].map(|column| (M::Table, column)),
        )
        .take()
}

/// Adds the values of an SQL statement of [`by_external`]: the conversation that owns the log, and the external ids.
///
/// # Errors
/// `Invalid` if the driver refuses a value, which would be a defect of this crate.
pub fn put_ids(values: &mut impl Values, family: Family, source: u32, ids: &[&str]) -> Result<()> {
    put_family(values, family)?;
    values.put_int(i64::from(source))?;
    ids.iter().try_for_each(|id| put_external(values, Some(id)))
}

/// Adds the values of an SQL statement of [`by_external_seen`]: the fork, and the external ids.
///
/// # Errors
/// `Invalid` if the driver refuses a value, which would be a defect of this crate.
pub fn put_seen_ids(
    values: &mut impl Values,
    family: Family,
    conversation: u32,
    ids: &[&str],
) -> Result<()> {
    // Values of `seen_from`: the number of the conversation, the largest position, level 0, the step of a level, and the
    // family of the parents.
    values.put_int(i64::from(conversation))?;
    values.put_int(i64::from(u32::MAX))?;
    values.put_int(0)?;
    values.put_int(1)?;
    put_family(values, family)?;
    put_family(values, family)?;
    ids.iter().try_for_each(|id| put_external(values, Some(id)))
}

/// Reads a row of [`by_external`] or [`by_external_seen`]. Returns the external id, and the position, hash and time of
/// its entry.
///
/// # Errors
/// `Corrupt` if a column of the row cannot be read or holds an invalid value.
pub fn found(row: &impl Columns) -> Result<(String, KnownEntry)> {
    let id = external_id(row, 0)?.ok_or_else(|| corrupt("message", "it has no external id"))?;
    let known = KnownEntry {
        seq: to_seq(row.int(1)?)?,
        hash: to_hash("message", &row.bytes(2)?)?,
        created_at: Timestamp(row.int(3)?),
        clocked: row.int(4)? != 0,
    };
    Ok((id, known))
}

/// Builds the SQL statement that looks up payloads by their hashes. The answer has rows of (hash, id). A payload is a
/// long string of messages that is stored once.
pub fn payloads(family: Family, hashes: &[Hash]) -> SelectStatement {
    Query::select()
        .columns([P::Hash, P::Id])
        .from(P::Table)
        .and_where_option(family.rows((P::Table, P::Tree)))
        .and_where(Expr::col(P::Hash).is_in(hashes.iter().map(|hash| hash.0.to_vec())))
        .take()
}

/// Builds the SQL statement that inserts a payload: a long string of messages that is stored once. The answer is one
/// row with the payload's id.
///
/// # Errors
/// `Invalid` if a row has more values than columns, which would be a defect of this crate.
pub fn insert_payload(
    family: Family,
    hash: Hash,
    codec: i64,
    data: Vec<u8>,
) -> Result<InsertStatement> {
    let row = [
        (P::Hash, hash.0.to_vec().into()),
        (P::Codec, codec.into()),
        (P::Data, data.into()),
    ];
    let mut statement = insert_row(family.value(P::Tree), P::Table, row)?;
    statement.returning_col(P::Id);
    Ok(statement)
}

/// Builds the SQL statement that selects at most `limit` payloads with ids above `after`. The answer has rows of (id,
/// hash, codec, data). A payload is a long string of messages that is stored once.
pub fn payload_log(family: Family, after: i64, limit: u64) -> SelectStatement {
    Query::select()
        .columns([P::Id, P::Hash, P::Codec, P::Data])
        .from(P::Table)
        .and_where_option(family.rows((P::Table, P::Tree)))
        .and_where(Expr::col(P::Id).gt(after))
        .order_by(P::Id, Order::Asc)
        .limit(limit)
        .take()
}

/// Builds the SQL statement that selects the facts of a conversation: the texts that its entries are compressed
/// against. The answer is one row with the text and its revision.
pub fn facts(family: Family, conversation: u32) -> SelectStatement {
    Query::select()
        .columns([F::Text, F::Revision])
        .from(F::Table)
        .and_where_option(family.rows((F::Table, F::Tree)))
        .and_where(Expr::col(F::Conversation).eq(i64::from(conversation)))
        .take()
}

/// Builds the SQL statement that inserts the facts of a conversation that has no facts yet. Facts are texts that
/// entries are compressed against.
///
/// # Errors
/// `Invalid` if a row has more values than columns, which would be a defect of this crate.
pub fn insert_facts(family: Family, conversation: u32, facts: &Facts) -> Result<InsertStatement> {
    let row = [
        (F::Conversation, i64::from(conversation).into()),
        (F::Text, facts.text().into()),
        (F::Revision, facts.revision().into()),
    ];
    insert_row(family.value(F::Tree), F::Table, row)
}

/// Builds the SQL statement that selects running sums of the entries with these row keys (see [`packed`]). The answer
/// has rows of (key, running sum in tokens).
pub fn running(family: Family, keys: &[i64]) -> SelectStatement {
    Query::select()
        .columns([M::Id, M::Running])
        .from(M::Table)
        .and_where_option(family.rows((M::Table, M::Tree)))
        .and_where(Expr::col(M::Id).is_in(keys.iter().copied()))
        .take()
}

/// Builds the SQL statement that selects the first position of `range`, in the own log of `source`, with a running sum
/// of at least `running` tokens. The answer is one number. The last position of `range` must have a large enough sum.
/// The statement makes a binary search, so that the table needs no index over the sums.
///
/// # Errors
/// `Limit` if a number is too large for its column.
pub fn seq_at(family: Family, source: u32, range: SeqRange, running: u64) -> Result<WithQuery> {
    let running = to_int("running tokens", running)?;
    let middle = || {
        Expr::col(Search::Low)
            .add(Expr::col(Search::High))
            .div(2_i64)
    };
    let sum = Query::select()
        .column((M::Table, M::Running))
        .from(M::Table)
        .and_where_option(family.rows((M::Table, M::Tree)))
        .and_where(Expr::col((M::Table, M::Id)).eq(Expr::val(packed(source, 0)).bit_or(middle())))
        .take();
    let below = || Expr::from(sum.clone()).lt(running);
    let step = Query::select()
        .expr(
            CaseStatement::new()
                .case(below(), middle().add(1_i64))
                .finally(Expr::col(Search::Low)),
        )
        .expr(
            CaseStatement::new()
                .case(below(), Expr::col(Search::High))
                .finally(middle()),
        )
        .from(Search::Table)
        .and_where(Expr::col(Search::Low).lt(Expr::col(Search::High)))
        .take();
    let begin = Query::select()
        .expr(Expr::val(i64::from(range.first.0)))
        .expr(Expr::val(i64::from(range.last.0)))
        .union(UnionType::All, step)
        .take();
    let search = CommonTableExpression::new()
        .table_name(Search::Table)
        .columns([Search::Low, Search::High])
        .query(begin)
        .to_owned();
    let found = Query::select()
        .column(Search::Low)
        .from(Search::Table)
        .and_where(Expr::col(Search::Low).eq(Expr::col(Search::High)))
        .take();
    Ok(found.with(recursive(search)))
}

/// Names of the table and columns of the recursive query in [`seq_at`].
#[derive(Clone, Copy)]
enum Search {
    Table,
    Low,
    High,
}

impl Iden for Search {
    fn unquoted(&self) -> &str {
        match self {
            Search::Table => "search",
            Search::Low => "low",
            Search::High => "high",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_cover_every_row_once_in_three_sizes() {
        for len in [0, 1, 7, 8, 9, 63, 64, 65, 200] {
            let all: Vec<_> = batches(len).collect();
            assert!(all.iter().all(|b| BATCHES.contains(&b.len())));
            let rows: Vec<usize> = all.into_iter().flatten().collect();
            assert_eq!(rows, (0..len).collect::<Vec<_>>());
        }
    }
}
