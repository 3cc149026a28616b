//! SQL statements that run often and have SQL texts that are built once.

use std::sync::{Arc, OnceLock};

use memory_model::ConversationId;
use memory_store::{Error, ErrorKind};

use crate::batch::Statement;
use crate::error::Result;
use crate::family::Family;
use crate::message::{self, BATCHES};

/// Number of kinds of prepared SQL statements.
const KINDS: usize = 3;

/// An SQL statement with a text that is built once for each dialect. Values are bound each time the statement runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared {
    kind: StatementKind,
    /// Whether the tables have a column for the family.
    by_family: bool,
    /// Index of the statement's number of rows in [`BATCHES`].
    size: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatementKind {
    Insert,
    ByExternal,
    ByExternalSeen,
}

impl Prepared {
    /// Creates the [`message::insert`] statement for a number of rows. The number must be in [`BATCHES`].
    pub(crate) fn insert(family: Family, rows: usize) -> Result<Self> {
        Self::new(StatementKind::Insert, family, rows)
    }

    /// Creates the [`message::by_external`] statement for a number of ids. The number must be in [`BATCHES`].
    pub(crate) fn by_external(family: Family, ids: usize) -> Result<Self> {
        Self::new(StatementKind::ByExternal, family, ids)
    }

    /// Creates the [`message::by_external_seen`] statement for a number of ids. The number must be in [`BATCHES`].
    pub(crate) fn by_external_seen(family: Family, ids: usize) -> Result<Self> {
        Self::new(StatementKind::ByExternalSeen, family, ids)
    }

    fn new(kind: StatementKind, family: Family, size: usize) -> Result<Self> {
        let index = BATCHES.iter().position(|of| *of == size);
        let size = index.ok_or_else(|| {
            let message = format!("no statement takes {size} rows: this is a defect of store-sql");
            Error::new(ErrorKind::Invalid, message)
        })?;
        Ok(Self {
            kind,
            by_family: family != Family::ANY,
            size,
        })
    }

    /// Returns the statement with dummy values, which only mark the placeholders.
    ///
    /// # Errors
    /// `Invalid` if the statement cannot be built, which would be a defect of this crate.
    pub fn statement(self) -> Result<Statement> {
        let size = BATCHES.get(self.size).copied().unwrap_or(1);
        let family = match self.by_family {
            true => Family::of(ConversationId(0)),
            false => Family::ANY,
        };
        Ok(match self.kind {
            StatementKind::Insert => message::insert(family, size)?.into(),
            StatementKind::ByExternal => message::by_external(family, size).into(),
            StatementKind::ByExternalSeen => message::by_external_seen(family, size).into(),
        })
    }

    fn index(self) -> usize {
        self.kind as usize * BATCHES.len() + self.size
    }
}

/// SQL texts of all prepared statements of one database, in its dialect. A text is built when its statement first runs.
#[derive(Debug)]
pub struct PreparedTexts([OnceLock<Arc<str>>; KINDS * BATCHES.len()]);

impl PreparedTexts {
    /// Creates an empty collection of texts.
    pub const fn new() -> Self {
        Self([const { OnceLock::new() }; KINDS * BATCHES.len()])
    }

    /// Returns the SQL text of a prepared statement. At the first call for a statement, `render` renders its text in
    /// the dialect.
    ///
    /// # Errors
    /// `Invalid` if the statement cannot be built, which would be a defect of this crate.
    pub fn get(
        &self,
        prepared: Prepared,
        render: impl FnOnce(&Statement) -> String,
    ) -> Result<Arc<str>> {
        let missing = || {
            let message = "there is no such statement: this is a defect of store-sql";
            Error::new(ErrorKind::Invalid, message)
        };
        let text = self.0.get(prepared.index()).ok_or_else(missing)?;
        if let Some(text) = text.get() {
            return Ok(Arc::clone(text));
        }
        let rendered: Arc<str> = render(&prepared.statement()?).into();
        Ok(Arc::clone(text.get_or_init(|| rendered)))
    }
}

impl Default for PreparedTexts {
    fn default() -> Self {
        Self::new()
    }
}
