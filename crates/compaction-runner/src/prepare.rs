//! Preparing the jobs of a batch: one call leases them all, then each is made with nothing locked.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};

use compaction_plan::{Job, Work};
use futures::future::Aborted;
use memory_model::{
    FieldHasher, Hash, LogEntry, RawJson, Recipe, Summary, SummaryId, summary_overhead,
};
use memory_store::{Claim, Draft, Fence, JobKey};
use summarize_escalation::prompt::PromptSet;
use summarize_escalation::{
    ErrorKind as SummaryErrorKind, Source, SummaryRequest, escalate_with, recipe,
};

use crate::error::Result;
use crate::events::{Before, Event, SkipReason};
use crate::in_flight::Taken;
use crate::report::Cause;
use crate::run::{Compaction, Stage};
use crate::summary::{Sources, Written};
use crate::watch::{Counted, Watch, with_causes};

/// What came of preparing a job.
#[derive(Debug)]
pub(crate) enum Prepared {
    /// A summary to publish.
    Summary(Box<Ready>),
    /// The job's own spans are to be published.
    Replacement,
    /// Nothing to publish, and no harm.
    Skipped(SkipReason),
    /// The summarizer failed, and the ladder says to stop there.
    Failed {
        /// The error and its causes.
        error: String,
        cause: Cause,
    },
    /// The compaction was cancelled.
    Cancelled,
    /// Nothing was tried, because a job before it failed.
    NotBegun,
}

/// A summary to publish.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) summary: Summary,
    /// Why the model did not write it.
    pub(crate) cause: Option<Cause>,
    /// Whether it was written in this run.
    pub(crate) fresh: bool,
    /// What to keep until it is published; `None` when it is kept already, or needs no model.
    pub(crate) draft: Option<Draft>,
}

/// A job that is prepared, and the lease that it was prepared under.
#[derive(Debug)]
pub(crate) struct Done<'j> {
    pub(crate) job: &'j Job,
    pub(crate) prepared: Prepared,
    pub(crate) fence: Option<Fence>,
    /// Until this is over, no other run of the same owner takes the job.
    _taken: Option<Taken>,
}

/// A job whose sources are read, and the lease on it.
#[derive(Debug)]
pub(crate) struct Open<'j, 'e> {
    job: &'j Job,
    sources: Sources<'e>,
    source_hash: Hash,
    prompts: Option<Box<PromptSet>>,
    recipe: Recipe,
    fence: Option<Fence>,
    draft: Option<Draft>,
    taken: Option<Taken>,
}

/// A job of a batch once the batch is leased.
#[derive(Debug)]
pub(crate) enum Begun<'j, 'e> {
    /// Nothing is left to do.
    Done(Done<'j>),
    /// The summarizer is to be called.
    Call(Open<'j, 'e>),
}

impl<'j> Done<'j> {
    fn unleased(job: &'j Job, prepared: Prepared) -> Self {
        Self {
            job,
            prepared,
            fence: None,
            _taken: None,
        }
    }
}

impl<'j> Open<'j, '_> {
    fn done(self, prepared: Prepared) -> Done<'j> {
        Done {
            job: self.job,
            prepared,
            fence: self.fence,
            _taken: self.taken,
        }
    }
}

impl Compaction<'_> {
    /// Begins the jobs of a batch: asks the hooks, reads the sources, leases what needs a lease, and
    /// looks up what is there already. `entries` may hold messages of the jobs; `made` are summaries
    /// that are not in the store yet.
    pub(crate) async fn begin<'j, 'e>(
        &self,
        jobs: &[&'j Job],
        entries: &'e [LogEntry],
        made: &BTreeMap<SummaryId, Summary>,
        watch: &Watch,
    ) -> Result<Vec<Begun<'j, 'e>>> {
        let mut begun: Vec<Option<Begun<'j, 'e>>> = Vec::with_capacity(jobs.len());
        let mut supplied: BTreeMap<usize, String> = BTreeMap::new();
        for (index, &job) in jobs.iter().enumerate() {
            let answer = self.unless_stopped(watch, self.hooks.before(job)).await;
            let prepared = match (answer, &job.work) {
                (Err(Aborted), _) => Some(Prepared::Cancelled),
                (Ok(Before::Cancel), _) => Some(Prepared::Skipped(SkipReason::Vetoed)),
                (Ok(_), Work::Replace(_)) => Some(Prepared::Replacement),
                (Ok(Before::Supply(text)), _) => {
                    supplied.insert(index, text);
                    None
                }
                (Ok(Before::Proceed), _) => None,
            };
            begun.push(prepared.map(|prepared| Begun::Done(Done::unleased(job, prepared))));
        }

        let wanted = |index: &usize| matches!(begun.get(*index), Some(None));
        let wanted: Vec<usize> = (0..jobs.len()).filter(wanted).collect();
        let summarized: Vec<&'j Job> = wanted
            .iter()
            .filter_map(|i| jobs.get(*i).copied())
            .collect();
        let sources = self.sources(&summarized, entries, made).await?;
        let mut open: Vec<(usize, Open<'j, 'e>)> = Vec::new();
        for ((index, job), sources) in wanted.into_iter().zip(summarized).zip(sources) {
            let done = match sources {
                None => Done::unleased(job, Prepared::Skipped(self.sources_gone())),
                Some(sources) => match (self.open(job, sources), supplied.remove(&index)) {
                    (Err(done), _) => *done,
                    (Ok(opened), Some(text)) => self.supply(opened, text),
                    (Ok(opened), None) => {
                        open.push((index, opened));
                        continue;
                    }
                },
            };
            put(&mut begun, index, Begun::Done(done));
        }

        for (index, done) in self.lease(&mut open, watch).await? {
            put(&mut begun, index, Begun::Done(done));
        }
        for (index, next) in self.look_up(open, watch).await? {
            put(&mut begun, index, next);
        }
        Ok(begun.into_iter().flatten().collect())
    }

    /// Why a job is passed over whose sources are gone: somebody else was first, or the draft that it
    /// builds on was not made by this summarizer.
    fn sources_gone(&self) -> SkipReason {
        match self.stage {
            Stage::PublishReady => SkipReason::NotReady,
            _ => SkipReason::Lost,
        }
    }

    /// A job with its sources, hashes and prompts; the job is over when its prompts cannot be read.
    fn open<'j, 'e>(
        &self,
        job: &'j Job,
        sources: Sources<'e>,
    ) -> std::result::Result<Open<'j, 'e>, Box<Done<'j>>> {
        let prompts = job.request.as_ref().and_then(|r| r.prompts.as_ref());
        let prompts = prompts.map(|p| PromptSet::single(&p.id, &p.system, &p.user));
        let prompts = prompts.transpose().map_err(|error| {
            let error = with_causes(&error);
            let cause = Cause::unknown(error.clone());
            Box::new(Done::unleased(job, Prepared::Failed { error, cause }))
        })?;
        let source_hash = sources.hash(job);
        let pieces = sources.pieces(job);
        let request = self.request(job, &pieces, prompts.as_ref());
        let recipe = recipe(self.summarizer.id(), self.ladder, &request);
        drop(pieces);
        Ok(Open {
            job,
            sources,
            source_hash,
            prompts: prompts.map(Box::new),
            recipe,
            fence: None,
            draft: None,
            taken: None,
        })
    }

    /// What the summarizer is asked for.
    fn request<'r>(
        &'r self,
        job: &'r Job,
        pieces: &'r [Source<'r>],
        prompts: Option<&'r PromptSet>,
    ) -> SummaryRequest<'r> {
        let depth = job.depth().unwrap_or(0);
        let overhead = summary_overhead(self.accounting, job.range, depth, job.sources());
        let estimator = self.accounting.estimator();
        let mut request = SummaryRequest::new(pieces, estimator).with_overhead_tokens(overhead);
        if let Some(asked) = &job.request {
            request = request
                .with_purpose(asked.purpose)
                .with_target_tokens(asked.target_tokens);
            request.previous = asked.previous.as_deref();
        }
        request.instructions = self.instructions.as_deref();
        request.prompts = prompts;
        request
    }

    /// A summary whose text a hook gave.
    fn supply<'j>(&self, open: Open<'j, '_>, text: String) -> Done<'j> {
        let written = Written {
            body: text.into(),
            tier: "supplied".to_owned(),
            model: None,
            meta: None,
            cause: None,
            provisional: false,
            recipe: Recipe::new("supplied@1"),
        };
        self.finish(open, written, false)
    }

    /// Leases the jobs in one call, and takes out those that somebody else has. What costs nothing
    /// needs no lease.
    async fn lease<'j>(
        &self,
        open: &mut Vec<(usize, Open<'j, '_>)>,
        watch: &Watch,
    ) -> Result<Vec<(usize, Done<'j>)>> {
        let mut held = Vec::new();
        if self.summarizer.provisional() || open.is_empty() {
            return Ok(held);
        }
        let now = self.clock.now();
        let until = now.saturating_add(self.policy.lease());
        let mut free = Vec::with_capacity(open.len());
        for (index, mut job) in open.drain(..) {
            let key = self.job_key(job.job, job.source_hash, &job.recipe);
            match self.in_flight.take(self.conversation, &key, now, until) {
                Ok(taken) => {
                    job.taken = Some(taken);
                    free.push((key, index, job));
                }
                Err(until) => {
                    let prepared = watch.held(&self.owner, until);
                    held.push((index, job.done(prepared)));
                }
            }
        }
        let keys: Vec<JobKey> = free.iter().map(|(key, ..)| key.clone()).collect();
        let claims = self.claim_all(&keys).await?;
        for ((_, index, mut job), claim) in free.into_iter().zip(claims) {
            match claim {
                Claim::Held { owner, until } => {
                    let prepared = watch.held(&owner, until);
                    held.push((index, job.done(prepared)));
                    continue;
                }
                Claim::Granted(fence) => job.fence = Some(fence),
                Claim::Ready(fence, draft) => {
                    job.fence = Some(fence);
                    job.draft = Some(draft);
                }
            }
            open.push((index, job));
        }
        Ok(held)
    }

    /// Looks up what is there already: a summary that was published, or a draft. It is looked up
    /// under the lease: another run may have published it a moment ago.
    async fn look_up<'j, 'e>(
        &self,
        open: Vec<(usize, Open<'j, 'e>)>,
        watch: &Watch,
    ) -> Result<Vec<(usize, Begun<'j, 'e>)>> {
        if open.is_empty() {
            return Ok(Vec::new());
        }
        let source = |(_, job): &(usize, Open<'_, '_>)| (job.source_hash, job.recipe.clone());
        let sources: Vec<(Hash, Recipe)> = open.iter().map(source).collect();
        let found = self
            .store
            .summaries_by_source(self.conversation, &sources)
            .await?;
        let mut next = Vec::with_capacity(open.len());
        for ((index, job), found) in open.into_iter().zip(found) {
            next.push((index, self.known(job, found, watch)));
        }
        Ok(next)
    }

    /// What is known of a leased job without a call.
    fn known<'j, 'e>(
        &self,
        mut open: Open<'j, 'e>,
        found: Option<Summary>,
        watch: &Watch,
    ) -> Begun<'j, 'e> {
        let found = found.filter(|found| found.range == open.job.range);
        if let Some(summary) = found {
            if summary.children != open.job.children() {
                // What was written is used again; what it unfolds to is another.
                let written = Written {
                    body: summary.body,
                    tier: summary.tier,
                    model: summary.model,
                    provisional: summary.provisional,
                    recipe: summary.recipe,
                    meta: summary.meta,
                    cause: None,
                };
                return Begun::Done(self.finish(open, written, false));
            }
            let ready = Ready {
                summary,
                cause: None,
                fresh: false,
                draft: None,
            };
            return Begun::Done(open.done(Prepared::Summary(Box::new(ready))));
        }
        let draft = open.draft.take();
        let written = draft.map(|draft| serde_json::from_str::<Written>(draft.0.as_str()));
        if let Some(Ok(written)) = written {
            watch.model().written(written.cause.as_ref());
            return Begun::Done(self.finish(open, written, false));
        }
        if self.stage == Stage::PublishReady && open.fence.is_some() {
            return Begun::Done(open.done(Prepared::Skipped(SkipReason::NotReady)));
        }
        Begun::Call(open)
    }

    /// Calls the summarizer where it is to be called, unless nothing more is to be begun. Sets
    /// `stop` when nothing is to be begun after it.
    pub(crate) async fn call<'j>(
        &self,
        begun: Begun<'j, '_>,
        watch: &Watch,
        stop: &AtomicBool,
    ) -> Done<'j> {
        let done = match begun {
            Begun::Done(done) => done,
            Begun::Call(open) if stop.load(Ordering::Relaxed) => open.done(Prepared::NotBegun),
            Begun::Call(open) => {
                let mut done = self.write(open, watch).await;
                // Results are concluded in order. What was paid does not wait for a slower call.
                if self.policy.concurrency > 1 {
                    self.keep_drafts(std::slice::from_mut(&mut done)).await;
                }
                done
            }
        };
        if matches!(done.prepared, Prepared::Failed { .. } | Prepared::Cancelled) {
            stop.store(true, Ordering::Relaxed);
        }
        done
    }

    async fn write<'j>(&self, open: Open<'j, '_>, watch: &Watch) -> Done<'j> {
        let pieces = open.sources.pieces(open.job);
        let request = self.request(open.job, &pieces, open.prompts.as_deref());
        let counted = Counted {
            summarizer: self.summarizer,
            watch,
        };
        let climbed = escalate_with(&counted, self.extractive, self.ladder, &request);
        let outcome = self.unless_stopped(watch, climbed).await;
        drop(pieces);
        let outcome = match outcome {
            Err(Aborted) => return open.done(Prepared::Cancelled),
            Ok(Err(error)) => {
                let prepared = self.not_written(open.job, &error, watch).await;
                return open.done(prepared);
            }
            Ok(Ok(outcome)) => outcome,
        };
        let replaced = outcome.provisional && !self.summarizer.provisional();
        let cause = Cause::of(&outcome.refused).filter(|_| replaced);
        if !self.summarizer.provisional() {
            watch.model().written(cause.as_ref());
        }
        if let Some(cause) = &cause {
            self.model_failed(open.job, cause.clone()).await;
        }
        let written = Written {
            cause,
            meta: outcome.meta(),
            body: outcome.text.into(),
            tier: outcome.tier.as_str().to_owned(),
            model: outcome.model,
            provisional: outcome.provisional,
            recipe: outcome.recipe,
        };
        self.finish(open, written, true)
    }

    /// What a ladder without a result means for a job.
    async fn not_written(
        &self,
        job: &Job,
        error: &summarize_escalation::Error,
        watch: &Watch,
    ) -> Prepared {
        let message = with_causes(error);
        match error.kind() {
            SummaryErrorKind::CannotShrink | SummaryErrorKind::Exhausted => {
                let cause = Cause::of_unmade(error.refused());
                if let Some(cause) = cause.filter(|_| !self.summarizer.provisional()) {
                    watch.model().unmade(&cause);
                    self.model_failed(job, cause).await;
                }
                Prepared::Skipped(SkipReason::CannotShrink)
            }
            _ => {
                // Nothing is worth keeping: a job that changes with every message would leave a row
                // at each failure.
                let cause = Cause::of_error(error, message.clone());
                watch.model().unmade(&cause);
                self.model_failed(job, cause.clone()).await;
                let error = message;
                Prepared::Failed { error, cause }
            }
        }
    }

    /// From what was written to a job that is done.
    fn finish<'j>(&self, open: Open<'j, '_>, written: Written, fresh: bool) -> Done<'j> {
        let leased = open.fence.is_some();
        let draft = || RawJson::from_value(&written).ok().map(Draft);
        let draft = if fresh && leased { draft() } else { None };
        let cause = written.cause.clone();
        let summary = self.summary_of(open.job, &open.sources, open.source_hash, written);
        let prepared = match summary {
            None => Prepared::Skipped(SkipReason::CannotShrink),
            Some(summary) => Prepared::Summary(Box::new(Ready {
                summary,
                cause,
                fresh,
                draft,
            })),
        };
        open.done(prepared)
    }

    /// Tells that the model did not write a summary.
    async fn model_failed(&self, job: &Job, cause: Cause) {
        tracing::warn!(
            conversation = self.conversation.0,
            range = %job.range,
            %cause,
            advice = cause.advice,
            "a summary was not written by the model"
        );
        let range = job.range;
        self.emit(Event::ModelFailed { range, cause }).await;
    }

    /// Runs a future unless the run is cancelled or the store has failed.
    async fn unless_stopped<F: Future>(
        &self,
        watch: &Watch,
        future: F,
    ) -> std::result::Result<F::Output, Aborted> {
        self.cancel.guard(watch.halt.guard(future)).await?
    }

    fn job_key(&self, job: &Job, source: Hash, recipe: &Recipe) -> JobKey {
        let mut hasher = FieldHasher::new("agent-memory job 1");
        hasher.hash(source);
        hasher.bytes(recipe.as_str().as_bytes());
        let hash = hasher.finish().to_string();
        let hash = hash.get(..16).unwrap_or(&hash);
        JobKey(format!("{}/{}/{hash}", self.planner.view(), job.range))
    }
}

fn put<T>(list: &mut [Option<T>], index: usize, value: T) {
    if let Some(place) = list.get_mut(index) {
        *place = Some(value);
    }
}
