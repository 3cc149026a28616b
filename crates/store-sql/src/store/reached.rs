//! Known lengths of logs and versions of views. They only grow, so values in memory stay valid as lower bounds.

use std::collections::BTreeMap;

use memory_model::{ConversationId, Seq, ViewName, ViewVersion};
use memory_store::Snapshot;

/// Maximum number of conversations in memory, at about 100 bytes each.
const REMEMBERED: usize = 1 << 16;

/// Known lengths of logs and versions of views, by conversation. The real ones may be larger.
#[derive(Debug, Default)]
pub(super) struct Reached(BTreeMap<ConversationId, ReachedLog>);

/// Known length of a conversation's log, and known versions of its views.
#[derive(Debug, Default)]
pub(super) struct ReachedLog {
    head: Seq,
    tokens: u64,
    views: BTreeMap<ViewName, ViewVersion>,
}

impl Reached {
    /// Stores the length of the log and the version of the view in a committed snapshot.
    pub(super) fn remember(&mut self, snapshot: &Snapshot) {
        let Snapshot { head, version, .. } = *snapshot;
        let reached = self.remember_log(snapshot.conversation, head, snapshot.log_tokens);
        match reached.views.get_mut(&snapshot.view) {
            Some(known) => *known = version.max(*known),
            None => {
                reached.views.insert(snapshot.view.clone(), version);
            }
        }
    }

    /// Records that a log has committed entries up to position `head`, with a total cost of `tokens`. Returns the
    /// record of the conversation.
    pub(super) fn remember_log(
        &mut self,
        id: ConversationId,
        head: Seq,
        tokens: u64,
    ) -> &mut ReachedLog {
        let Self(all) = self;
        if all.len() >= REMEMBERED && !all.contains_key(&id) {
            all.clear();
        }
        let reached = all.entry(id).or_default();
        if reached.head <= head {
            (reached.head, reached.tokens) = (head, tokens);
        }
        reached
    }

    /// Returns a position up to which the log is known to have entries, and the total cost of these entries in tokens.
    pub(super) fn log(&self, id: ConversationId) -> Option<(Seq, u64)> {
        let Self(all) = self;
        all.get(&id).map(|reached| (reached.head, reached.tokens))
    }

    /// Returns whether a view is known to have a version.
    pub(super) fn has_version(
        &self,
        id: ConversationId,
        view: &ViewName,
        version: ViewVersion,
    ) -> bool {
        let Self(all) = self;
        let known = all.get(&id).and_then(|reached| reached.views.get(view));
        known.is_some_and(|known| version <= *known)
    }
}
