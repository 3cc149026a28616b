//! A job as its hooks see it: with the plan around it, and the log and the summaries that it is made from.

use std::fmt;

use compaction_plan::Job;
use memory_model::{ConversationId, LogEntry, SeqRange, Summary, SummaryId, ViewName};
use memory_store::{Store, read_entries};

use crate::error::Result;
use crate::reason::CompactionReason;

/// A job that is about to begin, and what its hooks may read.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct PlannedJob<'a> {
    /// The job.
    pub job: &'a Job,
    /// The jobs that are begun together, this one among them, in order.
    pub jobs: &'a [&'a Job],
    /// The conversation.
    pub conversation: ConversationId,
    /// Why the compaction is run.
    pub reason: CompactionReason,
    /// The user's instructions for the summaries.
    pub instructions: Option<&'a str>,
    /// The view that is compacted.
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
    /// Reads entries of the conversation, as far as they exist. A fork reads what it shares with its parent, too.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn entries(&self, range: SeqRange) -> Result<Vec<LogEntry>> {
        Ok(read_entries(self.store, self.conversation, range).await?)
    }

    /// Reads summaries of the conversation; `None` for an id that it does not have.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn summaries(&self, ids: &[SummaryId]) -> Result<Vec<Option<Summary>>> {
        Ok(self.store.summaries(self.conversation, ids).await?)
    }
}
