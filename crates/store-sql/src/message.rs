//! The log.

use memory_model::{
    EntryKind, Hash, LogEntry, Message, Part, RawJson, Role, Seq, SeqRange, Timestamp, TurnId,
};
use sea_query::{
    CaseStatement, CommonTableExpression, Expr, ExprTrait as _, Iden, InsertStatement, Order,
    Query, SelectStatement, SimpleExpr, UnionType, WithClause, WithQuery,
};

use crate::convert::{packed, to_count, to_hash, to_int, to_seq, to_u32};
use crate::error::{Result, add_row, corrupt};
use crate::sql::Columns;
use crate::tables::{Message as M, Segment as G};

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

/// The columns of [`range`], in order: narrow ones first, the body last.
const READ: [M; 15] = [
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

/// Splits `len` rows into batches of the sizes in [`BATCHES`].
pub fn batches(len: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let size = BATCHES.into_iter().find(|size| *size <= len - start)?;
        start += size;
        Some(start - size..start)
    })
}

/// An entry to be stored.
#[derive(Debug)]
pub struct NewRow<'a> {
    /// Its place.
    pub seq: Seq,
    /// What was said.
    pub message: &'a Message,
    /// Its cost in tokens.
    pub tokens: u64,
    /// The sum of costs through it.
    pub running: u64,
    /// Its hash.
    pub hash: Hash,
    /// Its bytes: [`Message::body`].
    pub body: Vec<u8>,
}

/// Inserts entries into the own log of `conversation`.
///
/// # Errors
/// When a number does not fit its column.
pub fn insert<'a>(
    conversation: u32,
    rows: impl IntoIterator<Item = NewRow<'a>>,
) -> Result<InsertStatement> {
    let mut statement = Query::insert();
    statement.into_table(M::Table).columns(STORED);
    for row in rows {
        let message = row.message;
        let turn = message.turn.as_ref();
        let values: [SimpleExpr; 17] = [
            packed(conversation, row.seq.0).into(),
            i64::from(conversation).into(),
            i64::from(row.seq.0).into(),
            message.kind.as_str().into(),
            message.role.as_str().into(),
            message.external_id.clone().into(),
            message.response.clone().into(),
            message.name.clone().into(),
            turn.map(|turn| turn.loop_id.clone()).into(),
            turn.map(|turn| i64::from(turn.turn)).into(),
            message.created_at.0.into(),
            to_int("tokens of a message", row.tokens)?.into(),
            to_int("running tokens of a message", row.running)?.into(),
            row.hash.0.to_vec().into(),
            0_i64.into(),
            message
                .meta
                .as_ref()
                .map(|meta| meta.as_str().to_owned())
                .into(),
            row.body.into(),
        ];
        add_row(&mut statement, values)?;
    }
    Ok(statement)
}

/// Reads `range` of the own log of `source`, at most `limit` rows, by position: rows for [`entry`].
pub fn range(source: u32, range: SeqRange, order: Order, limit: u64) -> SelectStatement {
    Query::select()
        .columns(READ)
        .from(M::Table)
        .and_where(
            Expr::col(M::Id).between(packed(source, range.first.0), packed(source, range.last.0)),
        )
        .order_by(M::Id, order)
        .limit(limit)
        .take()
}

/// A row of [`range`], and how many bytes its body has. When the body was erased, `parts` is empty.
///
/// # Errors
/// When the row does not mean a message.
pub fn entry(row: &impl Columns) -> Result<(LogEntry, u64)> {
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
    if row.int(12)? != 0 {
        return Err(wrong(
            "the body is packed in a way that this program does not know: update it",
        ));
    }
    let meta = row
        .opt_text(13)?
        .map(RawJson::parse)
        .transpose()
        .map_err(|e| wrong("meta is not JSON").with_source(e))?;
    let body = row.opt_bytes(14)?;
    let parts: Vec<Part> = match &body {
        Some(body) => serde_json::from_slice(body)
            .map_err(|e| wrong("the body is not a list of parts").with_source(e))?,
        None => Vec::new(),
    };
    let entry = LogEntry {
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
    };
    Ok((entry, body.map_or(0, |body| body.len() as u64)))
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

/// Running sums by key (see [`packed`]): rows of (key, running).
pub fn running(keys: &[i64]) -> SelectStatement {
    Query::select()
        .columns([M::Id, M::Running])
        .from(M::Table)
        .and_where(Expr::col(M::Id).is_in(keys.iter().copied()))
        .take()
}

/// The first position of the visible log whose running sum is at least `running`, which must not be more than the
/// log's: one number. A binary search in one statement, so that no index over the sums is needed.
///
/// # Errors
/// When a number does not fit its column.
pub fn seq_at(conversation: u32, head: Seq, running: u64) -> Result<WithQuery> {
    let running = to_int("running tokens", running)?;
    let middle = || {
        Expr::col(Search::Low)
            .add(Expr::col(Search::High))
            .div(2_i64)
    };
    let source = Query::select()
        .column((G::Table, G::Source))
        .from(G::Table)
        .and_where(Expr::col((G::Table, G::Conversation)).eq(i64::from(conversation)))
        .and_where(Expr::col((G::Table, G::First)).lte(middle()))
        .order_by((G::Table, G::First), Order::Desc)
        .limit(1)
        .take();
    let sum = Query::select()
        .column((M::Table, M::Running))
        .from(M::Table)
        .and_where(
            Expr::col((M::Table, M::Id)).eq(Expr::from(source).left_shift(32_i64).bit_or(middle())),
        )
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
        .expr(Expr::val(1_i64))
        .expr(Expr::val(i64::from(head.0)))
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
    Ok(found.with(WithClause::new().recursive(true).cte(search).to_owned()))
}

/// Names of the recursive query in [`seq_at`].
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
