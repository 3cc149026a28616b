//! What is known of the requests of sessions.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use memory_model::{ConversationId, Seq};

/// Number of sessions whose requests are remembered.
const REMEMBERED: usize = 1_024;

/// The requests of sessions, as far as they were looked for.
#[derive(Debug, Default)]
pub(crate) struct Requests(Mutex<BTreeMap<ConversationId, Known>>);

/// The requests of a log that ends at a head.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) head: Seq,
    pub(crate) erasures: u64,
    /// Rising.
    pub(crate) requests: Vec<Seq>,
    /// The newest message that ended a turn after them.
    pub(crate) ended: Option<Seq>,
}

impl Requests {
    pub(crate) fn known(&self, id: ConversationId) -> Option<Known> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&id).cloned()
    }

    pub(crate) fn remember(&self, id: ConversationId, known: Known) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REMEMBERED && !all.contains_key(&id) {
            all.clear();
        }
        all.insert(id, known);
    }
}
