//! States of a session that this process has read.

use std::sync::Arc;

use extractive_summarizer::KeptState;
use memory_model::Seq;

/// The last states of a session that were read: one is of the summarized messages, and another of the whole log.
#[derive(Debug, Clone)]
pub(crate) struct KnownStates {
    /// Number of erasures before the messages were read.
    pub(crate) erasures: u64,
    states: [Option<Arc<KeptState>>; 2],
}

impl KnownStates {
    pub(crate) fn new(erasures: u64) -> Self {
        let states = [None, None];
        Self { erasures, states }
    }

    /// Returns the last state of the messages up to `through`.
    pub(crate) fn newest(&self, through: Seq) -> Option<Arc<KeptState>> {
        let states = self.states.iter().flatten();
        let states = states.filter(|state| state.through() <= through);
        states.max_by_key(|state| state.through()).cloned()
    }

    /// Adds a state, in place of an equal one or the one that was added first.
    pub(crate) fn add(&mut self, state: Arc<KeptState>) {
        let [first, last] = &mut self.states;
        if last
            .as_ref()
            .is_none_or(|last| last.through() != state.through())
        {
            *first = last.replace(state);
        }
    }
}
