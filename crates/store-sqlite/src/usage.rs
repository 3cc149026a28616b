//! Statements that read the sizes of the parts of a database.

use std::collections::BTreeMap;

use memory_store::{Result, Usage};
use sqlx::sqlite::SqliteRow;
use store_sql::{Columns as _, Database as _, usage_of};

use crate::db::SqliteDatabase;

const TABLES: &str = "select coalesce(s.tbl_name, ''), sum(d.pgsize) from dbstat d \
     left join sqlite_schema s on s.name = d.name where d.aggregate = 1 group by 1";
const TEXTS: &str = "select 'texts', count(*) from payload \
     union all select 'uses', count(*) from message where payload is not null";
const TIERS: &str = "select tier, count(*) from summary group by tier";
const MONTHS: &str = "select strftime('%Y-%m', at / 1000000, 'unixepoch'), count(*) from message \
     where at <> 0 group by 1 order by 1 desc limit 6";

pub(crate) async fn read(database: &SqliteDatabase) -> Result<Usage> {
    Ok(usage_of(
        numbers(database, TABLES).await?,
        &numbers(database, TEXTS).await?,
        numbers(database, TIERS).await?,
        numbers(database, MONTHS).await?,
    ))
}

/// Returns the numbers of a query for names and numbers.
async fn numbers(database: &SqliteDatabase, query: &'static str) -> Result<BTreeMap<String, u64>> {
    let rows = database.read().await?.fixed(query).await?;
    let rows = rows.iter();
    let number = |row: &SqliteRow| Ok((row.text(0)?, row.int(1)?.unsigned_abs()));
    rows.map(number).collect()
}
