//! SQL statements that copy rows from one database to another.

use memory_store::{Error, ErrorKind};
use sea_query::{Expr, Iden, InsertStatement, Order, Query, SelectStatement, Value};

use crate::error::Result;
use crate::family::Family;
use crate::insert::insert;
use crate::row::{Columns, Table, TextOrBytes, ValueKind, Values};

/// Builds the SQL statement that selects all columns of the rows of a table that meet a condition, in the order of the
/// given columns.
pub(crate) fn rows<T: Table + Iden>(
    table: T,
    family: (Family, Option<T>),
    condition: Expr,
    order: &[T],
) -> SelectStatement {
    let (family, tree) = family;
    let mut statement = Query::select();
    statement
        .columns(T::COLUMNS.iter().map(|(column, _)| *column))
        .from(table)
        .and_where_option(tree.and_then(|tree| family.rows(tree)))
        .and_where(condition);
    for column in order {
        statement.order_by(*column, Order::Asc);
    }
    statement
}

/// Builds the SQL statement that inserts rows which [`values`] read.
pub(crate) fn insert_rows<T: Table + Iden>(
    table: T,
    family: (Family, Option<T>),
    rows: &[Vec<Value>],
) -> Result<InsertStatement> {
    let (family, tree) = family;
    let first = tree.and_then(|tree| family.value(tree));
    let row = |row: &Vec<Value>| {
        let columns = T::COLUMNS.iter().map(|(column, _)| *column);
        Ok(columns
            .zip(row.iter().cloned().map(Expr::val))
            .collect::<Vec<_>>())
    };
    insert(first, table, rows.iter().map(row))
}

/// Reads all values of a row of [`rows`].
///
/// # Errors
/// `Corrupt` if a column of the row cannot be read.
pub(crate) fn values<T: Table>(row: &impl Columns) -> Result<Vec<Value>> {
    let value = |(at, (_, kind)): (usize, &(T, ValueKind))| {
        Ok(match kind {
            ValueKind::Int => Value::BigInt(row.opt_int(at)?),
            ValueKind::Text => Value::String(row.opt_text(at)?),
            ValueKind::Bytes => Value::Bytes(row.opt_bytes(at)?),
            ValueKind::TextOrBytes => return Err(unsupported()),
        })
    };
    T::COLUMNS.iter().enumerate().map(value).collect()
}

/// Adds all values of a row of [`rows`] to a prepared statement. `change` may replace the integer of a column.
///
/// # Errors
/// `Corrupt` if a column of the row cannot be read.
pub(crate) fn put_values<T: Table>(
    values: &mut impl Values,
    row: &impl Columns,
    change: impl Fn(T, Option<i64>) -> Option<i64>,
) -> Result<()> {
    for (at, (column, kind)) in T::COLUMNS.iter().enumerate() {
        match kind {
            ValueKind::Int => values.put_int(change(*column, row.opt_int(at)?))?,
            ValueKind::Text => values.put_text(row.opt_text(at)?)?,
            ValueKind::Bytes => values.put_bytes(row.opt_bytes(at)?)?,
            ValueKind::TextOrBytes => {
                let value: Option<TextOrBytes> = row.text_or_bytes(at)?;
                values.put_text_or_bytes(value)?;
            }
        }
    }
    Ok(())
}

fn unsupported() -> Error {
    let message = "a column with texts or bytes is copied by a prepared statement: this is a defect of store-sql";
    Error::new(ErrorKind::Invalid, message)
}
