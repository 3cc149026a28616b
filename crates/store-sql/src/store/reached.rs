//! How far logs and views are known to reach: they only grow, so what is known stays true, and reading it again
//! needs no statement.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use memory_model::{ConversationId, Seq, ViewName, ViewVersion};
use memory_store::{Conversation, Result, Segment, Snapshot};

use super::SqlStore;
use crate::executor::{Database, Executor};

/// Maximum number of conversations that are remembered: some 100 bytes each.
const REMEMBERED: usize = 1 << 16;

/// How far a conversation's log and views are known to reach.
#[derive(Debug, Default)]
pub(super) struct Reached {
    head: Seq,
    tokens: u64,
    views: BTreeMap<ViewName, ViewVersion>,
}

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
        let mut all = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REMEMBERED && !all.contains_key(&snapshot.conversation) {
            all.clear();
        }
        let reached = all.entry(snapshot.conversation).or_default();
        if reached.head <= snapshot.head {
            (reached.head, reached.tokens) = (snapshot.head, snapshot.log_tokens);
        }
        match reached.views.get_mut(&snapshot.view) {
            Some(version) => *version = snapshot.version.max(*version),
            None => {
                let view = snapshot.view.clone();
                reached.views.insert(view, snapshot.version);
            }
        }
    }

    /// Whether a view is known to have a version.
    pub(super) fn has_version(
        &self,
        id: ConversationId,
        view: &ViewName,
        version: ViewVersion,
    ) -> bool {
        let all = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.get(&id).and_then(|reached| reached.views.get(view));
        known.is_some_and(|known| version <= *known)
    }

    /// The log, as far as it is known where `is_enough` holds for what is known of it, else looked up.
    pub(super) async fn log(
        &self,
        on: &mut impl Executor,
        id: ConversationId,
        is_enough: impl Fn(Seq, u64) -> bool,
    ) -> Result<Log> {
        let known = {
            let all = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
            all.get(&id).map(|reached| (reached.head, reached.tokens))
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
