//! Which summaries a model refused to write, so that the next run asks for others first.

use memory_model::{FieldHasher, Hash, RawJson};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::run::Compaction;

/// Maximum number of summaries that are remembered; the oldest refusal is forgotten first.
const REMEMBERED: usize = 1_024;

/// Sources whose summaries were refused, the least recent refusal first.
#[derive(Debug, Default)]
pub(super) struct Refused {
    sources: Vec<Hash>,
    /// Revision of the stored state.
    revision: u64,
}

/// The stored form.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    /// Hash of everything but the source that decides about a summary's text.
    writer: String,
    sources: Vec<Hash>,
}

impl Refused {
    pub(super) fn sources(&self) -> &[Hash] {
        &self.sources
    }

    /// Puts a source at the end.
    pub(super) fn remember(&mut self, source: Hash) {
        self.forget(source);
        self.sources.push(source);
        let oldest = self.sources.len().saturating_sub(REMEMBERED);
        self.sources.drain(..oldest);
    }

    /// Takes a source out; returns whether it was there.
    pub(super) fn forget(&mut self, source: Hash) -> bool {
        let before = self.sources.len();
        self.sources.retain(|known| *known != source);
        self.sources.len() < before
    }
}

impl Compaction<'_> {
    /// Reads what this summarizer refused under this ladder and these instructions.
    pub(super) async fn refused(&self) -> Result<Refused> {
        let key = self.refused_key();
        let Some(state) = self.store.state(self.conversation, &key).await? else {
            return Ok(Refused::default());
        };
        let stored: Stored = serde_json::from_str(state.value.as_str()).unwrap_or_default();
        let sources = match stored.writer == self.writer() {
            true => stored.sources,
            false => Vec::new(),
        };
        Ok(Refused {
            sources,
            revision: state.revision,
        })
    }

    /// Stores the list. Somebody else's newer list wins: it only orders the work.
    pub(super) async fn remember_refused(&self, refused: &mut Refused) -> Result<()> {
        let stored = Stored {
            writer: self.writer(),
            sources: refused.sources.clone(),
        };
        let Ok(value) = RawJson::from_value(&stored) else {
            return Ok(());
        };
        let key = self.refused_key();
        let put = self
            .store
            .put_state(self.conversation, &key, refused.revision, Some(&value));
        match put.await {
            Ok(revision) => {
                refused.revision = revision;
                Ok(())
            }
            Err(error) if error.kind() == memory_store::ErrorKind::Stale => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn refused_key(&self) -> String {
        format!("refused/{}", self.planner.view())
    }

    fn writer(&self) -> String {
        let mut hasher = FieldHasher::new("agent-memory refused writer 1");
        hasher.bytes(self.summarizer.id().as_bytes());
        hasher.bytes(self.ladder.id().as_bytes());
        hasher.optional(self.instructions.as_deref());
        hasher.finish().to_string()
    }
}
