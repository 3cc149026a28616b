//! Carrying out a compaction.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::future::join;
use memory_model::{
    Accounting, Clock, ConversationId, Job, LogEntry, Mode, PassInput, PassKind, Plan, Planner,
    RawJson, Room, Seq, SeqRange, Span, StopReason, SummaryId,
};
use memory_store::{LogRead, Order, Owner, Snapshot, Store, fill_raw_tokens};
use serde::{Deserialize, Serialize};
use summarize_escalation::{Ladder, Summarizer};

use crate::ahead::Waiting;
use crate::cancel::Cancel;
use crate::error::Result;
use crate::events::{Event, Hooks, NoHooks};
use crate::in_hand::InHand;
use crate::owners::{HeldBy, Liveness, UnknownLiveness};
use crate::prepare::Watch;
use crate::report::ModelReport;
use crate::window::newest_entries;

/// How many entries are kept at hand for jobs to come. A longer job is read again.
const AT_HAND: usize = 8_192;

/// How plans are carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RunnerPolicy {
    /// How many summaries are made at the same time. 4, as in anna's later generation.
    pub concurrency: usize,
    /// How long a lease on a job lasts, in microseconds. Ten minutes.
    pub lease_micros: i64,
    /// How many summaries one [`Compaction::prepare_ahead`] makes at most. 8.
    pub ahead_jobs: usize,
    /// What a run of messages costs at least, in tokens, to be prepared ahead: a shorter one is
    /// still growing, and what was written of it would soon be out of date. 2,000.
    pub ahead_min_tokens: u64,
}

impl Default for RunnerPolicy {
    fn default() -> Self {
        Self {
            concurrency: 4,
            lease_micros: 600_000_000,
            ahead_jobs: 8,
            ahead_min_tokens: 2_000,
        }
    }
}

impl RunnerPolicy {
    /// Sets how many summaries are made at the same time.
    pub fn with_concurrency(mut self, summaries: usize) -> Self {
        self.concurrency = summaries;
        self
    }

    /// Sets how many summaries one preparation makes at most.
    pub fn with_ahead_jobs(mut self, jobs: usize) -> Self {
        self.ahead_jobs = jobs;
        self
    }

    /// Sets what a run of messages costs at least to be prepared ahead.
    pub fn with_ahead_min_tokens(mut self, tokens: u64) -> Self {
        self.ahead_min_tokens = tokens;
        self
    }
}

/// How far a run goes with its jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Prepares and publishes.
    #[default]
    Whole,
    /// Prepares only.
    Prepare,
    /// Publishes what is prepared, and calls no summarizer.
    PublishReady,
    /// Publishes extracts until the view fits, and calls no summarizer.
    Fit,
}

/// A compaction of one conversation: everything it needs, and nothing it holds on to.
///
/// No lock and no transaction is held while a model is called. Dropping a run leaves the store as
/// it was after the last summary that was published.
#[derive(Debug, Clone)]
pub struct Compaction<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) conversation: ConversationId,
    pub(crate) planner: &'a dyn Planner,
    pub(crate) summarizer: &'a dyn Summarizer,
    pub(crate) ladder: &'a Ladder,
    pub(crate) accounting: &'a dyn Accounting,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) policy: RunnerPolicy,
    pub(crate) hooks: &'a dyn Hooks,
    pub(crate) cancel: Cancel,
    pub(crate) owner: Owner,
    pub(crate) in_hand: InHand,
    pub(crate) liveness: &'a dyn Liveness,
    pub(crate) instructions: Option<String>,
    pub(crate) room: Option<Room>,
    pub(crate) stage: Stage,
}

/// What a compaction did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// The view before.
    pub before: Measure,
    /// The view after.
    pub after: Measure,
    /// Leaves that were published.
    pub leaf: u64,
    /// Condensed summaries that were published.
    pub condensed: u64,
    /// Messages that the published leaves cover.
    pub messages_compacted: u64,
    /// Calls of the summarizer, failed and cancelled ones too. A ladder's own extracts do not count.
    pub calls: u64,
    /// The published summaries, in order.
    pub summaries: Vec<SummaryId>,
    /// Why the last failed job failed.
    pub failure: Option<String>,
    /// What the summarizer said when it last failed, be it that a summary was made without it.
    pub summarizer_error: Option<String>,
    /// How many of the summaries the model did not write, and why. Summaries that were prepared
    /// and not published count too.
    pub model: ModelReport,
    /// Who was at work on a job that this run therefore passed over, last.
    pub held: Option<HeldBy>,
    /// Why it stopped.
    pub stop_reason: StopReason,
}

/// The size of a view.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Measure {
    /// Log entries.
    pub messages: u64,
    /// Spans.
    pub spans: u64,
    /// What the view costs, in tokens.
    pub tokens: u64,
}

/// What is known of a run so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) planned: u64,
    pub(crate) published: u64,
    pub(crate) leaf: u64,
    pub(crate) condensed: u64,
    pub(crate) messages: u64,
    pub(crate) summaries: Vec<SummaryId>,
    /// Jobs that were prepared and not published.
    pub(crate) ready: Vec<Waiting>,
    pub(crate) failure: Option<String>,
    /// Jobs that cannot shrink; they are not tried again.
    pub(crate) refused: BTreeSet<(SeqRange, u32)>,
    /// Jobs that a hook said no to; it is not asked again.
    pub(crate) vetoed: BTreeSet<(SeqRange, u32)>,
    /// Whether somebody else was at work on a job of this iteration.
    pub(crate) held: bool,
    /// Whether somebody else was first with a job of this iteration.
    pub(crate) lost: bool,
    pub(crate) cancelled: bool,
    /// The state that this iteration began with.
    pub(crate) seen: Option<Snapshot>,
    pub(crate) watch: Arc<Watch>,
}

impl Tally {
    pub(crate) fn must_stop(&self) -> bool {
        self.cancelled || self.failure.is_some()
    }

    /// Why nothing came of an iteration, as far as its jobs tell.
    pub(crate) fn in_vain(&self) -> Option<StopReason> {
        match () {
            () if self.held => Some(StopReason::Held),
            () if self.lost => Some(StopReason::LostRace),
            () if !self.vetoed.is_empty() => Some(StopReason::NoProgress),
            () if !self.refused.is_empty() => Some(StopReason::Exhausted),
            () => None,
        }
    }
}

/// A state in which nothing could be made shorter.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Exhausted {
    head: Seq,
    version: u64,
    policy: String,
}

impl<'a> Compaction<'a> {
    /// A compaction with the default runner policy, without hooks.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        store: &'a dyn Store,
        conversation: ConversationId,
        planner: &'a dyn Planner,
        summarizer: &'a dyn Summarizer,
        ladder: &'a Ladder,
        accounting: &'a dyn Accounting,
        clock: &'a dyn Clock,
    ) -> Self {
        Self {
            store,
            conversation,
            planner,
            summarizer,
            ladder,
            accounting,
            clock,
            policy: RunnerPolicy::default(),
            hooks: &NoHooks,
            cancel: Cancel::new(),
            owner: Owner("compaction".to_owned()),
            in_hand: InHand::new(),
            liveness: &UnknownLiveness,
            instructions: None,
            room: None,
            stage: Stage::Whole,
        }
    }

    /// Sets how the plan is carried out.
    pub fn with_policy(mut self, policy: RunnerPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the hooks.
    pub fn with_hooks(mut self, hooks: &'a dyn Hooks) -> Self {
        self.hooks = hooks;
        self
    }

    /// Sets the switch that stops it.
    pub fn with_cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Sets the name under which it takes leases; two compactions that may run at the same time
    /// need different ones, or share what they have in hand: [`Compaction::with_in_hand`].
    pub fn with_owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Owner(owner.into());
        self
    }

    /// Sets where the runs of one owner tell each other what they are at.
    pub fn with_in_hand(mut self, in_hand: InHand) -> Self {
        self.in_hand = in_hand;
        self
    }

    /// Sets who decides whether the owner of a lease is gone.
    pub fn with_liveness(mut self, liveness: &'a dyn Liveness) -> Self {
        self.liveness = liveness;
        self
    }

    /// Sets what the user wants summaries to mind.
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets what the contexts assembled from the view have room for: the planner then leaves no
    /// more of the view as it is than fits.
    pub fn with_room(mut self, room: Option<Room>) -> Self {
        self.room = room;
        self
    }

    /// What the next iteration would do: reads, calls no model, writes nothing.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn plan(&self) -> Result<Plan> {
        let snapshot = self.snapshot().await?;
        let mut jobs = Vec::new();
        for kind in self.planner.passes() {
            let spans = self.spans(&snapshot).await?;
            jobs.extend(self.jobs(*kind, &snapshot, &spans).await?);
        }
        jobs.sort_by_key(|job| job.range);
        Ok(Plan {
            view: snapshot.view.clone(),
            version: snapshot.version,
            head: snapshot.head,
            tokens: snapshot.tokens(),
            jobs,
        })
    }

    /// What one pass over these spans would do.
    pub(crate) async fn jobs(
        &self,
        kind: PassKind,
        snapshot: &Snapshot,
        spans: &[Span],
    ) -> Result<Vec<Job>> {
        let newest = self.newest(kind, snapshot.head).await?;
        let mut pass = self.planner.begin(PassInput {
            kind,
            head: snapshot.head,
            spans,
            newest: &newest,
            room: self.room,
            accounting: self.accounting,
        });
        let mut jobs = Vec::new();
        while let Some(range) = pass.wants() {
            let page = self
                .store
                .read(self.conversation, &LogRead::new(range))
                .await?;
            if page.items.is_empty() {
                break;
            }
            jobs.extend(pass.feed(&page.items, self.accounting));
        }
        jobs.extend(pass.finish(self.accounting));
        Ok(jobs)
    }

    /// Compacts, and says what was done and why it stopped.
    ///
    /// # Errors
    /// When the store fails. A failing summarizer is not an error but a stop reason: whatever was
    /// published before stays, and nothing else changed.
    pub async fn run(&self, mode: Mode) -> Result<Outcome> {
        let (start, before) = self.begun().await?;
        let mut tally = Tally::default();
        let stop = if self.exhausted(&start).await? {
            StopReason::Exhausted
        } else {
            self.iterate(mode, &mut tally).await?
        };
        if stop == StopReason::Exhausted
            && let Some(tried) = &tally.seen
        {
            self.remember_exhausted(tried).await?;
        }
        self.ended(before, tally, stop).await
    }

    pub(crate) async fn begun(&self) -> Result<(Snapshot, Measure)> {
        let start = self.snapshot().await?;
        let before = self.measure(&start).await?;
        self.emit(Event::Started {
            conversation: self.conversation,
            view: start.view.clone(),
            tokens: start.tokens(),
        })
        .await;
        Ok((start, before))
    }

    pub(crate) async fn ended(
        &self,
        before: Measure,
        tally: Tally,
        stop: StopReason,
    ) -> Result<Outcome> {
        let end = self.snapshot().await?;
        let after = self.measure(&end).await?;
        self.emit(Event::Ended {
            stop,
            tokens: after.tokens,
        })
        .await;
        Ok(Outcome {
            before,
            after,
            leaf: tally.leaf,
            condensed: tally.condensed,
            messages_compacted: tally.messages,
            calls: tally.watch.calls.load(Ordering::Relaxed),
            summaries: tally.summaries,
            failure: tally.failure,
            summarizer_error: tally.watch.last_error(),
            model: tally.watch.report(),
            held: tally.watch.held_by(),
            stop_reason: stop,
        })
    }

    async fn iterate(&self, mode: Mode, tally: &mut Tally) -> Result<StopReason> {
        let mut iterations = 0;
        loop {
            let (planned, published) = (tally.planned, tally.published);
            (tally.held, tally.lost, tally.seen) = (false, false, None);
            for kind in self.planner.passes() {
                self.pass(*kind, tally).await?;
                if tally.must_stop() {
                    break;
                }
            }
            iterations += 1;
            if tally.cancelled {
                return Ok(StopReason::Cancelled);
            }
            if tally.failure.is_some() {
                return Ok(StopReason::SummarizerFailed);
            }
            if tally.planned == planned {
                return Ok(tally.in_vain().unwrap_or(StopReason::NothingEligible));
            }
            if tally.published == published {
                return Ok(tally.in_vain().unwrap_or(StopReason::NoProgress));
            }
            if mode == Mode::Incremental {
                return Ok(StopReason::PassesDone);
            }
            if self
                .planner
                .max_iterations()
                .is_some_and(|most| iterations >= most)
            {
                return Ok(StopReason::IterationCap);
            }
        }
    }

    /// One pass: plans while it reads, prepares a few jobs at a time, publishes in order.
    pub(crate) async fn pass(&self, kind: PassKind, tally: &mut Tally) -> Result<()> {
        let snapshot = self.snapshot().await?;
        let spans = self.spans(&snapshot).await?;
        let newest = self.newest(kind, snapshot.head).await?;
        let mut pass = self.planner.begin(PassInput {
            kind,
            head: snapshot.head,
            spans: &spans,
            newest: &newest,
            room: self.room,
            accounting: self.accounting,
        });
        drop(newest);
        tally.seen.get_or_insert(snapshot);
        // Entries that were read and may belong to a job that is still to come.
        let mut at_hand: Vec<LogEntry> = Vec::new();
        let mut wanted = pass.wants();
        let mut page = match wanted {
            Some(range) => self.page(range).await?,
            None => Vec::new(),
        };
        while wanted.is_some() && !page.is_empty() {
            if self.cancel.is_cancelled() {
                tally.cancelled = true;
                return Ok(());
            }
            let jobs = pass.feed(&page, self.accounting);
            at_hand.append(&mut page);
            // What the pass wants next does not depend on what comes of these jobs: it is read meanwhile.
            wanted = pass.wants();
            let next = async {
                match wanted {
                    Some(range) => self.page(range).await,
                    None => Ok(Vec::new()),
                }
            };
            let (done, next) = join(self.execute(&jobs, &at_hand, tally), next).await;
            done?;
            if tally.must_stop() {
                return Ok(());
            }
            page = next?;
            let done = jobs.last().map(|job| job.range.last);
            keep_at_hand(&mut at_hand, &spans, done);
        }
        let jobs = pass.finish(self.accounting);
        self.execute(&jobs, &at_hand, tally).await
    }

    pub(crate) async fn emit(&self, event: Event) {
        tracing::debug!(?event, "compaction");
        self.hooks.event(&event).await;
    }

    pub(crate) async fn snapshot(&self) -> Result<Snapshot> {
        Ok(self
            .store
            .snapshot(self.conversation, &self.planner.view())
            .await?)
    }

    pub(crate) async fn measure(&self, snapshot: &Snapshot) -> Result<Measure> {
        let views = self.store.views(self.conversation).await?;
        let spans = views
            .iter()
            .find(|view| view.name == snapshot.view)
            .map_or(1, |v| v.spans);
        Ok(Measure {
            messages: u64::from(snapshot.head.0),
            spans,
            tokens: snapshot.tokens(),
        })
    }

    /// All spans of a snapshot, raw ones with the cost of their messages.
    pub(crate) async fn spans(&self, snapshot: &Snapshot) -> Result<Vec<Span>> {
        let mut spans = Vec::new();
        let mut rest = SeqRange::new(Seq::FIRST, snapshot.head);
        while let Some(range) = rest {
            let page = self
                .store
                .spans(snapshot, range, Order::OldestFirst, 1024)
                .await?;
            spans.extend(page.items);
            rest = page.next;
        }
        fill_raw_tokens(self.store, snapshot, &mut spans).await?;
        Ok(spans)
    }

    async fn newest(&self, kind: PassKind, head: Seq) -> Result<Vec<LogEntry>> {
        match kind {
            PassKind::Condensed => Ok(Vec::new()),
            PassKind::Leaf => {
                let window = self.planner.window();
                Ok(newest_entries(self.store, self.conversation, head, window).await?)
            }
        }
    }

    /// The first page of a range.
    async fn page(&self, range: SeqRange) -> Result<Vec<LogEntry>> {
        let read = LogRead::new(range);
        Ok(self.store.read(self.conversation, &read).await?.items)
    }

    /// Reads a whole range.
    pub(crate) async fn read(&self, range: SeqRange) -> Result<Vec<LogEntry>> {
        let mut entries = Vec::new();
        let mut rest = Some(range);
        while let Some(range) = rest {
            let page = self
                .store
                .read(self.conversation, &LogRead::new(range))
                .await?;
            entries.extend(page.items);
            rest = page.next;
        }
        Ok(entries)
    }

    fn exhausted_key(&self) -> String {
        let view = self.planner.view();
        match self.stage {
            Stage::Fit => format!("exhausted/{view}/fit"),
            _ => format!("exhausted/{view}"),
        }
    }

    fn exhausted_at(&self, snapshot: &Snapshot) -> Exhausted {
        Exhausted {
            head: snapshot.head,
            version: snapshot.version.0,
            policy: format!(
                "{} {:?} {} {} {} {}",
                self.planner.fingerprint(),
                self.room,
                self.ladder.id(),
                self.summarizer.id(),
                self.accounting.estimator_id(),
                self.instructions.as_deref().unwrap_or_default()
            ),
        }
    }

    /// Whether this very state was tried before and nothing could be made shorter.
    pub(crate) async fn exhausted(&self, snapshot: &Snapshot) -> Result<bool> {
        let state = self
            .store
            .state(self.conversation, &self.exhausted_key())
            .await?;
        let found = state.and_then(|s| serde_json::from_str::<Exhausted>(s.value.as_str()).ok());
        Ok(found.is_some_and(|found| found == self.exhausted_at(snapshot)))
    }

    pub(crate) async fn remember_exhausted(&self, snapshot: &Snapshot) -> Result<()> {
        let key = self.exhausted_key();
        let state = self.store.state(self.conversation, &key).await?;
        let revision = state.map_or(0, |state| state.revision);
        let Ok(value) = RawJson::from_value(&self.exhausted_at(snapshot)) else {
            return Ok(());
        };
        match self
            .store
            .put_state(self.conversation, &key, revision, Some(&value))
            .await
        {
            // Somebody else remembered something meanwhile: theirs is as good.
            Err(error) if error.kind() == memory_store::ErrorKind::Stale => Ok(()),
            result => result.map(|_| ()).map_err(Into::into),
        }
    }
}

/// Lets go of the entries that no job to come needs. A job never needs those before its span's
/// beginning, and one that is longer than what is kept is read again.
fn keep_at_hand(at_hand: &mut Vec<LogEntry>, spans: &[Span], done: Option<Seq>) {
    let Some(newest) = at_hand.last().map(|entry| entry.seq) else {
        return;
    };
    let span = spans.partition_point(|span| span.range.first <= newest);
    let span = span.checked_sub(1).and_then(|index| spans.get(index));
    let from = span.map_or(Seq::FIRST, |span| span.range.first);
    let from = done.map_or(from, |done| from.max(done.next()));
    at_hand.drain(..at_hand.partition_point(|entry| entry.seq < from));
    if at_hand.len() > AT_HAND {
        at_hand.clear();
    }
}
