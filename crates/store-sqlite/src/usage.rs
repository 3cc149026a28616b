//! Statements that read the sizes of the parts of a database.

use std::collections::BTreeMap;

use memory_store::{Result, Usage};
use sqlx::sqlite::SqliteRow;
use store_sql::{Columns as _, usage_of};

use crate::connection::{Connection, Source};

const TABLES: &str = "select coalesce(s.tbl_name, ''), sum(d.pgsize) from dbstat d \
     left join sqlite_schema s on s.name = d.name where d.aggregate = 1 group by 1";
const TEXTS: &str = "select 'texts', count(*) from payload \
     union all select 'uses', count(*) from message where payload is not null";
const TIERS: &str = "select tier, count(*) from summary group by tier";
const MONTHS: &str = "select strftime('%Y-%m', at / 1000000, 'unixepoch'), count(*) from message \
     where at <> 0 group by 1 order by 1 desc limit 6";

pub(crate) async fn read(on: &mut Connection<'_, Source<'_>>) -> Result<Usage> {
    Ok(usage_of(
        numbers(on, TABLES).await?,
        &numbers(on, TEXTS).await?,
        numbers(on, TIERS).await?,
        numbers(on, MONTHS).await?,
    ))
}

/// Returns the numbers of a query for names and numbers.
async fn numbers(
    on: &mut Connection<'_, Source<'_>>,
    query: &'static str,
) -> Result<BTreeMap<String, u64>> {
    let rows = on.fixed(query).await?;
    let rows = rows.iter();
    let number = |row: &SqliteRow| Ok((row.text(0)?, row.int(1)?.unsigned_abs()));
    rows.map(number).collect()
}
