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
    /// Returns the plan of the next iteration. Neither calls a model nor writes to the store.
    ///
    /// # Errors
    /// If the store fails.
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

    /// Whether a run would find jobs: reads and plans, without model calls or writes. False in a state that an earlier
    /// run could not shorten.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn has_work(&self) -> Result<bool> {
        let snapshot = self.read_snapshot().await?;
        if is_exhausted(self, &snapshot).await? {
            return Ok(false);
        }
        ViewReader::new(self, snapshot).has_jobs().await
    }

    /// Runs a compaction, and returns its outcome with the stop reason.
    ///
    /// # Errors
    /// If the store fails. The failure of a summarizer is not an error but a stop reason. Earlier publishes stay in
    /// place.
    pub async fn run(&self, mode: Mode) -> Result<Outcome> {
        let most = match mode {
            Mode::Incremental => Some(1),
            Mode::Full => None,
        };
        let is_enough = &|_| false;
        run_iterations(self, &Iterations { most, is_enough }).await
    }

    /// Runs up to `most` incremental iterations, until `is_enough` holds for the view's cost in tokens. Jobs without
    /// model calls are published once, after the last iteration.
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

    /// Publishes extracts, which are provisional, until the view fits the room. Calls no model. The oldest messages
    /// outside the fresh tail go first. Then summaries are condensed, summaries of equal depth before others.
    ///
    /// Publishes no extract if the ladder has no extractive tier, or if the same policy already tried the same head and
    /// version without success. [`Outcome::stop_reason`] is `Fits` if the view fits in the end.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn extract_to_fit(&self, room: Room) -> Result<Outcome> {
        fit::extract_to_fit(self, room).await
    }

    /// Makes the summaries of the next compaction without publishing them: the view is unchanged. Ready summaries are
    /// kept, and further jobs are planned on top of them, up to
    /// [`RunnerPolicy::prefetch_jobs`](crate::RunnerPolicy::prefetch_jobs) jobs a call. Drafts that no longer fit the
    /// view are deleted.
    ///
    /// A provisional summarizer makes no prefetch, because its summaries are free.
    ///
    /// # Errors
    /// If the store fails. The failure of a summarizer is no error; summaries that were made before it are kept.
    pub async fn prefetch_summaries(&self) -> Result<PrefetchReport> {
        if self.summarizer.provisional() {
            return Ok(PrefetchReport::default());
        }
        prefetch::prefetch_summaries(self).await
    }

    /// Publishes the summaries of [`Compaction::prefetch_summaries`] in one transaction, without a model call. With a
    /// provisional summarizer it is an incremental [`Compaction::run`]. It also replaces an extract that was published
    /// meanwhile for the same messages.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn publish_ready(&self) -> Result<Outcome> {
        if self.summarizer.provisional() {
            return self.run(Mode::Incremental).await;
        }
        prefetch::publish_ready(self).await
    }

    /// Returns the plan of [`Compaction::redo`]. Neither calls a model nor writes to the store.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn plan_redo(&self, policy: &RedoPolicy) -> Result<RedoPlan> {
        redo::plan_redo(self, policy).await
    }

    /// Rewrites the summaries in the view that were written without a model, or the [extracts](RedoPolicy::extracts) of
    /// an older recipe, by the summarizer from the same sources, and all summaries that were made from them. The old
    /// summaries stay in the history.
    ///
    /// Each span of the view is replaced in one publish, together with all rewritten summaries below it, if the view
    /// still holds the span. Until then the span is unchanged: the view is valid at every moment. After a crash, a lost
    /// race or a limit, finished summaries are kept and used again. If the summarizer cannot write a summary, the old
    /// one stays, and the summaries above it are made from the old one. Failed summaries are remembered: the next redo
    /// by the same summarizer tries all others first, and the latest failure last.
    ///
    /// # Errors
    /// If the store fails. The failure of a summarizer is a stop reason.
    pub async fn redo(&self, policy: &RedoPolicy) -> Result<RedoReport> {
        redo::redo(self, policy).await
    }
}
