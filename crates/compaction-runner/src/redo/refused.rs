//! Summaries that a model refused to write. The next run tries other summaries first.

use memory_model::{FieldHasher, Hash};
use serde::{Deserialize, Serialize};

use crate::environment::Compaction;
use crate::error::Result;
use crate::state::{load, save};

/// Maximum number of remembered refusals. The oldest refusal is removed first.
const REMEMBERED: usize = 1_024;

/// Source hashes of refused summaries, the oldest refusal first.
#[derive(Debug, Default)]
pub(super) struct Refused {
    sources: Vec<Hash>,
    /// Revision of the stored list.
    revision: u64,
}

/// The list as it is stored.
#[derive(Debug, Default, Serialize, Deserialize)]
struct StoredRefusals {
    /// Hash of all settings that determine the text of a summary, without the source.
    writer: String,
    sources: Vec<Hash>,
}

impl Refused {
    pub(super) fn sources(&self) -> &[Hash] {
        &self.sources
    }

    /// Adds a source as the latest refusal.
    pub(super) fn remember(&mut self, source: Hash) {
        self.forget(source);
        self.sources.push(source);
        let oldest = self.sources.len().saturating_sub(REMEMBERED);
        self.sources.drain(..oldest);
    }

    /// Removes a source. Returns whether it was in the list.
    pub(super) fn forget(&mut self, source: Hash) -> bool {
        let before = self.sources.len();
        self.sources.retain(|known| *known != source);
        self.sources.len() < before
    }
}

/// Reads the refusals of this summarizer with this ladder and these instructions.
pub(super) async fn read_refused(env: &Compaction<'_>) -> Result<Refused> {
    let stored = load::<StoredRefusals>(env, &key(env)).await?;
    let sources = match stored.value {
        Some(refusals) if refusals.writer == writer(env) => refusals.sources,
        _ => Vec::new(),
    };
    Ok(Refused {
        sources,
        revision: stored.revision,
    })
}

/// Stores the list. If another run stored a newer list, keeps that list, because it only determines the order of the
/// work.
pub(super) async fn store_refused(env: &Compaction<'_>, refused: &mut Refused) -> Result<()> {
    let refusals = StoredRefusals {
        writer: writer(env),
        sources: refused.sources.clone(),
    };
    if let Some(revision) = save(env, &key(env), refused.revision, Some(&refusals)).await? {
        refused.revision = revision;
    }
    Ok(())
}

fn key(env: &Compaction<'_>) -> String {
    format!("refused/{}", env.view())
}

/// Returns a hash of all settings that determine the text of a summary, without the source.
fn writer(env: &Compaction<'_>) -> String {
    let mut hasher = FieldHasher::new("agent-memory refused writer 1");
    hasher.bytes(env.summarizer.id().as_bytes());
    hasher.bytes(env.ladder.id().as_bytes());
    hasher.optional(env.instructions.as_deref());
    hasher.finish().to_string()
}
