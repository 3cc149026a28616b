//! Prepared jobs: summaries and other changes of the view, kept until they are published.

use compaction_plan::Job;
use memory_model::Summary;
use memory_store::{Draft, Fence, LeaseUpdate};

use crate::environment::Compaction;
use crate::events::SkipReason;
use crate::in_flight::Taken;
use crate::report::Cause;

/// Outcome of preparing a job (a change of the view, such as a summary to write).
#[derive(Debug)]
pub(crate) enum Prepared {
    /// A summary to publish.
    Summary(Box<Ready>),
    /// The given spans of the job, to publish.
    Replacement,
    /// The job was skipped without an error.
    Skipped(SkipReason),
    /// The summarizer failed, and the ladder tries no further method.
    Failed {
        /// Text of the error with its causes.
        error: String,
        cause: Cause,
    },
    /// The compaction was cancelled.
    Cancelled,
    /// The job was not tried, because an earlier job failed.
    NotBegun,
}

/// A summary to publish.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) summary: Summary,
    /// Reason why the model did not write the summary; `None` if it did.
    pub(crate) cause: Option<Cause>,
    /// Whether the summary was written in this run.
    pub(crate) fresh: bool,
    /// Draft to store until the summary is published. `None` if it is already stored, or if it needed no model.
    pub(crate) draft: Option<Draft>,
}

/// A prepared job (a change of the view, such as a written summary) with its lease.
#[derive(Debug)]
pub(crate) struct Done<'j> {
    pub(crate) job: &'j Job,
    pub(crate) prepared: Prepared,
    pub(crate) fence: Option<Fence>,
    /// Claim that keeps other compactions of the same owner from working on the job.
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

    /// Creates a prepared job without a lease.
    pub(crate) fn unleased(job: &'j Job, prepared: Prepared) -> Self {
        Self::new(job, prepared, None, None)
    }
}

/// Stores the summaries that a model just wrote as drafts, in one call of the store. A draft is kept until its summary
/// is published. A draft that cannot be stored is logged as a warning, and its summary is still published.
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
    // The lease may have ended before the model answered, or the store may be busy. The text is still valid and is
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
