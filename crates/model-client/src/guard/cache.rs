//! A cache of the latest answers of models.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{CacheKey, Completion, Stop};

#[derive(Debug, Default)]
pub(crate) struct Cache {
    state: Mutex<CacheState>,
}

#[derive(Debug, Default)]
struct CacheState {
    answers: BTreeMap<CacheKey, Completion>,
    oldest_first: VecDeque<CacheKey>,
}

impl Cache {
    fn lock(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a cached answer. Its number of calls is 0, and its usage is `None`.
    pub(crate) fn get(&self, key: &CacheKey) -> Option<Completion> {
        let mut answer = self.lock().answers.get(key).cloned()?;
        (answer.calls, answer.usage) = (0, None);
        Some(answer)
    }

    pub(crate) fn clear(&self) {
        *self.lock() = CacheState::default();
    }

    /// Stores an answer if it is complete and may be stored. Keeps at most `entries` answers, and drops the oldest
    /// ones.
    pub(crate) fn put(&self, key: CacheKey, answer: &Completion, entries: usize) {
        if answer.stop != Stop::Complete || answer.is_empty() || answer.no_store {
            return;
        }
        let mut state = self.lock();
        if state.answers.insert(key, answer.clone()).is_none() {
            state.oldest_first.push_back(key);
        }
        while state.oldest_first.len() > entries {
            if let Some(oldest) = state.oldest_first.pop_front() {
                state.answers.remove(&oldest);
            }
        }
    }
}
