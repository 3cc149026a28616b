//! The question to the hooks whether a whole run may begin.

use std::sync::Arc;

use compaction_plan::Job;
use futures::future::Aborted;
use memory_model::ViewName;

use crate::environment::{Compaction, Stage};
use crate::events::CompactionDecision;
use crate::planned_job::PlannedJob;
use crate::tally::Tally;

/// Asks the hooks about the whole run, once, before its first job. Returns whether the jobs are carried out.
pub(crate) async fn ask_once(env: &Compaction<'_>, jobs: &[&Job], tally: &mut Tally) -> bool {
    let Some(first) = jobs.first() else {
        return true;
    };
    if matches!(env.stage, Stage::Prepare | Stage::Supplied) || tally.asked {
        return true;
    }
    tally.asked = true;
    let (watch, view) = (Arc::clone(&tally.watch), env.view());
    let planned = planned_job(env, first, jobs, &view);
    let answer = env.hooks.before_compaction(&planned);
    match watch.unless_stopped(&env.cancel, answer).await {
        Ok(CompactionDecision::Proceed) => return true,
        Ok(CompactionDecision::Supply(result)) => tally.supplied = Some(result),
        Ok(CompactionDecision::Cancel) | Err(Aborted) => tally.cancelled = true,
    }
    false
}

/// Returns a job as hooks see it, with all jobs that begin together.
pub(crate) fn planned_job<'a>(
    env: &'a Compaction<'_>,
    job: &'a Job,
    jobs: &'a [&'a Job],
    view: &'a ViewName,
) -> PlannedJob<'a> {
    PlannedJob {
        job,
        jobs,
        conversation: env.conversation,
        reason: env.reason,
        instructions: env.instructions.as_deref(),
        view,
        store: env.store,
    }
}
