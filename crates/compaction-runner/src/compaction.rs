//! The opening of this crate: the compaction of one conversation.

use compaction_plan::{Mode, Plan, Room};

use crate::environment::Compaction;
use crate::error::Result;
use crate::exhausted::is_exhausted;
use crate::fit;
use crate::iterate::{Iterations, run_iterations};
use crate::outcome::Outcome;
use crate::prefetch::{self, PrefetchReport};
use crate::redo::{self, RedoPlan, RedoPolicy, RedoReport};
use crate::view_reader::ViewReader;

impl Compaction<'_> {
    /// Plans the next iteration of a compaction and returns the plan. Calls no model and does not write to the store.
    ///
    /// # Errors
    /// Errors of reading the store, and errors of the planner.
    pub async fn plan(&self) -> Result<Plan> {
        let snapshot = self.read_snapshot().await?;
        let reader = ViewReader::new(self, snapshot);
        let jobs = reader.all_jobs().await?;
        let snapshot = reader.snapshot;
        Ok(Plan {
            tokens: snapshot.tokens(),
            view: snapshot.view,
            version: snapshot.version,
            head: snapshot.head,
            jobs,
        })
    }

    /// Returns whether a run would find jobs. Reads the view and plans, but calls no model and does not write. Returns
    /// false if an earlier run with the same policy could not shorten the same view.
    ///
    /// # Errors
    /// Errors of reading the store, and errors of the planner.
    pub async fn has_work(&self) -> Result<bool> {
        let snapshot = self.read_snapshot().await?;
        if is_exhausted(self, &snapshot).await? {
            return Ok(false);
        }
        ViewReader::new(self, snapshot).has_jobs().await
    }

    /// Runs a compaction and returns its outcome, with the reason for which it stopped.
    ///
    /// # Errors
    /// Errors of the store and of the planner; jobs that were published before stay published. A failure of the
    /// summarizer is not an error: it is [`Outcome::stop_reason`].
    pub async fn run(&self, mode: Mode) -> Result<Outcome> {
        let most = match mode {
            Mode::Incremental => Some(1),
            Mode::Full => None,
        };
        let is_enough = &|_| false;
        run_iterations(self, &Iterations { most, is_enough }).await
    }

    /// Runs incremental iterations until `is_enough` returns true for the view's cost in tokens, but at most `most`.
    /// Jobs that need no model are published together, after the last iteration.
    ///
    /// # Errors
    /// The errors of [`Compaction::run`].
    pub async fn run_until(
        &self,
        most: u32,
        is_enough: &(dyn Fn(u64) -> bool + Send + Sync),
    ) -> Result<Outcome> {
        let most = Some(most);
        run_iterations(self, &Iterations { most, is_enough }).await
    }

    /// Publishes extracts until the view fits `room`. Extracts are provisional summaries that need no model. The oldest
    /// messages outside the fresh tail are replaced first. Then summaries are condensed, neighbours of equal depth
    /// before others.
    ///
    /// Publishes no extract if the ladder has no extractive tier, or if the same policy already tried this state of the
    /// view without success. [`Outcome::stop_reason`] is `Fits` if the view fits in the end.
    ///
    /// # Errors
    /// Errors of the store and of the planner.
    pub async fn extract_to_fit(&self, room: Room) -> Result<Outcome> {
        fit::extract_to_fit(self, room).await
    }

    /// Writes the summaries of the next compaction as drafts, without publishing them: the view stays unchanged.
    /// Existing drafts are kept, and further jobs are planned as if the drafts were published, up to
    /// [`RunnerPolicy::prefetch_jobs`](crate::RunnerPolicy::prefetch_jobs) jobs in one call. Drafts that no longer fit
    /// the view are deleted.
    ///
    /// Does no work if the summarizer is provisional, because its summaries are free.
    ///
    /// # Errors
    /// Errors of the store and of the planner. A failure of the summarizer is not an error, and earlier drafts are
    /// kept.
    pub async fn prefetch_summaries(&self) -> Result<PrefetchReport> {
        if self.summarizer.provisional() {
            return Ok(PrefetchReport::default());
        }
        prefetch::prefetch_summaries(self).await
    }

    /// Publishes the drafts of [`Compaction::prefetch_summaries`] in one transaction, without calling a model. A draft
    /// also replaces an extract that was published in the meantime for the same messages. With a provisional
    /// summarizer, which has no drafts, this is an incremental [`Compaction::run`].
    ///
    /// # Errors
    /// Errors of the store and of the planner.
    pub async fn publish_ready(&self) -> Result<Outcome> {
        if self.summarizer.provisional() {
            return self.run(Mode::Incremental).await;
        }
        prefetch::publish_ready(self).await
    }

    /// Returns the summaries that [`Compaction::redo`] would rewrite. Calls no model and does not write to the store.
    ///
    /// # Errors
    /// Errors of reading the store.
    pub async fn plan_redo(&self, policy: &RedoPolicy) -> Result<RedoPlan> {
        redo::plan_redo(self, policy).await
    }

    /// Rewrites summaries of the view with the summarizer. By default it rewrites the summaries that were written
    /// without a model; with [`RedoPolicy::extracts`] it rewrites the extracts of an older recipe. Each is written from
    /// its old sources. All summaries that were made from a rewritten one are rewritten too. The old summaries stay in
    /// the history.
    ///
    /// A span of the view is replaced together with all rewritten summaries below it, in one publish, and only if the
    /// view still holds the span. Until then the view shows the old span. If the redo is interrupted, it keeps the
    /// summaries that are ready, and the next redo uses them. If the summarizer cannot write a summary, the old one
    /// stays, and the summaries above it are made from the old one. The next redo with the same summarizer tries failed
    /// summaries after all others.
    ///
    /// # Errors
    /// Errors of the store. A failure of the summarizer is not an error: it is [`RedoReport::stop_reason`].
    pub async fn redo(&self, policy: &RedoPolicy) -> Result<RedoReport> {
        redo::redo(self, policy).await
    }
}
