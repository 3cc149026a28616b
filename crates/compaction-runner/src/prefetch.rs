//! Prefetching summaries, and publishing only those that are ready.
//!
//! A turn must not wait for a model. So the calls are made between turns, their texts are kept as
//! drafts, and a turn that finds its context too large publishes what there is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use compaction_plan::{Job, Mode, StopReason};
use memory_model::{
    Body, Child, RawJson, Seq, SeqRange, Span, SpanStart, Summary, SummaryId, splice_starts,
};
use memory_store::{Claim, JobKey, Snapshot, State};
use serde::{Deserialize, Serialize};

use crate::conclude::Publishable;
use crate::error::Result;
use crate::events::{NoHooks, SkipReason};
use crate::outcome::{Outcome, Tally};
use crate::prepare::{Done, Prepared};
use crate::read::ViewReader;
use crate::report::ModelReport;
use crate::run::{Compaction, Stage};
use crate::watch::Watch;

/// How often a list that somebody else changed meanwhile is written again.
const TRIES: usize = 4;

/// What a prefetch did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PrefetchReport {
    /// Summaries that were made now.
    pub prepared: u64,
    /// Summaries that wait to be published, those made earlier among them.
    pub ready: u64,
    /// Calls of the summarizer, failed and cancelled ones too.
    pub calls: u64,
    /// Why the last failed job failed.
    pub failure: Option<String>,
    /// How many of the summaries the model did not write, and why.
    pub model: ModelReport,
    /// Whether it was cancelled.
    pub cancelled: bool,
}

/// A job that waits to be published.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Waiting {
    job: Job,
    /// The store's key of the draft; `None` when there is none: the summary itself is in the store
    /// already, or the job needs none.
    draft: Option<String>,
    /// What the view will show over the job's range.
    spans: Vec<Span>,
}

impl Waiting {
    pub(crate) fn new(one: &Publishable) -> Self {
        Self {
            job: one.job.clone(),
            draft: one.fence.as_ref().map(|fence| fence.key.0.clone()),
            spans: one.spans(),
        }
    }

    /// The summaries that the view will show.
    fn shows(&self) -> impl Iterator<Item = &SummaryId> {
        self.spans.iter().filter_map(|span| span.body.summary())
    }
}

/// The jobs that wait to be published, in the order in which they were prepared: a later one may
/// build on what an earlier one will show.
#[derive(Debug, Default, Serialize, Deserialize)]
struct WaitingList {
    jobs: Vec<Waiting>,
}

impl WaitingList {
    /// The jobs in runs that do not build on each other.
    fn runs(&self) -> Vec<Vec<&Job>> {
        let mut runs: Vec<Vec<&Job>> = Vec::new();
        let mut shown: BTreeSet<&SummaryId> = BTreeSet::new();
        for waiting in &self.jobs {
            let sources = waiting.job.sources().iter().filter_map(Child::summary);
            let builds_on = sources.into_iter().any(|id| shown.contains(id));
            match runs.last_mut().filter(|_| !builds_on) {
                Some(run) => run.push(&waiting.job),
                None => {
                    shown.clear();
                    runs.push(vec![&waiting.job]);
                }
            }
            shown.extend(waiting.shows());
        }
        runs
    }
}

impl Compaction<'_> {
    /// Makes the summaries that a compaction would make, and publishes none: the view stays as it
    /// is. What is ready already is not made again; more is planned and made on top of it, up to
    /// [`RunnerPolicy::prefetch_jobs`](crate::RunnerPolicy::prefetch_jobs) jobs a call. Drafts that the view
    /// has no place for any more are deleted.
    ///
    /// A summarizer whose work costs nothing (one that is provisional) has nothing to prepare.
    ///
    /// # Errors
    /// When the store fails. A failing summarizer is no error; what was made before it failed is
    /// kept.
    pub async fn prefetch_summaries(&self) -> Result<PrefetchReport> {
        if self.summarizer.provisional() {
            return Ok(PrefetchReport::default());
        }
        let snapshot = self.snapshot().await?;
        let (list, revision) = self.waiting(&snapshot).await?;
        let stage = Self {
            stage: Stage::Prepare,
            ..self.clone()
        };
        let mut tally = Tally::default();
        let mut reader = ViewReader::new(&stage, snapshot);
        let executed = stage.prepare_on_top(&list, &mut reader, &mut tally).await;
        let prepared = tally.ready.len();
        let mut count = list.jobs.len();
        if prepared > 0 {
            count = self.add_waiting(revision, list, tally.ready).await?;
        }
        executed?;
        Ok(PrefetchReport {
            prepared: prepared as u64,
            ready: count as u64,
            calls: tally.watch.calls.load(Ordering::Relaxed),
            failure: tally.failure,
            model: tally.watch.report(),
            cancelled: tally.cancelled,
        })
    }

    /// Prepares the jobs that follow once the waiting ones are published, step by step: each step
    /// builds on those before it.
    async fn prepare_on_top(
        &self,
        list: &WaitingList,
        reader: &mut ViewReader<'_>,
        tally: &mut Tally,
    ) -> Result<()> {
        for waiting in &list.jobs {
            reader.lay_over(&waiting.job, waiting.spans.clone());
        }
        let waiting: BTreeSet<&SummaryId> = list.jobs.iter().flat_map(Waiting::shows).collect();
        let mut is_read = false;
        while tally.ready.len() < self.policy.prefetch_jobs && !tally.must_stop() {
            let done = tally.ready.len();
            let mut jobs = self.jobs_to_prefetch(reader).await?;
            jobs.truncate(self.policy.prefetch_jobs - done);
            let mut sources = jobs.iter().flat_map(|job| job.sources());
            let builds_on = sources.any(|c| c.summary().is_some_and(|id| waiting.contains(id)));
            if builds_on && !is_read {
                self.read_waiting(list, tally).await?;
                is_read = true;
            }
            self.execute(&jobs, &[], tally).await?;
            for waiting in tally.ready.iter().skip(done) {
                reader.lay_over(&waiting.job, waiting.spans.clone());
            }
            if tally.ready.len() == done {
                break;
            }
        }
        Ok(())
    }

    /// The jobs over what the reader shows that are long enough to be prefetched, those that are
    /// disjoint.
    async fn jobs_to_prefetch(&self, reader: &mut ViewReader<'_>) -> Result<Vec<Job>> {
        // Where there is little room, a source is never much longer than a quarter of it.
        let quarter = self.room.map_or(u64::MAX, |room| room.tokens / 4);
        let least = self.policy.prefetch_min_tokens.min(quarter);
        let grows = |job: &Job| {
            let mut sources = job.sources().iter();
            sources.any(|source| source.summary().is_none()) && job.source_tokens < least
        };
        let mut jobs = Vec::new();
        for pass in self.planner.passes() {
            jobs.extend(reader.jobs(pass).await?);
        }
        jobs.retain(|job: &Job| !grows(job));
        jobs.sort_by_key(|job| job.range);
        Ok(jobs)
    }

    /// Makes the summaries of the waiting jobs from their drafts, for those that build on them.
    async fn read_waiting(&self, list: &WaitingList, tally: &mut Tally) -> Result<()> {
        let stage = Self {
            stage: Stage::PublishReady,
            hooks: &NoHooks,
            ..self.clone()
        };
        let done = stage
            .with_drafts(list, &mut tally.made, &Watch::default())
            .await?;
        stage.give_up(done).await
    }

    /// The waiting jobs with what their drafts hold, in their order.
    async fn with_drafts<'l>(
        &self,
        list: &'l WaitingList,
        made: &mut BTreeMap<SummaryId, Summary>,
        watch: &Watch,
    ) -> Result<Vec<Done<'l>>> {
        let stop = AtomicBool::new(false);
        let mut all = Vec::new();
        for run in list.runs() {
            for begun in self.begin(&run, &[], made, watch).await? {
                let done = self.call(begun, watch, &stop).await;
                if let Prepared::Summary(ready) = &done.prepared {
                    made.insert(ready.summary.id.clone(), ready.summary.clone());
                }
                all.push(done);
            }
        }
        Ok(all)
    }

    /// Publishes what [`Compaction::prefetch_summaries`] made, in one transaction, and never calls a
    /// model. With a summarizer whose work costs nothing it is an incremental [`Compaction::run`]. An
    /// extract that was published meanwhile for the same messages is replaced.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn publish_ready(&self) -> Result<Outcome> {
        if self.summarizer.provisional() {
            return self.run(Mode::Incremental).await;
        }
        let (start, before) = self.begun().await?;
        let mut tally = Tally::default();
        if let Some(state) = self.waiting_state().await? {
            let (list, unwanted) = self.still_wanted(parse(&state), &start).await?;
            for waiting in unwanted {
                self.skip(&waiting.job, SkipReason::Lost, &mut tally).await;
                self.delete_draft(waiting).await?;
            }
            let stage = Self {
                stage: Stage::PublishReady,
                ..self.clone()
            };
            tally.planned += list.jobs.len() as u64;
            let (watch, mut made) = (Arc::clone(&tally.watch), BTreeMap::new());
            let done = stage.with_drafts(&list, &mut made, &watch).await?;
            stage.conclude(done, &mut tally).await?;
            if !tally.cancelled {
                self.put_waiting(state.revision, None).await?;
            }
        }
        let stop = match () {
            () if tally.cancelled => StopReason::Cancelled,
            () if tally.published > 0 => StopReason::PassesDone,
            () => tally.in_vain().unwrap_or(StopReason::NothingEligible),
        };
        self.ended(before, tally, stop).await
    }

    fn waiting_key(&self) -> String {
        format!("prepared/{}", self.planner.view())
    }

    async fn waiting_state(&self) -> Result<Option<State>> {
        let key = self.waiting_key();
        Ok(self.store.state(self.conversation, &key).await?)
    }

    /// The jobs that can be published over a snapshot, and the list's revision. The others are taken
    /// off the list, and their drafts deleted.
    async fn waiting(&self, snapshot: &Snapshot) -> Result<(WaitingList, u64)> {
        let Some(state) = self.waiting_state().await? else {
            return Ok((WaitingList::default(), 0));
        };
        let (list, unwanted) = self.still_wanted(parse(&state), snapshot).await?;
        if unwanted.is_empty() {
            return Ok((list, state.revision));
        }
        for waiting in unwanted {
            self.delete_draft(waiting).await?;
        }
        let revision = self.put_waiting(state.revision, Some(&list)).await?;
        Ok((list, revision.unwrap_or(state.revision)))
    }

    /// The jobs whose replaced spans the view still holds, or an extract in their place; and the
    /// others.
    async fn still_wanted(
        &self,
        list: WaitingList,
        snapshot: &Snapshot,
    ) -> Result<(WaitingList, Vec<Waiting>)> {
        let (mut wanted, mut unwanted) = (WaitingList::default(), Vec::new());
        let first = list
            .jobs
            .iter()
            .map(|waiting| waiting.job.range.first)
            .min();
        let last = list.jobs.iter().map(|waiting| waiting.job.range.last).max();
        let (Some(first), Some(last)) = (first, last) else {
            return Ok((wanted, unwanted));
        };
        // With one position more on each side, so that the spans tell where others begin.
        let around = SeqRange::new(first.prev().max(Seq::FIRST), last.next());
        let spans = self.spans_over(snapshot, around).await?;
        let mut rows = starts(&spans);
        for mut waiting in list.jobs {
            let mut spliced = splice(&rows, &waiting);
            if spliced.is_none()
                && let Some(extract) = self.extract_of(&waiting.job, &spans).await?
            {
                waiting.job.expect = vec![extract];
                spliced = splice(&rows, &waiting);
            }
            match spliced {
                Some(spliced) => {
                    rows = spliced;
                    wanted.jobs.push(waiting);
                }
                None => unwanted.push(waiting),
            }
        }
        Ok((wanted, unwanted))
    }

    /// The span that shows a summary of the job's sources that no model wrote.
    async fn extract_of(&self, job: &Job, spans: &[Span]) -> Result<Option<Span>> {
        let shown = spans.iter().find(|span| {
            let depth =
                matches!(span.body, Body::Summary { depth, .. } if Some(depth) == job.depth());
            depth && span.closed_range() == Some(job.range)
        });
        let Some((span, id)) = shown.and_then(|span| Some((span, span.body.summary()?))) else {
            return Ok(None);
        };
        let ids = std::slice::from_ref(id);
        let found = self.store.summaries(self.conversation, ids).await?;
        let extract = found
            .into_iter()
            .flatten()
            .any(|summary| summary.provisional && summary.sources == job.sources());
        Ok(extract.then(|| span.clone()))
    }

    /// Deletes a job's draft unless somebody is at work on it.
    async fn delete_draft(&self, waiting: Waiting) -> Result<()> {
        let Some(key) = waiting.draft.map(JobKey) else {
            return Ok(());
        };
        let now = self.clock.now();
        let lease = self.policy.lease();
        let until = now.saturating_add(lease);
        let Ok(_taken) = self.in_flight.take(self.conversation, &key, now, until) else {
            return Ok(());
        };
        let claim = self
            .store
            .claim(self.conversation, &key, &self.owner, lease);
        match claim.await? {
            Claim::Granted(fence) | Claim::Ready(fence, _) => self.release([fence]).await,
            Claim::Held { .. } => Ok(()),
        }
    }

    /// Adds jobs to the list, and returns how many there are then. Whoever changed the list
    /// meanwhile is heard: what they left on it stays.
    async fn add_waiting(
        &self,
        mut revision: u64,
        mut list: WaitingList,
        added: Vec<Waiting>,
    ) -> Result<usize> {
        for _ in 0..TRIES {
            list.jobs.extend(added.iter().cloned());
            if self.put_waiting(revision, Some(&list)).await?.is_some() {
                return Ok(list.jobs.len());
            }
            let state = self.waiting_state().await?;
            revision = state.as_ref().map_or(0, |state| state.revision);
            list = state.as_ref().map(parse).unwrap_or_default();
        }
        // Whoever plans the same jobs finds their drafts.
        Ok(list.jobs.len())
    }

    /// Sets or removes the list, and returns its new revision; `None` when somebody else changed
    /// it meanwhile.
    async fn put_waiting(&self, revision: u64, list: Option<&WaitingList>) -> Result<Option<u64>> {
        let value = match list.filter(|list| !list.jobs.is_empty()) {
            Some(list) => match RawJson::from_value(list) {
                Ok(value) => Some(value),
                Err(_) => return Ok(None),
            },
            None if revision == 0 => return Ok(Some(0)),
            None => None,
        };
        let key = self.waiting_key();
        let put = self
            .store
            .put_state(self.conversation, &key, revision, value.as_ref());
        match put.await {
            Ok(revision) => Ok(Some(revision)),
            Err(error) if error.kind() == memory_store::ErrorKind::Stale => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// A list that cannot be read is empty: then nothing is ready.
fn parse(state: &State) -> WaitingList {
    serde_json::from_str(state.value.as_str()).unwrap_or_default()
}

/// The rows of a view once a waiting job is published; `None` when they do not hold what it expects.
fn splice(rows: &[SpanStart], waiting: &Waiting) -> Option<Vec<SpanStart>> {
    let Waiting { job, spans, .. } = waiting;
    let changed = splice_starts(rows, job.range, &job.expect, spans).ok()?;
    let mut rows = rows.to_vec();
    rows.retain(|row| !changed.removed.iter().any(|gone| gone.first == row.first));
    rows.extend(changed.added);
    rows.sort_by_key(|row| row.first);
    Some(rows)
}

fn starts(spans: &[Span]) -> Vec<SpanStart> {
    spans
        .iter()
        .map(|span| SpanStart {
            first: span.range.first,
            body: span.body.clone(),
            tokens: match span.body {
                Body::Raw => 0,
                _ => span.tokens,
            },
        })
        .collect()
}
