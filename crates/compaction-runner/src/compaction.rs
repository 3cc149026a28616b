//! The methods that run the compaction of one conversation.

use compaction_plan::{CompactionResult, Mode, Plan, Room};

use crate::environment::Compaction;
use crate::error::Result;
use crate::exhausted::is_exhausted;
use crate::fit;
use crate::iterate::Iterations;
use crate::outcome::Outcome;
use crate::prefetch::{self, PrefetchReport};
use crate::redo::{self, RedoPlan, RedoPolicy, RedoReport};
use crate::run::run_iterations;
use crate::supplied::run_supplied;
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

    /// Returns whether a run would change the view (the compacted log), for example write a summary. Returns false if
    /// an earlier run with the same policy could not shorten the same view. Calls no model and does not write to the
    /// store.
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

    /// Runs a compaction. Returns its outcome, which includes the reason why it stopped.
    ///
    /// # Errors
    /// Errors of the store and of the planner. Changes of the view before the error stay published. A failure of the
    /// summarizer is not an error but an [`Outcome::stop_reason`].
    pub async fn run(&self, mode: Mode) -> Result<Outcome> {
        let most = match mode {
            Mode::Incremental => Some(1),
            Mode::Full => None,
        };
        let is_enough = &|_| false;
        run_iterations(self, &Iterations { most, is_enough }).await
    }

    /// Publishes a summary that the caller wrote, in place of everything before the first kept entry. The summary may
    /// have any length. Calls no model.
    ///
    /// # Errors
    /// Errors of the store. An error if the planner does not plan handoffs, if the text is blank, or if the first kept
    /// entry does not exist or is the first of the log.
    pub async fn publish_result(&self, result: &CompactionResult) -> Result<Outcome> {
        run_supplied(self, result).await
    }

    /// Runs incremental iterations until `is_enough` returns true, at most `most` iterations. `is_enough` is called
    /// with the cost of the view (the compacted log), in tokens. Changes that need no model are published together,
    /// after the last iteration.
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

    /// Replaces messages in the view (the compacted log) by extracts until the view fits `room`. An extract is a
    /// summary of quoted lines, written without a model and marked as provisional. The oldest messages outside the
    /// protected tail are replaced first. Then summaries are merged into summaries of summaries, first neighbours of
    /// equal depth.
    ///
    /// Publishes no extract if the ladder has no extractive tier, or if the same policy already failed to shorten the
    /// same view. [`Outcome::stop_reason`] is `Fits` if the view fits in the end.
    ///
    /// # Errors
    /// Errors of the store and of the planner.
    pub async fn extract_to_fit(&self, room: Room) -> Result<Outcome> {
        fit::extract_to_fit(self, room).await
    }

    /// Writes the summaries of the next compaction in advance, as drafts. A draft is stored but not published, so the
    /// view (the compacted log) does not change. Existing drafts are kept, and further summaries are planned as if
    /// these drafts were published. One call writes at most
    /// [`RunnerPolicy::prefetch_jobs`](crate::RunnerPolicy::prefetch_jobs) summaries. Drafts that no longer fit the
    /// view are deleted.
    ///
    /// Returns at once if the summarizer calls no model, because its summaries can be written later without cost.
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
    /// also replaces an extract that was published in the meantime for the same messages. With a summarizer that calls
    /// no model, there are no drafts, and this method is an incremental [`Compaction::run`].
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

    /// Rewrites summaries of the view (the compacted log) with the summarizer. By default, rewrites the summaries that
    /// were written without a model. With [`RedoPolicy::extracts`], rewrites the extracts that an older version of the
    /// extractive summarizer wrote. Each summary is written from its old sources. Summaries that were made from a
    /// rewritten summary are rewritten too. The old summaries stay in the history.
    ///
    /// A span of the view is published together with all rewritten summaries below it, in one transaction, and only if
    /// the view still shows the span. Until then the view shows the old summary. After an interruption, the next redo
    /// uses the summaries that are ready. If the summarizer fails to write a summary, the old one stays, and summaries
    /// of summaries use the old one. The next redo with the same summarizer tries failed summaries last.
    ///
    /// # Errors
    /// Errors of the store. A failure of the summarizer is not an error but a [`RedoReport::stop_reason`].
    pub async fn redo(&self, policy: &RedoPolicy) -> Result<RedoReport> {
        redo::redo(self, policy).await
    }
}
