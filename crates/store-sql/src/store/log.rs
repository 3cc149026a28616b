//! Lengths and costs of logs that are kept in memory, so that most operations need no SQL statement to look them up.

use std::sync::{MutexGuard, PoisonError};

use memory_model::{ConversationId, Seq};
use memory_store::{Conversation, Result, Segment};

use super::SqlStore;
use super::reached::Reached;
use crate::executor::{Database, Executor};
use crate::family::Family;

/// Segments, length and cost of a log. They may be older than the database, but cover all positions that an operation
/// needs.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) family: Family,
    pub(super) segments: Vec<Segment>,
    /// A position up to which the log has entries. It is the end of the log, or a position before the end.
    pub(super) head: Seq,
    /// Cost of the messages up to `head`, in tokens.
    pub(super) tokens: u64,
}

impl Log {
    pub(super) fn new(family: Family, info: &Conversation) -> Self {
        Self {
            family,
            segments: info.segments.clone(),
            head: info.head,
            tokens: info.tokens,
        }
    }
}

impl<D: Database> SqlStore<D> {
    /// Locks and returns the lengths of logs and the versions of views that are kept in memory.
    pub(super) fn reached(&self) -> MutexGuard<'_, Reached> {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the segments, length and cost of a log. Uses the values in memory if `is_enough` accepts their last
    /// position and their cost in tokens. Otherwise reads the current values from the database.
    pub(super) async fn log(
        &self,
        on: &mut impl Executor,
        id: ConversationId,
        is_enough: impl Fn(Seq, u64) -> bool,
    ) -> Result<Log> {
        let known = self.reached().log(id);
        if let Some((head, tokens)) = known
            && is_enough(head, tokens)
            && let Some(lineage) = self.known_lineage(id)
        {
            return Ok(Log {
                family: self.family(on, id).await?,
                segments: lineage.segments(),
                head,
                tokens,
            });
        }
        let info = self.get(on, id).await?;
        Ok(Log::new(self.family_of(&info), &info))
    }
}
