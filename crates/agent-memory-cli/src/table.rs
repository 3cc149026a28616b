//! The table of word vectors by which searches also find texts of a similar meaning.

use std::sync::Arc;

use agent_memory::search::StaticTable;
use agent_memory::{Builder, Memory};

use crate::args::Vectors;
use crate::error::{Failure, Kind};

/// A table of word vectors; empty if the command line names none.
#[derive(Debug, Default)]
pub(crate) struct Table(Option<Arc<StaticTable>>);

impl Table {
    /// Returns a builder for a memory that also searches with the table's vectors.
    pub(crate) fn builder(&self) -> Builder {
        match &self.0 {
            Some(table) => Memory::builder().embedder(Arc::<StaticTable>::clone(table)),
            None => Memory::builder(),
        }
    }
}

impl Vectors {
    /// Reads the table from the file that the command line names.
    pub(crate) fn read(&self) -> Result<Table, Failure> {
        let Some(path) = &self.table else {
            return Ok(Table::default());
        };
        let table = StaticTable::open(path).map_err(|error| {
            let kind = match path.is_file() {
                true => Kind::UnknownFormat,
                false => Kind::Unreadable,
            };
            Failure::new(kind, error.to_string()).hint(
                "name a file that `cargo xtask static-table` wrote, or leave out --table and AGENT_MEMORY_TABLE",
            )
        })?;
        Ok(Table(Some(Arc::new(table))))
    }
}
