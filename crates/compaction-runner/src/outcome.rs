//! What a run has done so far, and what it did in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use compaction_plan::{Job, Label, LabelCounts, StopReason};
use memory_model::{Body, SeqRange, Summary, SummaryId};
use memory_store::Snapshot;
use serde::Serialize;

use crate::conclude::Publishable;
use crate::owners::HeldBy;
use crate::prefetch::Waiting;
use crate::report::ModelReport;
use crate::watch::Watch;

/// What a compaction did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// The view before.
    pub before: Measure,
    /// The view after.
    pub after: Measure,
    /// Number of published jobs, by the planner's label.
    pub published: LabelCounts,
    /// Number of messages that the view showed as they are and does not any more.
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

/// What tells a job from others of the same view.
pub(crate) type JobId = (SeqRange, Label, Option<u32>);

pub(crate) fn job_id(job: &Job) -> JobId {
    (job.range, job.kind.clone(), job.depth())
}

/// What is known of a run so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) planned: u64,
    pub(crate) published: u64,
    pub(crate) counts: LabelCounts,
    pub(crate) messages: u64,
    pub(crate) summaries: Vec<SummaryId>,
    /// Jobs that were prepared and not published.
    pub(crate) ready: Vec<Waiting>,
    /// Jobs that are published together at the end of the iteration.
    pub(crate) put_off: Vec<Publishable>,
    /// Summaries that are not in the store yet, by id.
    pub(crate) made: BTreeMap<SummaryId, Summary>,
    pub(crate) failure: Option<String>,
    /// Jobs that cannot shrink; they are not tried again.
    pub(crate) refused: BTreeSet<JobId>,
    /// Jobs that a hook said no to; it is not asked again.
    pub(crate) vetoed: BTreeSet<JobId>,
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
    /// Puts a job off to the end of the iteration.
    pub(crate) fn put_off(&mut self, one: Publishable) {
        if let Some(summary) = &one.summary {
            self.made.insert(summary.id.clone(), summary.clone());
        }
        self.put_off.push(one);
    }

    /// Counts a published job.
    pub(crate) fn count(&mut self, job: &Job) {
        let raw = job.expect.iter().filter(|span| span.body == Body::Raw);
        let messages = raw.filter_map(|span| span.closed_range());
        self.messages += messages.map(|range| range.len()).sum::<u64>();
        self.published += 1;
        self.counts.add(&job.kind, 1);
    }

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
