//! Counters of a run, and the summaries and failures so far.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use compaction_plan::{CompactionResult, Job, Label, LabelCounts, StopReason};
use memory_model::{SeqRange, SpanBody, Summary, SummaryId};
use memory_store::Snapshot;

use crate::outcome::{Measure, Outcome};
use crate::publishable::Publishable;
use crate::waiting::Waiting;
use crate::watch::Watch;

/// Key that identifies a job (a change of the view): its range, its kind, and the depth of its summary.
pub(crate) type JobId = (SeqRange, Label, Option<u32>);

pub(crate) fn job_id(job: &Job) -> JobId {
    (job.range, job.kind.clone(), job.depth())
}

/// Counters of a run, and its summaries and failures so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) planned: u64,
    pub(crate) published: u64,
    pub(crate) counts: LabelCounts,
    pub(crate) messages: u64,
    pub(crate) summaries: Vec<SummaryId>,
    pub(crate) provisional: u64,
    /// Written summaries that wait to be published in a later run.
    pub(crate) ready: Vec<Waiting>,
    /// Changes of the view that are published together at the end of the iteration.
    pub(crate) put_off: Vec<Publishable>,
    /// New summaries that are not in the store yet, by id.
    pub(crate) made: BTreeMap<SummaryId, Summary>,
    pub(crate) failure: Option<String>,
    /// Kind of the last change of the view that failed, named by the planner.
    pub(crate) failed_kind: Option<Label>,
    /// Jobs (changes of the view) that cannot make the view smaller. They are not tried again.
    pub(crate) refused: BTreeSet<JobId>,
    /// Jobs (changes of the view) that a hook cancelled. The hooks are not asked again.
    pub(crate) vetoed: BTreeSet<JobId>,
    /// Jobs (summaries of summaries) that wait for the model. They are not tried again.
    pub(crate) waits: BTreeSet<JobId>,
    /// Whether a summary of this iteration was skipped because another owner is writing it.
    pub(crate) held: bool,
    /// Whether a change of this iteration was lost because another writer changed the same spans of the view first.
    pub(crate) lost: bool,
    pub(crate) cancelled: bool,
    /// Whether the hooks were asked about the whole run.
    pub(crate) asked: bool,
    /// Result that a hook supplied in place of the jobs (planned changes of the view).
    pub(crate) supplied: Option<Box<CompactionResult>>,
    /// State of the view at the beginning of this iteration.
    pub(crate) seen: Option<Snapshot>,
    /// Current state of the view; `None` if it was not read since the last publication.
    pub(crate) now: Option<Snapshot>,
    pub(crate) watch: Arc<Watch>,
}

impl Tally {
    /// Defers a change of the view to the end of the iteration, when it is published together with others.
    pub(crate) fn put_off(&mut self, one: Publishable) {
        if let Some(summary) = &one.summary {
            self.made.insert(summary.id.clone(), summary.clone());
        }
        self.put_off.push(one);
    }

    /// Counts a published change of the view.
    pub(crate) fn count(&mut self, job: &Job) {
        let raw = job.expect.iter().filter(|span| span.body == SpanBody::Raw);
        let messages = raw.filter_map(|span| span.closed_range());
        self.messages += messages.map(|range| range.len()).sum::<u64>();
        self.published += 1;
        self.now = None;
        self.counts.add(&job.kind, 1);
    }

    /// Resets the fields for the previous iteration.
    pub(crate) fn begin_iteration(&mut self) {
        (self.held, self.lost, self.seen) = (false, false, None);
    }

    /// Returns the reason why the run must stop at once. `None` if it may continue.
    pub(crate) fn must_stop(&self) -> Option<StopReason> {
        match () {
            () if self.cancelled => Some(StopReason::Cancelled),
            () if self.failure.is_some() => Some(StopReason::SummarizerFailed),
            () if self.supplied.is_some() => Some(StopReason::PassesDone),
            () => None,
        }
    }

    /// Returns the reason why an iteration did not change the view. `None` if its jobs give no reason.
    pub(crate) fn in_vain(&self) -> Option<StopReason> {
        match () {
            () if self.held => Some(StopReason::Held),
            () if self.lost => Some(StopReason::LostRace),
            () if !self.vetoed.is_empty() => Some(StopReason::NoProgress),
            () if !self.refused.is_empty() => Some(StopReason::Exhausted),
            () if !self.waits.is_empty() => Some(StopReason::WaitsForModel),
            () => None,
        }
    }

    /// Returns the outcome of the run. `start` and `end` are the states of the view before and after the run.
    pub(crate) fn into_outcome(
        self,
        start: &Snapshot,
        end: Snapshot,
        stop_reason: StopReason,
        elapsed: Duration,
    ) -> Outcome {
        Outcome {
            before: Measure::from(start),
            after: Measure::from(&end),
            snapshot: end,
            published: self.counts,
            messages_compacted: self.messages,
            calls: self.watch.calls.load(Ordering::Relaxed),
            summaries: self.summaries,
            provisional: self.provisional,
            failure: self.failure,
            failed_kind: self.failed_kind,
            summarizer_error: self.watch.last_error(),
            model: self.watch.report(),
            held: self.watch.held_by(),
            stop_reason,
            elapsed,
        }
    }
}
