//! Facts about logs that operations need: remembered ones take no statement.

use std::sync::{MutexGuard, PoisonError};

use memory_model::{ConversationId, Seq};
use memory_store::{Conversation, Result, Segment};

use super::SqlStore;
use super::reached::Reached;
use crate::executor::{Database, Executor};

/// Facts about a log, at least as far as an operation needs them.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) segments: Vec<Segment>,
    /// A position up to which there are entries; the log's head, or before it.
    pub(super) head: Seq,
    /// Cost of the messages up to `head`, in tokens.
    pub(super) tokens: u64,
}

impl From<&Conversation> for Log {
    fn from(info: &Conversation) -> Self {
        Self {
            segments: info.segments.clone(),
            head: info.head,
            tokens: info.tokens,
        }
    }
}

impl<D: Database> SqlStore<D> {
    /// The remembered extents of logs and views.
    pub(super) fn reached(&self) -> MutexGuard<'_, Reached> {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The remembered facts about the log if `is_enough` accepts them, otherwise the facts in the database.
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
                segments: lineage.segments(),
                head,
                tokens,
            });
        }
        Ok(Log::from(&self.get(on, id).await?))
    }
}
