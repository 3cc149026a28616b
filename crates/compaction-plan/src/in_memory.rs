//! A view in memory, for tests and examples of planners.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use memory_model::{Accounting, EntryKind, LogEntry, Seq, SeqRange, Span, SpanBody, Summary, View};
use turn_map::Atoms;

use crate::job::Job;
use crate::label::Label;
use crate::planner::{Goal, PassInput, Planner};
use crate::source::{BoxError, Tail, ViewSource};

/// Default page size of [`InMemoryView::with_page_size`].
const PAGE: usize = 100;

/// A view over a log in memory, as input of planners in tests and examples.
#[derive(Debug, Clone)]
pub struct InMemoryView {
    entries: Vec<Arc<LogEntry>>,
    atoms: Atoms,
    spans: Vec<Span>,
    summaries: Vec<Summary>,
    page_size: usize,
}

impl InMemoryView {
    /// Creates a view that shows all entries of a log unchanged.
    pub fn new(log: Vec<LogEntry>) -> Self {
        let view = Self {
            atoms: turn_map::atoms(&log),
            entries: log.into_iter().map(Arc::new).collect(),
            spans: Vec::new(),
            summaries: Vec::new(),
            page_size: PAGE,
        };
        view.with_view(&View::new())
    }

    /// Replaces the spans by the spans of `view`. Counts the cost of the spans that show messages unchanged.
    pub fn with_view(mut self, view: &View) -> Self {
        self.spans = view.spans().to_vec();
        let (entries, head) = (&self.entries, self.head());
        for span in &mut self.spans {
            if span.body == SpanBody::Raw {
                let range = span.range.up_to(head);
                let messages = range.map_or(&[][..], |range| slice(entries, range));
                span.tokens = messages.iter().map(|entry| entry.tokens).sum();
            }
        }
        self
    }

    /// Sets the stored summaries that planners can read, in the order of the log.
    pub fn with_summaries(mut self, summaries: Vec<Summary>) -> Self {
        self.summaries = summaries;
        self
    }

    /// Sets the maximum number of spans or entries in a page, at least 1. Default 100.
    pub fn with_page_size(mut self, items: usize) -> Self {
        self.page_size = items.max(1);
        self
    }

    /// Returns the position of the last entry of the log. [`Seq::NONE`] if the log is empty.
    pub fn head(&self) -> Seq {
        self.entries.last().map_or(Seq::NONE, |entry| entry.seq)
    }

    /// Returns the cost of the view (the compacted log), in tokens.
    pub fn tokens(&self) -> u64 {
        self.spans.iter().map(|span| span.tokens).sum()
    }

    /// Returns the input of a planner for one pass (planning round) over this view. It has the goal [`Goal::Policy`]
    /// and no [`Room`](crate::Room).
    pub fn input<'a>(&self, pass: &'a Label, accounting: &'a dyn Accounting) -> PassInput<'a> {
        PassInput {
            pass,
            head: self.head(),
            tokens: self.tokens(),
            room: None,
            goal: Goal::Policy,
            accounting,
        }
    }

    /// Runs one pass (planning round) of a planner over this view, and returns the planned [`Job`]s: changes of the
    /// view (the compacted log), such as summaries to write. Needs no async runtime.
    ///
    /// # Errors
    /// The error of the planner. Also an error if the planner awaits anything other than this view.
    pub fn plan(&self, planner: &dyn Planner, input: PassInput<'_>) -> Result<Vec<Job>, BoxError> {
        let mut jobs = Vec::new();
        let planned = pin!(planner.plan(input, self, &mut jobs))
            .poll(&mut Context::from_waker(Waker::noop()));
        match planned {
            Poll::Ready(done) => done.map(|()| jobs),
            Poll::Pending => Err("the planner waits for something other than its source".into()),
        }
    }
}

#[async_trait]
impl ViewSource for InMemoryView {
    async fn spans(&self, range: SeqRange) -> Result<Vec<Span>, BoxError> {
        let ends_before = |span: &Span| span.range.last.is_some_and(|last| last < range.first);
        let from = self.spans.partition_point(ends_before);
        let spans = self.spans.iter().skip(from);
        let spans = spans.take_while(|span| span.range.first <= range.last);
        Ok(spans.take(self.page_size).cloned().collect())
    }

    async fn entries(&self, range: SeqRange) -> Result<Vec<Arc<LogEntry>>, BoxError> {
        let entries = slice(&self.entries, range).iter();
        Ok(entries.take(self.page_size).cloned().collect())
    }

    async fn newest(&self, tail: Tail) -> Result<Vec<Arc<LogEntry>>, BoxError> {
        let (mut from, mut messages, mut tokens) = (self.entries.len(), 0, 0);
        for entry in self.entries.iter().rev() {
            if messages >= tail.messages.max(1) && tokens >= tail.tokens {
                break;
            }
            from -= 1;
            messages += usize::from(entry.kind == EntryKind::Message);
            tokens += entry.tokens;
        }
        let cut = self.atoms.cut_before(from).min(self.atoms.settled_end());
        Ok(self.entries.iter().skip(cut.position()).cloned().collect())
    }

    async fn summaries(&self, range: SeqRange) -> Result<Vec<Summary>, BoxError> {
        let is_shown = |summary: &&Summary| {
            let shows = |span: &Span| {
                span.body.summary() == Some(&summary.id)
                    && span
                        .closed_range()
                        .is_some_and(|s| s.intersect(&range).is_some())
            };
            self.spans.iter().any(shows)
        };
        Ok(self.summaries.iter().filter(is_shown).cloned().collect())
    }
}

/// Returns the entries in a range.
fn slice(entries: &[Arc<LogEntry>], range: SeqRange) -> &[Arc<LogEntry>] {
    let from = entries.partition_point(|entry| entry.seq < range.first);
    let to = entries.partition_point(|entry| entry.seq <= range.last);
    entries.get(from..to).unwrap_or_default()
}
