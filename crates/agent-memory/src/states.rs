//! States of conversations, remembered for the contexts of live sessions.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use memory_model::{ConversationId, ViewVersion};

/// Number of sessions whose states are remembered.
const REMEMBERED: usize = 256;

/// Everything that the state in contexts of a live session depends on: version of its view, number of erasures, and most
/// tokens.
pub(crate) type Key = (ViewVersion, u64, u64);

/// The states of the sessions in use.
#[derive(Debug, Default)]
pub(crate) struct States(Mutex<BTreeMap<ConversationId, (Key, Option<String>)>>);

impl States {
    pub(crate) fn get(&self, id: ConversationId, key: Key) -> Option<Option<String>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (of, state) = all.get(&id)?;
        (*of == key).then(|| state.clone())
    }

    pub(crate) fn remember(&self, id: ConversationId, key: Key, state: Option<String>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REMEMBERED && !all.contains_key(&id) {
            all.clear();
        }
        all.insert(id, (key, state));
    }
}
