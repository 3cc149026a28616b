//! What comes of preparing a job, and keeping it until it is published.

use compaction_plan::Job;
use memory_model::Summary;
use memory_store::{Draft, Fence, LeaseUpdate};

use crate::environment::Compaction;
use crate::events::SkipReason;
use crate::in_flight::Taken;
use crate::report::Cause;

/// What came of preparing a job.
#[derive(Debug)]
pub(crate) enum Prepared {
    /// A summary to publish.
    Summary(Box<Ready>),
    /// The job's own spans are to be published.
    Replacement,
    /// Nothing to publish, and no harm.
    Skipped(SkipReason),
    /// The summarizer failed, and the ladder says to stop there.
    Failed {
        /// The error and its causes.
        error: String,
        cause: Cause,
    },
    /// The compaction was cancelled.
    Cancelled,
    /// Nothing was tried, because a job before it failed.
    NotBegun,
}

/// A summary to publish.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) summary: Summary,
    /// Why the model did not write it.
    pub(crate) cause: Option<Cause>,
    /// Whether it was written in this run.
    pub(crate) fresh: bool,
    /// What to keep until it is published; `None` when it is kept already, or needs no model.
    pub(crate) draft: Option<Draft>,
}

/// A job that is prepared, and the lease that it was prepared under.
#[derive(Debug)]
pub(crate) struct Done<'j> {
    pub(crate) job: &'j Job,
    pub(crate) prepared: Prepared,
    pub(crate) fence: Option<Fence>,
    /// Until this is over, no other run of the same owner takes the job.
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

    /// A job that needed no lease.
    pub(crate) fn unleased(job: &'j Job, prepared: Prepared) -> Self {
        Self::new(job, prepared, None, None)
    }
}

/// Keeps what models have just written as drafts, in one call.
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
    // A lease may have ended before the model answered, or the store may be busy. What was written
    // is good all the same: it is published next.
    match env.store.settle_all(&drafts).await {
        Ok(answers) => {
            for error in answers.into_iter().filter_map(std::result::Result::err) {
                tracing::warn!(%error, "a draft could not be kept");
            }
        }
        Err(error) => tracing::warn!(%error, "drafts could not be kept"),
    }
}
