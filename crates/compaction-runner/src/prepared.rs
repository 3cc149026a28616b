//! The results of preparing jobs, kept until they are published.

use compaction_plan::Job;
use memory_model::Summary;
use memory_store::{Draft, Fence, LeaseUpdate};

use crate::environment::Compaction;
use crate::events::SkipReason;
use crate::in_flight::Taken;
use crate::report::Cause;

/// Result of preparing a job.
#[derive(Debug)]
pub(crate) enum Prepared {
    /// A summary to publish.
    Summary(Box<Ready>),
    /// The job's given spans, to be published.
    Replacement,
    /// The job was skipped without an error.
    Skipped(SkipReason),
    /// The summarizer failed, and the ladder stops there.
    Failed {
        /// The error and its causes.
        error: String,
        cause: Cause,
    },
    /// The compaction was cancelled.
    Cancelled,
    /// The job was not tried, because a job before it failed.
    NotBegun,
}

/// A summary to publish.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) summary: Summary,
    /// Reason why the model did not write it.
    pub(crate) cause: Option<Cause>,
    /// Whether it was written in this run.
    pub(crate) fresh: bool,
    /// Draft to keep until the summary is published; `None` if it is kept already or needs no model.
    pub(crate) draft: Option<Draft>,
}

/// A prepared job with its lease.
#[derive(Debug)]
pub(crate) struct Done<'j> {
    pub(crate) job: &'j Job,
    pub(crate) prepared: Prepared,
    pub(crate) fence: Option<Fence>,
    /// Keeps other runs of the same owner from the job.
    _taken: Option<Taken>,
}

impl<'j> Done<'j> {
    pub(crate) fn new(
        job: &'j Job,
        prepared: Prepared,
        fence: Option<Fence>,
        taken: Option<Taken>,
    ) -> Self {
        Self {
            job,
            prepared,
            fence,
            _taken: taken,
        }
    }

    /// Creates a result of a job without a lease.
    pub(crate) fn unleased(job: &'j Job, prepared: Prepared) -> Self {
        Self::new(job, prepared, None, None)
    }
}

/// Keeps new texts of models as drafts, in one call.
pub(crate) async fn keep_drafts(env: &Compaction<'_>, done: &mut [Done<'_>]) {
    let mut drafts = Vec::new();
    for one in done {
        if let (Some(fence), Prepared::Summary(ready)) = (&one.fence, &mut one.prepared) {
            let draft = ready.draft.take();
            drafts.extend(draft.map(|draft| (fence.clone(), LeaseUpdate::Prepared(draft))));
        }
    }
    if drafts.is_empty() {
        return;
    }
    // A lease may have ended before the model answered, or the store may be busy. The text is still good: it is
    // published next.
    match env.store.settle_all(&drafts).await {
        Ok(answers) => {
            for error in answers.into_iter().filter_map(std::result::Result::err) {
                tracing::warn!(%error, "a draft could not be kept");
            }
        }
        Err(error) => tracing::warn!(%error, "drafts could not be kept"),
    }
}
