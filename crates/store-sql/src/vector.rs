//! SQL statements for the vectors (embeddings) of messages, and functions that read their rows.

use memory_model::{ConversationId, SeqRange};
use memory_store::{PlacedVector, Vector};
use sea_query::{
    DeleteStatement, Expr, ExprTrait as _, Func, InsertStatement, Order, Query, SelectStatement,
};

use crate::convert::to_seq;
use crate::error::{Result, corrupt};
use crate::family::Family;
use crate::insert::insert;
use crate::row::Columns;
use crate::tables::{Erasure as E, MessageVector as V};

fn of(conversation: ConversationId, embedder: &str) -> Expr {
    Expr::col(V::Conversation)
        .eq(i64::from(conversation.0))
        .and(Expr::col(V::Embedder).eq(embedder))
}

fn within(range: SeqRange) -> Expr {
    Expr::col(V::Seq).between(i64::from(range.first.0), i64::from(range.last.0))
}

/// Builds the SQL statement that selects the state of an embedder's vectors for a conversation's own log. The answer is
/// one row: the last position with a stored vector, or null, and the number of erasures in the own log.
pub fn state(family: Family, conversation: ConversationId, embedder: &str) -> SelectStatement {
    let last = Query::select()
        .expr(Func::max(Expr::col(V::Seq)))
        .from(V::Table)
        .and_where_option(family.rows((V::Table, V::Tree)))
        .and_where(of(conversation, embedder))
        .take();
    Query::select()
        .expr(Expr::from(last))
        .expr(Func::count(Expr::col(E::First)))
        .from(E::Table)
        .and_where_option(family.rows((E::Table, E::Tree)))
        .and_where(Expr::col(E::Conversation).eq(i64::from(conversation.0)))
        .take()
}

/// Builds the SQL statement that selects the vectors that an embedder made for a range of a conversation's own log, by
/// position. [`placed`] reads a row of the answer.
pub fn vectors(
    family: Family,
    conversation: ConversationId,
    embedder: &str,
    range: SeqRange,
) -> SelectStatement {
    Query::select()
        .columns([V::Seq, V::Vector])
        .from(V::Table)
        .and_where_option(family.rows((V::Table, V::Tree)))
        .and_where(of(conversation, embedder))
        .and_where(within(range))
        .order_by(V::Seq, Order::Asc)
        .take()
}

/// Reads a position and its vector of `dimension` components from a row of [`vectors`].
///
/// # Errors
/// `Corrupt` if a column of the row cannot be read or holds an invalid value.
pub fn placed(row: &impl Columns, dimension: usize) -> Result<PlacedVector> {
    let (seq, bytes) = (to_seq(row.int(0)?)?, row.bytes(1)?);
    if bytes.is_empty() {
        return Ok((seq, None));
    }
    let vector = Vector::from_bytes(&bytes, dimension);
    let vector = vector.map_err(|error| corrupt(format!("the vector of message {seq}"), error))?;
    Ok((seq, Some(vector)))
}

/// Builds the SQL statement that inserts vectors that an embedder made for a conversation's own log.
///
/// # Errors
/// `Invalid` if a row has more values than columns, which would be a defect of this crate.
pub fn put(
    family: Family,
    conversation: ConversationId,
    embedder: &str,
    vectors: &[PlacedVector],
) -> Result<InsertStatement> {
    let row = |(seq, vector): &PlacedVector| {
        let bytes = vector.as_ref().map_or_else(Vec::new, Vector::to_bytes);
        Ok([
            (V::Conversation, i64::from(conversation.0).into()),
            (V::Embedder, embedder.into()),
            (V::Seq, i64::from(seq.0).into()),
            (V::Vector, bytes.into()),
        ])
    };
    insert(family.value(V::Tree), V::Table, vectors.iter().map(row))
}

/// Builds the SQL statement that selects the ids of the embedders that have vectors for a conversation's own log,
/// sorted. The answer has one column.
pub fn embedders(family: Family, conversation: ConversationId) -> SelectStatement {
    Query::select()
        .distinct()
        .column(V::Embedder)
        .from(V::Table)
        .and_where_option(family.rows((V::Table, V::Tree)))
        .and_where(Expr::col(V::Conversation).eq(i64::from(conversation.0)))
        .order_by(V::Embedder, Order::Asc)
        .take()
}

/// Builds the SQL statement that deletes all vectors that an embedder made for a conversation's own log.
pub fn delete(family: Family, conversation: ConversationId, embedder: &str) -> DeleteStatement {
    Query::delete()
        .from_table(V::Table)
        .and_where_option(family.rows(V::Tree))
        .and_where(of(conversation, embedder))
        .take()
}

/// Builds the SQL statement that deletes the vectors for a range of a conversation's own log, of all embedders.
pub fn delete_range(
    family: Family,
    conversation: ConversationId,
    range: SeqRange,
) -> DeleteStatement {
    Query::delete()
        .from_table(V::Table)
        .and_where_option(family.rows(V::Tree))
        .and_where(Expr::col(V::Conversation).eq(i64::from(conversation.0)))
        .and_where(within(range))
        .take()
}
