//! Families of conversations as the first column of every key.

use memory_model::ConversationId;
use sea_query::{Expr, ExprTrait as _, IntoColumnRef, SimpleExpr};

/// The family of conversations to which the rows of an SQL statement belong.
///
/// A database that many machines share keeps each family together: the number of the family's root conversation is the
/// first column of every key, and every statement names it. A database in one file has no such column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family(Option<ConversationId>);

impl Family {
    /// The rows of all families, for a database without a column for the family.
    pub const ANY: Self = Self(None);

    /// Returns the family of a root conversation, for a database with a column for the family.
    pub const fn of(root: ConversationId) -> Self {
        Self(Some(root))
    }

    /// Returns the root conversation of the family. Returns `None` for [`Family::ANY`].
    pub const fn root(self) -> Option<ConversationId> {
        self.0
    }

    /// Returns the value of the column, or `None` without a column.
    pub(crate) fn number(self) -> Option<i64> {
        self.0.map(|root| i64::from(root.0))
    }

    /// Returns the condition that a row belongs to the family, by the given column of its table.
    pub(crate) fn rows(self, tree: impl IntoColumnRef) -> Option<Expr> {
        self.number().map(|number| Expr::col(tree).eq(number))
    }

    /// Adds the condition that a row belongs to the family to another condition, for joins.
    pub(crate) fn and(self, condition: Expr, tree: impl IntoColumnRef) -> Expr {
        match self.rows(tree) {
            Some(rows) => condition.and(rows),
            None => condition,
        }
    }

    /// Returns the column with its value, for a new row.
    pub(crate) fn value<C>(self, tree: C) -> Option<(C, SimpleExpr)> {
        self.number().map(|number| (tree, number.into()))
    }

    /// Returns the columns of a key, with the family first.
    pub(crate) fn key<C>(self, tree: C, columns: impl IntoIterator<Item = C>) -> Vec<C> {
        let first = self.0.map(|_| tree);
        first.into_iter().chain(columns).collect()
    }
}
