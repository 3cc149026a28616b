//! What becomes of prepared jobs: kept as drafts, put off, or published together in one transaction.

use compaction_plan::{Job, Work};
use memory_model::{Body, Span, Summary};
use memory_store::{ErrorKind, Fence, LeaseUpdate, Publish, Published};

use crate::error::Result;
use crate::events::{Event, SkipReason};
use crate::outcome::Tally;
use crate::owners::handed_back;
use crate::prefetch::Waiting;
use crate::prepare::{Done, Prepared};
use crate::run::{Compaction, Stage};

/// A job that is ready to be published: with its summary, or with its own spans.
#[derive(Debug, Clone)]
pub(crate) struct Publishable {
    pub(crate) job: Job,
    pub(crate) summary: Option<Summary>,
    pub(crate) fence: Option<Fence>,
}

impl Publishable {
    /// The spans that take the place of the job's.
    pub(crate) fn spans(&self) -> Vec<Span> {
        match (&self.summary, &self.job.work) {
            (Some(summary), _) => {
                let body = Body::Summary {
                    id: summary.id.clone(),
                    depth: summary.depth,
                };
                vec![Span::closed(self.job.range, body, summary.tokens)]
            }
            (None, Work::Replace(spans)) => spans.clone(),
            (None, _) => Vec::new(),
        }
    }
}

impl Compaction<'_> {
    /// Settles prepared jobs: those that are ready are published in one transaction, kept for later,
    /// or put off to the end of the iteration; the leases of the others are given back.
    pub(crate) async fn conclude(&self, mut done: Vec<Done<'_>>, tally: &mut Tally) -> Result<()> {
        self.keep_drafts(&mut done).await;
        let cancelled = |done: &Done<'_>| matches!(done.prepared, Prepared::Cancelled);
        tally.cancelled |= self.cancel.is_cancelled() || done.iter().any(cancelled);
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
        if tally.cancelled {
            // What was prepared before the cancellation is kept for the next run. What was prepared
            // before a failure is published.
            let fences = ready.drain(..).filter_map(|one| one.fence);
            settled.extend(fences.map(|fence| (fence, handed_back())));
        }
        self.settle_all(settled.into_iter()).await?;
        match self.stage {
            Stage::Prepare => {
                tally.ready.extend(ready.iter().map(Waiting::new));
                let summaries = ready.iter().filter_map(|one| one.summary.clone());
                tally
                    .made
                    .extend(summaries.map(|summary| (summary.id.clone(), summary)));
                self.hand_back(ready.into_iter().filter_map(|one| one.fence))
                    .await?;
            }
            _ if self.puts_off() => ready.into_iter().for_each(|one| tally.put_off(one)),
            _ => self.publish(ready, tally).await?,
        }
        for (job, prepared) in others {
            self.pass_over(job, prepared, tally).await;
        }
        Ok(())
    }

    /// Whether results are published together at the end of an iteration: what costs nothing can be
    /// made again, and the passes to come see it without the store.
    pub(crate) fn puts_off(&self) -> bool {
        self.summarizer.provisional() && matches!(self.stage, Stage::Whole | Stage::Fit)
    }

    /// Publishes what was put off.
    pub(crate) async fn publish_put_off(&self, tally: &mut Tally) -> Result<()> {
        tally.made.clear();
        let ready = std::mem::take(&mut tally.put_off);
        if tally.cancelled {
            return Ok(());
        }
        self.publish(ready, tally).await
    }

    /// Gives back the leases of prepared jobs; what is ready and kept is there for the next run.
    pub(crate) async fn give_up(&self, done: Vec<Done<'_>>) -> Result<()> {
        let keeps = |done: &Done<'_>| matches!(done.prepared, Prepared::Summary(_));
        let settled = done.into_iter().filter_map(|done| {
            let outcome = match keeps(&done) {
                true => handed_back(),
                false => LeaseUpdate::Release,
            };
            Some((done.fence?, outcome))
        });
        self.settle_all(settled).await
    }

    /// Keeps what models have just written as drafts, in one call.
    pub(crate) async fn keep_drafts(&self, done: &mut [Done<'_>]) {
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
        match self.store.settle_all(&drafts).await {
            Ok(answers) => {
                for error in answers.into_iter().filter_map(std::result::Result::err) {
                    tracing::warn!(%error, "a draft could not be kept");
                }
            }
            Err(error) => tracing::warn!(%error, "drafts could not be kept"),
        }
    }

    /// Publishes what is ready in one transaction, in order.
    pub(crate) async fn publish(&self, ready: Vec<Publishable>, tally: &mut Tally) -> Result<()> {
        if ready.is_empty() {
            return Ok(());
        }
        let outcomes = match self.publish_or_lose(&ready).await {
            Ok(outcomes) => outcomes,
            Err(error) => {
                // The store has just failed: giving back is all that can be tried.
                let fences = ready.into_iter().filter_map(|one| one.fence);
                let _ = self.hand_back(fences).await;
                return Err(error);
            }
        };
        let (mut released, mut handed_back, mut failed) = (Vec::new(), Vec::new(), None);
        for (one, outcome) in ready.into_iter().zip(outcomes) {
            match outcome {
                Ok(Published::Done(_)) => self.published(one, tally).await,
                Ok(Published::Already(_) | Published::Lost { .. }) => {
                    released.extend(one.fence);
                    self.skip(&one.job, SkipReason::Lost, tally).await;
                }
                Err(error) => {
                    handed_back.extend(one.fence);
                    failed.get_or_insert(error);
                }
            }
        }
        self.release(released).await?;
        self.hand_back(handed_back).await?;
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Publishes under the leases, and what lost its lease without one: whether the work is still
    /// wanted, the view decides.
    async fn publish_or_lose(
        &self,
        ready: &[Publishable],
    ) -> Result<Vec<memory_store::Result<Published>>> {
        let view = self.planner.view();
        let now = self.clock.now();
        let publish = |one: &Publishable| Publish {
            view: view.clone(),
            at: one.job.range,
            expect: one.job.expect.clone(),
            spans: one.spans(),
            summaries: one.summary.iter().cloned().collect(),
            fence: one.fence.clone(),
            now,
        };
        let mut publishes: Vec<Publish> = ready.iter().map(publish).collect();
        let store = self.store;
        let mut outcomes = store.publish_all(self.conversation, &publishes).await?;
        let is_stale = |outcome: &memory_store::Result<Published>| matches!(outcome, Err(error) if error.kind() == ErrorKind::Stale);
        let mut stale: Vec<bool> = outcomes.iter().map(is_stale).collect();
        stale.resize(publishes.len(), false);
        let mut lost = stale.iter();
        publishes.retain(|_| lost.next().copied().unwrap_or(false));
        if publishes.is_empty() {
            return Ok(outcomes);
        }
        publishes
            .iter_mut()
            .for_each(|publish| publish.fence = None);
        let again = store.publish_all(self.conversation, &publishes).await?;
        let places = outcomes.iter_mut().zip(&stale).filter(|(_, stale)| **stale);
        for ((place, _), outcome) in places.zip(again) {
            *place = outcome;
        }
        Ok(outcomes)
    }

    /// Counts and tells that a job was published.
    async fn published(&self, one: Publishable, tally: &mut Tally) {
        let Publishable { job, summary, .. } = &one;
        tally.count(job);
        let spans = one.spans();
        self.emit(Event::Published {
            kind: job.kind.clone(),
            summary: summary.as_ref().map(|summary| summary.id.clone()),
            range: job.range,
            source_tokens: job.source_tokens,
            tokens: spans.iter().map(|span| span.tokens).sum(),
        })
        .await;
        if let Some(summary) = summary {
            tally.summaries.push(summary.id.clone());
            self.hooks.after(summary).await;
        }
    }

    /// Counts and tells why a job gave nothing to publish.
    async fn pass_over(&self, job: &Job, prepared: Prepared, tally: &mut Tally) {
        match prepared {
            Prepared::Skipped(reason) => self.skip(job, reason, tally).await,
            Prepared::Failed { error, .. } => {
                let (range, told) = (job.range, error.clone());
                self.emit(Event::Failed { range, error: told }).await;
                tally.failure = Some(error);
            }
            _ => {}
        }
    }
}
