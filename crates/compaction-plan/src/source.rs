//! The view that a planner reads, and the sink for the changes of the view (jobs) that it plans.

use std::fmt;
use std::sync::Arc;
use std::vec::IntoIter;

use async_trait::async_trait;
use memory_model::{LogEntry, SeqRange, Span, Summary};
use turn_map::{Atom, AtomBuilder, Atoms};

use crate::job::Job;

/// Error of a [`ViewSource`]. Callers that know the concrete error type can downcast it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Minimum size of the last part of the log that [`ViewSource::newest`] returns.
///
/// The returned entries contain at least `messages` messages (at least one), cost at least `tokens` tokens, and begin
/// with a whole atom. An atom is a message with tool calls together with their results, or a single other message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tail {
    /// Minimum number of messages. Notes (log entries that are never sent to a model) do not count.
    pub messages: usize,
    /// Minimum cost of the entries, in tokens.
    pub tokens: u64,
}

impl Tail {
    /// Requests at least `messages` messages, with any cost.
    pub fn messages(messages: usize) -> Self {
        Self {
            messages,
            tokens: 0,
        }
    }

    /// Requests messages that together cost at least `tokens` tokens.
    pub fn tokens(tokens: u64) -> Self {
        Self {
            messages: 0,
            tokens,
        }
    }
}

/// Read access of a planner to one state of a view and to its log.
///
/// Spans and entries are returned in pages. A page begins with the first item of the requested range, and may end
/// before the last one. [`SpanReader`], [`EntryReader`] and [`AtomReader`] read all pages. An empty page means that the
/// range has no further items.
#[async_trait]
pub trait ViewSource: Send + Sync + fmt::Debug {
    /// Returns the spans of the view that overlap with the range, oldest first, at most one page. Spans at the edges
    /// are returned whole. The cost of a raw span (messages shown unchanged) is the cost of its messages.
    async fn spans(&self, range: SeqRange) -> Result<Vec<Span>, BoxError>;

    /// Returns the log entries in the range, oldest first, at most one page.
    async fn entries(&self, range: SeqRange) -> Result<Vec<Arc<LogEntry>>, BoxError>;

    /// Returns the last entries of the log up to the view's head, oldest first. `tail` sets the minimum size. A shorter
    /// log is returned as a whole.
    async fn newest(&self, tail: Tail) -> Result<Vec<Arc<LogEntry>>, BoxError>;

    /// Returns all stored summaries that the view shows over the range, oldest first.
    async fn summaries(&self, range: SeqRange) -> Result<Vec<Summary>, BoxError>;
}

/// Receives the jobs (changes of the view) of a planner while it is planning.
///
/// A runner may carry out a job while the planner still reads. So push a job as soon as no later page can change it,
/// and do not let later jobs depend on its outcome.
pub trait JobSink: Send {
    /// Accepts the next planned job (change of the view).
    fn push(&mut self, job: Job);
}

impl dyn JobSink + '_ {
    /// Accepts several planned jobs (changes of the view), in order.
    pub fn extend(&mut self, jobs: impl IntoIterator<Item = Job>) {
        jobs.into_iter().for_each(|job| self.push(job));
    }
}

impl JobSink for Vec<Job> {
    fn push(&mut self, job: Job) {
        Vec::push(self, job);
    }
}

impl<F: FnMut(Job) + Send> JobSink for F {
    fn push(&mut self, job: Job) {
        self(job);
    }
}

/// Reads the spans over a range one by one. Loads further pages when needed.
#[derive(Debug)]
pub struct SpanReader<'v> {
    view: &'v dyn ViewSource,
    rest: Option<SeqRange>,
    page: IntoIter<Span>,
}

impl<'v> SpanReader<'v> {
    /// Creates a reader of the spans that overlap with `range`. If `range` is `None`, the reader returns no span.
    pub fn new(view: &'v dyn ViewSource, range: impl Into<Option<SeqRange>>) -> Self {
        Self {
            view,
            rest: range.into(),
            page: IntoIter::default(),
        }
    }

    /// Returns the next span. `None` after the last span.
    ///
    /// # Errors
    /// The errors of [`ViewSource::spans`].
    pub async fn next(&mut self) -> Result<Option<Span>, BoxError> {
        self.fill().await?;
        Ok(self.page.next())
    }

    /// Returns the span that the next call of [`SpanReader::next`] returns. `None` after the last span.
    ///
    /// # Errors
    /// The errors of [`ViewSource::spans`].
    pub async fn peek(&mut self) -> Result<Option<&Span>, BoxError> {
        self.fill().await?;
        Ok(self.page.as_slice().first())
    }

    async fn fill(&mut self) -> Result<(), BoxError> {
        if self.page.as_slice().is_empty()
            && let Some(range) = self.rest.take()
        {
            let page = self.view.spans(range).await?;
            let last = page.last().and_then(|span| span.range.last);
            self.rest = last.and_then(|last| SeqRange::new(last.next(), range.last));
            self.page = page.into_iter();
        }
        Ok(())
    }
}

/// Reads the entries in a range one by one. Loads further pages when needed.
#[derive(Debug)]
pub struct EntryReader<'v> {
    view: &'v dyn ViewSource,
    rest: Option<SeqRange>,
    page: IntoIter<Arc<LogEntry>>,
}

impl<'v> EntryReader<'v> {
    /// Creates a reader of the entries in `range`. If `range` is `None`, the reader returns no entry.
    pub fn new(view: &'v dyn ViewSource, range: impl Into<Option<SeqRange>>) -> Self {
        Self {
            view,
            rest: range.into(),
            page: IntoIter::default(),
        }
    }

    /// Returns the next entry. `None` after the last entry.
    ///
    /// # Errors
    /// The errors of [`ViewSource::entries`].
    pub async fn next(&mut self) -> Result<Option<Arc<LogEntry>>, BoxError> {
        if self.page.as_slice().is_empty() {
            self.page = self.page().await?.into_iter();
        }
        Ok(self.page.next())
    }

    /// Returns the next page. Empty after the last page.
    async fn page(&mut self) -> Result<Vec<Arc<LogEntry>>, BoxError> {
        let Some(range) = self.rest.take() else {
            return Ok(Vec::new());
        };
        let page = self.view.entries(range).await?;
        let last = page.last().map(|entry| entry.seq);
        self.rest = last.and_then(|last| SeqRange::new(last.next(), range.last));
        Ok(page)
    }
}

/// Reads the entries in a range as atoms. An atom is a message with tool calls together with their results, or a single
/// other message or note.
///
/// The range must begin with the first entry of an atom. If the range ends inside an atom, the last atom has only its
/// entries in the range.
#[derive(Debug)]
pub struct AtomReader<'v> {
    entries: EntryReader<'v>,
    /// Groups the read entries into atoms. `None` after all entries were read.
    builder: Option<AtomBuilder>,
    /// Entries of the current page and of the unfinished atom before it.
    read: Vec<Arc<LogEntry>>,
    /// Number of entries of `read` that were returned.
    returned: usize,
    /// Numbers of entries of the finished atoms that were not returned yet.
    lengths: IntoIter<usize>,
}

impl<'v> AtomReader<'v> {
    /// Creates a reader of the atoms in `range`. If `range` is `None`, the reader returns no atom.
    pub fn new(view: &'v dyn ViewSource, range: impl Into<Option<SeqRange>>) -> Self {
        Self {
            entries: EntryReader::new(view, range),
            builder: Some(AtomBuilder::starting_at(0)),
            read: Vec::new(),
            returned: 0,
            lengths: IntoIter::default(),
        }
    }

    /// Returns the entries of the next atom. `None` after the last atom.
    ///
    /// # Errors
    /// The errors of [`ViewSource::entries`].
    pub async fn next(&mut self) -> Result<Option<&[Arc<LogEntry>]>, BoxError> {
        while self.lengths.as_slice().is_empty()
            && let Some(builder) = &mut self.builder
        {
            let length = |atom: &Atom| atom.range().len();
            let page = self.entries.page().await?;
            page.iter().for_each(|entry| builder.push(&**entry));
            self.read.drain(..std::mem::take(&mut self.returned));
            let lengths: Vec<usize> = match page.is_empty() {
                true => {
                    let builder = self.builder.take();
                    let atoms = builder.map(AtomBuilder::finish);
                    atoms.iter().flat_map(Atoms::iter).map(length).collect()
                }
                false => builder.drain_settled().map(|atom| length(&atom)).collect(),
            };
            self.read.extend(page);
            self.lengths = lengths.into_iter();
        }
        let first = self.returned;
        self.returned += self.lengths.next().unwrap_or_default();
        let atom = self.read.get(first..self.returned);
        Ok(atom.filter(|atom| !atom.is_empty()))
    }
}
