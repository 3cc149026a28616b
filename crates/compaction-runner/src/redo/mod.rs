//! Redo: rewrites summaries that were written without a model, or by an older version of the extractive summarizer.

mod alone;
mod anew;
mod plan;
mod progress;
mod refused;
mod report;
mod tree;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use memory_model::{Seq, SeqRange, Span, Summary, SummaryId};
use memory_store::{Snapshot, read_spans};

use crate::environment::Compaction;
use crate::error::{Error, Result};
use crate::model_failure::ModelFailure;
use crate::outcome::Measure;
use crate::rejected::{read_rejected, reject};
use crate::watch::{Rejected, Watch};
use alone::Alone;
use plan::{Nodes, Rule, Wanted, trees};
use progress::Progress;
use refused::read_refused;
use tree::{Ended, redo_tree};

pub use plan::{RedoCandidate, RedoPlan};
pub use report::{RedoFailure, RedoPolicy, RedoReport, RedoStop, ReplacedSummary};

/// Number of summaries to look up in one call.
const LOOK_UP: usize = 256;
/// Maximum number of changes by other writers in succession before a redo stops.
const LOST_RACES: u32 = 3;

/// The view at the start of a redo: its spans, and all summaries below them.
struct Reached {
    snapshot: Snapshot,
    spans: Vec<Span>,
    nodes: Nodes,
}

/// Returns the plan of a redo. Calls no model and does not write to the store.
pub(crate) async fn plan_redo(env: &Compaction<'_>, policy: &RedoPolicy) -> Result<RedoPlan> {
    let Reached {
        snapshot,
        spans,
        nodes,
    } = reach(env).await?;
    let wanted = wanted(env, policy, &nodes, &Watch::default()).await?;
    let trees = trees(&spans, &nodes, &BTreeSet::new(), &wanted);
    let stale = trees.iter().flat_map(|tree| &tree.stale);
    let nodes = stale
        .filter_map(|id| nodes.get(id))
        .map(|old| RedoCandidate {
            id: old.id.clone(),
            range: old.range,
            depth: old.depth,
            provisional: wanted.begins(old) && old.provisional,
            rejected: wanted.rejects(old),
            failure: ModelFailure::of(old).map(|failure| failure.message),
        });
    Ok(RedoPlan {
        view: snapshot.view,
        version: snapshot.version,
        nodes: nodes.collect(),
    })
}

/// Returns the summaries to select. `nodes` are all summaries of the view.
async fn wanted(
    env: &Compaction<'_>,
    policy: &RedoPolicy,
    nodes: &Nodes,
    watch: &Watch,
) -> Result<Wanted> {
    if policy.extracts {
        return Ok(Wanted {
            rule: Rule::ExtractsBefore(env.extractive.id().to_owned()),
            rejected: Rejected::default(),
        });
    }
    if let Some(unknown) = policy.again.iter().find(|id| !nodes.contains_key(*id)) {
        return Err(Error::not_found(format!(
            "there is no summary {unknown} in the view {} or below it: take an id from the view",
            env.view()
        )));
    }
    let rejected = read_rejected(env, watch).await?;
    let rejected = rejected.iter().chain(&policy.again).cloned();
    Ok(Wanted {
        rule: if policy.again.is_empty() {
            Rule::WithoutModel
        } else {
            Rule::Rejected
        },
        rejected: Rejected::new(rejected.collect()),
    })
}

/// Rewrites the summaries that the policy selects, and all summaries made from them.
pub(crate) async fn redo(env: &Compaction<'_>, policy: &RedoPolicy) -> Result<RedoReport> {
    let mut env = env.clone();
    if policy.extracts {
        env.summarizer = env.extractive;
    }
    let env = &env;
    let start = reach(env).await?;
    let before = Measure::from(&start.snapshot);
    let mut progress = Progress::default();
    let wanted = wanted(env, policy, &start.nodes, &progress.watch).await?;
    // The list is stored first, so that nothing is made from these summaries even if the model fails now.
    reject(env, &policy.again).await?;
    progress.watch.set_rejected(wanted.rejected.clone());
    let provisional = wanted.count(&start.nodes);
    progress.watch.max_calls = policy.max_calls;
    progress.watch.reads(&start.snapshot);
    let is_free = env.summarizer.provisional() && !policy.extracts;
    let stop = match () {
        () if provisional == 0 => RedoStop::Done,
        () if is_free => RedoStop::NoModel,
        () => redo_alone(env, policy, &wanted, &mut progress).await?,
    };
    let end = reach(env).await?;
    let mut redone = RedoReport {
        before,
        after: Measure::from(&end.snapshot),
        provisional,
        left: wanted.count(&end.nodes),
        replaced: progress.replaced,
        calls: progress.watch.calls.load(Ordering::Relaxed),
        written: progress.written,
        failures: progress.failures,
        model: progress.watch.report().for_redo(),
        needed_calls: progress.watch.needed(),
        held: progress.watch.held_by(),
        stop_reason: stop,
    };
    let nothing = !redone.made_progress() && redone.failures.is_empty();
    if stop == RedoStop::CallLimit && nothing {
        redone.stop_reason = RedoStop::CallLimitTooLow;
    }
    Ok(redone)
}

/// Rewrites all trees of summaries, unless another redo of the view runs.
async fn redo_alone(
    env: &Compaction<'_>,
    policy: &RedoPolicy,
    wanted: &Wanted,
    progress: &mut Progress,
) -> Result<RedoStop> {
    progress.alone = Alone::take(env, &progress.watch).await?;
    if progress.alone.is_none() {
        return Ok(RedoStop::Held);
    }
    let stop = redo_all(env, policy, wanted, progress).await;
    if let Some(alone) = progress.alone.take() {
        let ended = alone.end(env).await;
        if stop.is_ok() {
            ended?;
        }
    }
    stop
}

/// Rewrites one tree of summaries after the other, until none is left or a limit or an error stops the redo.
async fn redo_all(
    env: &Compaction<'_>,
    policy: &RedoPolicy,
    wanted: &Wanted,
    progress: &mut Progress,
) -> Result<RedoStop> {
    let mut lost = 0;
    progress.refused = read_refused(env).await?;
    // Summaries that were refused in earlier runs are tried after all others, one at a time.
    let mut waiting = progress.refused.sources().to_vec();
    loop {
        let Reached {
            snapshot,
            spans,
            nodes,
        } = reach(env).await?;
        progress.watch.take_outdated();
        progress.watch.reads(&snapshot);
        let waits = |node: &&Summary| waiting.contains(&node.source_hash);
        let mut skipped = progress.given_up.clone();
        skipped.extend(nodes.values().filter(waits).map(|node| node.id.clone()));
        let trees = trees(&spans, &nodes, &skipped, wanted);
        if trees.is_empty() && !waiting.is_empty() {
            waiting.remove(0);
            continue;
        }
        if trees.is_empty() {
            return Ok(match () {
                () if !progress.failures.is_empty() => RedoStop::SummarizerFailed,
                () if progress.held => RedoStop::Held,
                () => RedoStop::Done,
            });
        }
        let mut was_lost = false;
        for tree in &trees {
            match redo_tree(env, tree, &nodes, (policy, wanted), progress).await? {
                Ended::Published => lost = 0,
                Ended::Lost => was_lost = true,
                Ended::Kept => {}
                Ended::Stop(reason) => return Ok(reason),
            }
        }
        if was_lost {
            lost += 1;
            if lost >= LOST_RACES {
                return Ok(RedoStop::LostRace);
            }
        }
    }
}

/// Reads the view, the summaries of its spans, and all summaries from which they were made.
async fn reach(env: &Compaction<'_>) -> Result<Reached> {
    let snapshot = env.read_snapshot().await?;
    let whole = SeqRange::new(Seq::FIRST, snapshot.head);
    let spans = read_spans(env.store, &snapshot, whole).await?;
    let mut nodes = Nodes::new();
    let shown = spans.iter().filter_map(|span| span.body.summary().cloned());
    let mut open: Vec<SummaryId> = shown.collect();
    while !open.is_empty() {
        let ids: Vec<SummaryId> = open.drain(..open.len().min(LOOK_UP)).collect();
        let found = env.store.summaries(env.conversation, &ids).await?;
        for summary in found.into_iter().flatten() {
            let sources = summary.source_summaries();
            open.extend(sources.filter(|id| !nodes.contains_key(*id)).cloned());
            nodes.insert(summary.id.clone(), summary);
        }
    }
    Ok(Reached {
        snapshot,
        spans,
        nodes,
    })
}
