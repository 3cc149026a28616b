//! Rewrites the summaries of one tree, and publishes them in one transaction.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use compaction_plan::Job;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use memory_model::{Span, SpanBody, Summary};
use memory_store::{Publish, Published};
use summarize_escalation::Tier;

use crate::begin::begin;
use crate::environment::Compaction;
use crate::error::Result;
use crate::events::{Event, SkipReason};
use crate::leases::{hand_back, release};
use crate::prepared::{Done, Prepared, keep_drafts};
use crate::redo::anew::{REDO, job_anew};
use crate::redo::plan::{Nodes, Tree, Wanted};
use crate::redo::progress::{Made, Progress};
use crate::redo::refused::store_refused;
use crate::redo::report::{RedoFailure, RedoPolicy, RedoStop};
use crate::sources::Entries;
use crate::watch::Watch;
use crate::write::write;

/// Outcome of rewriting a tree.
pub(super) enum Ended {
    Published,
    /// Another writer changed the view (the compacted log) first.
    Lost,
    /// No summary could be published. The progress contains the reason.
    Kept,
    Stop(RedoStop),
}

/// Rewrites the summaries of a tree. Publishes them if the summary of the span could be written.
pub(super) async fn redo_tree(
    env: &Compaction<'_>,
    tree: &Tree,
    nodes: &Nodes,
    (policy, wanted): (&RedoPolicy, &Wanted),
    progress: &mut Progress,
) -> Result<Ended> {
    let mut made = Made::default();
    let published = match make_tree(env, tree, nodes, (policy, wanted), progress, &mut made).await {
        Ok(None) => publish_tree(env, tree, &made, progress).await,
        Ok(Some(stop)) => Ok(Ended::Stop(stop)),
        Err(error) => Err(error),
    };
    let done = matches!(published, Ok(Ended::Published));
    // Texts that are not published are kept for the next run.
    let settled = match done {
        true => release(env, made.fences).await,
        false => hand_back(env, made.fences).await,
    };
    if published.is_ok() {
        settled?;
    }
    published
}

/// Rewrites the summaries of a tree, the deepest sources first. Returns a reason if the redo must stop.
async fn make_tree(
    env: &Compaction<'_>,
    tree: &Tree,
    nodes: &Nodes,
    (policy, wanted): (&RedoPolicy, &Wanted),
    progress: &mut Progress,
    made: &mut Made,
) -> Result<Option<RedoStop>> {
    let stale: Vec<&Summary> = tree.stale.iter().filter_map(|id| nodes.get(id)).collect();
    let mut rest = stale.as_slice();
    while let Some(first) = rest.first() {
        if env.cancel.is_cancelled() {
            return Ok(Some(RedoStop::Cancelled));
        }
        if progress.failed_in_a_row >= policy.max_failures.max(1) {
            return Ok(Some(RedoStop::SummarizerFailed));
        }
        if let Some(alone) = &mut progress.alone
            && !alone.renew(env, &progress.watch).await?
        {
            return Ok(Some(RedoStop::Held));
        }
        let Some(room) = room(env, policy, &progress.watch) else {
            return Ok(Some(RedoStop::CallLimit));
        };
        // Summaries of the same depth can be made at the same time, unless one is a source of another.
        let mut level = BTreeSet::new();
        let apart = rest.iter().take_while(|old| {
            let needs = old.source_summaries().any(|id| level.contains(id));
            level.insert(&old.id);
            old.depth == first.depth && !needs
        });
        let count = apart.take(room).count();
        let (now, later) = rest.split_at(count);
        rest = later;
        if let Some(stop) = make_level(env, now, nodes, (policy, wanted), progress, made).await? {
            return Ok(Some(stop));
        }
    }
    Ok(None)
}

/// Returns the number of summaries that may be written at the same time. `None` if no call is left. Several are begun
/// only if there are enough calls left for every model tier of each of them.
fn room(env: &Compaction<'_>, policy: &RedoPolicy, watch: &Watch) -> Option<usize> {
    let at_once = env.policy.concurrency();
    let Some(most) = policy.max_calls else {
        return Some(at_once);
    };
    let asks = |tier: &&Tier| matches!(tier, Tier::Normal | Tier::Aggressive);
    let each = env.ladder.tiers.iter().filter(asks).count().max(1) as u64;
    let left = most.saturating_sub(watch.calls.load(Ordering::Relaxed));
    let room = usize::try_from(left / each).unwrap_or(usize::MAX);
    (left > 0).then(|| room.clamp(1, at_once))
}

/// Result of rewriting one summary.
enum Remade {
    /// The summary was written as requested. `fresh` is true if it was written in this run.
    Written { summary: Box<Summary>, fresh: bool },
    /// The summary could not be written. `was_asked` is true if the summarizer was called for it.
    Failed { error: String, was_asked: bool },
    /// A limit on calls or tokens was reached.
    Limited,
    /// Another owner has the lease on the summary.
    Held,
    /// The run was cancelled.
    Cancelled,
}

impl Remade {
    fn of(prepared: Prepared, extracts: bool) -> Self {
        let failed = |error: &str, was_asked| Self::Failed {
            error: error.to_owned(),
            was_asked,
        };
        match prepared {
            Prepared::Summary(ready) if extracts || !ready.summary.provisional => Self::Written {
                summary: Box::new(ready.summary),
                fresh: ready.fresh,
            },
            // The redo wants a summary of the model: an extract already exists.
            Prepared::Summary(ready) => match ready.cause {
                Some(cause) if cause.is_limit() => Self::Limited,
                Some(cause) => failed(&cause.to_string(), cause.was_asked()),
                None => failed("the ladder asks no model", true),
            },
            Prepared::Failed { cause, .. } if cause.is_limit() => Self::Limited,
            Prepared::Failed { error, cause } => failed(&error, cause.was_asked()),
            Prepared::Cancelled | Prepared::NotBegun | Prepared::Replacement => Self::Cancelled,
            Prepared::Skipped(SkipReason::CannotShrink) => {
                failed("its sources could not be shortened", true)
            }
            Prepared::Skipped(SkipReason::Vetoed) => failed("a hook said no", true),
            Prepared::Skipped(_) => Self::Held,
        }
    }
}

/// Rewrites summaries that do not depend on each other. Returns a reason if the redo must stop.
async fn make_level(
    env: &Compaction<'_>,
    olds: &[&Summary],
    nodes: &Nodes,
    (policy, wanted): (&RedoPolicy, &Wanted),
    progress: &mut Progress,
    made: &mut Made,
) -> Result<Option<RedoStop>> {
    let mut jobs = Vec::with_capacity(olds.len());
    for &old in olds {
        if let Some(job) = job_anew(env, old, nodes, wanted, made).await? {
            jobs.push((old, job));
        }
    }
    let asked: Vec<&Job> = jobs.iter().map(|(_, job)| job).collect();
    let done = make_jobs(env, &asked, made, &progress.watch).await?;
    let (mut stop, mut is_refusal_changed, mut released) = (None, false, Vec::new());
    for ((old, _), mut done) in jobs.iter().zip(done) {
        let fence = done.fence.take();
        let prepared = std::mem::replace(&mut done.prepared, Prepared::NotBegun);
        let remade = match Remade::of(prepared, policy.extracts) {
            Remade::Written { summary, .. } if wanted.rejects(&summary) => Remade::Failed {
                error: "the model wrote the rejected text again".to_owned(),
                was_asked: true,
            },
            remade => remade,
        };
        match &remade {
            Remade::Written { .. } => made.fences.extend(fence),
            _ => released.extend(fence),
        }
        match remade {
            Remade::Written { summary, fresh } => {
                progress.failed_in_a_row = 0;
                progress.written += u64::from(fresh);
                is_refusal_changed |= progress.refused.forget(old.source_hash);
                made.add(&old.id, *summary);
            }
            Remade::Limited => progress.limited = true,
            Remade::Cancelled => stop = Some(RedoStop::Cancelled),
            Remade::Held => {
                progress.held = true;
                progress.given_up.insert(old.id.clone());
            }
            Remade::Failed { error, was_asked } => {
                if was_asked {
                    progress.refused.remember(old.source_hash);
                    is_refusal_changed = true;
                }
                fail(env, old, error, progress).await;
            }
        }
    }
    release(env, released).await?;
    if is_refusal_changed {
        store_refused(env, &mut progress.refused).await?;
    }
    if progress.limited {
        stop.get_or_insert(RedoStop::CallLimit);
    }
    Ok(stop)
}

/// Counts a failed summary and emits [`Event::Failed`].
async fn fail(env: &Compaction<'_>, old: &Summary, error: String, progress: &mut Progress) {
    progress.failed_in_a_row += 1;
    progress.given_up.insert(old.id.clone());
    let range = old.range;
    env.emit(Event::Failed {
        range,
        error: error.clone(),
    })
    .await;
    progress.failures.push(RedoFailure {
        id: old.id.clone(),
        range,
        error,
    });
}

/// Writes several summaries at the same time, and stores them as drafts.
async fn make_jobs<'j>(
    env: &Compaction<'_>,
    jobs: &[&'j Job],
    made: &Made,
    watch: &Watch,
) -> Result<Vec<Done<'j>>> {
    // A failed summary does not prevent the others.
    let stops = |_: &&Job| AtomicBool::new(false);
    let stops: Vec<AtomicBool> = jobs.iter().map(stops).collect();
    let begun = begin(env, jobs, &Entries::new(), &made.summaries, watch).await?;
    let work: Vec<BoxFuture<'_, Done<'j>>> = begun
        .into_iter()
        .zip(&stops)
        .map(|(begun, stop)| write(env, begun, watch, stop).boxed())
        .collect();
    let work = futures::stream::iter(work).buffered(env.policy.concurrency());
    let mut done: Vec<Done<'j>> = work.collect().await;
    keep_drafts(env, &mut done).await;
    Ok(done)
}

/// Publishes the new summaries of a tree over its span, in one transaction.
async fn publish_tree(
    env: &Compaction<'_>,
    tree: &Tree,
    made: &Made,
    progress: &mut Progress,
) -> Result<Ended> {
    let Some(old) = tree.span.body.summary() else {
        return Ok(Ended::Kept);
    };
    let (Some(new), Some(at)) = (made.instead_of(old), tree.span.closed_range()) else {
        // The old summary stays, together with all summaries below it.
        progress.given_up.insert(old.clone());
        return Ok(Ended::Kept);
    };
    let body = SpanBody::Summary {
        id: new.id.clone(),
        depth: new.depth,
    };
    let below = made.below(&new.id);
    let publish = Publish {
        view: env.view(),
        at,
        expect: vec![tree.span.clone()],
        spans: vec![Span::closed(at, body, new.tokens)],
        summaries: below.iter().copied().cloned().collect(),
        fence: None,
        erasures: progress.watch.erasures(),
        now: env.clock.now(),
    };
    match env.store.publish(env.conversation, &publish).await? {
        Published::Done(_) => {}
        Published::Already(_) | Published::Lost { .. } | Published::Outdated => {
            return Ok(Ended::Lost);
        }
    }
    progress.replaced.extend(made.replaced(&new.id));
    for summary in below {
        env.emit(Event::Published {
            kind: REDO,
            summary: Some(summary.id.clone()),
            range: summary.range,
            source_tokens: summary.source_tokens,
            tokens: summary.tokens,
        })
        .await;
        env.hooks.after(summary).await;
    }
    Ok(Ended::Published)
}
