//! Cached values of sessions, in this process.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use memory_model::ConversationId;

/// Maximum number of sessions that have a value.
const REMEMBERED: usize = 1_024;

/// A value for each session in use.
#[derive(Debug)]
pub(crate) struct PerSession<T>(Mutex<BTreeMap<ConversationId, T>>);

impl<T> Default for PerSession<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> PerSession<T> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<ConversationId, T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a session's value.
    pub(crate) fn forget(&self, id: ConversationId) {
        self.lock().remove(&id);
    }

    /// Sets a session's value. If [`REMEMBERED`] other sessions have a value, their values are removed first.
    pub(crate) fn remember(&self, id: ConversationId, value: T) {
        let mut all = self.lock();
        if all.len() >= REMEMBERED && !all.contains_key(&id) {
            all.clear();
        }
        all.insert(id, value);
    }
}
