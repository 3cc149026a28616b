//! Several statements for one round trip.

use sea_query::{
    DeleteStatement, InsertStatement, QueryBuilder, SelectStatement, UpdateStatement, Values,
    WithQuery,
};

/// A statement of any kind.
#[derive(Debug, Clone)]
pub enum Statement {
    /// Reads rows.
    Select(SelectStatement),
    /// Reads rows with the help of common table expressions.
    With(WithQuery),
    /// Adds rows.
    Insert(InsertStatement),
    /// Changes rows.
    Update(UpdateStatement),
    /// Deletes rows.
    Delete(DeleteStatement),
}

impl Statement {
    /// Returns the statement's text in a dialect, with a placeholder for each value, and the values.
    pub fn build(&self, dialect: impl QueryBuilder) -> (String, Values) {
        match self {
            Self::Select(statement) => statement.build(dialect),
            Self::With(statement) => statement.build(dialect),
            Self::Insert(statement) => statement.build(dialect),
            Self::Update(statement) => statement.build(dialect),
            Self::Delete(statement) => statement.build(dialect),
        }
    }
}

macro_rules! statement_from {
    ($($kind:ident($statement:ty)),*) => {
        $(impl From<$statement> for Statement {
            fn from(statement: $statement) -> Self {
                Self::$kind(statement)
            }
        })*
    };
}

statement_from!(
    Select(SelectStatement),
    With(WithQuery),
    Insert(InsertStatement),
    Update(UpdateStatement),
    Delete(DeleteStatement)
);

/// Statements that run one after the other. An executor sends them in as few round trips as its database allows: of a
/// short statement, the round trip takes most of the time.
#[derive(Debug, Default)]
pub struct Batch(Vec<Statement>);

impl Batch {
    /// Adds a statement.
    pub fn push(&mut self, statement: impl Into<Statement>) {
        self.0.push(statement.into());
    }

    /// Returns the statements in order.
    pub fn statements(&self) -> &[Statement] {
        &self.0
    }
}
