//! A job (a planned change of the view) as input of hooks, with access to the messages and summaries that it replaces.

use std::fmt;

use compaction_plan::Job;
use memory_model::{ConversationId, LogEntry, SeqRange, Summary, SummaryId, ViewName};
use memory_store::{Store, read_entries};

use crate::error::Result;
use crate::reason::CompactionReason;

/// A job (a planned change of the view) that is about to begin, with access to the data that hooks may read.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct PlannedJob<'a> {
    /// The job that is about to begin.
    pub job: &'a Job,
    /// All jobs that begin together, in order. Includes this job.
    pub jobs: &'a [&'a Job],
    /// Id of the conversation that is compacted.
    pub conversation: ConversationId,
    /// Reason for the compaction.
    pub reason: CompactionReason,
    /// Instructions of the user for the summarizer. `None` for no instructions.
    pub instructions: Option<&'a str>,
    /// Name of the compacted view.
    pub view: &'a ViewName,
    pub(crate) store: &'a dyn Store,
}

impl fmt::Debug for PlannedJob<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlannedJob")
            .field("job", self.job)
            .field("jobs", &self.jobs.len())
            .field("conversation", &self.conversation)
            .finish_non_exhaustive()
    }
}

impl PlannedJob<'_> {
    /// Reads the entries in a range of the conversation's log. In a fork, these include the entries that it shares with
    /// its parent. Positions without an entry are skipped.
    ///
    /// # Errors
    /// Errors of reading the store.
    pub async fn entries(&self, range: SeqRange) -> Result<Vec<LogEntry>> {
        Ok(read_entries(self.store, self.conversation, range).await?)
    }

    /// Reads summaries of the conversation by their ids, in the order of `ids`. The result has `None` for each id that
    /// does not exist.
    ///
    /// # Errors
    /// Errors of reading the store.
    pub async fn summaries(&self, ids: &[SummaryId]) -> Result<Vec<Option<Summary>>> {
        Ok(self.store.summaries(self.conversation, ids).await?)
    }
}
