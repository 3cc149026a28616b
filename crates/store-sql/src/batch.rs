//! Several statements for one round trip.

pub use sea_query::SubQueryStatement as Statement;
use sea_query::{QueryBuilder, SqlWriterValues, Values};

/// Returns the text of a statement in a dialect of SQL, with a placeholder for each value, and the values.
pub fn build(statement: &Statement, dialect: impl QueryBuilder) -> (String, Values) {
    let (placeholder, numbered) = dialect.placeholder();
    let mut sql = SqlWriterValues::new(placeholder, numbered);
    dialect.prepare_query_statement(statement, &mut sql);
    sql.into_parts()
}

/// Statements to run one after the other. An executor sends them in as few round trips as its database allows, because
/// a round trip takes longer than a short statement.
#[derive(Debug, Default)]
pub struct Batch(Vec<Statement>);

impl Batch {
    /// Adds a statement.
    pub fn push(&mut self, statement: impl Into<Statement>) {
        self.0.push(statement.into());
    }

    /// Returns the statements of the batch, in order.
    pub fn statements(&self) -> &[Statement] {
        &self.0
    }
}
