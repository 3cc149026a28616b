//! Values that a memory keeps for its sessions, in this process.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use memory_model::ConversationId;

/// Maximum number of sessions that are remembered.
const REMEMBERED: usize = 1_024;

/// A value of each session in use.
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

    /// Sets a session's value. All others are forgotten when there are too many.
    pub(crate) fn remember(&self, id: ConversationId, value: T) {
        let mut all = self.lock();
        if all.len() >= REMEMBERED && !all.contains_key(&id) {
            all.clear();
        }
        all.insert(id, value);
    }
}
