//! The beginning of a batch of jobs (changes of the view, such as summaries to write): reads their sources, leases them
//! in one call, and looks up existing summaries and drafts. Calls no model.

use std::collections::BTreeMap;

use compaction_plan::{Job, Work};
use futures::future::Aborted;
use memory_model::{Hash, Recipe, Summary, SummaryId};
use memory_store::{Claim, JobKey};

use crate::asked::planned_job;
use crate::environment::{Compaction, Stage};
use crate::error::Result;
use crate::events::{Event, JobDecision, SkipReason};
use crate::leases::claim_all;
use crate::open_job::{OpenJob, with_details};
use crate::prepared::{Done, Prepared, Ready};
use crate::rejected::{is_urgent, read_rejected};
use crate::sources::{Entries, read_sources};
use crate::summary::Written;
use crate::watch::{Rejected, Watch};

/// State of a job (a change of the view) after its batch was begun.
#[derive(Debug)]
pub(crate) enum Begun<'j> {
    /// The job is finished, without a call of the summarizer.
    Done(Done<'j>),
    /// The job needs a call of the summarizer.
    Call(OpenJob<'j>),
}

/// Begins the jobs (changes of the view) of a batch: asks the hooks, reads the sources, takes leases (exclusive claims)
/// on jobs that need them, and looks up existing summaries and drafts. `entries` are log entries that were already
/// read. `made` are summaries that are not in the store yet.
pub(crate) async fn begin<'j>(
    env: &Compaction<'_>,
    jobs: &[&'j Job],
    entries: &Entries,
    made: &BTreeMap<SummaryId, Summary>,
    watch: &Watch,
) -> Result<Vec<Begun<'j>>> {
    let (mut begun, mut supplied) = ask_hooks(env, jobs, watch).await;
    let wanted = |index: &usize| matches!(begun.get(*index), Some(None));
    let wanted: Vec<usize> = (0..jobs.len()).filter(wanted).collect();
    let summarized: Vec<&'j Job> = wanted
        .iter()
        .filter_map(|i| jobs.get(*i).copied())
        .collect();
    let sources = read_sources(env, &summarized, entries, made).await?;
    let mut open: Vec<(usize, OpenJob<'j>)> = Vec::new();
    for ((index, job), sources) in wanted.into_iter().zip(summarized).zip(sources) {
        let done = match sources {
            None => Done::unleased(job, Prepared::Skipped(sources_gone(env))),
            Some(sources) => match (
                OpenJob::new(env, job, sources, watch.erasures()),
                supplied.remove(&index),
            ) {
                (Err(done), _) => *done,
                (Ok(opened), Some(text)) => supply(env, opened, text, watch.erasures()),
                (Ok(mut opened), None) => {
                    if waits(env, &opened, watch).await? && !opened.may_do_without_model(watch) {
                        opened.done(Prepared::Skipped(SkipReason::WaitsForModel))
                    } else {
                        open.push((index, opened));
                        continue;
                    }
                }
            },
        };
        put(&mut begun, index, Begun::Done(done));
    }

    for (index, done) in lease(env, &mut open, watch).await? {
        put(&mut begun, index, Begun::Done(done));
    }
    for (index, next) in look_up(env, open, watch).await? {
        put(&mut begun, index, next);
    }
    Ok(begun.into_iter().flatten().collect())
}

/// Asks the hooks about each job (change of the view). Returns the jobs that need no further work after the answers,
/// each at its index, and the summaries that hooks supplied, by index.
async fn ask_hooks<'j>(
    env: &Compaction<'_>,
    jobs: &[&'j Job],
    watch: &Watch,
) -> (Vec<Option<Begun<'j>>>, BTreeMap<usize, String>) {
    let mut begun: Vec<Option<Begun<'j>>> = Vec::with_capacity(jobs.len());
    let mut supplied: BTreeMap<usize, String> = BTreeMap::new();
    let view = env.view();
    for (index, &job) in jobs.iter().enumerate() {
        let planned = planned_job(env, job, jobs, &view);
        let answer = env.hooks.before(&planned);
        let answer = watch.unless_stopped(&env.cancel, answer).await;
        if let Ok(JobDecision::Fail(error)) = &answer {
            let (range, error) = (job.range, error.clone());
            env.emit(Event::HookFailed { range, error }).await;
        }
        let prepared = match (answer, &job.work) {
            (Err(Aborted), _) => Some(Prepared::Cancelled),
            (Ok(JobDecision::Cancel), _) => Some(Prepared::Skipped(SkipReason::Vetoed)),
            (Ok(_), Work::Replace(_)) => Some(Prepared::Replacement),
            (Ok(JobDecision::Supply(text)), _) => {
                supplied.insert(index, text);
                None
            }
            (Ok(JobDecision::Proceed | JobDecision::Fail(_)), _) => None,
        };
        begun.push(prepared.map(|prepared| Begun::Done(Done::unleased(job, prepared))));
    }
    (begun, supplied)
}

/// Returns whether a model is to rewrite one of a job's sources: the source was rejected, or written without the model
/// after a failure that may pass.
async fn waits(env: &Compaction<'_>, job: &OpenJob<'_>, watch: &Watch) -> Result<bool> {
    let summaries = job.sources.summaries();
    if summaries.is_empty() || env.stage == Stage::PublishReady {
        return Ok(false);
    }
    let rejected = read_rejected(env, watch).await?;
    Ok(summaries
        .iter()
        .any(|summary| is_urgent(summary, &rejected)))
}

/// Returns the reason for skipping a job with missing sources. Either another writer was first, or the job builds on a
/// draft of another summarizer.
fn sources_gone(env: &Compaction<'_>) -> SkipReason {
    match env.stage {
        Stage::PublishReady => SkipReason::NotReady,
        _ => SkipReason::Lost,
    }
}

/// Finishes a job with a text that a hook supplied as its summary.
fn supply<'j>(env: &Compaction<'_>, open: OpenJob<'j>, text: String, erasures: u64) -> Done<'j> {
    let written = Written {
        body: text.into(),
        tier: "supplied".to_owned(),
        model: None,
        meta: None,
        cause: None,
        provisional: false,
        recipe: with_details(open.job, Recipe::new("supplied@1"), erasures),
    };
    open.finish(env, written, false)
}

/// Takes leases (exclusive claims) on the jobs in one call. Removes and returns the jobs on which another run has a
/// lease. Jobs of a summarizer without a model need no lease.
async fn lease<'j>(
    env: &Compaction<'_>,
    open: &mut Vec<(usize, OpenJob<'j>)>,
    watch: &Watch,
) -> Result<Vec<(usize, Done<'j>)>> {
    let mut held = Vec::new();
    if env.summarizer.provisional() || open.is_empty() {
        return Ok(held);
    }
    let now = env.clock.now();
    let until = now.saturating_add(env.policy.lease());
    let mut free = Vec::with_capacity(open.len());
    for (index, mut job) in open.drain(..) {
        let key = job.key(env);
        match env.in_flight.take(env.conversation, &key, now, until) {
            Ok(taken) => {
                job.taken = Some(taken);
                free.push((key, index, job));
            }
            Err(until) => {
                watch.record_holder(&env.owner(), until);
                held.push((index, job.done(Prepared::Skipped(SkipReason::Held))));
            }
        }
    }
    let keys: Vec<JobKey> = free.iter().map(|(key, ..)| key.clone()).collect();
    let claims = claim_all(env, &keys, watch.erasures()).await?;
    for ((_, index, mut job), claim) in free.into_iter().zip(claims) {
        match claim {
            Claim::Held { owner, until } => {
                watch.record_holder(&owner, until);
                held.push((index, job.done(Prepared::Skipped(SkipReason::Held))));
                continue;
            }
            Claim::Outdated => {
                watch.outdate();
                held.push((index, job.done(Prepared::Skipped(SkipReason::Lost))));
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

/// Looks up stored summaries and drafts (summaries that are not published yet) for the jobs. The look-up is made after
/// the lease was taken, because another run may have published a summary just before.
async fn look_up<'j>(
    env: &Compaction<'_>,
    open: Vec<(usize, OpenJob<'j>)>,
    watch: &Watch,
) -> Result<Vec<(usize, Begun<'j>)>> {
    if open.is_empty() {
        return Ok(Vec::new());
    }
    let source = |(_, job): &(usize, OpenJob<'_>)| (job.source_hash, job.recipe.clone());
    let sources: Vec<(Hash, Recipe)> = open.iter().map(source).collect();
    let found = env
        .store
        .summaries_by_source(env.conversation, &sources)
        .await?;
    let rejected = if found.iter().any(Option::is_some) {
        read_rejected(env, watch).await?
    } else {
        Rejected::default()
    };
    let mut next = Vec::with_capacity(open.len());
    for ((index, job), found) in open.into_iter().zip(found) {
        let found = found.filter(|found| !rejected.contains(&found.id));
        next.push((index, known(env, job, found, watch)));
    }
    Ok(next)
}

/// Finishes a leased job with its existing summary or draft, or returns it for a call of the summarizer.
fn known<'j>(
    env: &Compaction<'_>,
    mut open: OpenJob<'j>,
    found: Option<Summary>,
    watch: &Watch,
) -> Begun<'j> {
    let found = found.filter(|found| found.range == open.job.range);
    if let Some(summary) = found {
        if summary.children != open.job.children() {
            // The text of the existing summary is used for a summary with other children.
            let written = Written {
                body: summary.body,
                tier: summary.tier,
                model: summary.model,
                provisional: summary.provisional,
                recipe: summary.recipe,
                meta: summary.meta,
                cause: None,
            };
            return Begun::Done(open.finish(env, written, false));
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
        return Begun::Done(open.finish(env, written, false));
    }
    if env.stage == Stage::PublishReady && open.fence.is_some() {
        return Begun::Done(open.done(Prepared::Skipped(SkipReason::NotReady)));
    }
    Begun::Call(open)
}

fn put<T>(list: &mut [Option<T>], index: usize, value: T) {
    if let Some(place) = list.get_mut(index) {
        *place = Some(value);
    }
}
