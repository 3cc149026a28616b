//! Turns of the sessions of a memory, and the compactions that wait for their ends.

use memory_model::ConversationId;

use crate::per_session::PerSession;

/// The running turns of all sessions of a memory, in this process.
#[derive(Debug, Default)]
pub(crate) struct Activities(PerSession<Activity>);

/// The turn of one session. A session without a turn and without a request has no entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Activity {
    /// Whether a turn is running.
    in_turn: bool,
    /// Whether this turn has recovered from a context that was too long.
    recovered: bool,
    /// Compaction requested for the end of the turn, with its instructions.
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

    /// Ends a turn, and returns the compaction that was requested for its end, with its instructions.
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

    /// Whether the turn has not recovered yet from a context that was too long. Records that it has.
    pub(crate) fn may_recover(&self, id: ConversationId) -> bool {
        let mut all = self.0.lock();
        let activity = all.entry(id).or_default();
        !std::mem::replace(&mut activity.recovered, true)
    }
}
