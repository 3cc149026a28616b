//! Logs as far as operations need to know them: what is remembered needs no statement.

use std::sync::{MutexGuard, PoisonError};

use memory_model::{ConversationId, Seq};
use memory_store::{Conversation, Result, Segment};

use super::SqlStore;
use super::reached::Reached;
use crate::executor::{Database, Executor};

/// A log, at least as far as it is asked for.
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
    /// What is known of how far logs and views reach.
    pub(super) fn reached(&self) -> MutexGuard<'_, Reached> {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The log, as far as it is known where `is_enough` holds for what is known of it, else looked up.
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
