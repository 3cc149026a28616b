#![allow(
    clippy::disallowed_types,
    reason = "the one audited place where built SQL is trusted"
)]
//! SQL statements in PostgreSQL's dialect.
//!
//! Only this module declares SQL texts that are built at run time as safe for the driver. They are safe because they
//! come only from sea-query, which writes every value as a placeholder, from the migrations, or from numbers and the
//! checked name of the schema.

use std::sync::Arc;

use memory_store::Result;
use sea_query::{PostgresQueryBuilder, QueryStatementWriter, Value, Values};
use sea_query_sqlx::SqlxValues;
use sqlx::AssertSqlSafe;
use store_sql::{Family, Prepared, PreparedTexts, Statement};

use crate::escape::escaped;

/// An SQL statement that is ready to run.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    pub(crate) sql: Arc<str>,
    pub(crate) values: SqlxValues,
}

impl Ready {
    fn new((sql, Values(mut values)): (String, Values)) -> Self {
        for value in &mut values {
            if let Value::String(Some(text)) = value
                && let std::borrow::Cow::Owned(stored) = escaped(text)
            {
                *value = Value::String(Some(stored));
            }
        }
        Self {
            sql: sql.into(),
            values: SqlxValues(Values(values)),
        }
    }

    /// Returns a statement with a fixed text and no values.
    pub(crate) fn fixed(sql: &'static str) -> Self {
        Self {
            sql: sql.into(),
            values: SqlxValues(Values(Vec::new())),
        }
    }

    pub(crate) fn text(&self) -> AssertSqlSafe<Arc<str>> {
        AssertSqlSafe(Arc::clone(&self.sql))
    }
}

/// Returns the text and the values of an SQL statement.
pub(crate) fn build(statement: &impl QueryStatementWriter) -> Ready {
    Ready::new(statement.build(PostgresQueryBuilder))
}

/// Returns the text and the values of an SQL statement of a batch.
pub(crate) fn build_one(statement: &Statement) -> Ready {
    Ready::new(store_sql::build(statement, PostgresQueryBuilder))
}

/// Returns the SQL text of a prepared statement.
pub(crate) fn prepared(statement: Prepared) -> Result<AssertSqlSafe<Arc<str>>> {
    static TEXTS: PreparedTexts = PreparedTexts::new();
    let text = TEXTS.get(statement, |statement| {
        store_sql::build(statement, PostgresQueryBuilder).0
    });
    text.map(AssertSqlSafe)
}

/// Returns statements that begin a transaction: the settings that hold in it, and the lock of a family.
///
/// `begin` comes last, and the statements before it become part of the transaction. If one of them fails, no transaction
/// is open.
pub(crate) fn begin(
    settings: &[(&str, String)],
    read_only: bool,
    family: Family,
) -> AssertSqlSafe<String> {
    let mut sql = String::new();
    for (name, value) in settings {
        sql.push_str(&format!("set local {name} = {value}; "));
    }
    if let Some(root) = family.root() {
        sql.push_str(&format!(
            "select 1 from family where tree = {} for update; ",
            root.0
        ));
    }
    sql.push_str(match read_only {
        true => "begin read only",
        false => "begin",
    });
    AssertSqlSafe(sql)
}

/// Returns a text that is made of fixed words, numbers and the name of the schema alone.
pub(crate) fn trusted(sql: String) -> AssertSqlSafe<String> {
    AssertSqlSafe(sql)
}
