//! Carrying out a compaction.

use std::sync::atomic::Ordering;
use std::time::Duration;

use compaction_plan::{Label, Mode, Plan, Planner, Room, StopReason};
use futures::future::join;
use memory_model::{Accounting, Clock, ConversationId, LogEntry};
use memory_store::{Owner, Snapshot, Store};
use serde::{Deserialize, Serialize};
use summarize_escalation::{ExtractiveSummarizer, Ladder, Summarizer};

use crate::cancel::Cancel;
use crate::error::Result;
use crate::events::{Event, Hooks, NoHooks};
use crate::in_flight::InFlight;
use crate::outcome::{Measure, Outcome, Tally};
use crate::owners::{Liveness, UnknownLiveness};
use crate::read::{Fed, ViewReader, drop_entries};

/// Number of jobs from which on those that were put off are published before the iteration ends.
const PUT_OFF: usize = 64;

/// The default of [`Compaction::with_extractive`].
static GENERIC_EXTRACTS: ExtractiveSummarizer = ExtractiveSummarizer::new();

/// How plans are carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RunnerPolicy {
    /// How many summaries are made at the same time. 4, as in anna's later generation.
    pub concurrency: usize,
    /// How long a lease on a job lasts, in microseconds. Ten minutes.
    pub lease_micros: u64,
    /// How many summaries one [`Compaction::prefetch_summaries`] makes at most. 8.
    pub prefetch_jobs: usize,
    /// Minimum cost of a run of messages to be prefetched, in tokens: a shorter one is
    /// still growing, and what was written of it would soon be out of date. 2,000.
    pub prefetch_min_tokens: u64,
}

impl RunnerPolicy {
    /// Returns how long a lease on a job lasts.
    pub(crate) fn lease(&self) -> Duration {
        Duration::from_micros(self.lease_micros)
    }
}

impl Default for RunnerPolicy {
    fn default() -> Self {
        Self {
            concurrency: 4,
            lease_micros: 600_000_000,
            prefetch_jobs: 8,
            prefetch_min_tokens: 2_000,
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
    pub fn with_prefetch_jobs(mut self, jobs: usize) -> Self {
        self.prefetch_jobs = jobs;
        self
    }

    /// Sets the minimum cost of a run of messages to be prefetched, in tokens.
    pub fn with_prefetch_min_tokens(mut self, tokens: u64) -> Self {
        self.prefetch_min_tokens = tokens;
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

/// How many iterations a run does.
struct Iterations<'i> {
    /// Maximum number of iterations; `None` for as many as the planner allows.
    most: Option<u32>,
    /// Whether a view of this cost, in tokens, needs no further iteration.
    is_enough: &'i (dyn Fn(u64) -> bool + Send + Sync),
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
    /// What the ladder's tier `extractive` asks.
    pub(crate) extractive: &'a dyn Summarizer,
    pub(crate) ladder: &'a Ladder,
    pub(crate) accounting: &'a dyn Accounting,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) policy: RunnerPolicy,
    pub(crate) hooks: &'a dyn Hooks,
    pub(crate) cancel: Cancel,
    pub(crate) owner: Owner,
    pub(crate) in_flight: InFlight,
    pub(crate) liveness: &'a dyn Liveness,
    pub(crate) instructions: Option<String>,
    pub(crate) room: Option<Room>,
    pub(crate) stage: Stage,
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
            extractive: &GENERIC_EXTRACTS,
            ladder,
            accounting,
            clock,
            policy: RunnerPolicy::default(),
            hooks: &NoHooks,
            cancel: Cancel::new(),
            owner: Owner("compaction".to_owned()),
            in_flight: InFlight::new(),
            liveness: &UnknownLiveness,
            instructions: None,
            room: None,
            stage: Stage::Whole,
        }
    }

    /// Sets the summarizer that the ladder's tier `extractive` asks, and that makes a view fit. By
    /// default it knows no agent's conventions.
    pub fn with_extractive(mut self, extractive: &'a dyn Summarizer) -> Self {
        self.extractive = extractive;
        self
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
    /// need different ones, or share what they have in hand: [`Compaction::with_in_flight`].
    pub fn with_owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Owner(owner.into());
        self
    }

    /// Sets where the runs of one owner tell each other what they are at.
    pub fn with_in_flight(mut self, in_flight: InFlight) -> Self {
        self.in_flight = in_flight;
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
        let mut reader = ViewReader::new(self, snapshot);
        let mut jobs = Vec::new();
        for pass in self.planner.passes() {
            jobs.extend(reader.jobs(pass).await?);
        }
        jobs.sort_by_key(|job| job.range);
        let snapshot = reader.snapshot;
        Ok(Plan {
            tokens: snapshot.tokens(),
            view: snapshot.view,
            version: snapshot.version,
            head: snapshot.head,
            jobs,
        })
    }

    /// Compacts, and says what was done and why it stopped.
    ///
    /// # Errors
    /// When the store fails. A failing summarizer is not an error but a stop reason: whatever was
    /// published before stays, and nothing else changed.
    pub async fn run(&self, mode: Mode) -> Result<Outcome> {
        let most = match mode {
            Mode::Incremental => Some(1),
            Mode::Full => None,
        };
        let is_enough = &|_| false;
        self.run_iterations(&Iterations { most, is_enough }).await
    }

    /// Runs up to `most` incremental iterations, until `is_enough` holds for the view's cost in
    /// tokens. What no model is called for is published once, after the last iteration.
    ///
    /// # Errors
    /// As [`Compaction::run`].
    pub async fn run_until(
        &self,
        most: u32,
        is_enough: &(dyn Fn(u64) -> bool + Send + Sync),
    ) -> Result<Outcome> {
        let most = Some(most);
        self.run_iterations(&Iterations { most, is_enough }).await
    }

    async fn run_iterations(&self, iterations: &Iterations<'_>) -> Result<Outcome> {
        let (start, before) = self.begun().await?;
        let mut tally = Tally::default();
        let stop = if self.exhausted(&start).await? {
            StopReason::Exhausted
        } else {
            self.iterate(iterations, start, &mut tally).await?
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
        let after = match tally.published == 0 && !tally.lost {
            true => before,
            false => self.measure(&self.snapshot().await?).await?,
        };
        self.emit(Event::Ended {
            stop,
            tokens: after.tokens,
        })
        .await;
        Ok(Outcome {
            before,
            after,
            published: tally.counts,
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

    async fn iterate(
        &self,
        iterations: &Iterations<'_>,
        start: Snapshot,
        tally: &mut Tally,
    ) -> Result<StopReason> {
        let mut done = 0;
        let mut reader = ViewReader::new(self, start);
        loop {
            let (planned, published) = (tally.planned, tally.published);
            (tally.held, tally.lost, tally.seen) = (false, false, None);
            done += self
                .plan_and_execute(iterations, done, &mut reader, tally)
                .await?;
            self.publish_put_off(tally).await?;
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
            if iterations.most.is_some_and(|most| done >= most) {
                return Ok(StopReason::PassesDone);
            }
            let cap = self.planner.max_iterations();
            if iterations.most.is_none() && cap.is_some_and(|most| done >= most) {
                return Ok(StopReason::IterationCap);
            }
            reader.refresh().await?;
            if (iterations.is_enough)(reader.tokens) {
                return Ok(StopReason::PassesDone);
            }
        }
    }

    /// Runs all passes; again over what is put off, where there are iterations left and the view is
    /// not small enough. Returns the number of iterations.
    async fn plan_and_execute(
        &self,
        iterations: &Iterations<'_>,
        before: u32,
        reader: &mut ViewReader<'_>,
        tally: &mut Tally,
    ) -> Result<u32> {
        let mut done = 0;
        loop {
            let planned = tally.planned;
            for pass in self.planner.passes() {
                self.pass(pass, reader, tally).await?;
                if tally.must_stop() {
                    return Ok(done + 1);
                }
            }
            done += 1;
            let is_left = iterations.most.is_some_and(|most| before + done < most);
            let is_over = tally.planned == planned || tally.lost;
            if !is_left || is_over || !self.puts_off() || (iterations.is_enough)(reader.tokens) {
                return Ok(done);
            }
        }
    }

    /// One pass: plans while it reads, prepares a few jobs at a time, publishes in order. What is put
    /// off is laid over what the reader shows.
    pub(crate) async fn pass(
        &self,
        label: &Label,
        reader: &mut ViewReader<'_>,
        tally: &mut Tally,
    ) -> Result<()> {
        let published = tally.published;
        if reader.is_outdated {
            reader.refresh().await?;
        }
        tally.seen.get_or_insert_with(|| reader.snapshot.clone());
        let done = self.feed(label, reader, tally).await;
        for one in &tally.put_off {
            reader.lay_over(&one.job, one.spans());
        }
        done?;
        let outdated = |tally: &Tally| tally.published > published || tally.lost;
        if tally.put_off.len() >= PUT_OFF || outdated(tally) {
            self.publish_put_off(tally).await?;
        }
        reader.is_outdated = outdated(tally);
        Ok(())
    }

    /// Feeds a pass and carries its jobs out, while the next page is read.
    async fn feed(
        &self,
        label: &Label,
        reader: &mut ViewReader<'_>,
        tally: &mut Tally,
    ) -> Result<()> {
        let mut pass = reader.begin(label).await?;
        // Entries that were read and may belong to a job that is still to come.
        let mut entries: Vec<LogEntry> = Vec::new();
        let want = pass.wants();
        let mut page = reader.next(want).await?;
        while let Some(fed) = page {
            if self.cancel.is_cancelled() {
                tally.cancelled = true;
                return Ok(());
            }
            let jobs = match fed {
                Fed::Spans(spans) => pass.feed_spans(&spans, self.accounting),
                Fed::Entries(mut more) => {
                    let jobs = pass.feed(&more, self.accounting);
                    entries.append(&mut more);
                    jobs
                }
            };
            // What the pass wants next does not depend on what becomes of these jobs.
            let want = pass.wants();
            let (done, next) = join(self.execute(&jobs, &entries, tally), reader.next(want)).await;
            done?;
            if tally.must_stop() {
                return Ok(());
            }
            if tally.put_off.len() >= PUT_OFF {
                self.publish_put_off(tally).await?;
            }
            page = next?;
            drop_entries(&mut entries, jobs.last().map(|job| job.range.last));
        }
        let jobs = pass.finish(self.accounting);
        self.execute(&jobs, &entries, tally).await
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
}
