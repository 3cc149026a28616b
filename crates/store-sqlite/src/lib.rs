#![doc = include_str!("../README.md")]

mod append;
mod bytes;
mod check;
mod db;
mod error;
mod fork;
mod lineage;
mod migrate;
mod migrations;
mod plain;
mod publish;
mod read;
mod records;
mod spans;
mod store;
mod work;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use memory_model::ConversationId;
use memory_store::{Error, ErrorKind, Result};
use sqlx::ConnectOptions as _;
use sqlx::sqlite::SqliteConnectOptions;

use crate::bytes::KnownFacts;
use crate::db::Db;

pub use memory_store;
pub use plain::{PlainExport, write_plain};

/// How often opening is tried again while another process creates the same file.
const OPEN_TRIES: u32 = 100;
/// How long to wait between the tries.
const OPEN_PAUSE: Duration = Duration::from_millis(20);

/// A store in a SQLite database: one file, one writer at a time, readers that never wait.
///
/// Several stores and processes may have the same file open.
#[derive(Debug)]
pub struct SqliteStore {
    db: Db,
    place: String,
    /// Never change once a conversation exists, so remembering them is always right.
    lineages: Mutex<lineage::Lineages>,
    /// What is known of conversations' facts.
    facts: Mutex<BTreeMap<ConversationId, KnownFacts>>,
}

impl SqliteStore {
    /// Opens the database at `path`, and creates it if there is none.
    ///
    /// Takes the same time however much is in it. An older schema is brought to today's.
    ///
    /// # Errors
    /// `ForeignDatabase` when the file is something else, `NewerSchema` when a newer version wrote it, `Busy` when
    /// another process holds it, `Io` when it can not be read or made. Nothing is changed then.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let place = path.display().to_string();
        let options = db::options().filename(path);
        let mut tries = OPEN_TRIES;
        let writer = loop {
            // Two that create a file at once can collide where SQLite does not wait.
            match connect(options.clone().create_if_missing(true), &place).await {
                Err(error) if error.kind() == ErrorKind::Busy && tries > 0 => tries -= 1,
                done => break done?,
            }
            tokio::time::sleep(OPEN_PAUSE).await;
        };
        Ok(Self {
            db: Db::new(writer, Some(options)),
            place,
            lineages: Mutex::default(),
            facts: Mutex::default(),
        })
    }

    /// Opens a database in memory, which is gone when the store is. It reads and writes over one connection.
    ///
    /// # Errors
    /// `Io` when SQLite can not start.
    pub async fn in_memory() -> Result<Self> {
        let place = "sqlite::memory:".to_owned();
        let writer = connect(db::options().in_memory(true), &place).await?;
        Ok(Self {
            db: Db::new(writer, None),
            place,
            lineages: Mutex::default(),
            facts: Mutex::default(),
        })
    }

    /// How many statements the store ran so far, `begin` and `commit` among them: for tests and measurements.
    pub fn statements(&self) -> u64 {
        self.db.statements()
    }
}

async fn connect(
    options: SqliteConnectOptions,
    place: &str,
) -> Result<sqlx::sqlite::SqliteConnection> {
    let mut writer = options
        .connect()
        .await
        .map_err(|e| error::opening(place, e))?;
    migrate::bring_up(&mut writer, place).await?;
    let settings = sqlx::raw_sql(db::UNDO_IN_MEMORY);
    settings
        .execute(&mut writer)
        .await
        .map_err(|e| error::opening(place, e))?;
    Ok(writer)
}

fn no_conversation(id: ConversationId) -> Error {
    Error::new(
        ErrorKind::NotFound,
        format!("there is no conversation {id}"),
    )
}

/// Splits a list into lists of the sizes that statements come in; the last one is filled up by repeating its last
/// item, which changes nothing in an `in (…)`.
fn batched<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    let [large, middle, one] = store_sql::message::BATCHES;
    items
        .chunks(large)
        .map(|chunk| {
            let size = [one, middle, large]
                .into_iter()
                .find(|size| chunk.len() <= *size);
            let mut batch = chunk.to_vec();
            if let (Some(size), Some(last)) = (size, chunk.last()) {
                batch.resize(size, last.clone());
            }
            batch
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::batched;

    #[test]
    fn batches_have_few_sizes_and_all_items() {
        for len in [0_usize, 1, 2, 8, 9, 64, 65, 130] {
            let items: Vec<usize> = (0..len).collect();
            let batches = batched(&items);
            assert!(
                batches.iter().all(|b| [1, 8, 64].contains(&b.len())),
                "{len}"
            );
            let mut all: Vec<usize> = batches.into_iter().flatten().collect();
            all.dedup();
            assert_eq!(all, items);
        }
    }
}
