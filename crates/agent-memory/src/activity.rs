//! What the sessions of a memory are doing: turns under way, and what waits for their ends.

use memory_model::ConversationId;

use crate::per_session::PerSession;

/// The turns under way of all sessions of a memory, in this process.
#[derive(Debug, Default)]
pub(crate) struct Activities(PerSession<Activity>);

/// What one session is doing. One that does nothing has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Activity {
    /// Whether a turn is under way.
    in_turn: bool,
    /// Whether this turn has recovered from a context that was too long.
    recovered: bool,
    /// A compaction that waits for the turn's end, with its instructions.
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

    /// Ends a turn, and returns the compaction that waited for it, with its instructions.
    pub(crate) fn end_turn(&self, id: ConversationId) -> Option<Option<String>> {
        self.0.lock().remove(&id)?.requested
    }

    /// Whether a turn is under way.
    pub(crate) fn in_turn(&self, id: ConversationId) -> bool {
        self.0
            .lock()
            .get(&id)
            .is_some_and(|activity| activity.in_turn)
    }

    /// Asks for a compaction at the end of the turn. A later request takes the place of an earlier one.
    pub(crate) fn request(&self, id: ConversationId, instructions: Option<String>) {
        self.0.lock().entry(id).or_default().requested = Some(instructions);
    }

    /// Whether this turn has not recovered from a context that was too long yet; from now on it has.
    pub(crate) fn may_recover(&self, id: ConversationId) -> bool {
        let mut all = self.0.lock();
        let activity = all.entry(id).or_default();
        !std::mem::replace(&mut activity.recovered, true)
    }
}
