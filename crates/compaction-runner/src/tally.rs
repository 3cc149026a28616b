//! The state of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use compaction_plan::{Job, Label, LabelCounts, StopReason};
use memory_model::{SeqRange, SpanBody, Summary, SummaryId};
use memory_store::Snapshot;

use crate::outcome::{Measure, Outcome};
use crate::publishable::Publishable;
use crate::waiting::Waiting;
use crate::watch::Watch;

/// Key that distinguishes the jobs of a view.
pub(crate) type JobId = (SeqRange, Label, Option<u32>);

pub(crate) fn job_id(job: &Job) -> JobId {
    (job.range, job.kind.clone(), job.depth())
}

/// Counters and results of a run so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) planned: u64,
    pub(crate) published: u64,
    pub(crate) counts: LabelCounts,
    pub(crate) messages: u64,
    pub(crate) summaries: Vec<SummaryId>,
    pub(crate) provisional: u64,
    /// Prepared jobs that are not published.
    pub(crate) ready: Vec<Waiting>,
    /// Jobs that are published together at the end of the iteration.
    pub(crate) put_off: Vec<Publishable>,
    /// Summaries that are not in the store yet, by id.
    pub(crate) made: BTreeMap<SummaryId, Summary>,
    pub(crate) failure: Option<String>,
    /// Kind of the last failed job.
    pub(crate) failed_kind: Option<Label>,
    /// Jobs that cannot shrink. They are not tried again.
    pub(crate) refused: BTreeSet<JobId>,
    /// Jobs that a hook cancelled. The hook is not asked again.
    pub(crate) vetoed: BTreeSet<JobId>,
    /// Whether another owner held a job of this iteration.
    pub(crate) held: bool,
    /// Whether another writer was first with a job of this iteration.
    pub(crate) lost: bool,
    pub(crate) cancelled: bool,
    /// State of the view at the beginning of this iteration.
    pub(crate) seen: Option<Snapshot>,
    /// Current state of the view, if it was read since the last publish.
    pub(crate) now: Option<Snapshot>,
    pub(crate) watch: Arc<Watch>,
}

impl Tally {
    /// Defers a job to the end of the iteration.
    pub(crate) fn put_off(&mut self, one: Publishable) {
        if let Some(summary) = &one.summary {
            self.made.insert(summary.id.clone(), summary.clone());
        }
        self.put_off.push(one);
    }

    /// Counts a published job.
    pub(crate) fn count(&mut self, job: &Job) {
        let raw = job.expect.iter().filter(|span| span.body == SpanBody::Raw);
        let messages = raw.filter_map(|span| span.closed_range());
        self.messages += messages.map(|range| range.len()).sum::<u64>();
        self.published += 1;
        self.now = None;
        self.counts.add(&job.kind, 1);
    }

    /// Resets the facts about the iteration before.
    pub(crate) fn begin_iteration(&mut self) {
        (self.held, self.lost, self.seen) = (false, false, None);
    }

    /// Returns the reason to stop the run at once; `None` to continue.
    pub(crate) fn must_stop(&self) -> Option<StopReason> {
        match () {
            () if self.cancelled => Some(StopReason::Cancelled),
            () if self.failure.is_some() => Some(StopReason::SummarizerFailed),
            () => None,
        }
    }

    /// Returns the reason why an iteration had no result, from the outcomes of its jobs.
    pub(crate) fn in_vain(&self) -> Option<StopReason> {
        match () {
            () if self.held => Some(StopReason::Held),
            () if self.lost => Some(StopReason::LostRace),
            () if !self.vetoed.is_empty() => Some(StopReason::NoProgress),
            () if !self.refused.is_empty() => Some(StopReason::Exhausted),
            () => None,
        }
    }

    /// Returns the outcome of the run, given the view's state before and after it.
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
