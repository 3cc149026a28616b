//! Writes a planned summary: calls the summarizer, without holding a lock.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use compaction_plan::Job;
use futures::future::Aborted;
use summarize_escalation::{BeforeCall, ErrorKind, Failure, FailureKind, escalate_with};

use crate::begin::Begun;
use crate::environment::Compaction;
use crate::events::{Event, SkipReason};
use crate::open_job::{OpenJob, summary_request, with_details};
use crate::prepared::{Done, Prepared, keep_drafts};
use crate::report::Cause;
use crate::summary::Written;
use crate::watch::{Counted, Watch, with_causes};

/// Writes the summary of a job: calls the summarizer if the job needs it and `stop` is not set. Sets `stop` if no
/// further summary may be begun.
pub(crate) async fn write<'j>(
    env: &Compaction<'_>,
    begun: Begun<'j>,
    watch: &Watch,
    stop: &AtomicBool,
) -> Done<'j> {
    let done = match begun {
        Begun::Done(done) => done,
        Begun::Call(open) if stop.load(Ordering::Relaxed) => open.done(Prepared::NotBegun),
        Begun::Call(open) => {
            let mut done = ask(env, open, watch).await;
            // Results are published in order. The draft is stored now, so that a paid result does not depend on a
            // slower call.
            if env.policy.concurrency() > 1 {
                keep_drafts(env, std::slice::from_mut(&mut done)).await;
            }
            done
        }
    };
    if matches!(done.prepared, Prepared::Failed { .. } | Prepared::Cancelled) {
        stop.store(true, Ordering::Relaxed);
    }
    done
}

/// Calls the summarizer, through the methods of the ladder.
async fn ask<'j>(env: &Compaction<'_>, mut open: OpenJob<'j>, watch: &Watch) -> Done<'j> {
    let (pieces, before) = (open.sources.pieces(open.job), open.sources.before());
    let prompts = open.prompts.as_deref();
    let mut request = summary_request(env, open.job, &pieces, &before, prompts);
    let words = WordsAreThere { env, watch };
    if !env.summarizer.provisional() {
        request.before_call = Some(&words);
    }
    let counted = Counted {
        summarizer: env.summarizer,
        watch,
    };
    let climbed = escalate_with(&counted, env.extractive, env.ladder, &request);
    let outcome = watch.unless_stopped(&env.cancel, climbed).await;
    drop((pieces, before));
    if watch.is_outdated() {
        return open.done(Prepared::Skipped(SkipReason::Lost));
    }
    let outcome = match outcome {
        Err(Aborted) => return open.done(Prepared::Cancelled),
        Ok(Err(error)) => {
            let prepared = not_written(env, open.job, &error, watch).await;
            return open.done(prepared);
        }
        Ok(Ok(outcome)) => outcome,
    };
    let replaced = outcome.provisional && !env.summarizer.provisional();
    let cause = Cause::of(&outcome.refused).filter(|_| replaced);
    if let Some(cause) = cause.as_ref().filter(|cause| cause.may_pass())
        && !open.may_do_without_model(watch)
    {
        watch.model().unmade(cause);
        model_failed(env, open.job, cause.clone()).await;
        return open.done(Prepared::Skipped(SkipReason::WaitsForModel));
    }
    if !env.summarizer.provisional() {
        watch.model().written(cause.as_ref());
    }
    if let Some(cause) = &cause {
        model_failed(env, open.job, cause.clone()).await;
    }
    let written = Written {
        cause,
        meta: outcome.meta(),
        body: outcome.body(),
        tier: outcome.tier.as_str().to_owned(),
        model: outcome.model,
        provisional: outcome.provisional,
        recipe: with_details(open.job, outcome.recipe, watch.erasures()),
    };
    open.finish(env, written, true)
}

/// Check before each model call. Cancels the call if messages of the conversation were erased after the sources were
/// read.
#[derive(Debug)]
struct WordsAreThere<'a> {
    env: &'a Compaction<'a>,
    watch: &'a Watch,
}

#[async_trait]
impl BeforeCall for WordsAreThere<'_> {
    async fn before_call(&self) -> std::result::Result<(), Failure> {
        let withdrawn = |why: String| Failure::with_text(FailureKind::Withdrawn, why);
        let _looking = self.watch.looking.lock().await;
        if self.watch.take_waited() && !self.watch.is_outdated() {
            let now = self.env.read_snapshot().await;
            let now = now.map_err(|error| withdrawn(with_causes(&error)))?;
            if now.erasures != self.watch.erasures() {
                self.watch.outdate();
            }
        }
        match self.watch.is_outdated() {
            false => Ok(()),
            true => Err(withdrawn("words of the source were erased".to_owned())),
        }
    }
}

/// Returns the outcome of a job for which the ladder (the summarizer's list of methods) wrote no summary.
async fn not_written(
    env: &Compaction<'_>,
    job: &Job,
    error: &summarize_escalation::Error,
    watch: &Watch,
) -> Prepared {
    let message = with_causes(error);
    match error.kind() {
        ErrorKind::CannotShrink | ErrorKind::Exhausted => {
            let cause = Cause::of_unmade(error.refused());
            if let Some(cause) = cause.filter(|_| !env.summarizer.provisional()) {
                watch.model().unmade(&cause);
                model_failed(env, job, cause).await;
            }
            Prepared::Skipped(SkipReason::CannotShrink)
        }
        _ => {
            // The failure is not stored as a draft: a job that changes with every message would leave a row at each
            // failure.
            let cause = Cause::of_error(error, message.clone());
            watch.model().unmade(&cause);
            model_failed(env, job, cause.clone()).await;
            let error = message;
            Prepared::Failed { error, cause }
        }
    }
}

/// Emits the event that the model did not write a summary.
async fn model_failed(env: &Compaction<'_>, job: &Job, cause: Cause) {
    tracing::warn!(
        conversation = env.conversation.0,
        range = %job.range,
        %cause,
        advice = cause.advice,
        "a summary was not written by the model"
    );
    let range = job.range;
    env.emit(Event::ModelFailed { range, cause }).await;
}
