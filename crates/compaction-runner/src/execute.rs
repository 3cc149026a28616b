//! Carrying out the jobs of a pass in batches: each is leased in one call, several jobs are prepared
//! at the same time, and what is ready is published in one transaction, in the order of the jobs.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use compaction_plan::Job;
use futures::future::{BoxFuture, Either, select};
use futures::{FutureExt as _, Stream, StreamExt as _};
use memory_model::LogEntry;

use crate::error::{Error, Result};
use crate::events::{Event, SkipReason};
use crate::outcome::{Tally, job_id};
use crate::prepare::Done;
use crate::run::Compaction;
use crate::watch::Watch;

/// Number of jobs in a batch for each that is prepared at the same time, where a model is called: a
/// lease lasts until the last of its batch is done.
const BATCH: usize = 4;
/// Number of jobs in a batch where no model is called, and of results that are published at once.
const MOST: usize = 64;

impl Compaction<'_> {
    /// Prepares jobs batch by batch, and publishes them in order.
    pub(crate) async fn execute(
        &self,
        jobs: &[Job],
        entries: &[LogEntry],
        tally: &mut Tally,
    ) -> Result<()> {
        let wanted = |job: &&Job| {
            let id = job_id(job);
            !tally.refused.contains(&id) && !tally.vetoed.contains(&id)
        };
        let jobs: Vec<&Job> = jobs.iter().filter(wanted).collect();
        tally.planned += jobs.len() as u64;
        let concurrency = self.policy.concurrency.max(1);
        let size = match self.summarizer.provisional() {
            true => MOST,
            false => concurrency.saturating_mul(BATCH).min(MOST),
        };
        for batch in jobs.chunks(size) {
            self.batch(batch, entries, tally).await?;
            if tally.must_stop() {
                break;
            }
        }
        Ok(())
    }

    /// Does [`execute`](Self::execute) for one batch.
    async fn batch(&self, jobs: &[&Job], entries: &[LogEntry], tally: &mut Tally) -> Result<()> {
        let watch = Arc::clone(&tally.watch);
        let watch: &Watch = &watch;
        let begun = self.begin(jobs, entries, &tally.made, watch).await?;
        // Set when nothing more is to be begun; what was begun is brought to its end.
        let stop = AtomicBool::new(false);
        let stop = &stop;
        // Boxed, so that a run can be sent between threads: a closure over borrowed jobs cannot.
        let work: Vec<BoxFuture<'_, Done<'_>>> = begun
            .into_iter()
            .map(|begun| self.call(begun, watch, stop).boxed())
            .collect();
        let concurrency = self.policy.concurrency.max(1);
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
                // The store has just failed: giving back is all that can be tried.
                let _ = self.give_up(done).await;
                continue;
            }
            let conclude = self.conclude(done, tally);
            let concluded = match concurrency {
                1 => conclude.await,
                _ => alongside(conclude, &mut work, &mut waiting).await,
            };
            if let Err(error) = concluded {
                failed = Some(error);
                watch.halt.cancel();
            }
            if failed.is_some() || tally.must_stop() {
                stop.store(true, Ordering::Relaxed);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Counts and tells that a job is passed over.
    pub(crate) async fn skip(&self, job: &Job, reason: SkipReason, tally: &mut Tally) {
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
        }
        let range = job.range;
        self.emit(Event::Skipped { range, reason }).await;
    }
}

/// Runs a future while a stream goes on; what the stream gives meanwhile is put behind `waiting`.
///
/// A stream that is not polled stands still, with the calls that are under way in it.
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
