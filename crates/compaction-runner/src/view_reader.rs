//! Feeds a planner: pages of a view as it is, or as it will be, and of the log.

use std::collections::BTreeMap;

use compaction_plan::{Job, Label, Overlay, Pass, PassInput, ReadRequest, Tail};
use memory_model::{LogEntry, Seq, SeqRange, Span, SpanBody, Summary};
use memory_store::{
    LogRead, Order, Page, Snapshot, message_costs, read_shown_summaries, read_spans,
};

use crate::atoms::newest_entries;
use crate::environment::Compaction;
use crate::error::Result;

/// Maximum number of spans that a planner is fed at once.
const SPANS: usize = 256;
/// Maximum number of entries that are kept for jobs to come. A longer job is read again.
const KEPT_ENTRIES: usize = 8_192;

/// Length of a range whose entries are kept for the passes to come, and how many of them there are.
const SHORT: u64 = 8;
const SHORT_RANGES: usize = 16;
/// Number of costs of raw spans from which on they are forgotten.
const KEPT_COSTS: usize = 1_024;

/// Reads a snapshot of a view for planners, with replacements that are not published yet.
#[derive(Debug)]
pub(crate) struct ViewReader<'a> {
    env: &'a Compaction<'a>,
    pub(crate) snapshot: Snapshot,
    /// What the view will hold once jobs are published that are done already.
    overlay: Overlay,
    /// Cost of the view with the overlay, in tokens.
    pub(crate) tokens: u64,
    /// Whether the view has changed since the snapshot by other means than the overlay.
    pub(crate) is_outdated: bool,
    /// The first page of spans, as stored.
    first: Option<Page<Span>>,
    /// The newest entries up to the snapshot's head, for the tail that was asked for last.
    newest: Option<(Tail, Vec<LogEntry>)>,
    /// Short ranges of entries that were read, such as the user's request before which and behind
    /// which a pass makes leaves: the passes of a run ask for them again and again.
    short: BTreeMap<SeqRange, Vec<LogEntry>>,
    /// Costs of raw spans that were read, in tokens: those of a log's ranges never change.
    costs: BTreeMap<SeqRange, u64>,
}

/// What a pass asked for.
#[derive(Debug)]
pub(crate) enum Fed {
    Spans(Vec<Span>),
    Entries(Vec<LogEntry>),
    Summaries(Vec<Summary>),
}

impl<'a> ViewReader<'a> {
    pub(crate) fn new(env: &'a Compaction<'a>, snapshot: Snapshot) -> Self {
        Self {
            env,
            tokens: snapshot.tokens(),
            snapshot,
            overlay: Overlay::default(),
            is_outdated: false,
            first: None,
            newest: None,
            short: BTreeMap::new(),
            costs: BTreeMap::new(),
        }
    }

    /// Takes a new snapshot, with nothing laid over it.
    pub(crate) async fn refresh(&mut self) -> Result<()> {
        let snapshot = self.env.read_snapshot().await?;
        *self = Self::new(self.env, snapshot);
        Ok(())
    }

    /// Shows the spans in place of a job's, as if it were published.
    pub(crate) fn lay_over(&mut self, job: &Job, spans: Vec<Span>) {
        let after = spans.iter().map(|span| span.tokens).sum();
        self.tokens = self.tokens.saturating_sub(job.source_tokens);
        self.tokens = self.tokens.saturating_add(after);
        self.overlay.replace(job.range, spans);
    }

    /// Begins a pass of the planner.
    pub(crate) async fn begin(&mut self, pass: &Label) -> Result<Box<dyn Pass>> {
        let env = self.env;
        let (head, tail) = (self.snapshot.head, env.planner.tail(pass));
        if tail != Tail::NONE && !matches!(&self.newest, Some((read, _)) if *read == tail) {
            let newest = newest_entries(env.store, env.conversation, head, tail).await?;
            self.newest = Some((tail, newest));
        }
        let newest = self.newest.as_ref().filter(|(read, _)| *read == tail);
        Ok(env.planner.begin(PassInput {
            pass,
            head,
            tokens: self.tokens,
            newest: newest.map_or(&[], |(_, entries)| entries),
            room: env.room,
            goal: env.goal(),
            accounting: env.accounting,
        }))
    }

    /// Reads the next page of what a pass wants; `None` when it wants nothing or there is nothing.
    pub(crate) async fn next(&mut self, want: Option<ReadRequest>) -> Result<Option<Fed>> {
        Ok(match want {
            Some(ReadRequest::Spans(range)) => {
                let spans = self.spans(range).await?;
                (!spans.is_empty()).then_some(Fed::Spans(spans))
            }
            Some(ReadRequest::Entries(range)) => {
                let entries = self.entries(range).await?;
                (!entries.is_empty()).then_some(Fed::Entries(entries))
            }
            Some(ReadRequest::Summaries(range)) => {
                Some(Fed::Summaries(self.summaries(range).await?))
            }
            _ => None,
        })
    }

    /// Feeds all passes of the planner, and returns their jobs in the order of the log. Each pass plans over the
    /// same view, so a job that touches one of an earlier pass waits until that one is done.
    pub(crate) async fn all_jobs(&mut self) -> Result<Vec<Job>> {
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

    /// Whether any pass of the planner has a job.
    pub(crate) async fn has_jobs(&mut self) -> Result<bool> {
        for pass in self.env.planner.passes() {
            if !self.jobs(pass).await?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Feeds a whole pass, and returns its jobs.
    async fn jobs(&mut self, pass: &Label) -> Result<Vec<Job>> {
        let accounting = self.env.accounting;
        let mut pass = self.begin(pass).await?;
        let mut jobs = Vec::new();
        let mut want = pass.next_read();
        while let Some(page) = self.next(want).await? {
            jobs.extend(match &page {
                Fed::Spans(spans) => pass.feed_spans(spans, accounting),
                Fed::Entries(entries) => pass.feed_entries(entries, accounting),
                Fed::Summaries(summaries) => pass.feed_summaries(summaries, accounting),
            });
            want = pass.next_read();
        }
        jobs.extend(pass.finish(accounting));
        Ok(jobs)
    }

    /// A page of entries from the beginning of a range on.
    async fn entries(&mut self, range: SeqRange) -> Result<Vec<LogEntry>> {
        if let Some(entries) = self.short.get(&range) {
            return Ok(entries.clone());
        }
        let read = LogRead::new(range);
        let page = self.env.store.read(self.env.conversation, &read).await?;
        if range.len() <= SHORT && self.short.len() < SHORT_RANGES {
            self.short.insert(range, page.items.clone());
        }
        Ok(page.items)
    }

    /// The stored summaries that the view shows in a range, with the overlay.
    async fn summaries(&self, range: SeqRange) -> Result<Vec<Summary>> {
        let spans = read_spans(self.env.store, &self.snapshot, range).await?;
        let spans = self.overlay.apply(&spans);
        let found = read_shown_summaries(self.env.store, self.env.conversation, &spans).await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Sets the cost of raw spans, and asks the store for those that were not read before.
    async fn fill_costs(&mut self, spans: &mut [Span]) -> Result<()> {
        let head = self.snapshot.head;
        if self.costs.len() > KEPT_COSTS {
            self.costs.clear();
        }
        let raw = spans.iter_mut().filter(|span| span.body == SpanBody::Raw);
        let raw = raw.filter_map(|span| Some((span.range.up_to(head)?, span)));
        let raw: Vec<(SeqRange, &mut Span)> = raw.collect();
        let missing: Vec<SeqRange> = raw
            .iter()
            .map(|(range, _)| *range)
            .filter(|range| !self.costs.contains_key(range))
            .collect();
        let read = message_costs(self.env.store, self.env.conversation, &missing).await?;
        self.costs.extend(missing.into_iter().zip(read));
        for (range, span) in raw {
            span.tokens = self.costs.get(&range).copied().unwrap_or(span.tokens);
        }
        Ok(())
    }

    /// A page of spans from the beginning of a range on, with the overlay, raw ones with their cost.
    async fn spans(&mut self, range: SeqRange) -> Result<Vec<Span>> {
        let first = range.first == Seq::FIRST;
        let known = self.first.take().filter(|_| first);
        let page = match known {
            Some(page) => page,
            None => {
                let order = Order::OldestFirst;
                let page = self.env.store.spans(&self.snapshot, range, order, SPANS);
                page.await?
            }
        };
        let mut spans = self.overlay.apply(&page.items);
        self.fill_costs(&mut spans).await?;
        if first {
            self.first = Some(page);
        }
        Ok(spans)
    }
}

/// Drops the entries that no job to come needs: those up to the last finished job, and all when
/// there are too many.
pub(crate) fn drop_entries(entries: &mut Vec<LogEntry>, done: Option<Seq>) {
    if let Some(done) = done {
        entries.drain(..entries.partition_point(|entry| entry.seq <= done));
    }
    if entries.len() > KEPT_ENTRIES {
        entries.clear();
    }
}
