//! SQL statements for the queue of changed conversations, in databases with a column for the family.

use memory_model::{ConversationId, Timestamp};
use memory_store::{ChangedConversation, Owner};
use sea_query::{
    Alias, Expr, ExprTrait as _, Func, InsertStatement, LockBehavior, LockType, OnConflict, Order,
    Query, UpdateStatement, Value,
};

use crate::convert::to_u32;
use crate::error::Result;
use crate::insert::miscounted;
use crate::row::Columns;
use crate::tables::{Conversation as C, Work as W};

/// Time in microseconds by which the clocks of machines may differ: ten minutes. Changes that are older than this when
/// they are committed may be missed until the conversation changes again.
const SKEW: i64 = 600_000_000;

/// Builds the SQL statement that notes the changes of conversations since the last one that was noted.
///
/// # Errors
/// `Invalid` if the statement cannot be built, which would be a defect of this crate.
pub fn note_changes() -> Result<InsertStatement> {
    let noted = Query::select()
        .expr(Expr::expr(Func::coalesce([
            Func::max(Expr::col(W::ChangedAt)).into(),
            Expr::val(0_i64),
        ])))
        .from(W::Table)
        .take();
    let changed = Query::select()
        .columns([C::No, C::Tree, C::UpdatedAt])
        .from(C::Table)
        .and_where(Expr::col(C::Archived).eq(0_i64))
        .and_where(Expr::col(C::UpdatedAt).gt(Expr::from(noted).sub(SKEW)))
        .take();
    let excluded = Expr::col((Alias::new("excluded"), W::ChangedAt));
    let mut statement = Query::insert();
    statement
        .into_table(W::Table)
        .columns([W::No, W::Tree, W::ChangedAt])
        .select_from(changed)
        .map_err(miscounted)?
        .on_conflict(
            OnConflict::column(W::No)
                .update_column(W::ChangedAt)
                .action_and_where(Expr::col((W::Table, W::ChangedAt)).lt(excluded))
                .to_owned(),
        );
    Ok(statement)
}

/// Builds the SQL statement that takes the conversation with the oldest change for a worker, until the time `until`.
/// [`taken`] reads the answer, which is at most one row.
pub fn take(owner: &Owner, now: Timestamp, until: Timestamp) -> UpdateStatement {
    let oldest = Query::select()
        .column(W::No)
        .from(W::Table)
        .and_where(Expr::col(W::ChangedAt).gt(Expr::col(W::DoneAt)))
        .and_where(Expr::col(W::Expires).lte(now.0))
        .order_by(W::ChangedAt, Order::Asc)
        .limit(1)
        .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
        .take();
    Query::update()
        .table(W::Table)
        .value(W::Owner, owner.0.as_str())
        .value(W::Expires, until.0)
        .and_where(Expr::col(W::No).eq(Expr::from(oldest)))
        .returning(Query::returning().columns([W::No, W::ChangedAt]))
        .take()
}

/// Reads the row of [`take`].
///
/// # Errors
/// `Corrupt` if a column of the row cannot be read or holds an invalid value.
pub fn taken(row: &impl Columns) -> Result<ChangedConversation> {
    Ok(ChangedConversation {
        conversation: ConversationId(to_u32("conversation", row.int(0)?)?),
        changed_at: Timestamp(row.int(1)?),
    })
}

/// Builds the SQL statement that records that a worker has looked at a change.
pub fn finish(changed: &ChangedConversation, owner: &Owner) -> UpdateStatement {
    Query::update()
        .table(W::Table)
        .value(W::DoneAt, changed.changed_at.0)
        .value(W::Owner, Value::String(None))
        .value(W::Expires, 0_i64)
        .and_where(Expr::col(W::No).eq(i64::from(changed.conversation.0)))
        .and_where(Expr::col(W::Owner).eq(owner.0.as_str()))
        .take()
}
