//! Feeding a planner: pages of a view as it is, or as it will be, and of the log.

use compaction_plan::{Job, Label, Overlay, Pass, PassInput, Want};
use memory_model::{LogEntry, Seq, SeqRange, Span};
use memory_store::{LogRead, Order, Page, Snapshot, fill_raw_tokens};

use crate::error::Result;
use crate::run::{Compaction, Stage};
use crate::window::newest_entries;

/// Maximum number of spans that a planner is fed at once.
const SPANS: usize = 256;
/// Maximum number of entries that are kept for jobs to come. A longer job is read again.
const KEPT_ENTRIES: usize = 8_192;

/// Reads a snapshot of a view for planners, with replacements that are not published yet.
#[derive(Debug)]
pub(crate) struct ViewReader<'a> {
    compaction: &'a Compaction<'a>,
    pub(crate) snapshot: Snapshot,
    /// What the view will hold once jobs are published that are done already.
    overlay: Overlay,
    /// Cost of the view with the overlay, in tokens.
    pub(crate) tokens: u64,
    /// Whether the view has changed since the snapshot by other means than the overlay.
    pub(crate) is_outdated: bool,
    /// The first page of spans, as stored.
    first: Option<Page<Span>>,
}

/// What a pass asked for.
#[derive(Debug)]
pub(crate) enum Fed {
    Spans(Vec<Span>),
    Entries(Vec<LogEntry>),
}

impl<'a> ViewReader<'a> {
    pub(crate) fn new(compaction: &'a Compaction<'a>, snapshot: Snapshot) -> Self {
        Self {
            compaction,
            tokens: snapshot.tokens(),
            snapshot,
            overlay: Overlay::default(),
            is_outdated: false,
            first: None,
        }
    }

    /// Takes a new snapshot, with nothing laid over it.
    pub(crate) async fn refresh(&mut self) -> Result<()> {
        let snapshot = self.compaction.snapshot().await?;
        *self = Self::new(self.compaction, snapshot);
        Ok(())
    }

    /// Shows the spans in place of a job's, as if it were published. Doing it again does nothing.
    pub(crate) fn lay_over(&mut self, job: &Job, spans: Vec<Span>) {
        if self.overlay.holds(job.range, &spans) {
            return;
        }
        let after = spans.iter().map(|span| span.tokens).sum();
        self.tokens = self.tokens.saturating_sub(job.source_tokens);
        self.tokens = self.tokens.saturating_add(after);
        self.overlay.replace(job.range, spans);
    }

    /// Begins a pass of the planner.
    pub(crate) async fn begin(&self, pass: &Label) -> Result<Box<dyn Pass>> {
        let Compaction {
            store,
            conversation,
            planner,
            ..
        } = *self.compaction;
        let head = self.snapshot.head;
        let newest = newest_entries(store, conversation, head, planner.tail(pass)).await?;
        Ok(planner.begin(PassInput {
            pass,
            head,
            tokens: self.tokens,
            newest: &newest,
            room: self.compaction.room,
            goal: self.compaction.goal(),
            accounting: self.compaction.accounting,
        }))
    }

    /// Reads the next page of what a pass wants; `None` when it wants nothing or there is nothing.
    pub(crate) async fn next(&mut self, want: Option<Want>) -> Result<Option<Fed>> {
        Ok(match want {
            Some(Want::Spans(range)) => {
                let spans = self.spans(range).await?;
                (!spans.is_empty()).then_some(Fed::Spans(spans))
            }
            Some(Want::Entries(range)) => {
                let entries = self.compaction.page(range).await?;
                (!entries.is_empty()).then_some(Fed::Entries(entries))
            }
            _ => None,
        })
    }

    /// Feeds a whole pass, and returns its jobs.
    pub(crate) async fn jobs(&mut self, pass: &Label) -> Result<Vec<Job>> {
        let accounting = self.compaction.accounting;
        let mut pass = self.begin(pass).await?;
        let mut jobs = Vec::new();
        let mut want = pass.wants();
        while let Some(page) = self.next(want).await? {
            jobs.extend(match &page {
                Fed::Spans(spans) => pass.feed_spans(spans, accounting),
                Fed::Entries(entries) => pass.feed(entries, accounting),
            });
            want = pass.wants();
        }
        jobs.extend(pass.finish(accounting));
        Ok(jobs)
    }

    /// A page of spans from the beginning of a range on, with the overlay, raw ones with their cost.
    async fn spans(&mut self, range: SeqRange) -> Result<Vec<Span>> {
        let first = range.first == Seq::FIRST;
        let known = self.first.take().filter(|_| first);
        let page = match known {
            Some(page) => page,
            None => self.compaction.span_page(&self.snapshot, range).await?,
        };
        let mut spans = self.overlay.apply(&page.items);
        fill_raw_tokens(self.compaction.store, &self.snapshot, &mut spans).await?;
        if first {
            self.first = Some(page);
        }
        Ok(spans)
    }
}

impl Compaction<'_> {
    /// What a pass is planned for.
    pub(crate) fn goal(&self) -> compaction_plan::Goal {
        match self.stage {
            Stage::Fit => compaction_plan::Goal::Fit,
            _ => compaction_plan::Goal::Policy,
        }
    }

    /// The spans of a snapshot from the beginning of a range on, at most a page of them.
    async fn span_page(&self, snapshot: &Snapshot, range: SeqRange) -> Result<Page<Span>> {
        let read = self.store.spans(snapshot, range, Order::OldestFirst, SPANS);
        Ok(read.await?)
    }

    /// All spans of a snapshot that touch a range, raw ones with the cost of their messages.
    pub(crate) async fn spans_over(
        &self,
        snapshot: &Snapshot,
        range: Option<SeqRange>,
    ) -> Result<Vec<Span>> {
        let mut spans = Vec::new();
        let mut rest = range;
        while let Some(range) = rest {
            let page = self.span_page(snapshot, range).await?;
            spans.extend(page.items);
            rest = page.next;
        }
        fill_raw_tokens(self.store, snapshot, &mut spans).await?;
        Ok(spans)
    }

    /// All spans of a snapshot, raw ones with the cost of their messages.
    pub(crate) async fn spans(&self, snapshot: &Snapshot) -> Result<Vec<Span>> {
        let whole = SeqRange::new(Seq::FIRST, snapshot.head);
        self.spans_over(snapshot, whole).await
    }

    /// The first page of a range of the log.
    async fn page(&self, range: SeqRange) -> Result<Vec<LogEntry>> {
        let read = LogRead::new(range);
        Ok(self.store.read(self.conversation, &read).await?.items)
    }

    /// Reads a whole range of the log.
    pub(crate) async fn read(&self, range: SeqRange) -> Result<Vec<LogEntry>> {
        let mut entries = Vec::new();
        let mut rest = Some(range);
        while let Some(range) = rest {
            let read = LogRead::new(range);
            let page = self.store.read(self.conversation, &read).await?;
            entries.extend(page.items);
            rest = page.next;
        }
        Ok(entries)
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
