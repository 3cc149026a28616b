//! Summaries that were paid for, by what they were made of and how.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use memory_model::{FieldHasher, Hash, SourceHasher};

use crate::{Purpose, Source, Style, SummaryRequest, SummaryText};

/// The newest answers, by key.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    answers: BTreeMap<Hash, SummaryText>,
    oldest_first: VecDeque<Hash>,
}

impl Cache {
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, key: &Hash) -> Option<SummaryText> {
        self.lock().answers.get(key).cloned()
    }

    pub(crate) fn clear(&self) {
        *self.lock() = Held::default();
    }

    pub(crate) fn put(&self, key: Hash, answer: &SummaryText, entries: usize) {
        let mut held = self.lock();
        if held.answers.insert(key, answer.clone()).is_none() {
            held.oldest_first.push_back(key);
        }
        while held.oldest_first.len() > entries {
            if let Some(oldest) = held.oldest_first.pop_front() {
                held.answers.remove(&oldest);
            }
        }
    }
}

/// The hash of a request's sources, and of everything else that its summary depends on. `None`
/// when a message has no hash, because it is in no log: then nothing tells two of them apart.
pub(crate) fn key(summarizer: &str, request: &SummaryRequest<'_>) -> Option<Hash> {
    let mut sources = SourceHasher::new();
    for piece in request.source {
        match piece {
            Source::Message(entry) if entry.hash == Hash::ZERO => return None,
            Source::Message(entry) => sources.message(entry.hash),
            Source::Summary(summary) => {
                let mut hasher = FieldHasher::new("agent-memory cached source 1");
                hasher.bytes(summary.id.as_bytes());
                hasher.bytes(summary.text.as_bytes());
                sources.summary(hasher.finish());
            }
        }
    }
    let mut hasher = FieldHasher::new("agent-memory cached summary 1");
    hasher.hash(sources.finish());
    hasher.bytes(summarizer.as_bytes());
    hasher.number(match request.style {
        Style::Normal => 0,
        Style::Aggressive => 1,
    });
    hasher.number(match request.purpose {
        Purpose::Replace => 0,
        Purpose::TurnPrefix => 1,
    });
    // Prompts show positions and times.
    let range = request.range();
    hasher.optional(range.map(|range| range.to_string()).as_deref());
    hasher.number(i64::from(request.depth()));
    hasher.number(i64::try_from(request.target_tokens).unwrap_or(i64::MAX));
    hasher.bytes(request.estimator.id().as_str().as_bytes());
    hasher.optional(request.previous);
    hasher.optional(request.instructions);
    Some(hasher.finish())
}
