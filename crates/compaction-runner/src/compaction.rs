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
    /// What the next iteration would do: reads, calls no model, writes nothing.
    ///
    /// # Errors
    /// When the store fails.
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

    /// Whether a run would have anything to do: reads and plans, calls no model, writes nothing. False in a state in
    /// which nothing could be made shorter before.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn has_work(&self) -> Result<bool> {
        let snapshot = self.read_snapshot().await?;
        if is_exhausted(self, &snapshot).await? {
            return Ok(false);
        }
        ViewReader::new(self, snapshot).has_jobs().await
    }

    /// Compacts, and says what was done and why it stopped.
    ///
    /// # Errors
    /// When the store fails. A failing summarizer is not an error but a stop reason: whatever was
    /// published before stays, and nothing else changed.
    pub async fn run(&self, mode: Mode) -> Result<Outcome> {
        let most = match mode {
            Mode::Incremental => Some(1),
            Mode::Full => None,
        };
        let is_enough = &|_| false;
        run_iterations(self, &Iterations { most, is_enough }).await
    }

    /// Runs up to `most` incremental iterations, until `is_enough` holds for the view's cost in
    /// tokens. What no model is called for is published once, after the last iteration.
    ///
    /// # Errors
    /// As [`Compaction::run`].
    pub async fn run_until(
        &self,
        most: u32,
        is_enough: &(dyn Fn(u64) -> bool + Send + Sync),
    ) -> Result<Outcome> {
        let most = Some(most);
        run_iterations(self, &Iterations { most, is_enough }).await
    }

    /// Publishes extracts, which are provisional, until the view fits the room; calls no model. The
    /// oldest messages outside the fresh tail go first, then summaries are condensed, those of equal
    /// depth before others.
    ///
    /// Publishes nothing when the ladder has no extractive tier, or when the same head, version
    /// and policy were tried before in vain. [`Outcome::stop_reason`] is `Fits` when the view fits
    /// in the end.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn extract_to_fit(&self, room: Room) -> Result<Outcome> {
        fit::extract_to_fit(self, room).await
    }

    /// Makes the summaries that a compaction would make, and publishes none: the view stays as it
    /// is. What is ready already is not made again; more is planned and made on top of it, up to
    /// [`RunnerPolicy::prefetch_jobs`](crate::RunnerPolicy::prefetch_jobs) jobs a call. Drafts that the view has no place for any more
    /// are deleted.
    ///
    /// A summarizer whose work costs nothing (one that is provisional) has nothing to prepare.
    ///
    /// # Errors
    /// When the store fails. A failing summarizer is no error; what was made before it failed is
    /// kept.
    pub async fn prefetch_summaries(&self) -> Result<PrefetchReport> {
        if self.summarizer.provisional() {
            return Ok(PrefetchReport::default());
        }
        prefetch::prefetch_summaries(self).await
    }

    /// Publishes what [`Compaction::prefetch_summaries`] made, in one transaction, and never calls a
    /// model. With a summarizer whose work costs nothing it is an incremental [`Compaction::run`]. An
    /// extract that was published meanwhile for the same messages is replaced.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn publish_ready(&self) -> Result<Outcome> {
        if self.summarizer.provisional() {
            return self.run(Mode::Incremental).await;
        }
        prefetch::publish_ready(self).await
    }

    /// What [`Compaction::redo`] would do: reads, calls no model, writes nothing.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn plan_redo(&self, policy: &RedoPolicy) -> Result<RedoPlan> {
        redo::plan_redo(self, policy).await
    }

    /// Replaces the summaries in the view that were written without a model, or [extracts](RedoPolicy::extracts) of an older
    /// recipe, by what the summarizer writes for the same sources, and all summaries that were made from them. The old ones stay in
    /// the history.
    ///
    /// A span of the view is replaced in one publish, with everything that it was made from, if the view still
    /// holds it. What was made before a crash, a lost race or a limit is kept and found again.
    /// Until a span is replaced it stays as it is: the view is valid at every moment. A summary
    /// that the summarizer cannot make stays, and those above it are made from it. It is
    /// remembered: the next redo by the same summarizer asks for all others first, and for the one
    /// that was refused most recently last.
    ///
    /// # Errors
    /// When the store fails. A failing summarizer is a stop reason.
    pub async fn redo(&self, policy: &RedoPolicy) -> Result<RedoReport> {
        redo::redo(self, policy).await
    }
}
