//! Logs as far as operations need to know them: what is remembered needs no statement.

use std::sync::PoisonError;

use memory_model::{ConversationId, Seq, ViewName, ViewVersion};
use memory_store::{Conversation, Result, Segment, Snapshot};

use super::SqlStore;
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
    /// Remembers how far a committed snapshot reaches.
    pub(super) fn remember_reached(&self, snapshot: &Snapshot) {
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        reached.remember(snapshot);
    }

    /// Whether a view is known to have a version.
    pub(super) fn has_version(
        &self,
        id: ConversationId,
        view: &ViewName,
        version: ViewVersion,
    ) -> bool {
        let reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        reached.has_version(id, view, version)
    }

    /// The log, as far as it is known where `is_enough` holds for what is known of it, else looked up.
    pub(super) async fn log(
        &self,
        on: &mut impl Executor,
        id: ConversationId,
        is_enough: impl Fn(Seq, u64) -> bool,
    ) -> Result<Log> {
        let known = {
            let reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
            reached.log(id)
        };
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
