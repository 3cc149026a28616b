//! Carrying out the jobs of a pass: several are prepared at the same time, one after the other is
//! published.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::{BoxFuture, Either, select};
use futures::{FutureExt as _, Stream, StreamExt as _};
use memory_model::{Body, Job, JobKind, LogEntry, Span};
use memory_store::{Publish, Published};

use crate::ahead::Waiting;
use crate::error::{Error, Result};
use crate::events::{Event, SkipReason};
use crate::prepare::{Prepared, Ready, Watch};
use crate::run::{Compaction, Stage, Tally};

/// How many jobs wait for each that is prepared. A pass over a long view has thousands, and each that waits takes tens of
/// kilobytes.
const WAITING: usize = 16;

/// A job and what came of preparing it; `None` when it was not begun.
type Begun<'j> = Option<(&'j Job, Result<Prepared>)>;

impl Compaction<'_> {
    /// Prepares a few jobs at a time, and publishes them in order.
    pub(crate) async fn execute(
        &self,
        jobs: &[Job],
        at_hand: &[LogEntry],
        tally: &mut Tally,
    ) -> Result<()> {
        let todo: Vec<&Job> = jobs
            .iter()
            .filter(|job| {
                let key = (job.range, job.depth);
                !tally.refused.contains(&key) && !tally.vetoed.contains(&key)
            })
            .collect();
        tally.planned += todo.len() as u64;
        let watch = Arc::clone(&tally.watch);
        let watch = &*watch;
        // Set when nothing more is to be begun; what was begun is brought to its end.
        let stop = AtomicBool::new(false);
        let stop = &stop;
        let concurrency = self.policy.concurrency.max(1);
        let mut failed = None;
        for some in todo.chunks(concurrency.saturating_mul(WAITING)) {
            self.some(some, at_hand, (watch, stop), tally, &mut failed)
                .await;
        }
        failed.map_or(Ok(()), Err)
    }

    /// Does [`execute`](Self::execute) for some of the jobs.
    async fn some(
        &self,
        jobs: &[&Job],
        at_hand: &[LogEntry],
        (watch, stop): (&Watch, &AtomicBool),
        tally: &mut Tally,
        failed: &mut Option<Error>,
    ) {
        // Boxed, so that a run can be sent between threads: a closure over borrowed jobs cannot.
        let work: Vec<BoxFuture<'_, Begun<'_>>> = jobs
            .iter()
            .map(|job| self.begin(job, at_hand, watch, stop).boxed())
            .collect();
        let concurrency = self.policy.concurrency.max(1);
        let mut work = futures::stream::iter(work).buffered(concurrency);
        let mut done = VecDeque::new();
        loop {
            let next = match done.pop_front() {
                Some(next) => Some(next),
                None => work.next().await,
            };
            let (job, prepared) = match next {
                Some(Some(begun)) => begun,
                Some(None) => continue,
                None => break,
            };
            let conclude = async {
                if failed.is_none() {
                    return self.conclude(job, prepared, tally).await;
                }
                if let Ok(Prepared::Ready(ready)) = prepared {
                    // The store has just failed: giving back is all that can be tried.
                    let _ = self.hand_back(ready.fence).await;
                }
                Ok(())
            };
            let concluded = match concurrency {
                1 => conclude.await,
                _ => alongside(conclude, &mut work, &mut done).await,
            };
            if let Err(error) = concluded {
                *failed = Some(error);
                watch.halt.cancel();
            }
            if failed.is_some() || tally.must_stop() {
                stop.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Prepares a job, unless nothing more is to be begun.
    async fn begin<'j>(
        &self,
        job: &'j Job,
        at_hand: &[LogEntry],
        watch: &Watch,
        stop: &AtomicBool,
    ) -> Begun<'j> {
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        let prepared = self.prepare(job, at_hand, watch).await;
        let over = matches!(
            prepared,
            Err(_) | Ok(Prepared::Failed { .. } | Prepared::Cancelled)
        );
        if over {
            stop.store(true, Ordering::Relaxed);
        }
        Some((job, prepared))
    }

    async fn conclude(
        &self,
        job: &Job,
        prepared: Result<Prepared>,
        tally: &mut Tally,
    ) -> Result<()> {
        match prepared? {
            // What was prepared before the cancellation is kept for the next run. What was
            // prepared before a failure is published.
            Prepared::Ready(ready) if tally.cancelled || self.cancel.is_cancelled() => {
                tally.cancelled = true;
                self.hand_back(ready.fence).await
            }
            Prepared::Ready(ready) if self.stage == Stage::Prepare => {
                tally.ready.push(Waiting::new(job, ready.fence.as_ref()));
                self.hand_back(ready.fence).await
            }
            Prepared::Ready(ready) => self.publish(job, *ready, tally).await,
            Prepared::Skipped(reason) => {
                self.skip(job, reason, tally).await;
                Ok(())
            }
            Prepared::Cancelled => {
                tally.cancelled = true;
                Ok(())
            }
            Prepared::Failed { error, .. } => {
                self.emit(Event::Failed {
                    range: job.range,
                    error: error.clone(),
                })
                .await;
                tally.failure = Some(error);
                Ok(())
            }
        }
    }

    async fn publish(&self, job: &Job, ready: Ready, tally: &mut Tally) -> Result<()> {
        let Ready { summary, fence, .. } = ready;
        let body = Body::Summary {
            id: summary.id.clone(),
            depth: summary.depth,
        };
        let mut publish = Publish {
            view: self.planner.view(),
            at: job.range,
            expect: job.expect.clone(),
            spans: vec![Span::closed(job.range, body, summary.tokens)],
            summaries: vec![summary.clone()],
            fence,
            now: self.clock.now(),
        };
        let mut published = self.store.publish(self.conversation, &publish).await;
        if let Err(error) = &published
            && error.kind() == memory_store::ErrorKind::Stale
        {
            // The lease ended meanwhile. Whether the work is still wanted, the view decides.
            publish.fence = None;
            published = self.store.publish(self.conversation, &publish).await;
        }
        match published {
            Ok(Published::Done(_)) => {}
            Ok(Published::Already(_) | Published::Lost { .. }) => {
                self.release(publish.fence).await?;
                self.skip(job, SkipReason::Lost, tally).await;
                return Ok(());
            }
            Err(error) => {
                let _ = self.hand_back(publish.fence).await;
                return Err(error.into());
            }
        }
        tally.published += 1;
        match job.kind {
            JobKind::Leaf => {
                tally.leaf += 1;
                tally.messages += job.range.len();
            }
            JobKind::Condensed => tally.condensed += 1,
        }
        tally.summaries.push(summary.id.clone());
        self.emit(Event::Published {
            summary: summary.id.clone(),
            range: summary.range,
            source_tokens: summary.source_tokens,
            tokens: summary.tokens,
        })
        .await;
        self.hooks.after(&summary).await;
        Ok(())
    }

    pub(crate) async fn skip(&self, job: &Job, reason: SkipReason, tally: &mut Tally) {
        match reason {
            SkipReason::Held => tally.held = true,
            SkipReason::Lost => tally.lost = true,
            SkipReason::NotReady => {}
            SkipReason::Vetoed => {
                tally.vetoed.insert((job.range, job.depth));
            }
            SkipReason::CannotShrink => {
                tally.refused.insert((job.range, job.depth));
            }
        }
        self.emit(Event::Skipped {
            range: job.range,
            reason,
        })
        .await;
    }
}

/// Runs a future while a stream goes on; what the stream gives meanwhile is put behind `done`.
///
/// A stream that is not polled stands still, with whatever it holds: a store's one writer, for
/// example, that the future may be waiting for.
async fn alongside<T, S>(
    future: impl Future<Output = T>,
    stream: &mut S,
    done: &mut VecDeque<S::Item>,
) -> T
where
    S: Stream + Unpin,
{
    let mut future = pin!(future);
    loop {
        match select(future.as_mut(), stream.next()).await {
            Either::Left((output, _)) => return output,
            Either::Right((Some(item), _)) => done.push_back(item),
            Either::Right((None, _)) => return future.await,
        }
    }
}
