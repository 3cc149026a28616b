//! What a planner adds to a summary beside what its summarizer writes.

use std::collections::BTreeMap;

use memory_model::{Accounting, LogEntry, RawJson, Summary};

use crate::job::Job;

/// A source of a job, as it is stored.
#[derive(Debug, Clone, Copy)]
pub enum JobSource<'a> {
    /// A message or a note.
    Entry(&'a LogEntry),
    /// A summary.
    Summary(&'a Summary),
}

/// A summary's text once it is written, with what it was written from.
#[derive(Debug, Clone, Copy)]
pub struct WrittenText<'a> {
    /// The job.
    pub job: &'a Job,
    /// The job's sources, in order; ranges of messages entry by entry.
    pub sources: &'a [JobSource<'a>],
    /// The text.
    pub text: &'a str,
    /// What things cost.
    pub accounting: &'a dyn Accounting,
}

impl WrittenText<'_> {
    /// Cost of the lines that may be added to the text, in tokens; `None` where the job sets no limit.
    pub fn room(&self) -> Option<u64> {
        let request = self.job.request.as_ref()?;
        let written = self.accounting.text(self.text);
        (request.max_tokens > 0).then(|| request.max_tokens.saturating_sub(written))
    }
}

/// What a summary keeps beside its text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// Facts by name: they become fields of [`Summary::meta`].
    pub facts: BTreeMap<String, RawJson>,
    /// Lines that are added to the end of the text. Lines that do not fit the job's limit are left out.
    pub lines: Vec<String>,
}
