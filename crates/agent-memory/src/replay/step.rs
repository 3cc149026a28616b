//! Results of a replay's step.

use compaction_runner::Outcome;
use context_assembler::Context;
use memory_store::EntryOutcome;

/// Results of a step.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) ingested: EntryOutcome,
    pub(super) compactions: Vec<Outcome>,
    pub(super) context: Context,
    pub(super) published: u64,
    pub(super) statements: Option<u64>,
    pub(super) most_statements: Option<u64>,
}
