//! Facts and lines that a planner adds to a summary after its text is written.

use std::collections::BTreeMap;

use memory_model::{Accounting, LogEntry, RawJson, Summary};

use crate::job::Job;

/// A stored message, note or summary that a job summarizes.
#[derive(Debug, Clone, Copy)]
pub enum JobSource<'a> {
    /// A message or a note of the log.
    Entry(&'a LogEntry),
    /// A summary that is a source of the new summary.
    Summary(&'a Summary),
}

/// The text that a summarizer wrote for a job, with the job's sources, before the summary is stored.
#[derive(Debug, Clone, Copy)]
pub struct WrittenText<'a> {
    /// The job that asked for the summary.
    pub job: &'a Job,
    /// Sources of the job, in order. A range of messages is listed entry by entry.
    pub sources: &'a [JobSource<'a>],
    /// Text that the summarizer wrote.
    pub text: &'a str,
    /// Counts the tokens of texts and messages.
    pub accounting: &'a dyn Accounting,
}

impl WrittenText<'_> {
    /// Returns the maximum cost of the lines that may be added to the text, in tokens; `None` if the job sets no
    /// maximum cost of the summary.
    pub fn room(&self) -> Option<u64> {
        let request = self.job.request.as_ref()?;
        let written = self.accounting.text(self.text);
        (request.max_tokens > 0).then(|| request.max_tokens.saturating_sub(written))
    }
}

/// Data and lines of text that a planner adds to a summary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// Data for [`Summary::meta`], as values by the name of their field.
    pub facts: BTreeMap<String, RawJson>,
    /// Lines to add to the end of the summary's text. Lines that would exceed the job's `max_tokens` are left out.
    pub lines: Vec<String>,
}
