//! The end of prepared jobs (summaries and other changes of the view): keeps them as drafts, defers them, or publishes
//! them together in one transaction.

use std::slice;

use compaction_plan::Job;
use memory_model::Purpose;
use memory_store::{LeaseUpdate, Published};

use crate::environment::{Compaction, Stage};
use crate::error::Result;
use crate::events::{Event, SkipReason};
use crate::leases::{HAND_BACK, hand_back, release, settle_all};
use crate::prepared::{Done, Prepared, keep_drafts};
use crate::publishable::{Publishable, publish_all};
use crate::tally::{Tally, job_id};
use crate::waiting::Waiting;

/// Concludes prepared jobs. Ready jobs are published in one transaction, kept for later, or deferred to the end of the
/// iteration. The leases of all other jobs are given back.
pub(crate) async fn conclude(
    env: &Compaction<'_>,
    mut done: Vec<Done<'_>>,
    tally: &mut Tally,
) -> Result<()> {
    keep_drafts(env, &mut done).await;
    let cancelled = |done: &Done<'_>| matches!(done.prepared, Prepared::Cancelled);
    tally.cancelled |= env.cancel.is_cancelled() || done.iter().any(cancelled);
    let (mut ready, mut others, mut settled) = (Vec::new(), Vec::new(), Vec::new());
    for one in &mut done {
        let fence = one.fence.take();
        let (job, prepared) = (
            one.job,
            std::mem::replace(&mut one.prepared, Prepared::NotBegun),
        );
        let summary = match prepared {
            Prepared::Summary(ready) => Some(ready.summary),
            Prepared::Replacement => None,
            other => {
                settled.extend(fence.map(|fence| (fence, LeaseUpdate::Release)));
                others.push((job, other));
                continue;
            }
        };
        let job = job.clone();
        ready.push(Publishable {
            job,
            summary,
            fence,
        });
    }
    // One of the two drafts of a split turn is not published alone.
    let is_partial = env.policy.whole_passes
        && env.stage == Stage::PublishReady
        && !others.is_empty()
        && done.iter().any(|done| is_split(slice::from_ref(done.job)));
    if tally.cancelled || is_partial {
        // Jobs that were ready before a cancellation are kept for the next run. Jobs that were ready before a failure
        // are published.
        let fences = ready.drain(..).filter_map(|one| one.fence);
        settled.extend(fences.map(|fence| (fence, HAND_BACK)));
    }
    settle_all(env, settled).await?;
    match env.stage {
        Stage::Prepare => {
            tally.ready.extend(ready.iter().map(Waiting::new));
            let summaries = ready.iter().filter_map(|one| one.summary.clone());
            tally
                .made
                .extend(summaries.map(|summary| (summary.id.clone(), summary)));
            hand_back(env, ready.into_iter().filter_map(|one| one.fence)).await?;
        }
        _ if env.puts_off() || env.publishes_passes() => {
            ready.into_iter().for_each(|one| tally.put_off(one));
        }
        _ => publish(env, ready, tally).await?,
    }
    for (job, prepared) in others {
        pass_over(env, job, prepared, tally).await;
    }
    Ok(())
}

/// Publishes the changes of the view that were deferred to the end of the iteration.
pub(crate) async fn publish_put_off(env: &Compaction<'_>, tally: &mut Tally) -> Result<()> {
    tally.made.clear();
    let ready = std::mem::take(&mut tally.put_off);
    if tally.cancelled {
        return Ok(());
    }
    publish(env, ready, tally).await
}

/// Gives up the deferred jobs of a pass (planning round) whose summaries cannot all be published. Gives back their
/// leases (exclusive claims), and keeps their summaries as drafts for the next run.
pub(crate) async fn give_up_put_off(env: &Compaction<'_>, tally: &mut Tally) -> Result<()> {
    tally.made.clear();
    let put_off = std::mem::take(&mut tally.put_off);
    hand_back(env, put_off.into_iter().filter_map(|one| one.fence)).await
}

/// Gives back the leases (exclusive claims) on prepared jobs. The next run can use their drafts (summaries that are not
/// published yet).
pub(crate) async fn give_up(env: &Compaction<'_>, done: Vec<Done<'_>>) -> Result<()> {
    let keeps = |done: &Done<'_>| matches!(done.prepared, Prepared::Summary(_));
    let settled = done.into_iter().filter_map(|done| {
        let outcome = match keeps(&done) {
            true => HAND_BACK,
            false => LeaseUpdate::Release,
        };
        Some((done.fence?, outcome))
    });
    settle_all(env, settled.collect()).await
}

/// Publishes ready changes of the view in one transaction, in order.
async fn publish(env: &Compaction<'_>, ready: Vec<Publishable>, tally: &mut Tally) -> Result<()> {
    if ready.is_empty() {
        return Ok(());
    }
    let outcomes = match publish_all(env, &ready, tally.watch.erasures()).await {
        Ok(outcomes) => outcomes,
        Err(error) => {
            // The store has just failed, so only an attempt to give back the leases is left.
            let fences = ready.into_iter().filter_map(|one| one.fence);
            let _ = hand_back(env, fences).await;
            return Err(error);
        }
    };
    let (mut released, mut handed_back, mut failed) = (Vec::new(), Vec::new(), None);
    for (one, outcome) in ready.into_iter().zip(outcomes) {
        match outcome {
            Ok(Published::Done(_)) => published(env, one, tally).await,
            Ok(Published::Outdated) => {
                tally.watch.outdate();
                released.extend(one.fence);
                skip(env, &one.job, SkipReason::Lost, tally).await;
            }
            Ok(Published::Already(_) | Published::Lost { .. }) => {
                released.extend(one.fence);
                skip(env, &one.job, SkipReason::Lost, tally).await;
            }
            Err(error) => {
                handed_back.extend(one.fence);
                failed.get_or_insert(error);
            }
        }
    }
    release(env, released).await?;
    hand_back(env, handed_back).await?;
    failed.map_or(Ok(()), |error| Err(error.into()))
}

/// Counts a published change of the view and emits [`Event::Published`].
async fn published(env: &Compaction<'_>, one: Publishable, tally: &mut Tally) {
    let Publishable { job, summary, .. } = &one;
    tally.count(job);
    let spans = one.spans();
    env.emit(Event::Published {
        kind: job.kind.clone(),
        summary: summary.as_ref().map(|summary| summary.id.clone()),
        range: job.range,
        source_tokens: job.source_tokens,
        tokens: spans.iter().map(|span| span.tokens).sum(),
    })
    .await;
    if let Some(summary) = summary {
        tally.summaries.push(summary.id.clone());
        tally.provisional += u64::from(summary.provisional);
        env.hooks.after(summary).await;
    }
}

/// Counts a job (a planned change of the view) that was skipped or failed, and emits an event with the reason.
async fn pass_over(env: &Compaction<'_>, job: &Job, prepared: Prepared, tally: &mut Tally) {
    match prepared {
        Prepared::Skipped(reason) => skip(env, job, reason, tally).await,
        Prepared::Failed { error, .. } => {
            let (range, told) = (job.range, error.clone());
            env.emit(Event::Failed { range, error: told }).await;
            tally.failure = Some(error);
            tally.failed_kind = Some(job.kind.clone());
        }
        _ => {}
    }
}

/// Counts a skipped job (a planned change of the view) and emits [`Event::Skipped`].
pub(crate) async fn skip(env: &Compaction<'_>, job: &Job, reason: SkipReason, tally: &mut Tally) {
    match reason {
        SkipReason::Held => tally.held = true,
        SkipReason::Lost => tally.lost = true,
        SkipReason::NotReady => {}
        SkipReason::Vetoed => {
            tally.vetoed.insert(job_id(job));
        }
        SkipReason::CannotShrink => {
            tally.refused.insert(job_id(job));
        }
        SkipReason::WaitsForModel => {
            tally.waits.insert(job_id(job));
        }
    }
    let range = job.range;
    env.emit(Event::Skipped { range, reason }).await;
}

/// Returns whether jobs contain the summary of the beginning of a turn that is split. With whole passes, it is written
/// together with the summary of the earlier turns, or not at all.
pub(crate) fn is_split(jobs: &[Job]) -> bool {
    let mut requests = jobs.iter().filter_map(|job| job.request.as_ref());
    requests.any(|request| request.purpose == Purpose::TurnPrefix)
}
