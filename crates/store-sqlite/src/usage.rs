//! The parts of a database: their sizes, tiers of summaries, and messages by month.

use std::collections::BTreeMap;
use std::path::Path;

use memory_store::Result;
use sqlx::sqlite::SqliteRow;
use store_sql::{Columns as _, Database as _};

use crate::db::{SqliteDatabase, open_database};
use crate::options::SqliteOptions;

/// Sizes of the parts of a database, and numbers of their rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileUsage {
    /// Bytes of the log: messages, long texts that are stored once, and data of conversations.
    pub log: u64,
    /// Bytes of the summaries.
    pub summaries: u64,
    /// Bytes of the views: spans, their history, and publications.
    pub views: u64,
    /// Bytes of the search indexes and the tables of vectors.
    pub search: u64,
    /// Bytes of all other tables, such as the schema.
    pub other: u64,
    /// Number of long texts that are stored once.
    pub texts: u64,
    /// Number of messages with one of these texts.
    pub uses_of_texts: u64,
    /// Number of summaries by the tier of the escalation that wrote them.
    pub tiers: BTreeMap<String, u64>,
    /// Number of entries of each of the latest months, such as `2026-03`, by the time in the source.
    pub months: BTreeMap<String, u64>,
}

impl SqliteOptions {
    /// Reads the sizes of the parts of the database at `path`. Takes time proportional to the size of the file.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn usage(self, path: impl AsRef<Path>) -> Result<FileUsage> {
        let (database, _) = open_database(path.as_ref(), self).await?;
        let usage = read(&database).await;
        database.close().await?;
        usage
    }
}

const TABLES: &str = "select coalesce(s.tbl_name, ''), sum(d.pgsize) from dbstat d \
     left join sqlite_schema s on s.name = d.name where d.aggregate = 1 group by 1";
const TEXTS: &str = "select 'texts', count(*) from payload \
     union all select 'uses', count(*) from message where payload is not null";
const TIERS: &str = "select tier, count(*) from summary group by tier";
const MONTHS: &str = "select strftime('%Y-%m', at / 1000000, 'unixepoch'), count(*) from message \
     where at <> 0 group by 1 order by 1 desc limit 6";

async fn read(database: &SqliteDatabase) -> Result<FileUsage> {
    let mut usage = FileUsage::default();
    for (table, bytes) in numbers(database, TABLES).await? {
        let part = match table.as_str() {
            "message" | "payload" | "facts" | "conversation" | "family" | "erasure" => {
                &mut usage.log
            }
            "view" | "span" | "span_history" | "publication" => &mut usage.views,
            table if table.contains("summary") => &mut usage.summaries,
            table if table.starts_with("search_") || table.contains("vector") => &mut usage.search,
            _ => &mut usage.other,
        };
        *part += bytes;
    }
    let texts = numbers(database, TEXTS).await?;
    let number = |name| texts.get(name).copied().unwrap_or(0);
    (usage.texts, usage.uses_of_texts) = (number("texts"), number("uses"));
    usage.tiers = numbers(database, TIERS).await?;
    usage.months = numbers(database, MONTHS).await?;
    Ok(usage)
}

/// Returns the numbers of a query for names and numbers.
async fn numbers(database: &SqliteDatabase, query: &'static str) -> Result<BTreeMap<String, u64>> {
    let rows = database.read().await?.fixed(query).await?;
    let rows = rows.iter();
    let number = |row: &SqliteRow| Ok((row.text(0)?, row.int(1)?.unsigned_abs()));
    rows.map(number).collect()
}
