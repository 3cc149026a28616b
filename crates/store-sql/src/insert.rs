//! SQL statements that insert rows.

use memory_store::{Error, ErrorKind};
use sea_query::{InsertStatement, IntoIden, IntoTableRef, Query, SimpleExpr};

use crate::error::Result;

/// Builds the SQL statement that inserts rows. Each row is a list of columns with their values. All rows must have the
/// same columns. `family` is a further column that has the same value in all rows.
pub(crate) fn insert<C: IntoIden + Copy, R: IntoIterator<Item = (C, SimpleExpr)>>(
    family: Option<(C, SimpleExpr)>,
    table: impl IntoTableRef,
    rows: impl IntoIterator<Item = Result<R>>,
) -> Result<InsertStatement> {
    let mut statement = Query::insert();
    statement.into_table(table);
    for (at, row) in rows.into_iter().enumerate() {
        let (columns, values): (Vec<C>, Vec<SimpleExpr>) =
            family.clone().into_iter().chain(row?).unzip();
        if at == 0 {
            statement.columns(columns);
        }
        add_row(&mut statement, values)?;
    }
    Ok(statement)
}

/// Builds the SQL statement that inserts one row.
pub(crate) fn insert_row<C: IntoIden + Copy, const N: usize>(
    family: Option<(C, SimpleExpr)>,
    table: impl IntoTableRef,
    row: [(C, SimpleExpr); N],
) -> Result<InsertStatement> {
    insert(family, table, [Ok(row)])
}

/// Adds a row of values to an SQL statement. The number of values must equal the number of columns.
pub(crate) fn add_row(
    statement: &mut InsertStatement,
    values: impl IntoIterator<Item = SimpleExpr>,
) -> Result<()> {
    statement.values(values).map_err(miscounted)?;
    Ok(())
}

/// Returns the error for an SQL statement with another number of values than columns.
pub(crate) fn miscounted(source: sea_query::error::Error) -> Error {
    let text = "an insert has more values than columns: this is a defect of store-sql";
    Error::new(ErrorKind::Invalid, text).with_source(source)
}
