//! The log.

use memory_model::{EntryKind, LogEntry, Message, Part, RawJson, Role, SeqRange, Timestamp, TurnId};
use sea_query::{
    Expr, ExprTrait as _, Func, InsertStatement, Order, Query, SelectStatement, SimpleExpr,
};

use crate::convert::{packed, to_count, to_hash, to_int, to_seq, to_u32};
use crate::error::{Result, add_row, corrupt};
use crate::sql::Columns;
use crate::tables::Message as M;

/// How many rows go into one insert: few sizes, so that the driver's cache holds every statement.
pub const BATCHES: [usize; 3] = [64, 8, 1];

/// The columns of [`insert`], in order.
const STORED: [M; 17] = [
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
    M::Tokens,
    M::Running,
    M::Hash,
    M::Codec,
    M::Meta,
    M::Body,
];

/// The columns of [`range`], in order: narrow ones first, the body last and only when asked for.
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

/// Splits `len` rows into batches of the sizes in [`BATCHES`].
pub fn batches(len: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let size = BATCHES.into_iter().find(|size| *size <= len - start)?;
        start += size;
        Some(start - size..start)
    })
}

/// Inserts log entries with their bodies into the own log of `conversation`.
///
/// # Errors
/// When a number does not fit its column.
pub fn insert(conversation: u32, rows: &[(LogEntry, Vec<u8>)]) -> Result<InsertStatement> {
    let mut statement = Query::insert();
    statement.into_table(M::Table).columns(STORED);
    for (entry, body) in rows {
        let turn = entry.turn.as_ref();
        let values: [SimpleExpr; 17] = [
            packed(conversation, entry.seq.0).into(),
            i64::from(conversation).into(),
            i64::from(entry.seq.0).into(),
            entry.kind.as_str().into(),
            entry.role.as_str().into(),
            entry.external_id.clone().into(),
            entry.response.clone().into(),
            entry.name.clone().into(),
            turn.map(|turn| turn.loop_id.clone()).into(),
            turn.map(|turn| i64::from(turn.turn)).into(),
            entry.created_at.0.into(),
            to_int("tokens of a message", entry.tokens)?.into(),
            to_int("running tokens of a message", entry.running)?.into(),
            entry.hash.0.to_vec().into(),
            0_i64.into(),
            entry.meta.as_ref().map(|meta| meta.as_str().to_owned()).into(),
            body.clone().into(),
        ];
        add_row(&mut statement, values)?;
    }
    Ok(statement)
}

/// Reads `range` of the own log of `source`, at most `limit` rows, oldest or newest first.
pub fn range(
    source: u32,
    range: SeqRange,
    order: Order,
    limit: u64,
    bodies: bool,
) -> SelectStatement {
    let mut statement = Query::select();
    statement.columns(READ);
    if bodies {
        statement.column(M::Body);
    }
    statement
        .from(M::Table)
        .and_where(
            Expr::col(M::Id)
                .between(packed(source, range.first.0), packed(source, range.last.0)),
        )
        .order_by(M::Id, order)
        .limit(limit);
    statement
}

/// A row of [`range`]; without bodies, or when the body was erased, `parts` is empty.
///
/// # Errors
/// When the row does not mean a message.
pub fn entry(row: &impl Columns, bodies: bool) -> Result<LogEntry> {
    let seq = to_seq(row.int(0)?)?;
    let wrong = |problem: &str| corrupt(format!("message {seq}"), problem);
    let kind = EntryKind::parse(&row.text(1)?).ok_or_else(|| wrong("unknown kind"))?;
    let role = Role::parse(&row.text(2)?).ok_or_else(|| wrong("unknown role"))?;
    let turn = match (row.opt_text(6)?, row.opt_int(7)?) {
        (Some(loop_id), Some(turn)) => Some(TurnId { loop_id, turn: to_u32("turn", turn)? }),
        _ => None,
    };
    if row.int(12)? != 0 {
        return Err(wrong("the body is packed in a way that this program does not know: update it"));
    }
    let meta = row
        .opt_text(13)?
        .map(RawJson::parse)
        .transpose()
        .map_err(|e| wrong("meta is not JSON").with_source(e))?;
    let body = if bodies { row.opt_bytes(14)? } else { None };
    let parts: Vec<Part> = match body {
        Some(body) => serde_json::from_slice(&body)
            .map_err(|e| wrong("the body is not a list of parts").with_source(e))?,
        None => Vec::new(),
    };
    Ok(LogEntry {
        seq,
        message: Message {
            kind,
            role,
            external_id: row.opt_text(3)?,
            response: row.opt_text(4)?,
            name: row.opt_text(5)?,
            turn,
            created_at: Timestamp(row.int(8)?),
            parts,
            meta,
        },
        tokens: to_count("tokens of a message", row.int(9)?)?,
        running: to_count("running tokens of a message", row.int(10)?)?,
        hash: to_hash("message", &row.bytes(11)?)?,
    })
}

/// Finds entries of the own log of `source` by external id: rows of (external id, seq, hash).
pub fn by_external(source: u32, ids: &[&str]) -> SelectStatement {
    Query::select()
        .columns([M::ExternalId, M::Seq, M::Hash])
        .from(M::Table)
        .and_where(Expr::col(M::Conversation).eq(i64::from(source)))
        .and_where(Expr::col(M::ExternalId).is_in(ids.iter().copied()))
        .take()
}

/// The running sum at one entry.
pub fn running(source: u32, seq: u32) -> SelectStatement {
    Query::select()
        .column(M::Running)
        .from(M::Table)
        .and_where(Expr::col(M::Id).eq(packed(source, seq)))
        .take()
}

/// How many bytes the bodies of a range take: one number, null when there are none.
pub fn body_bytes(source: u32, range: SeqRange) -> SelectStatement {
    Query::select()
        .expr(Func::sum(Func::cust("length").arg(Expr::col(M::Body))))
        .from(M::Table)
        .and_where(
            Expr::col(M::Id)
                .between(packed(source, range.first.0), packed(source, range.last.0)),
        )
        .take()
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
