//! SQL statements that select entries, and functions that read their rows.

use memory_model::{
    EntryKind, LogEntry, Message, Part, RawJson, Role, Seq, SeqRange, Timestamp, TurnId,
    parts_from_json,
};
use memory_store::Error;
use memory_store::implementors::erased_parts;
use sea_query::{Alias, CaseStatement, Expr, ExprTrait as _, Func, Order, Query, SelectStatement};

use super::external_ids::external_id;
use crate::convert::{packed, to_count, to_hash, to_seq, to_u32};
use crate::error::{Result, corrupt};
use crate::family::Family;
use crate::pack::{self, Facts};
use crate::row::Columns;
use crate::tables::{Message as M, Payload as P};

/// Maximum number of positions that one SQL statement of [`positions`] looks up.
pub const POSITIONS: usize = 64;

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
