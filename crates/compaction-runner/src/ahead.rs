//! Preparing ahead of need, and publishing only what is ready.
//!
//! A turn must not wait for a model. So the calls are made between turns, their texts are kept as
//! drafts, and a turn that finds its context too large publishes what there is.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use memory_model::{
    Body, Child, Hash, Job, Mode, PassKind, RawJson, Span, SpanStart, StopReason, SummaryId,
    Timestamp, View, summary_id,
};
use memory_store::{Claim, Fence, JobKey, Snapshot, State, fill_raw_tokens};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::events::SkipReason;
use crate::report::ModelReport;
use crate::run::{Compaction, Outcome, Stage, Tally};

/// How often a list that somebody else changed meanwhile is written again.
const TRIES: usize = 4;

/// What preparing ahead did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Ahead {
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

/// A job whose draft waits to be published.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Waiting {
    job: Job,
    /// The store's key of the draft; `None` when the summary itself is in the store already.
    draft: Option<String>,
}

impl Waiting {
    pub(crate) fn new(job: &Job, fence: Option<&Fence>) -> Self {
        Self {
            job: job.clone(),
            draft: fence.map(|fence| fence.key.0.clone()),
        }
    }
}

/// The jobs whose drafts wait to be published, in the order in which they were prepared.
#[derive(Debug, Default, Serialize, Deserialize)]
struct WaitingList {
    jobs: Vec<Waiting>,
}

impl Compaction<'_> {
    /// Makes the summaries that a compaction would make, and publishes none: the view stays as it
    /// is. What is ready already is not made again, and is taken for done when more is planned.
    /// Drafts that the view has no place for any more are deleted.
    ///
    /// A summarizer whose work costs nothing (one that is provisional) has nothing to prepare.
    ///
    /// # Errors
    /// When the store fails. A failing summarizer is no error; what was made before it failed is
    /// kept.
    pub async fn prepare_ahead(&self) -> Result<Ahead> {
        if self.summarizer.provisional() {
            return Ok(Ahead::default());
        }
        let snapshot = self.snapshot().await?;
        let spans = self.spans(&snapshot).await?;
        let (ready, revision) = self.waiting(&spans).await?;

        let mut jobs = self.jobs_beyond(&snapshot, spans, &ready.jobs).await?;
        jobs.truncate(self.policy.ahead_jobs);
        let mut tally = Tally::default();
        let stage = Self {
            stage: Stage::Prepare,
            ..self.clone()
        };
        let executed = stage.execute(&jobs, &[], &mut tally).await;
        let prepared = tally.ready.len();
        let mut count = ready.jobs.len();
        if prepared > 0 {
            count = self.add_waiting(revision, ready, tally.ready).await?;
        }
        executed?;
        Ok(Ahead {
            prepared: prepared as u64,
            ready: count as u64,
            calls: tally.watch.calls.load(Ordering::Relaxed),
            failure: tally.failure,
            model: tally.watch.report(),
            cancelled: tally.cancelled,
        })
    }

    /// Publishes what [`Compaction::prepare_ahead`] made, and never calls a model. With a
    /// summarizer whose work costs nothing it is an incremental [`Compaction::run`]. An extract
    /// that was published meanwhile for the same messages is replaced.
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
            let spans = self.spans(&start).await?;
            let (list, unwanted) = self.still_wanted(parse(&state), &spans).await?;
            for waiting in unwanted {
                self.skip(&waiting.job, SkipReason::Lost, &mut tally).await;
                self.delete_draft(waiting).await?;
            }
            let stage = Self {
                stage: Stage::PublishReady,
                ..self.clone()
            };
            let jobs: Vec<Job> = list.jobs.into_iter().map(|waiting| waiting.job).collect();
            stage.execute(&jobs, &[], &mut tally).await?;
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

    /// The jobs that are left when these are taken for done.
    async fn jobs_beyond(
        &self,
        snapshot: &Snapshot,
        spans: Vec<Span>,
        ready: &[Waiting],
    ) -> Result<Vec<Job>> {
        let mut jobs = Vec::new();
        for kind in self.planner.passes() {
            let (mut spans, stand_ins) = with_stand_ins(&spans, ready.iter().map(|w| &w.job));
            fill_raw_tokens(self.store, snapshot, &mut spans).await?;
            let least = match kind {
                // Where there is little room, a source is never much longer than a quarter of it.
                PassKind::Leaf => {
                    let quarter = self.room.map_or(u64::MAX, |room| room.tokens / 4);
                    self.policy.ahead_min_tokens.min(quarter)
                }
                PassKind::Condensed => 0,
            };
            let planned = self.jobs(*kind, snapshot, &spans).await?;
            // What is to be made from a summary that is not published yet has to wait for it.
            jobs.extend(planned.into_iter().filter(|job| {
                job.source_tokens >= least && !job.children.iter().any(|c| is_in(c, &stand_ins))
            }));
        }
        jobs.sort_by_key(|job| job.range);
        Ok(jobs)
    }

    fn waiting_key(&self) -> String {
        format!("prepared/{}", self.planner.view())
    }

    async fn waiting_state(&self) -> Result<Option<State>> {
        let key = self.waiting_key();
        Ok(self.store.state(self.conversation, &key).await?)
    }

    /// The jobs that can be published over these spans, and the list's revision. The others are
    /// taken off the list, and their drafts deleted.
    async fn waiting(&self, spans: &[Span]) -> Result<(WaitingList, u64)> {
        let Some(state) = self.waiting_state().await? else {
            return Ok((WaitingList::default(), 0));
        };
        let (list, unwanted) = self.still_wanted(parse(&state), spans).await?;
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
        spans: &[Span],
    ) -> Result<(WaitingList, Vec<Waiting>)> {
        let (mut wanted, mut unwanted) = (WaitingList::default(), Vec::new());
        let Ok(mut view) = View::from_starts(&starts(spans)) else {
            return Ok((wanted, list.jobs));
        };
        for mut waiting in list.jobs {
            let mut spliced = splice(&view, &waiting.job);
            if spliced.is_none()
                && let Some(extract) = self.extract_of(&waiting.job, spans).await?
            {
                waiting.job.expect = vec![extract];
                spliced = splice(&view, &waiting.job);
            }
            match spliced {
                Some(spliced) => {
                    view = spliced;
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
            let depth = matches!(span.body, Body::Summary { depth, .. } if depth == job.depth);
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
            .any(|summary| summary.provisional && summary.children == job.children);
        Ok(extract.then(|| span.clone()))
    }

    /// Deletes a job's draft unless somebody is at work on it.
    async fn delete_draft(&self, waiting: Waiting) -> Result<()> {
        let Some(key) = waiting.draft.map(JobKey) else {
            return Ok(());
        };
        let now = self.clock.now();
        let lease = self.policy.lease_micros;
        let until = Timestamp(now.0.saturating_add(lease));
        let Ok(_taken) = self.in_hand.take(self.conversation, &key, now, until) else {
            return Ok(());
        };
        let claim = self
            .store
            .claim(self.conversation, &key, &self.owner, now, lease);
        match claim.await? {
            Claim::Held { .. } => Ok(()),
            Claim::Granted(fence) | Claim::Ready(fence, _) => self.release(Some(fence)).await,
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

/// The view as if these jobs were published, and the ids that stand for their summaries.
fn with_stand_ins<'j>(
    spans: &[Span],
    jobs: impl Iterator<Item = &'j Job>,
) -> (Vec<Span>, BTreeSet<SummaryId>) {
    let Ok(mut view) = View::from_starts(&starts(spans)) else {
        return (spans.to_vec(), BTreeSet::new());
    };
    let mut ids = BTreeSet::new();
    for job in jobs {
        if let Some(spliced) = splice(&view, job) {
            view = spliced;
            ids.insert(stand_in(job));
        }
    }
    (view.spans().to_vec(), ids)
}

fn splice(view: &View, job: &Job) -> Option<View> {
    let body = Body::Summary {
        id: stand_in(job),
        depth: job.depth,
    };
    // What it will cost is not known; a third is what leaves aim at (anna's rule).
    let span = Span::closed(job.range, body, job.source_tokens / 3);
    view.splice(job.range, &job.expect, &[span]).ok()
}

/// An id that no summary has: those are made from hashes of more than a range and a depth.
fn stand_in(job: &Job) -> SummaryId {
    let mut bytes = [0; 32];
    for (to, from) in bytes.iter_mut().zip(
        [job.range.first.0, job.range.last.0, job.depth]
            .iter()
            .flat_map(|n| n.to_be_bytes()),
    ) {
        *to = from;
    }
    summary_id(Hash(bytes))
}

fn is_in(child: &Child, ids: &BTreeSet<SummaryId>) -> bool {
    matches!(child, Child::Summary { id, .. } if ids.contains(id))
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
