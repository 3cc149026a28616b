//! Data and lines that a planner adds to a summary after the text is written.

use std::collections::BTreeMap;

use memory_model::{Accounting, LogEntry, RawJson, Summary};

use crate::job::Job;

/// A log entry or a summary that a job summarizes.
#[derive(Debug, Clone, Copy)]
pub enum JobSource<'a> {
    /// A message or a note of the log.
    Entry(&'a LogEntry),
    /// An existing summary that the new summary covers.
    Summary(&'a Summary),
}

/// The text that a summarizer wrote for a [`Job`] (one planned summary), and the messages and summaries that it
/// summarizes. Input of [`Planner::details`](crate::Planner::details), before the summary is stored.
#[derive(Debug, Clone, Copy)]
pub struct WrittenText<'a> {
    /// Planned summary for which the text was written.
    pub job: &'a Job,
    /// Messages and summaries that the text summarizes, in order. A range of messages is listed message by message.
    pub sources: &'a [JobSource<'a>],
    /// Text that the summarizer wrote.
    pub text: &'a str,
    /// Counts the tokens of texts and messages.
    pub accounting: &'a dyn Accounting,
}

impl WrittenText<'_> {
    /// Returns the maximum cost of the lines that may be added to the text, in tokens. `None` if the job does not limit
    /// the cost of the summary.
    pub fn room(&self) -> Option<u64> {
        let request = self.job.request.as_ref()?;
        let written = self.accounting.text(self.text);
        (request.max_tokens > 0).then(|| request.max_tokens.saturating_sub(written))
    }
}

/// Data and lines of text that a planner adds to a summary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// Values to add to [`Summary::meta`], by the name of their field.
    pub facts: BTreeMap<String, RawJson>,
    /// Lines to append to the text of the summary. Lines that would exceed the job's `max_tokens` are left out.
    pub lines: Vec<String>,
}
