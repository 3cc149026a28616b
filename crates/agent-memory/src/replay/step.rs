//! Outcome of one step of a replay: one message appended, the compactions run, and the next context.

use compaction_runner::Outcome;
use context_assembler::Context;
use memory_store::EntryOutcome;

/// Outcome of one step of a replay: one message appended, the compactions run, and the next context.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) ingested: EntryOutcome,
    pub(super) compactions: Vec<Outcome>,
    pub(super) context: Context,
    pub(super) published: u64,
    pub(super) statements: Option<u64>,
    pub(super) most_statements: Option<u64>,
}
