//! The source that a planner reads, and the sink that takes its jobs.

use std::fmt;
use std::sync::Arc;
use std::vec::IntoIter;

use async_trait::async_trait;
use memory_model::{LogEntry, SeqRange, Span, Summary};
use turn_map::{Atom, AtomBuilder, Atoms};

use crate::job::Job;

/// Unchanged error of a [`ViewSource`]. A caller that knows the source's error type downcasts it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Minimum number and cost of the entries that [`ViewSource::newest`] returns from the end of the log.
///
/// The entries reach back until they hold at least `messages` messages (at least one) and cost at least `tokens`
/// tokens, and then to the beginning of an atom.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tail {
    /// Minimum number of messages; notes do not count.
    pub messages: usize,
    /// Minimum cost of the messages, in tokens.
    pub tokens: u64,
}

impl Tail {
    /// Returns a tail of at least `messages` messages.
    pub fn messages(messages: usize) -> Self {
        Self {
            messages,
            tokens: 0,
        }
    }

    /// Returns a tail of at least `tokens` tokens.
    pub fn tokens(tokens: u64) -> Self {
        Self {
            messages: 0,
            tokens,
        }
    }
}

/// Reads one state of a view, and its log, for a planner.
///
/// Spans and entries are returned in pages. A page begins with the first item of the range and may end before the last.
/// [`SpanReader`], [`EntryReader`] and [`AtomReader`] read the following pages. An empty page means that there is no
/// more.
#[async_trait]
pub trait ViewSource: Send + Sync + fmt::Debug {
    /// Returns a page of the view's spans that touch the range, whole and oldest first. The cost of a raw span is the
    /// cost of its messages.
    async fn spans(&self, range: SeqRange) -> Result<Vec<Span>, BoxError>;

    /// Returns a page of the log's entries in the range, oldest first.
    async fn entries(&self, range: SeqRange) -> Result<Vec<Arc<LogEntry>>, BoxError>;

    /// Returns entries from the end of the log up to the view's head, oldest first: as many as `tail` asks for, or all
    /// if there are fewer.
    async fn newest(&self, tail: Tail) -> Result<Vec<Arc<LogEntry>>, BoxError>;

    /// Returns all stored summaries that the view shows in the range, oldest first.
    async fn summaries(&self, range: SeqRange) -> Result<Vec<Summary>, BoxError>;
}

/// Takes the jobs of a pass while it is planned.
///
/// A runner may carry out a job while the planner still reads. So push a job as soon as no later page can change it,
/// and plan later jobs independently of its outcome.
pub trait JobSink: Send {
    /// Takes the next job.
    fn push(&mut self, job: Job);
}

impl dyn JobSink + '_ {
    /// Takes several jobs in order.
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

/// Reads the spans of a range one by one, page after page.
#[derive(Debug)]
pub struct SpanReader<'v> {
    view: &'v dyn ViewSource,
    rest: Option<SeqRange>,
    page: IntoIter<Span>,
}

impl<'v> SpanReader<'v> {
    /// Creates a reader of the spans that touch a range; it is empty without a range.
    pub fn new(view: &'v dyn ViewSource, range: impl Into<Option<SeqRange>>) -> Self {
        Self {
            view,
            rest: range.into(),
            page: IntoIter::default(),
        }
    }

    /// Returns the next span; `None` after the last.
    ///
    /// # Errors
    /// As [`ViewSource::spans`].
    pub async fn next(&mut self) -> Result<Option<Span>, BoxError> {
        self.fill().await?;
        Ok(self.page.next())
    }

    /// Returns the span that [`SpanReader::next`] will return.
    ///
    /// # Errors
    /// As [`ViewSource::spans`].
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

/// Reads the entries of a range one by one, page after page.
#[derive(Debug)]
pub struct EntryReader<'v> {
    view: &'v dyn ViewSource,
    rest: Option<SeqRange>,
    page: IntoIter<Arc<LogEntry>>,
}

impl<'v> EntryReader<'v> {
    /// Creates a reader of the entries in a range; it is empty without a range.
    pub fn new(view: &'v dyn ViewSource, range: impl Into<Option<SeqRange>>) -> Self {
        Self {
            view,
            rest: range.into(),
            page: IntoIter::default(),
        }
    }

    /// Returns the next entry; `None` after the last.
    ///
    /// # Errors
    /// As [`ViewSource::entries`].
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

/// Reads the entries of a range atom by atom: calls with their results, or a single message or note.
///
/// The range begins at an atom. An atom at its end is returned as far as it was read.
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
    /// Creates a reader of the atoms in a range; it is empty without a range.
    pub fn new(view: &'v dyn ViewSource, range: impl Into<Option<SeqRange>>) -> Self {
        Self {
            entries: EntryReader::new(view, range),
            builder: Some(AtomBuilder::starting_at(0)),
            read: Vec::new(),
            returned: 0,
            lengths: IntoIter::default(),
        }
    }

    /// Returns the entries of the next atom; `None` after the last.
    ///
    /// # Errors
    /// As [`ViewSource::entries`].
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
