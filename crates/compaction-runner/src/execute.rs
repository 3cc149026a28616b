//! The batches of a pass (planning round). The jobs (changes of the view) of a batch are leased in one call, several
//! are prepared at the same time, and ready jobs are published in one transaction, in order.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use compaction_plan::Job;
use futures::future::{BoxFuture, Either, select};
use futures::{FutureExt as _, Stream, StreamExt as _};

use crate::asked::ask_once;
use crate::before::with_before;
use crate::begin::begin;
use crate::conclude::{conclude, give_up, is_split};
use crate::environment::Compaction;
use crate::error::{Error, Result};
use crate::leases::hand_back;
use crate::prepared::Done;
use crate::sources::Entries;
use crate::tally::{Tally, job_id};
use crate::watch::Watch;
use crate::write::write;

/// Ratio between the number of summaries in a batch and the number that are written at the same time, if a model is
/// called. The lease on a summary lasts until the last summary of its batch is finished.
const BATCH: usize = 4;
/// Maximum number of changes of the view in a batch without model calls, and maximum number that are published
/// together.
const MOST: usize = 64;

/// Prepares jobs (changes of the view, such as summaries to write) batch by batch, and publishes them in order.
pub(crate) async fn execute(
    env: &Compaction<'_>,
    jobs: &[Job],
    entries: &Entries,
    tally: &mut Tally,
) -> Result<()> {
    let wanted = |job: &&Job| {
        let id = job_id(job);
        let given_up = [&tally.refused, &tally.vetoed, &tally.waits];
        !given_up.iter().any(|ids| ids.contains(&id))
    };
    let all = jobs.len();
    let is_split = env.policy.whole_passes && is_split(jobs);
    let mut jobs: Vec<&Job> = jobs.iter().filter(wanted).collect();
    if is_split && jobs.len() < all {
        jobs.clear();
    }
    tally.planned += jobs.len() as u64;
    if !ask_once(env, &jobs, tally).await {
        return Ok(());
    }
    let (put_off, ready) = (tally.put_off.len(), tally.ready.len());
    let concurrency = env.policy.concurrency();
    let size = match env.summarizer.provisional() {
        true => MOST,
        false => concurrency.saturating_mul(BATCH).min(MOST),
    };
    for batch in jobs.chunks(size) {
        let mut prepared = Vec::with_capacity(batch.len());
        for job in batch {
            prepared.push(with_before(env, Cow::Borrowed(*job)).await?);
        }
        let batch: Vec<&Job> = prepared.iter().map(|job| &**job).collect();
        execute_batch(env, &batch, entries, tally).await?;
        if tally.must_stop().is_some() {
            break;
        }
    }
    let made = tally.put_off.len() + tally.ready.len() - put_off - ready;
    if is_split && made < jobs.len() {
        tally.ready.truncate(ready);
        let partial = tally.put_off.split_off(put_off);
        hand_back(env, partial.into_iter().filter_map(|one| one.fence)).await?;
    }
    Ok(())
}

/// Prepares and publishes one batch of jobs (changes of the view).
async fn execute_batch(
    env: &Compaction<'_>,
    jobs: &[&Job],
    entries: &Entries,
    tally: &mut Tally,
) -> Result<()> {
    let watch = Arc::clone(&tally.watch);
    let watch: &Watch = &watch;
    let begun = begin(env, jobs, entries, &tally.made, watch).await?;
    // True if no further job may begin. Jobs that have begun are finished.
    let stop = AtomicBool::new(false);
    let stop = &stop;
    // The futures are boxed so that a run is `Send`, which is not the case for a closure over borrowed jobs.
    let work: Vec<BoxFuture<'_, Done<'_>>> = begun
        .into_iter()
        .map(|begun| write(env, begun, watch, stop).boxed())
        .collect();
    let concurrency = env.policy.concurrency();
    let mut work = futures::stream::iter(work)
        .buffered(concurrency)
        .ready_chunks(MOST);
    let mut waiting = VecDeque::new();
    let mut failed: Option<Error> = None;
    loop {
        let next = match waiting.pop_front() {
            Some(next) => Some(next),
            None => work.next().await,
        };
        let Some(done) = next else { break };
        if failed.is_some() {
            // The store has just failed, so only an attempt to give back the leases is left.
            let _ = alongside(give_up(env, done), &mut work, &mut waiting).await;
            continue;
        }
        // Jobs in progress may be reading the store, so they are polled while this job is concluded.
        let concluding = conclude(env, done, tally);
        let concluded = alongside(concluding, &mut work, &mut waiting).await;
        if let Err(error) = concluded {
            failed = Some(error);
            watch.halt.cancel();
        }
        if failed.is_some() || tally.must_stop().is_some() {
            stop.store(true, Ordering::Relaxed);
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Runs a future to completion while polling a stream. Appends the items of the stream to `waiting`.
///
/// Without polling, the calls in progress in the stream would make no progress.
async fn alongside<T, S>(
    future: impl Future<Output = T>,
    stream: &mut S,
    waiting: &mut VecDeque<S::Item>,
) -> T
where
    S: Stream + Unpin,
{
    let mut future = pin!(future);
    loop {
        match select(future.as_mut(), stream.next()).await {
            Either::Left((output, _)) => return output,
            Either::Right((Some(item), _)) => waiting.push_back(item),
            Either::Right((None, _)) => return future.await,
        }
    }
}
