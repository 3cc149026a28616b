//! Damaged bytes of a database: entries, summaries, the search index and vectors.

use std::cell::Cell;
use std::sync::Arc;

use agent_memory::Session;
use agent_memory::search::Embedder;
use agent_memory::testing::memory;
use memory_model::Seq;
use memory_search::{HitTarget, Query, Search, SearchMode, SegmentSearch};
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Row as _};
use store_conformance::Subjects;
use tokio::sync::Mutex;

use super::{block_on, target};
use crate::corruption::{Original, open};

/// Rows of a table whose bytes are damaged: the table, the column, and which rows.
type Rows = [(&'static str, &'static str, &'static str)];

const PACKED: &Rows = &[
    (
        "message",
        "body",
        "codec != 0 and conversation = 1 order by length(body) limit 24",
    ),
    ("payload", "data", "true limit 8"),
    ("facts", "text", "conversation = 1"),
];
const SEARCHED: &Rows = &[
    (
        "search_chunk",
        "data",
        "true order by length(data) limit 24",
    ),
    ("search_chunk", "key", "true limit 8"),
    ("search_segment", "format", "true limit 8"),
    ("message_vector", "vector", "true limit 8"),
];

/// A database, its memory, and a connection that damages it.
struct Database {
    session: Session,
    connection: Mutex<SqliteConnection>,
    /// Table, column, row and bytes.
    cells: Vec<(&'static str, &'static str, i64, Vec<u8>)>,
    /// Index of the cell that is damaged.
    damaged: Cell<usize>,
}

impl Database {
    async fn new(name: &str, rows: &Rows) -> (tempfile::TempDir, Self) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.db");
        let original = Original::get().await;
        std::fs::copy(original.copy(name), &path).unwrap();
        let memory = memory()
            .embedder(embedder())
            .sqlite(&path)
            .open()
            .await
            .unwrap();
        let session = memory.get_session(original.main.as_str()).await.unwrap();
        session.index().update().await.unwrap();
        session.index().embed().await.unwrap();
        let mut connection = open(&path).await;
        let triggers = fetch(
            &mut connection,
            "select name from sqlite_schema where type = 'trigger'",
        )
        .await;
        for trigger in triggers {
            execute(
                &mut connection,
                &format!("drop trigger {}", trigger.get::<String, _>(0)),
                &[],
            )
            .await;
        }
        let mut cells = Vec::new();
        for (table, column, which) in rows {
            let id = if *table == "message_vector" {
                "seq"
            } else {
                "rowid"
            };
            let sql = format!("select {id}, cast({column} as blob) from {table} where {which}");
            for row in fetch(&mut connection, &sql).await {
                cells.push((*table, *column, row.get(0), row.get(1)));
            }
        }
        let connection = Mutex::new(connection);
        (
            folder,
            Self {
                session,
                connection,
                cells,
                damaged: Cell::new(0),
            },
        )
    }

    /// One seed for each cell: its number, and its bytes.
    fn seeds(&self) -> Vec<Vec<u8>> {
        let cells = (0u8..).zip(&self.cells);
        cells
            .map(|(at, cell)| [&[at], cell.3.as_slice()].concat())
            .collect()
    }

    /// Damages a cell after mending the last one. Returns its row in the table.
    async fn damage(&self, input: &[u8]) -> Option<(&'static str, i64)> {
        let last = self.damaged.get();
        self.put(last, &self.cells[last].3).await;
        let (at, bytes) = input.split_first()?;
        let at = usize::from(*at) % self.cells.len();
        self.damaged.set(at);
        self.put(at, bytes).await;
        let (table, _, row, _) = self.cells[at];
        Some((table, row))
    }

    async fn put(&self, cell: usize, bytes: &[u8]) {
        let (table, column, row, _) = self.cells[cell];
        let id = if table == "message_vector" {
            "seq"
        } else {
            "rowid"
        };
        let value = match column {
            "text" | "format" => "cast(? as text)",
            _ => "?",
        };
        let sql = format!(
            "update or ignore {table} set {column} = {value} where {id} = {row} and {column} is not {value}"
        );
        let mut connection = self.connection.lock().await;
        execute(&mut connection, &sql, &[bytes, bytes]).await;
    }
}

fn embedder() -> Arc<dyn Embedder> {
    let subjects = Subjects::default();
    Arc::new(Subjects {
        is_cheap: true,
        ..subjects
    })
}

async fn fetch(connection: &mut SqliteConnection, sql: &str) -> Vec<SqliteRow> {
    sqlx::query(AssertSqlSafe(sql.to_owned()))
        .fetch_all(connection)
        .await
        .unwrap()
}

async fn execute(connection: &mut SqliteConnection, sql: &str, values: &[&[u8]]) {
    let mut query = sqlx::query(AssertSqlSafe(sql.to_owned()));
    for value in values {
        query = query.bind(value.to_vec());
    }
    query.execute(connection).await.unwrap();
}

/// An entry whose bytes are damaged is an error, or the same entry. What `verify` finds says where.
pub(super) fn packs() {
    let (_folder, database) = block_on(Database::new("packs", PACKED));
    let entries = block_on(database.session.entries()).unwrap();
    target("packs", 40).seeds(database.seeds()).run(|input| {
        block_on(async {
            let damaged = database.damage(input).await;
            let read = database.session.entries().await;
            let verified = database.session.verify().await;
            let differs = match &read {
                Ok(read) => {
                    let differs = read
                        .iter()
                        .zip(&entries)
                        .filter(|(read, entry)| read != entry);
                    differs.map(|(_, entry)| entry.seq).collect::<Vec<_>>()
                }
                Err(error) => {
                    let seq = damaged.map_or(0, |(_, row)| row & 0xffff_ffff);
                    let text = error.to_string();
                    let is_named = damaged.is_none_or(|(table, _)| {
                        table != "message" || text.contains(&seq.to_string())
                    });
                    assert!(is_named, "{seq} is not named: {text}");
                    vec![Seq(0)]
                }
            };
            let violations = verified.unwrap().violations;
            for seq in &differs {
                let is_named = violations
                    .iter()
                    .any(|one| *seq == Seq(0) || one.message.contains(&seq.to_string()));
                assert!(is_named, "entry {seq} is wrong: {violations:?}");
            }
            (
                damaged.map(|(table, _)| table),
                differs.len().min(3),
                read.is_ok(),
                violations.len().min(3),
            )
        })
    });
}

/// A search over a damaged index has the hits of a scan. A damaged vector may be an error that names it.
pub(super) fn stored() {
    let (_folder, database) = block_on(Database::new("stored", SEARCHED));
    let session = &database.session;
    let store = session.memory().store();
    let queries = ["the test", "parse_duration", "puppy", "e"]
        .into_iter()
        .flat_map(|pattern| {
            let modes = [SearchMode::Literal, SearchMode::Words, SearchMode::Prose];
            modes.map(|mode| Query::new(pattern).with_mode(mode).with_limit(50))
        });
    let queries: Vec<Query> = queries.collect();
    let found = async |search: &dyn Search, query: &Query| {
        let hits = search.search(session.id(), query).await?;
        let targets: Vec<HitTarget> = hits.hits.into_iter().map(|hit| hit.target).collect();
        Ok::<_, memory_search::Error>((targets, hits.index_damaged))
    };
    let scan = SegmentSearch::without_index(Arc::clone(store));
    let expected: Vec<Vec<HitTarget>> = block_on(async {
        let mut expected = Vec::new();
        for query in &queries {
            expected.push(found(&scan, query).await.unwrap().0);
        }
        expected
    });
    assert!(expected.iter().any(|hits| hits.len() > 2));
    // The first byte of an input is for the query.
    let seeds = database.seeds();
    let seeds = (0u8..)
        .zip(seeds)
        .map(|(at, seed)| [&[at], &*seed].concat());
    target("stored", 120).seeds(seeds).run(|input| {
        let (&at, input) = input.split_first()?;
        let at = usize::from(at) % queries.len();
        let (query, expected) = (&queries[at], &expected[at]);
        Some(block_on(async {
            let damaged = database.damage(input).await;
            // New ones, because a search keeps rows that it has read.
            let indexed = SegmentSearch::new(Arc::clone(store));
            let embedded = indexed.clone().with_embedder(embedder());
            let (hits, is_damaged) = found(&indexed, query).await.unwrap();
            assert_eq!(hits, *expected, "{query:?} with {damaged:?}");
            // Vectors add hits, and remove none.
            let by_meaning = found(&embedded, query).await;
            match &by_meaning {
                Ok((hits, _)) => assert!(
                    expected.iter().all(|hit| hits.contains(hit)) || hits.len() == query.limit,
                    "{query:?} with {damaged:?}"
                ),
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.contains("the vector of message"), "{text}");
                }
            }
            let violations = session.verify().await.unwrap().violations;
            assert_eq!(violations, [], "an index is no part of the guarantees");
            session.index().check().await.unwrap();
            (
                damaged.map(|(table, _)| table),
                at,
                is_damaged,
                by_meaning.is_ok(),
            )
        }))
    });
}
