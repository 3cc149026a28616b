//! The source that a planner reads, and the sink that takes its jobs.

use std::fmt;
use std::sync::Arc;
use std::vec::IntoIter;

use async_trait::async_trait;
use memory_model::{LogEntry, SeqRange, Span, Summary};
use turn_map::{Atom, AtomBuilder, Atoms};

use crate::job::Job;

/// Error of a [`ViewSource`], passed on unchanged. A caller that knows the source's error type can downcast it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Minimum number and cost of the entries that [`ViewSource::newest`] returns from the end of the log.
///
/// The returned entries hold at least `messages` messages (at least one) and cost at least `tokens` tokens. They begin
/// at the beginning of an atom.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tail {
    /// Minimum number of messages. Notes are not counted.
    pub messages: usize,
    /// Minimum cost of the entries, in tokens.
    pub tokens: u64,
}

impl Tail {
    /// Requests at least `messages` messages, at any cost.
    pub fn messages(messages: usize) -> Self {
        Self {
            messages,
            tokens: 0,
        }
    }

    /// Requests messages that cost at least `tokens` tokens, in any number.
    pub fn tokens(tokens: u64) -> Self {
        Self {
            messages: 0,
            tokens,
        }
    }
}

/// Gives a planner read access to one state of a view and to its log.
///
/// Spans and entries are returned in pages. A page begins with the first item of the range and may end before the last.
/// [`SpanReader`], [`EntryReader`] and [`AtomReader`] read the following pages. An empty page means that the range has
/// no further items.
#[async_trait]
pub trait ViewSource: Send + Sync + fmt::Debug {
    /// Returns the view's spans that touch the range, oldest first, at most one page of them. Spans at the edges are
    /// returned whole. The cost of a raw span is the cost of its messages.
    async fn spans(&self, range: SeqRange) -> Result<Vec<Span>, BoxError>;

    /// Returns the log's entries in the range, oldest first, at most one page of them.
    async fn entries(&self, range: SeqRange) -> Result<Vec<Arc<LogEntry>>, BoxError>;

    /// Returns the last entries of the log up to the view's head, oldest first: the entries that `tail` requests, or
    /// the whole log if it is shorter.
    async fn newest(&self, tail: Tail) -> Result<Vec<Arc<LogEntry>>, BoxError>;

    /// Returns all stored summaries that the view shows in the range, oldest first.
    async fn summaries(&self, range: SeqRange) -> Result<Vec<Summary>, BoxError>;
}

/// Receives the jobs of a pass while the pass is being planned.
///
/// A runner may carry out a job while the planner still reads. So push a job as soon as no later page can change it,
/// and do not let later jobs depend on its outcome.
pub trait JobSink: Send {
    /// Accepts the next job of the pass.
    fn push(&mut self, job: Job);
}

impl dyn JobSink + '_ {
    /// Accepts several jobs, in order.
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

/// Reads the spans of a range one by one, and loads further pages as needed.
#[derive(Debug)]
pub struct SpanReader<'v> {
    view: &'v dyn ViewSource,
    rest: Option<SeqRange>,
    page: IntoIter<Span>,
}

impl<'v> SpanReader<'v> {
    /// Creates a reader of the spans that touch `range`. With `None` the reader returns no span.
    pub fn new(view: &'v dyn ViewSource, range: impl Into<Option<SeqRange>>) -> Self {
        Self {
            view,
            rest: range.into(),
            page: IntoIter::default(),
        }
    }

    /// Returns the next span, or `None` after the last one.
    ///
    /// # Errors
    /// The errors of [`ViewSource::spans`].
    pub async fn next(&mut self) -> Result<Option<Span>, BoxError> {
        self.fill().await?;
        Ok(self.page.next())
    }

    /// Returns the span that the next call of [`SpanReader::next`] will return, or `None` after the last one.
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

/// Reads the entries of a range one by one, and loads further pages as needed.
#[derive(Debug)]
pub struct EntryReader<'v> {
    view: &'v dyn ViewSource,
    rest: Option<SeqRange>,
    page: IntoIter<Arc<LogEntry>>,
}

impl<'v> EntryReader<'v> {
    /// Creates a reader of the entries in `range`. With `None` the reader returns no entry.
    pub fn new(view: &'v dyn ViewSource, range: impl Into<Option<SeqRange>>) -> Self {
        Self {
            view,
            rest: range.into(),
            page: IntoIter::default(),
        }
    }

    /// Returns the next entry, or `None` after the last one.
    ///
    /// # Errors
    /// The errors of [`ViewSource::entries`].
    pub async fn next(&mut self) -> Result<Option<Arc<LogEntry>>, BoxError> {
        if self.page.as_slice().is_empty() {
            self.page = self.page().await?.into_iter();
        }
        Ok(self.page.next())
    }

    /// Returns the next page; empty after the last.
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

/// Reads the entries of a range by atoms. An atom is a message with tool calls together with their results, or a single
/// other message or note.
///
/// The range must begin at the beginning of an atom. If the range ends inside an atom, the last atom holds only its
/// entries in the range.
#[derive(Debug)]
pub struct AtomReader<'v> {
    entries: EntryReader<'v>,
    /// `None` once all entries are read.
    builder: Option<AtomBuilder>,
    /// The entries that were read since the last atom of an earlier page.
    read: Vec<Arc<LogEntry>>,
    /// Number of entries of `read` that were returned.
    returned: usize,
    /// Numbers of entries of the complete atoms that were not returned yet.
    lengths: IntoIter<usize>,
}

impl<'v> AtomReader<'v> {
    /// Creates a reader of the atoms in `range`. With `None` the reader returns no atom.
    pub fn new(view: &'v dyn ViewSource, range: impl Into<Option<SeqRange>>) -> Self {
        Self {
            entries: EntryReader::new(view, range),
            builder: Some(AtomBuilder::starting_at(0)),
            read: Vec::new(),
            returned: 0,
            lengths: IntoIter::default(),
        }
    }

    /// Returns the entries of the next atom, or `None` after the last one.
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
