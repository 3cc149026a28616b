//! SQL statements for texts that entries share: payloads, and the facts of a conversation.

use memory_model::Hash;
use sea_query::{Expr, ExprTrait as _, InsertStatement, Order, Query, SelectStatement};

use crate::error::Result;
use crate::family::Family;
use crate::insert::insert_row;
use crate::pack::Facts;
use crate::tables::{Facts as F, Payload as P};

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
