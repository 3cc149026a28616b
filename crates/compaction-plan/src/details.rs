//! Facts and lines that a planner adds to a summary after its text is written.

use std::collections::BTreeMap;

use memory_model::{Accounting, LogEntry, RawJson, Summary};

use crate::job::Job;

/// A stored source of a job.
#[derive(Debug, Clone, Copy)]
pub enum JobSource<'a> {
    /// A message or a note.
    Entry(&'a LogEntry),
    /// A summary.
    Summary(&'a Summary),
}

/// The text of a summary with its sources, before it is stored.
#[derive(Debug, Clone, Copy)]
pub struct WrittenText<'a> {
    /// The job of the summary.
    pub job: &'a Job,
    /// Sources of the job, in order; ranges of messages entry by entry.
    pub sources: &'a [JobSource<'a>],
    /// The text.
    pub text: &'a str,
    /// Counts tokens.
    pub accounting: &'a dyn Accounting,
}

impl WrittenText<'_> {
    /// Cost of the lines that may be added to the text, in tokens; `None` if the job sets no limit.
    pub fn room(&self) -> Option<u64> {
        let request = self.job.request.as_ref()?;
        let written = self.accounting.text(self.text);
        (request.max_tokens > 0).then(|| request.max_tokens.saturating_sub(written))
    }
}

/// Facts and lines that a planner adds to a summary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// Facts by name. They become fields of [`Summary::meta`].
    pub facts: BTreeMap<String, RawJson>,
    /// Lines that are added to the end of the text. Lines that do not fit the job's limit are left out.
    pub lines: Vec<String>,
}
