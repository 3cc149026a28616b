//! Preparing ahead of need, and publishing only what is ready.
//!
//! A turn must not wait for a model. So the calls are made between turns, their texts are kept as
//! drafts, and a turn that finds its context too large publishes what there is.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use memory_model::{
    Body, Child, Hash, Job, Mode, PassKind, RawJson, Span, SpanStart, StopReason, SummaryId, View,
    summary_id,
};
use memory_store::{Snapshot, fill_raw_tokens};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::report::ModelReport;
use crate::run::{Compaction, Outcome, Stage, Tally};

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

/// The jobs whose drafts wait to be published, in the order in which they were prepared.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Waiting {
    jobs: Vec<Job>,
}

impl Compaction<'_> {
    /// Makes the summaries that a compaction would make, and publishes none: the view stays as it
    /// is. What is ready already is not made again, and is taken for done when more is planned.
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
        let (waiting, revision) = self.waiting().await?;
        let found = waiting.jobs.len();
        let mut ready = still_wanted(waiting.jobs, &spans);
        let forgotten = found - ready.len();

        let mut jobs = self.jobs_beyond(&snapshot, spans, &ready).await?;
        jobs.truncate(self.policy.ahead_jobs);
        let mut tally = Tally::default();
        let stage = Self {
            stage: Stage::Prepare,
            ..self.clone()
        };
        let executed = stage.execute(&jobs, &[], &mut tally).await;
        let prepared = tally.ready.len();
        ready.append(&mut tally.ready);
        let count = ready.len();
        if prepared + forgotten > 0 {
            self.remember_waiting(revision, Waiting { jobs: ready })
                .await?;
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
    /// summarizer whose work costs nothing it is an incremental [`Compaction::run`].
    ///
    /// # Errors
    /// When the store fails.
    pub async fn publish_ready(&self) -> Result<Outcome> {
        if self.summarizer.provisional() {
            return self.run(Mode::Incremental).await;
        }
        let (_, before) = self.begun().await?;
        let (waiting, revision) = self.waiting().await?;
        let mut tally = Tally::default();
        if !waiting.jobs.is_empty() {
            let stage = Self {
                stage: Stage::PublishReady,
                ..self.clone()
            };
            stage.execute(&waiting.jobs, &[], &mut tally).await?;
            if !tally.cancelled {
                self.remember_waiting(revision, Waiting::default()).await?;
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
        ready: &[Job],
    ) -> Result<Vec<Job>> {
        let view = |jobs: &mut dyn Iterator<Item = &Job>| with_stand_ins(&spans, jobs);
        let mut jobs = Vec::new();
        for kind in self.planner.passes() {
            let (mut spans, stand_ins) = view(&mut ready.iter());
            fill_raw_tokens(self.store, snapshot, &mut spans).await?;
            let least = match kind {
                PassKind::Leaf => self.policy.ahead_min_tokens,
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

    async fn waiting(&self) -> Result<(Waiting, u64)> {
        let state = self
            .store
            .state(self.conversation, &self.waiting_key())
            .await?;
        let Some(state) = state else {
            return Ok((Waiting::default(), 0));
        };
        // What a newer version wrote is not understood, and then nothing is ready.
        let waiting = serde_json::from_str(state.value.as_str()).unwrap_or_default();
        Ok((waiting, state.revision))
    }

    async fn remember_waiting(&self, revision: u64, waiting: Waiting) -> Result<()> {
        let Ok(value) = RawJson::from_value(&waiting) else {
            return Ok(());
        };
        let key = self.waiting_key();
        match self
            .store
            .put_state(self.conversation, &key, revision, Some(&value))
            .await
        {
            // Somebody else prepared or published meanwhile. The drafts of this run are kept, and
            // whoever plans the same jobs finds them.
            Err(error) if error.kind() == memory_store::ErrorKind::Stale => Ok(()),
            result => result.map(|_| ()).map_err(Into::into),
        }
    }
}

/// The jobs whose replaced spans the view still holds.
fn still_wanted(jobs: Vec<Job>, spans: &[Span]) -> Vec<Job> {
    let Ok(mut view) = View::from_starts(&starts(spans)) else {
        return Vec::new();
    };
    jobs.into_iter()
        .filter(|job| match splice(&view, job) {
            Some(spliced) => {
                view = spliced;
                true
            }
            None => false,
        })
        .collect()
}

/// The view as if these jobs were published, and the ids that stand for their summaries.
fn with_stand_ins(
    spans: &[Span],
    jobs: &mut dyn Iterator<Item = &Job>,
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
