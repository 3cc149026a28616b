//! A job (one summary to write) with its sources: its request to the summarizer, and the written summary.

use compaction_plan::Job;
use memory_model::{FieldHasher, Hash, RawJson, Recipe, summary_overhead};
use memory_store::{Draft, Fence, JobKey};
use summarize_escalation::prompt::PromptSet;
use summarize_escalation::{Source, SummaryRequest, recipe};

use crate::environment::Compaction;
use crate::events::SkipReason;
use crate::in_flight::Taken;
use crate::prepared::{Done, Prepared, Ready};
use crate::report::Cause;
use crate::sources::Sources;
use crate::summary::{Written, summary_of};
use crate::watch::{Watch, with_causes};

/// A job (one summary to write) with its sources and its lease.
#[derive(Debug)]
pub(crate) struct OpenJob<'j> {
    pub(crate) job: &'j Job,
    pub(crate) sources: Sources,
    pub(crate) source_hash: Hash,
    pub(crate) prompts: Option<Box<PromptSet>>,
    /// Whether the view does not fit without the summary.
    pub(crate) is_needed: bool,
    pub(crate) recipe: Recipe,
    pub(crate) fence: Option<Fence>,
    /// Draft of the summary by an earlier owner of the lease; `None` if there is none.
    pub(crate) draft: Option<Draft>,
    /// Claim that keeps other compactions of the same owner from working on the job.
    pub(crate) taken: Option<Taken>,
}

impl<'j> OpenJob<'j> {
    /// Combines a job (one summary to write) with its sources, hashes and prompts. If the prompts are invalid, returns
    /// the job as finished with a failure.
    pub(crate) fn new(
        env: &Compaction<'_>,
        job: &'j Job,
        sources: Sources,
        erasures: u64,
    ) -> std::result::Result<Self, Box<Done<'j>>> {
        let prompts = job.request.as_ref().and_then(|r| r.prompts.as_ref());
        let prompts = prompts.map(|p| PromptSet::single(&p.id, &p.system, &p.user));
        let prompts = prompts.transpose().map_err(|error| {
            let error = with_causes(&error);
            let cause = Cause::unknown(error.clone());
            Box::new(Done::unleased(job, Prepared::Failed { error, cause }))
        })?;
        let source_hash = sources.hash(job);
        let (pieces, before) = (sources.pieces(job), sources.before());
        let request = summary_request(env, job, &pieces, &before, prompts.as_ref());
        let recipe = recipe(env.summarizer.id(), env.ladder, &request);
        let recipe = with_details(job, recipe, erasures);
        drop((pieces, before));
        Ok(Self {
            job,
            sources,
            source_hash,
            prompts: prompts.map(Box::new),
            is_needed: false,
            recipe,
            fence: None,
            draft: None,
            taken: None,
        })
    }

    /// Returns the key under which the job is leased in the store.
    pub(crate) fn key(&self, env: &Compaction<'_>) -> JobKey {
        let mut hasher = FieldHasher::new("agent-memory job 1");
        hasher.hash(self.source_hash);
        hasher.bytes(self.recipe.as_str().as_bytes());
        let hash = hasher.finish().to_string();
        let hash = hash.get(..16).unwrap_or(&hash);
        JobKey(format!("{}/{}/{hash}", env.view(), self.job.range))
    }

    /// Returns whether the summary may be written without the model although the model may write it later. A summary of
    /// messages may: it saves the most. A summary of summaries may only if the view does not fit without it.
    pub(crate) fn may_do_without_model(&mut self, watch: &Watch) -> bool {
        // A summary has about half the length of its sources.
        self.is_needed |= self.job.depth() == Some(0) || watch.needs(self.job.source_tokens / 2);
        self.is_needed
    }

    /// Finishes the job with the given outcome.
    pub(crate) fn done(self, prepared: Prepared) -> Done<'j> {
        Done::new(self.job, prepared, self.fence, self.taken)
    }

    /// Finishes the job with the summary that a summarizer wrote. `fresh` is true if it was written in this run.
    pub(crate) fn finish(self, env: &Compaction<'_>, written: Written, fresh: bool) -> Done<'j> {
        let leased = self.fence.is_some();
        let draft = || RawJson::from_value(&written).ok().map(Draft);
        let draft = if fresh && leased { draft() } else { None };
        let cause = written.cause.clone();
        let summary = summary_of(env, self.job, &self.sources, self.source_hash, written);
        let prepared = match summary {
            None => Prepared::Skipped(SkipReason::CannotShrink),
            Some(summary) => Prepared::Summary(Box::new(Ready {
                summary,
                cause,
                fresh,
                draft,
            })),
        };
        self.done(prepared)
    }
}

/// Returns the recipe (the description of how the summary is made), including the planner's rule for details and the
/// number of erasures in the conversation. This number distinguishes a summary from an erased summary with the same
/// sources and text.
pub(crate) fn with_details(job: &Job, recipe: Recipe, erasures: u64) -> Recipe {
    let rule = job.request.as_ref().and_then(|r| r.details.as_deref());
    let recipe = match rule {
        Some(rule) => Recipe::new(format!("{recipe} details={rule}")),
        None => recipe,
    };
    match erasures {
        0 => recipe,
        count => Recipe::new(format!("{recipe} erasures={count}")),
    }
}

/// Returns the request to the summarizer for a job (one summary to write).
pub(crate) fn summary_request<'r>(
    env: &'r Compaction<'_>,
    job: &'r Job,
    pieces: &'r [Source<'r>],
    before: &'r [Source<'r>],
    prompts: Option<&'r PromptSet>,
) -> SummaryRequest<'r> {
    let depth = job.depth().unwrap_or(0);
    let overhead = summary_overhead(env.accounting, job.range, depth, job.sources());
    let estimator = env.accounting.estimator();
    let asked = job.request.as_ref();
    SummaryRequest {
        overhead_tokens: overhead,
        purpose: asked.map(|asked| asked.purpose).unwrap_or_default(),
        target_tokens: asked.map_or(0, |asked| asked.target_tokens),
        max_tokens: asked.map_or(0, |asked| asked.max_tokens),
        before,
        previous: asked.and_then(|asked| asked.previous.as_deref()),
        instructions: env.instructions.as_deref(),
        prompts,
        conventions: env.conventions,
        ..SummaryRequest::new(pieces, estimator)
    }
}
