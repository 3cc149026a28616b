//! The running turn of each session, and the compaction that was requested for the end of that turn.

use memory_model::ConversationId;

use crate::per_session::PerSession;

/// The running turns of all sessions of a memory, in this process.
#[derive(Debug, Default)]
pub(crate) struct Activities(PerSession<Activity>);

/// State of one session's turn. A session has no state if no turn is running and no compaction is requested.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Activity {
    /// Whether a turn is running.
    in_turn: bool,
    /// Whether the turn has already recovered from a context that the provider refused as too long.
    recovered: bool,
    /// Compaction that was requested for the end of the turn; `None` if none was requested. The inner value has the
    /// instructions for the summarizer.
    requested: Option<Option<String>>,
}

impl Activities {
    /// Begins a turn.
    pub(crate) fn begin_turn(&self, id: ConversationId) {
        let mut all = self.0.lock();
        let activity = all.entry(id).or_default();
        activity.in_turn = true;
        activity.recovered = false;
    }

    /// Ends a turn, and returns the compaction that was requested for its end, if any. The inner value has the
    /// instructions for the summarizer.
    pub(crate) fn end_turn(&self, id: ConversationId) -> Option<Option<String>> {
        self.0.lock().remove(&id)?.requested
    }

    /// Whether a turn is running.
    pub(crate) fn in_turn(&self, id: ConversationId) -> bool {
        self.0
            .lock()
            .get(&id)
            .is_some_and(|activity| activity.in_turn)
    }

    /// Requests a compaction at the end of the turn. A later request replaces an earlier one.
    pub(crate) fn request(&self, id: ConversationId, instructions: Option<String>) {
        self.0.lock().entry(id).or_default().requested = Some(instructions);
    }

    /// Returns whether the turn may recover from a context that was too long: `true` for the first call in a turn, and
    /// `false` for later calls.
    pub(crate) fn may_recover(&self, id: ConversationId) -> bool {
        let mut all = self.0.lock();
        let activity = all.entry(id).or_default();
        !std::mem::replace(&mut activity.recovered, true)
    }
}
