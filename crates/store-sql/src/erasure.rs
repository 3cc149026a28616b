//! SQL statements that erase words and record erasures.

use memory_model::{ConversationId, SeqRange, SessionKey, Timestamp};
use memory_store::{ERASED, Erase, ErasedRange, Erasure, PREPARED};
use sea_query::{
    Cond, DeleteStatement, Expr, ExprTrait as _, Func, InsertStatement, OnConflict, Order, Query,
    SelectStatement, UpdateStatement, Value, WithQuery,
};

use crate::conversation::{Seen, seen_from};
use crate::convert::{packed, to_range, to_u32};
use crate::error::Result;
use crate::family::Family;
use crate::insert::{insert, insert_row};
use crate::pack::{Facts, Packed};
use crate::row::Columns;
use crate::tables::{
    Conversation as C, ErasedSummary as G, Erasure as E, Facts as F, Job as J, Message as M,
    Payload as P, State as V, Summary as S, Wipe,
};

/// Returns the SQL condition that selects the entries of a range in the own log of `source`.
fn of_log(source: ConversationId, range: SeqRange) -> Expr {
    Expr::col((M::Table, M::Id)).between(
        packed(source.0, range.first.0),
        packed(source.0, range.last.0),
    )
}

/// Builds the SQL statement that counts the entries of a range with words that are not erased, in the own log of
/// `source`. The answer is one row with one number.
pub fn with_words(family: Family, source: ConversationId, range: SeqRange) -> SelectStatement {
    Query::select()
        .expr(Func::count(Expr::col(M::Id)))
        .from(M::Table)
        .and_where_option(family.rows((M::Table, M::Tree)))
        .and_where(of_log(source, range))
        .and_where(Expr::col(M::Body).is_not_null())
        .take()
}

/// Builds the SQL statement that finds copies of entries. It selects the entries outside of these ranges that have the
/// same hash as an entry within them, and still have their words. The answer has one row for each conversation with
/// copies, which [`copy`] reads.
pub fn copies(family: Family, logs: &[ErasedRange]) -> SelectStatement {
    let in_logs = || {
        let logs = logs.iter();
        let named = logs.map(|log| of_log(log.conversation, log.range));
        named.fold(Cond::any(), Cond::add)
    };
    let hashes = Query::select()
        .column(M::Hash)
        .from(M::Table)
        .and_where_option(family.rows((M::Table, M::Tree)))
        .cond_where(in_logs())
        .take();
    Query::select()
        .columns([(C::Table, C::No), (C::Table, C::Key)])
        .expr(Func::min(Expr::col((M::Table, M::Seq))))
        .expr(Func::max(Expr::col((M::Table, M::Seq))))
        .from(M::Table)
        .and_where_option(family.rows((M::Table, M::Tree)))
        .inner_join(
            C::Table,
            Expr::col((C::Table, C::No)).equals((M::Table, M::Conversation)),
        )
        .and_where(Expr::col((M::Table, M::Body)).is_not_null())
        .and_where(Expr::col((M::Table, M::Hash)).in_subquery(hashes))
        .cond_where(in_logs().not())
        .group_by_columns([(C::Table, C::No), (C::Table, C::Key)])
        .order_by((C::Table, C::No), Order::Asc)
        .take()
}

/// Reads a row of [`copies`]. Returns a conversation, with the range from its first to its last copy.
///
/// # Errors
/// `Corrupt` if a column of the row cannot be read or holds an invalid value.
pub fn copy(row: &impl Columns) -> Result<ErasedRange> {
    let range = to_range("copies", row.int(2)?, row.int(3)?)?;
    let conversation = ConversationId(to_u32("conversation", row.int(0)?)?);
    Ok(ErasedRange::new(
        conversation,
        SessionKey::new(row.text(1)?),
        range,
    ))
}

/// Builds the SQL statement that selects the ids of the payloads to which the entries of a range refer. A payload is a
/// long string of messages that is stored once in a separate table.
pub fn payloads_of(family: Family, source: ConversationId, range: SeqRange) -> SelectStatement {
    Query::select()
        .distinct()
        .column(M::Payload)
        .from(M::Table)
        .and_where_option(family.rows((M::Table, M::Tree)))
        .and_where(of_log(source, range))
        .and_where(Expr::col(M::Payload).is_not_null())
        .take()
}

/// Builds the SQL statement that deletes those of the payloads with these ids to which no entry refers any more. A
/// payload is a long string of messages that is stored once in a separate table.
pub fn delete_payloads(family: Family, ids: &[i64]) -> DeleteStatement {
    let used = Query::select()
        .column(M::Payload)
        .from(M::Table)
        .and_where_option(family.rows((M::Table, M::Tree)))
        .and_where(Expr::col(M::Payload).is_in(ids.iter().copied()))
        .take();
    Query::delete()
        .from_table(P::Table)
        .and_where_option(family.rows(P::Tree))
        .and_where(Expr::col(P::Id).is_in(ids.iter().copied()))
        .and_where(Expr::col(P::Id).not_in_subquery(used))
        .take()
}

/// Builds the SQL statement that records an erasure of the entries of a range, in the own log of `source`. An existing
/// record of the same range and time does not change.
///
/// # Errors
/// `Invalid` if a row has more values than columns, which would be a defect of this crate.
pub fn record(
    family: Family,
    source: ConversationId,
    range: SeqRange,
    erase: &Erase,
) -> Result<InsertStatement> {
    let row = [
        (E::Conversation, i64::from(source.0).into()),
        (E::First, i64::from(range.first.0).into()),
        (E::Last, i64::from(range.last.0).into()),
        (E::At, erase.now.0.into()),
        (E::Reason, erase.reason.as_str().into()),
    ];
    let mut statement = insert_row(family.value(E::Tree), E::Table, row)?;
    let key = family.key(E::Tree, [E::Conversation, E::First, E::Last, E::At]);
    statement.on_conflict(OnConflict::columns(key).do_nothing().to_owned());
    Ok(statement)
}

/// Builds the SQL statement that removes the words from the entries of a range, in the own log of `source`.
pub fn blank_entries(family: Family, source: ConversationId, range: SeqRange) -> UpdateStatement {
    Query::update()
        .table(M::Table)
        .and_where_option(family.rows(M::Tree))
        .value(M::Body, Value::Bytes(None))
        .value(M::Payload, Value::BigInt(None))
        .value(M::Meta, Value::String(None))
        .value(M::Name, Value::String(None))
        .and_where(of_log(source, range))
        .and_where(Expr::col(M::Body).is_not_null())
        .take()
}

/// Builds the SQL statement that selects the row keys of a conversation's own summaries that have these public ids and
/// still have their words.
pub fn summaries_with_words(
    family: Family,
    owner: ConversationId,
    ids: &[&str],
) -> SelectStatement {
    let gone = Query::select()
        .column(G::Summary)
        .from(G::Table)
        .and_where_option(family.rows((G::Table, G::Tree)))
        .take();
    Query::select()
        .column(S::Id)
        .from(S::Table)
        .and_where_option(family.rows((S::Table, S::Tree)))
        .and_where(Expr::col(S::Conversation).eq(i64::from(owner.0)))
        .and_where(Expr::col(S::PublicId).is_in(ids.iter().copied()))
        .and_where(Expr::col(S::Id).not_in_subquery(gone))
        .take()
}

/// Builds the SQL statement that records the erasure of the summaries with these row keys, at the time `at`.
///
/// # Errors
/// `Invalid` if a row has more values than columns, which would be a defect of this crate.
pub fn record_summaries(family: Family, keys: &[i64], at: Timestamp) -> Result<InsertStatement> {
    let row = |key: &i64| Ok([(G::Summary, (*key).into()), (G::At, at.0.into())]);
    insert(family.value(G::Tree), G::Table, keys.iter().map(row))
}

/// Builds the SQL statement that removes the words from the summaries with these row keys. Their text becomes the
/// placeholder [`memory_store::ERASED`].
pub fn blank_summaries(family: Family, keys: &[i64]) -> UpdateStatement {
    Query::update()
        .table(S::Table)
        .and_where_option(family.rows(S::Tree))
        .value(S::Text, ERASED)
        .value(S::Ranks, Value::Bytes(None))
        .value(S::Messages, Value::String(None))
        .value(S::Meta, Value::String(None))
        .and_where(Expr::col(S::Id).is_in(keys.iter().copied()))
        .take()
}

/// Builds the SQL statement that selects the row keys of all erased summaries.
pub fn erased_keys(family: Family) -> SelectStatement {
    Query::select()
        .column(G::Summary)
        .from(G::Table)
        .and_where_option(family.rows((G::Table, G::Tree)))
        .take()
}

/// Builds the SQL statement that counts the jobs of a conversation. The answer is one row with one number.
pub fn count_jobs(family: Family, conversation: ConversationId) -> SelectStatement {
    Query::select()
        .expr(Func::count(Expr::col(J::Key)))
        .from(J::Table)
        .and_where_option(family.rows((J::Table, J::Tree)))
        .and_where(Expr::col(J::Conversation).eq(i64::from(conversation.0)))
        .take()
}

/// Builds the SQL statement that deletes all jobs of a conversation. All leases then end, so that no owner can publish
/// words that were read before an erasure.
pub fn delete_jobs(family: Family, conversation: ConversationId) -> DeleteStatement {
    Query::delete()
        .from_table(J::Table)
        .and_where_option(family.rows(J::Tree))
        .and_where(Expr::col(J::Conversation).eq(i64::from(conversation.0)))
        .take()
}

/// Builds the SQL statement that adds one to a conversation's number of erasures
/// ([`Conversation::erasures`](memory_store::Conversation::erasures)). Run the statement for each conversation that saw
/// the erased words.
pub fn count_erasure(family: Family, conversation: ConversationId) -> UpdateStatement {
    Query::update()
        .table(C::Table)
        .and_where_option(family.rows(C::Tree))
        .value(C::Erasures, Expr::col(C::Erasures).add(1_i64))
        .and_where(Expr::col(C::No).eq(i64::from(conversation.0)))
        .take()
}

/// Builds the SQL statement that deletes the small values of a conversation that store prepared work. Their keys begin
/// with `prepared/`.
pub fn delete_prepared(family: Family, conversation: ConversationId) -> DeleteStatement {
    Query::delete()
        .from_table(V::Table)
        .and_where_option(family.rows(V::Tree))
        .and_where(Expr::col(V::Conversation).eq(i64::from(conversation.0)))
        .and_where(Expr::col(V::Key).like(format!("{PREPARED}%")))
        .take()
}

/// Builds the SQL statement that records a pending erasure: its words are not yet removed from the database's files.
///
/// # Errors
/// `Invalid` if a row has more values than columns, which would be a defect of this crate.
pub fn record_wipe(at: Timestamp) -> Result<InsertStatement> {
    insert_row(None, Wipe::Table, [(Wipe::At, at.0.into())])
}

/// Builds the SQL statement that selects the number and time of each erasure with words that are not yet removed from
/// the database's files.
pub fn pending_wipes() -> SelectStatement {
    Query::select()
        .columns([Wipe::No, Wipe::At])
        .from(Wipe::Table)
        .take()
}

/// Builds the SQL statement that deletes the record of a pending erasure, after its words were removed from the
/// database's files. Both number and time must match, because the number may have been reused meanwhile.
pub fn wiped(no: i64, at: i64) -> DeleteStatement {
    Query::delete()
        .from_table(Wipe::Table)
        .and_where(Expr::col(Wipe::No).eq(no))
        .and_where(Expr::col(Wipe::At).eq(at))
        .take()
}

/// Builds the SQL statement that deletes all small values of a conversation.
pub fn delete_states(family: Family, conversation: ConversationId) -> DeleteStatement {
    Query::delete()
        .from_table(V::Table)
        .and_where_option(family.rows(V::Tree))
        .and_where(Expr::col(V::Conversation).eq(i64::from(conversation.0)))
        .take()
}

/// Builds the SQL statement that removes a conversation's title and metadata, and archives the conversation.
pub fn blank_conversation(family: Family, conversation: ConversationId) -> UpdateStatement {
    Query::update()
        .table(C::Table)
        .and_where_option(family.rows(C::Tree))
        .value(C::Title, Value::String(None))
        .value(C::Meta, Value::String(None))
        .value(C::Archived, 1_i64)
        .and_where(Expr::col(C::No).eq(i64::from(conversation.0)))
        .take()
}

/// Builds the SQL statement that selects the recorded erasures of all logs that a conversation sees: its own log and
/// its ancestors' logs. [`erasure`] reads a row of the answer.
pub fn seen_by(family: Family, conversation: ConversationId) -> WithQuery {
    Query::select()
        .columns(
            [E::Conversation, E::First, E::Last, E::At, E::Reason].map(|column| (E::Table, column)),
        )
        .from(Seen::Table)
        .cross_join(E::Table)
        .and_where_option(family.rows((E::Table, E::Tree)))
        .and_where(Expr::col((E::Table, E::Conversation)).equals((Seen::Table, Seen::No)))
        .take()
        .with(seen_from(family, conversation.0))
}

/// Reads a row of [`seen_by`]. Returns the conversation that owns the log, and the erasure.
///
/// # Errors
/// `Corrupt` if a column of the row cannot be read or holds an invalid value.
pub fn erasure(row: &impl Columns) -> Result<(ConversationId, Erasure)> {
    let source = ConversationId(to_u32("conversation", row.int(0)?)?);
    let range = to_range("erasure", row.int(1)?, row.int(2)?)?;
    let erasure = Erasure::new(range, Timestamp(row.int(3)?), row.text(4)?);
    Ok((source, erasure))
}

/// Builds the SQL statement that selects the public ids of the erased summaries that a conversation sees.
pub fn summaries_seen_by(family: Family, conversation: ConversationId) -> WithQuery {
    let key = || Expr::col((G::Table, G::Summary));
    let no = || Expr::col((Seen::Table, Seen::No));
    Query::select()
        .column((S::Table, S::PublicId))
        .from(Seen::Table)
        // CROSS JOIN fixes the order of the joins: SQLite then reads only the keys of the conversation and its
        // ancestors.
        .cross_join(G::Table)
        .cross_join(S::Table)
        .and_where_option(family.rows((G::Table, G::Tree)))
        .and_where_option(family.rows((S::Table, S::Tree)))
        .and_where(key().gte(no().mul(1_i64 << 32)))
        .and_where(key().lt(no().add(1_i64).mul(1_i64 << 32)))
        .and_where(Expr::col((S::Table, S::Id)).equals((G::Table, G::Summary)))
        .and_where(Expr::col((S::Table, S::Last)).lte(Expr::col((Seen::Table, Seen::Last))))
        .take()
        .with(seen_from(family, conversation.0))
}

/// Builds the SQL statement that replaces the facts of a conversation. [`Facts`] are texts that the metadata of its
/// entries have in common. They are the dictionary with which entries are compressed.
pub fn set_facts(family: Family, conversation: ConversationId, facts: &Facts) -> UpdateStatement {
    Query::update()
        .table(F::Table)
        .and_where_option(family.rows(F::Tree))
        .value(F::Text, facts.text())
        .value(F::Revision, facts.revision())
        .and_where(Expr::col(F::Conversation).eq(i64::from(conversation.0)))
        .take()
}

/// Builds the SQL statement that replaces the stored bytes of the entry with this row key, after the bytes were packed
/// again.
pub fn repack(family: Family, key: i64, packed: Packed) -> UpdateStatement {
    Query::update()
        .table(M::Table)
        .and_where_option(family.rows(M::Tree))
        .value(M::Codec, packed.codec)
        .value(M::Meta, packed.meta)
        .value(M::Body, packed.body)
        .and_where(Expr::col(M::Id).eq(key))
        .take()
}
