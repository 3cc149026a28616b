//! Prefetching: writes summaries in advance, and later publishes the ones that are ready.
//!
//! A user's turn must not wait for a model. So summaries are written between turns and kept as drafts. A turn with too
//! large a context publishes the ready drafts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use compaction_plan::{Job, StopReason};
use memory_model::{Summary, SummaryId};
use serde::Serialize;

use crate::asked::ask_once;
use crate::begin::begin;
use crate::conclude::{conclude, give_up, is_split, skip};
use crate::environment::{Compaction, Stage};
use crate::error::Result;
use crate::events::{NoHooks, SkipReason};
use crate::execute::execute;
use crate::lifecycle;
use crate::outcome::Outcome;
use crate::prepared::{Done, Prepared};
use crate::report::ModelReport;
use crate::sources::Entries;
use crate::supplied::publish_supplied;
use crate::tally::Tally;
use crate::view_reader::ViewReader;
use crate::waiting::{
    WaitingList, add_to_list, delete_draft, read_list, read_wanted, remove_list, split_wanted,
};
use crate::watch::Watch;
use crate::write::write;

/// Report of a prefetch, which writes summaries in advance as drafts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PrefetchReport {
    /// Number of summaries that this prefetch wrote.
    pub prepared: u64,
    /// Number of summaries that are ready to be published. Includes summaries of earlier prefetches.
    pub ready: u64,
    /// Number of calls of the summarizer. Failed and cancelled calls count.
    pub calls: u64,
    /// Error of the last summary that could not be written. `None` if none failed.
    pub failure: Option<String>,
    /// Number of requested summaries that the model did not write, with the causes.
    pub model: ModelReport,
    /// Whether the prefetch was cancelled.
    pub cancelled: bool,
}

/// Writes the summaries that the next compaction needs, and adds them to the stored list of summaries that are not
/// published yet.
pub(crate) async fn prefetch_summaries(env: &Compaction<'_>) -> Result<PrefetchReport> {
    let snapshot = env.read_snapshot().await?;
    let (list, revision) = read_wanted(env, &snapshot).await?;
    let env = &env.at_stage(Stage::Prepare);
    let mut tally = Tally::default();
    tally.watch.reads(&snapshot);
    tally.watch.set_excess(env.excess(snapshot.tokens()));
    let mut reader = ViewReader::new(env, snapshot);
    let executed = prepare_on_top(env, &list, &mut reader, &mut tally).await;
    let prepared = tally.ready.len();
    let mut count = list.jobs.len();
    if prepared > 0 {
        count = add_to_list(env, revision, list, tally.ready).await?;
    }
    executed?;
    Ok(PrefetchReport {
        prepared: prepared as u64,
        ready: count as u64,
        calls: tally.watch.calls.load(Ordering::Relaxed),
        failure: tally.failure,
        model: tally.watch.report(),
        cancelled: tally.cancelled,
    })
}

/// Writes the summaries that are needed after those in `list` are published, in several rounds. Each round plans over
/// the view with the summaries of the earlier rounds.
async fn prepare_on_top(
    env: &Compaction<'_>,
    list: &WaitingList,
    reader: &mut ViewReader<'_>,
    tally: &mut Tally,
) -> Result<()> {
    for waiting in &list.jobs {
        reader.lay_over(&waiting.job, waiting.spans.clone());
    }
    let waiting = list.shows();
    let mut is_read = false;
    while tally.ready.len() < env.policy.prefetch_jobs && tally.must_stop().is_none() {
        let done = tally.ready.len();
        let jobs = jobs_to_prefetch(env, reader, env.policy.prefetch_jobs - done).await?;
        let mut sources = jobs.iter().flat_map(|job| job.sources());
        let builds_on = sources.any(|c| c.summary().is_some_and(|id| waiting.contains(id)));
        if builds_on && !is_read {
            read_waiting(env, list, tally).await?;
            is_read = true;
        }
        execute(env, &jobs, &Entries::new(), tally).await?;
        for waiting in tally.ready.iter().skip(done) {
            reader.lay_over(&waiting.job, waiting.spans.clone());
        }
        if tally.ready.len() == done {
            break;
        }
    }
    Ok(())
}

/// Plans summaries over the reader's view. Returns at most `most` jobs, with sources that cost enough to be prefetched. The jobs do
/// not overlap.
async fn jobs_to_prefetch(
    env: &Compaction<'_>,
    reader: &ViewReader<'_>,
    most: usize,
) -> Result<Vec<Job>> {
    // If the maximum cost of the view is small, a source rarely costs more than a quarter of it.
    let quarter = env.room.map_or(u64::MAX, |room| room.tokens / 4);
    let least = env.policy.prefetch_min_tokens.min(quarter);
    // A job that ends with messages would later include the messages after them.
    let grows = |job: &Job| {
        let last = job.sources().last();
        last.is_some_and(|source| source.summary().is_none()) && job.source_tokens < least
    };
    let mut jobs = reader.all_jobs().await?;
    match env.policy.whole_passes && is_split(&jobs) {
        true if jobs.len() > most || jobs.iter().all(grows) => jobs.clear(),
        true => {}
        false => jobs.retain(|job: &Job| !grows(job)),
    }
    jobs.truncate(most);
    Ok(jobs)
}

/// Creates the summaries in the waiting list from their drafts. Further summaries are made from them.
async fn read_waiting(env: &Compaction<'_>, list: &WaitingList, tally: &mut Tally) -> Result<()> {
    let env = &Compaction {
        stage: Stage::PublishReady,
        hooks: &NoHooks,
        ..env.clone()
    };
    let watch = Arc::clone(&tally.watch);
    let done = with_drafts(env, list, &mut tally.made, &watch).await?;
    give_up(env, done).await
}

/// Returns the jobs in the waiting list with their drafts (written summaries), in order.
async fn with_drafts<'l>(
    env: &Compaction<'_>,
    list: &'l WaitingList,
    made: &mut BTreeMap<SummaryId, Summary>,
    watch: &Watch,
) -> Result<Vec<Done<'l>>> {
    let stop = AtomicBool::new(false);
    let mut all = Vec::new();
    for run in list.runs() {
        for begun in begin(env, &run, &Entries::new(), made, watch).await? {
            let done = write(env, begun, watch, &stop).await;
            if let Prepared::Summary(ready) = &done.prepared {
                made.insert(ready.summary.id.clone(), ready.summary.clone());
            }
            all.push(done);
        }
    }
    Ok(all)
}

/// Publishes the summaries in the waiting list in one transaction. Calls no model.
pub(crate) async fn publish_ready(env: &Compaction<'_>) -> Result<Outcome> {
    let (start, began) = lifecycle::start(env).await?;
    let mut tally = Tally::default();
    tally.watch.reads(&start);
    if let Some((list, revision)) = read_list(env).await? {
        let (list, unwanted) = split_wanted(env, list, &start).await?;
        for waiting in unwanted {
            skip(env, &waiting.job, SkipReason::Lost, &mut tally).await;
            delete_draft(env, waiting, &start).await?;
        }
        let ready = &env.at_stage(Stage::PublishReady);
        tally.planned += list.jobs.len() as u64;
        let (watch, mut made) = (Arc::clone(&tally.watch), BTreeMap::new());
        let jobs: Vec<&Job> = list.jobs.iter().map(|waiting| &waiting.job).collect();
        if ask_once(ready, &jobs, &mut tally).await {
            let done = with_drafts(ready, &list, &mut made, &watch).await?;
            conclude(ready, done, &mut tally).await?;
        }
        if !tally.cancelled && tally.supplied.is_none() {
            remove_list(env, revision).await?;
        }
    }
    let mut stop = match () {
        () if tally.cancelled => StopReason::Cancelled,
        () if tally.published > 0 => StopReason::PassesDone,
        () => tally.in_vain().unwrap_or(StopReason::NothingEligible),
    };
    if tally.supplied.is_some() {
        stop = publish_supplied(env, stop, &mut tally).await?;
        // Deletes the drafts of the messages that the supplied result replaced.
        let now = env.read_snapshot().await?;
        read_wanted(env, &now).await?;
        tally.now = Some(now);
    }
    lifecycle::end(env, (&start, began), tally, stop).await
}
