//! SQL statements for the directory of conversations, in databases with a column for the family.

use memory_model::{ConversationId, SessionKey};
use memory_store::{Conversation, ConversationRef};
use sea_query::{Expr, ExprTrait as _, Func, InsertStatement, Query, SelectStatement};

use crate::convert::to_u32;
use crate::error::Result;
use crate::insert::insert_row;
use crate::row::Columns;
use crate::tables::Directory as D;

/// Builds the SQL statement that selects the number and the family of a conversation. [`place`] reads the answer, which
/// is at most one row.
pub fn find(which: &ConversationRef) -> SelectStatement {
    let is_it = match which {
        ConversationRef::Id(id) => Expr::col(D::No).eq(i64::from(id.0)),
        ConversationRef::Key(key) => Expr::col(D::Key).eq(key.as_str()),
    };
    Query::select()
        .columns([D::No, D::Tree])
        .from(D::Table)
        .and_where(is_it)
        .take()
}

/// Reads a row of [`find`]. Returns the conversation and the root of its family.
///
/// # Errors
/// `Corrupt` if a column of the row cannot be read or holds an invalid value.
pub fn place(row: &impl Columns) -> Result<(ConversationId, ConversationId)> {
    let no = to_u32("conversation", row.int(0)?)?;
    let root = to_u32("tree", row.int(1)?)?;
    Ok((ConversationId(no), ConversationId(root)))
}

/// Builds the SQL statement that selects the largest number of a conversation. The answer is one row with one number,
/// or null if there is no conversation.
pub fn last_number() -> SelectStatement {
    Query::select()
        .expr(Func::max(Expr::col(D::No)))
        .from(D::Table)
        .take()
}

/// Builds the SQL statement that inserts a new conversation.
///
/// # Errors
/// `Invalid` if a row has more values than columns, which would be a defect of this crate.
pub fn insert(new: &Conversation) -> Result<InsertStatement> {
    let key: &SessionKey = &new.key;
    let row = [
        (D::Key, key.as_str().into()),
        (D::No, i64::from(new.id.0).into()),
        (D::Tree, i64::from(new.family.0).into()),
    ];
    insert_row(None, D::Table, row)
}
