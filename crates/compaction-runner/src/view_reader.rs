//! The view and the log as planners read them, page by page, with or without changes that are not published yet.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use compaction_plan::{BoxError, Job, Label, Overlay, PassInput, Tail, ViewSource};
use memory_model::{LogEntry, Seq, SeqRange, Span, SpanBody, Summary};
use memory_store::{
    LogRead, Order, Page, Snapshot, message_costs, read_shown_summaries, read_spans,
};

use crate::atoms::newest_entries;
use crate::environment::Compaction;
use crate::error::Result;

/// Maximum number of spans in a page.
const SPANS: usize = 256;
/// Maximum length of a range of log entries that is kept in memory for later passes (planning rounds), and maximum
/// number of kept ranges.
const SHORT: u64 = 8;
const SHORT_RANGES: usize = 16;
/// Number of kept costs of raw spans at which they are discarded.
const KEPT_COSTS: usize = 1_024;

/// Reads a state of a view for planners, with changes that are not published yet.
#[derive(Debug)]
pub(crate) struct ViewReader<'a> {
    env: &'a Compaction<'a>,
    pub(crate) snapshot: Snapshot,
    /// Changes of the view that are not published yet.
    overlay: Overlay,
    /// Cost of the view with these changes, in tokens.
    pub(crate) tokens: u64,
    /// Whether the view in the store has other changes since its state was read.
    pub(crate) is_outdated: bool,
    kept: Mutex<Kept>,
}

/// Data that later passes (planning rounds) would read again.
#[derive(Debug, Default)]
struct Kept {
    /// The first page of spans, as stored.
    first: Option<Page<Span>>,
    /// The last entries of the log, for the tail that was requested last.
    newest: Option<(Tail, Vec<Arc<LogEntry>>)>,
    /// Short ranges of entries, such as a request of the user between the summarized ranges of a pass.
    short: BTreeMap<SeqRange, Vec<Arc<LogEntry>>>,
    /// Costs of ranges of messages, in tokens. They never change.
    costs: BTreeMap<SeqRange, u64>,
}

impl<'a> ViewReader<'a> {
    pub(crate) fn new(env: &'a Compaction<'a>, snapshot: Snapshot) -> Self {
        Self {
            env,
            tokens: snapshot.tokens(),
            snapshot,
            overlay: Overlay::default(),
            is_outdated: false,
            kept: Mutex::default(),
        }
    }

    /// Reads the state of the view again, and discards the unpublished changes.
    pub(crate) async fn refresh(&mut self) -> Result<()> {
        let snapshot = self.env.read_snapshot().await?;
        *self = Self::new(self.env, snapshot);
        Ok(())
    }

    /// Replaces the spans of a job by `spans`, as if the job were published.
    pub(crate) fn lay_over(&mut self, job: &Job, spans: Vec<Span>) {
        let after = spans.iter().map(|span| span.tokens).sum();
        self.tokens = self.tokens.saturating_sub(job.source_tokens);
        self.tokens = self.tokens.saturating_add(after);
        self.overlay.replace(job.range, spans);
    }

    /// Returns the input of the planner for one pass (planning round).
    pub(crate) fn input<'p>(&'p self, pass: &'p Label) -> PassInput<'p> {
        PassInput {
            pass,
            head: self.snapshot.head,
            tokens: self.tokens,
            room: self.env.room,
            goal: self.env.goal(),
            accounting: self.env.accounting,
        }
    }

    /// Runs all passes (planning rounds) of the planner over the same view, and returns the planned jobs in the order
    /// of the log. A job that overlaps with a job of an earlier pass is dropped.
    pub(crate) async fn all_jobs(&self) -> Result<Vec<Job>> {
        let mut jobs: Vec<Job> = Vec::new();
        for pass in self.env.planner.passes() {
            let mut more = self.jobs(pass).await?;
            more.retain(|job| {
                let next = jobs.partition_point(|earlier| earlier.range.last < job.range.first);
                let next = jobs.get(next);
                next.is_none_or(|earlier| earlier.range.first > job.range.last)
            });
            jobs.extend(more);
            jobs.sort_by_key(|job| job.range);
        }
        Ok(jobs)
    }

    /// Returns whether the planner plans any job (one summary to write or publish) for the current view, in any of its
    /// passes. A pass is one planning round.
    pub(crate) async fn has_jobs(&self) -> Result<bool> {
        for pass in self.env.planner.passes() {
            if !self.jobs(pass).await?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Runs one pass (planning round) of the planner, and returns the planned jobs (changes of the view).
    async fn jobs(&self, pass: &Label) -> Result<Vec<Job>> {
        let mut jobs = Vec::new();
        let planner = self.env.planner;
        planner.plan(self.input(pass), self, &mut jobs).await?;
        Ok(jobs)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the costs of raw spans (messages shown unchanged). Reads unknown costs from the store.
    async fn fill_costs(&self, spans: &mut [Span]) -> Result<(), BoxError> {
        let head = self.snapshot.head;
        let raw = spans.iter_mut().filter(|span| span.body == SpanBody::Raw);
        let raw = raw.filter_map(|span| Some((span.range.up_to(head)?, span)));
        let raw: Vec<(SeqRange, &mut Span)> = raw.collect();
        let missing: Vec<SeqRange> = {
            let costs = &mut self.kept().costs;
            if costs.len() > KEPT_COSTS {
                costs.clear();
            }
            let ranges = raw.iter().map(|(range, _)| *range);
            ranges.filter(|range| !costs.contains_key(range)).collect()
        };
        let read = message_costs(self.env.store, self.env.conversation, &missing).await?;
        let costs = &mut self.kept().costs;
        costs.extend(missing.into_iter().zip(read));
        for (range, span) in raw {
            span.tokens = costs.get(&range).copied().unwrap_or(span.tokens);
        }
        Ok(())
    }
}

#[async_trait]
impl ViewSource for ViewReader<'_> {
    /// Returns the spans with the unpublished changes.
    async fn spans(&self, range: SeqRange) -> Result<Vec<Span>, BoxError> {
        let is_first = range.first == Seq::FIRST;
        let first = self.kept().first.take().filter(|_| is_first);
        let page = match first {
            Some(page) => page,
            None => {
                let order = Order::OldestFirst;
                let page = self.env.store.spans(&self.snapshot, range, order, SPANS);
                page.await?
            }
        };
        let mut spans = self.overlay.apply(&page.items);
        self.fill_costs(&mut spans).await?;
        if is_first {
            self.kept().first = Some(page);
        }
        Ok(spans)
    }

    async fn entries(&self, range: SeqRange) -> Result<Vec<Arc<LogEntry>>, BoxError> {
        if let Some(entries) = self.kept().short.get(&range) {
            return Ok(entries.clone());
        }
        let read = LogRead::new(range);
        let page = self.env.store.read(self.env.conversation, &read).await?;
        let entries: Vec<Arc<LogEntry>> = page.items.into_iter().map(Arc::new).collect();
        let short = &mut self.kept().short;
        if range.len() <= SHORT && short.len() < SHORT_RANGES {
            short.insert(range, entries.clone());
        }
        Ok(entries)
    }

    async fn newest(&self, tail: Tail) -> Result<Vec<Arc<LogEntry>>, BoxError> {
        if let Some((kept, newest)) = &self.kept().newest
            && *kept == tail
        {
            return Ok(newest.clone());
        }
        let (store, head) = (self.env.store, self.snapshot.head);
        let newest = newest_entries(store, self.env.conversation, head, tail).await?;
        let newest: Vec<Arc<LogEntry>> = newest.into_iter().map(Arc::new).collect();
        self.kept().newest = Some((tail, newest.clone()));
        Ok(newest)
    }

    async fn summaries(&self, range: SeqRange) -> Result<Vec<Summary>, BoxError> {
        let spans = read_spans(self.env.store, &self.snapshot, range).await?;
        let spans = self.overlay.apply(&spans);
        let found = read_shown_summaries(self.env.store, self.env.conversation, &spans).await?;
        Ok(found.into_iter().flatten().collect())
    }
}
