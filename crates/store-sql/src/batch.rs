//! Batches of SQL statements that are sent to the database together.

pub use sea_query::SubQueryStatement as Statement;
use sea_query::{QueryBuilder, SqlWriterValues, Values};

/// Returns the text of an SQL statement in a database's dialect, with a placeholder for each value, and the values.
pub fn build(statement: &Statement, dialect: impl QueryBuilder) -> (String, Values) {
    let (placeholder, numbered) = dialect.placeholder();
    let mut sql = SqlWriterValues::new(placeholder, numbered);
    dialect.prepare_query_statement(statement, &mut sql);
    sql.into_parts()
}

/// Returns the text of an SQL statement in a database's dialect, with its values in it. Meant for tests of query plans: a
/// statement with placeholders is safer and faster.
pub fn inlined(statement: &Statement, dialect: impl QueryBuilder) -> String {
    let mut sql = String::new();
    dialect.prepare_query_statement(statement, &mut sql);
    sql
}

/// SQL statements to run one after the other. An executor sends the batch in as few round trips as its database allows,
/// because a round trip takes longer than a short statement.
#[derive(Debug, Default)]
pub struct Batch(Vec<Statement>);

impl Batch {
    /// Adds an SQL statement to the end of the batch.
    pub fn push(&mut self, statement: impl Into<Statement>) {
        self.0.push(statement.into());
    }

    /// Returns the SQL statements of the batch, in order.
    pub fn statements(&self) -> &[Statement] {
        &self.0
    }
}
