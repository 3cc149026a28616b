#![allow(
    clippy::disallowed_types,
    reason = "the one audited place where built SQL is trusted"
)]
//! SQL statements in SQLite's dialect.
//!
//! Only this module declares SQL texts that are built at run time as safe for the driver. They are safe because they
//! come only from sea-query, which writes every value as a placeholder, and because every name comes from
//! [`store_sql::tables`].

use std::sync::Arc;

use memory_store::Result;
use sea_query::{QueryStatementWriter, SqliteQueryBuilder, Values};
use sea_query_sqlx::SqlxValues;
use sqlx::AssertSqlSafe;
use store_sql::{Batch, Prepared, PreparedTexts};

/// Returns the text and the values of an SQL statement.
pub(crate) fn build(statement: &impl QueryStatementWriter) -> (AssertSqlSafe<String>, SqlxValues) {
    let (sql, values) = statement.build(SqliteQueryBuilder);
    (AssertSqlSafe(prepared_once(sql)), SqlxValues(values))
}

/// Joins the SQL statements of a batch into one text, and so into one request to the driver. A request takes most of
/// the time of a short statement.
pub(crate) fn script(batch: &Batch) -> (AssertSqlSafe<String>, SqlxValues) {
    let mut script = String::new();
    let mut all = Vec::new();
    for statement in batch.statements() {
        let (sql, Values(values)) = store_sql::build(statement, SqliteQueryBuilder);
        if !script.is_empty() {
            script.push_str("; ");
        }
        script.push_str(&prepared_once(sql));
        all.extend(values);
    }
    (AssertSqlSafe(script), SqlxValues(Values(all)))
}

/// Returns the SQL text of a prepared statement.
pub(crate) fn prepared(statement: Prepared) -> Result<AssertSqlSafe<Arc<str>>> {
    static TEXTS: PreparedTexts = PreparedTexts::new();
    let text = TEXTS.get(statement, |statement| {
        prepared_once(store_sql::build(statement, SqliteQueryBuilder).0)
    });
    text.map(AssertSqlSafe)
}

/// Replaces each `limit ?` in an SQL statement by an expression with the same value. SQLite reads the value bound to a
/// plain `limit ?` while it prepares the statement, and therefore prepares the statement again each time a value is
/// bound. It does not read the value in an expression. Built texts have no string literals, so no other text changes.
fn prepared_once(sql: String) -> String {
    const LIMIT: &str = "LIMIT ?";
    match sql.contains(LIMIT) {
        true => sql.replace(LIMIT, "LIMIT ? + 0"),
        false => sql,
    }
}

#[cfg(test)]
mod tests {
    use memory_model::{Seq, SeqRange, ViewName, ViewVersion};
    use sqlx::SqlSafeStr as _;
    use store_sql::{Family, message, view};

    use super::build;

    /// SQLite prepares a statement again at each run if it read a bound value while preparing, as for `limit ?`. The
    /// statement then takes several times as long.
    #[test]
    fn limits_are_not_looked_at_while_preparing() {
        let range = SeqRange::new(Seq(1), Seq(9)).unwrap();
        let rows = view::SpanRows::Falling(Seq(9));
        let spans = view::spans(
            Family::ANY,
            1,
            &ViewName::new("dag"),
            ViewVersion(3),
            rows,
            5,
        )
        .unwrap();
        let log = message::range(Family::ANY, 1, range, sea_query::Order::Asc, 7, 99);
        for statement in [spans, log] {
            let sql = build(&statement).0.into_sql_str();
            assert!(sql.as_str().ends_with(" LIMIT ? + 0"), "{}", sql.as_str());
        }
        let search = build(&message::seq_at(Family::ANY, 1, range, 5).unwrap())
            .0
            .into_sql_str();
        assert_eq!(
            search.as_str().matches("LIMIT ?").count(),
            search.as_str().matches("LIMIT ? + 0").count()
        );
    }
}
