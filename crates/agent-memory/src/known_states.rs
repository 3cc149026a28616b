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

    /// Adds a state that was read on from the one after `begin`: in its place, unless there is room for both. So the earlier of
    /// two states stays, and no log is read from its beginning again.
    pub(crate) fn add(&mut self, begin: Seq, state: Arc<KeptState>) {
        let [first, last] = &mut self.states;
        let is = |slot: &Option<Arc<KeptState>>, seq| {
            slot.as_ref().is_some_and(|one| one.through() == seq)
        };
        match () {
            () if is(first, state.through()) || is(last, state.through()) => {}
            () if first.is_none() || (last.is_some() && is(first, begin)) => *first = Some(state),
            () => *last = Some(state),
        }
    }
}
