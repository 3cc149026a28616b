//! Statements that read the sizes of the parts of a database.

use std::collections::BTreeMap;

use memory_store::{Result, Usage};
use store_sql::{Columns as _, usage_of};

use crate::connection::Connection;

/// Bytes of each table with its indices. Partitions count for their table.
const TABLES: &str = "select coalesce(whole.relname, part.relname)::text, \
    sum(pg_total_relation_size(part.oid))::bigint from pg_class part \
    left join pg_inherits on inhrelid = part.oid left join pg_class whole on whole.oid = inhparent \
    where part.relkind = 'r' and part.relnamespace = current_schema()::text::regnamespace group by 1";
const TEXTS: &str = "select 'texts', count(*) from payload \
    union all select 'uses', count(*) from message where payload is not null";
const TIERS: &str = "select tier, count(*) from summary group by tier";
const MONTHS: &str = "select to_char(to_timestamp(at / 1000000) at time zone 'UTC', 'YYYY-MM'), count(*) from message \
    where at <> 0 group by 1 order by 1 desc limit 6";

pub(crate) async fn read(on: &mut Connection<'_>) -> Result<Usage> {
    Ok(usage_of(
        numbers(on, TABLES).await?,
        &numbers(on, TEXTS).await?,
        numbers(on, TIERS).await?,
        numbers(on, MONTHS).await?,
    ))
}

/// Returns the numbers of a query for names and numbers.
async fn numbers(on: &mut Connection<'_>, query: &'static str) -> Result<BTreeMap<String, u64>> {
    let rows = on.fixed(query).await?;
    let number = |row: &crate::row::Row| Ok((row.text(0)?, row.int(1)?.unsigned_abs()));
    rows.iter().map(number).collect()
}
