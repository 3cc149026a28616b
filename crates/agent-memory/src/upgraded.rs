//! Sessions with no extract of an older recipe.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use memory_model::ConversationId;

/// Sessions with their extracts already made anew. Extracts that this process writes use the newest recipe.
#[derive(Debug, Default)]
pub(crate) struct Upgraded(Mutex<BTreeSet<ConversationId>>);

impl Upgraded {
    /// Whether a session is met for the first time.
    pub(crate) fn is_first(&self, id: ConversationId) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(id)
    }
}
