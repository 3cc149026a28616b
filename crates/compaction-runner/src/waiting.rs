//! The stored list of prefetched jobs that wait to be published.

use std::collections::BTreeSet;

use compaction_plan::Job;
use memory_model::{Child, Seq, SeqRange, Span, SpanBody, SpanStart, SummaryId, splice_starts};
use memory_store::{Claim, JobKey, PREPARED, Snapshot, read_spans};
use serde::{Deserialize, Serialize};

use crate::environment::Compaction;
use crate::error::Result;
use crate::leases::release;
use crate::publishable::Publishable;
use crate::state::{Stored, load, save};

/// Maximum number of attempts to write a list that other runs change.
const TRIES: usize = 4;

/// A job that waits to be published.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Waiting {
    pub(crate) job: Job,
    /// The store's key of the draft; `None` if there is none, because the summary is already in the store or the job
    /// has no summary.
    draft: Option<String>,
    /// Spans of the view over the job's range after it is published.
    pub(crate) spans: Vec<Span>,
}

impl Waiting {
    pub(crate) fn new(one: &Publishable) -> Self {
        let mut job = one.job.clone();
        // No words are kept with the list: an erasure would have to find them.
        if let Some(request) = &mut job.request {
            request.previous = None;
        }
        Self {
            job,
            draft: one.fence.as_ref().map(|fence| fence.key.0.clone()),
            spans: one.spans(),
        }
    }

    /// Returns the summaries in these spans.
    fn shows(&self) -> impl Iterator<Item = &SummaryId> {
        self.spans.iter().filter_map(|span| span.body.summary())
    }
}

/// The jobs that wait to be published, in the order of their preparation. A later job may build on the summaries of an
/// earlier one.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct WaitingList {
    pub(crate) jobs: Vec<Waiting>,
}

impl WaitingList {
    /// Returns the jobs in runs. Jobs of one run do not build on each other.
    pub(crate) fn runs(&self) -> Vec<Vec<&Job>> {
        let mut runs: Vec<Vec<&Job>> = Vec::new();
        let mut shown: BTreeSet<&SummaryId> = BTreeSet::new();
        for waiting in &self.jobs {
            let sources = waiting.job.sources().iter().filter_map(Child::summary);
            let builds_on = sources.into_iter().any(|id| shown.contains(id));
            match runs.last_mut().filter(|_| !builds_on) {
                Some(run) => run.push(&waiting.job),
                None => {
                    shown.clear();
                    runs.push(vec![&waiting.job]);
                }
            }
            shown.extend(waiting.shows());
        }
        runs
    }

    /// Returns the summaries in the view after all jobs are published.
    pub(crate) fn shows(&self) -> BTreeSet<&SummaryId> {
        self.jobs.iter().flat_map(Waiting::shows).collect()
    }

    /// Returns the range from the first position of a job to the last; `None` for an empty list.
    fn range(&self) -> Option<SeqRange> {
        let ranges = || self.jobs.iter().map(|waiting| waiting.job.range);
        let first = ranges().map(|range| range.first).min()?;
        let last = ranges().map(|range| range.last).max()?;
        SeqRange::new(first, last)
    }
}

/// Reads the stored list; `None` if there is none. A list that cannot be parsed is read as an empty list.
pub(crate) async fn read_list(env: &Compaction<'_>) -> Result<Option<(WaitingList, u64)>> {
    let Stored { value, revision } = load::<WaitingList>(env, &key(env)).await?;
    Ok((revision > 0).then(|| (value.unwrap_or_default(), revision)))
}

/// Returns the jobs that can be published over a snapshot, and the list's revision. Removes the other jobs from the
/// stored list, and deletes their drafts.
pub(crate) async fn read_wanted(
    env: &Compaction<'_>,
    snapshot: &Snapshot,
) -> Result<(WaitingList, u64)> {
    let Some((list, revision)) = read_list(env).await? else {
        return Ok((WaitingList::default(), 0));
    };
    let (list, unwanted) = split_wanted(env, list, snapshot).await?;
    if unwanted.is_empty() {
        return Ok((list, revision));
    }
    for waiting in unwanted {
        delete_draft(env, waiting, snapshot).await?;
    }
    let written = write_list(env, revision, &list).await?;
    Ok((list, written.unwrap_or(revision)))
}

/// Adds jobs to the stored list, and returns the new number of jobs. Keeps the changes that other runs made to the list
/// meanwhile.
pub(crate) async fn add_to_list(
    env: &Compaction<'_>,
    mut revision: u64,
    mut list: WaitingList,
    added: Vec<Waiting>,
) -> Result<usize> {
    for _ in 0..TRIES {
        list.jobs.extend(added.iter().cloned());
        if write_list(env, revision, &list).await?.is_some() {
            return Ok(list.jobs.len());
        }
        (list, revision) = read_list(env).await?.unwrap_or_default();
    }
    // Runs that plan the same jobs find their drafts.
    Ok(list.jobs.len())
}

/// Removes the stored list unless another run changed it since `revision` was read.
pub(crate) async fn remove_list(env: &Compaction<'_>, revision: u64) -> Result<()> {
    save::<WaitingList>(env, &key(env), revision, None).await?;
    Ok(())
}

/// Stores the list, and returns its new revision; `None` if another run changed the list meanwhile. Removes an empty
/// list.
async fn write_list(
    env: &Compaction<'_>,
    revision: u64,
    list: &WaitingList,
) -> Result<Option<u64>> {
    let value = Some(list).filter(|list| !list.jobs.is_empty());
    if value.is_none() && revision == 0 {
        return Ok(Some(0));
    }
    save(env, &key(env), revision, value).await
}

fn key(env: &Compaction<'_>) -> String {
    format!("{PREPARED}{}", env.view())
}

/// Divides a list into the jobs that still apply, and the others. A job applies if the view still holds its replaced
/// spans, or an extract that replaced them.
pub(crate) async fn split_wanted(
    env: &Compaction<'_>,
    list: WaitingList,
    snapshot: &Snapshot,
) -> Result<(WaitingList, Vec<Waiting>)> {
    let (mut wanted, mut unwanted) = (WaitingList::default(), Vec::new());
    let Some(range) = list.range() else {
        return Ok((wanted, unwanted));
    };
    // With one more position on each side, so that the spans show the neighbouring ranges.
    let around = SeqRange::new(range.first.prev().max(Seq::FIRST), range.last.next());
    let spans = read_spans(env.store, snapshot, around).await?;
    let mut rows: Vec<SpanStart> = spans.iter().map(SpanStart::from).collect();
    for mut waiting in list.jobs {
        let mut spliced = splice(&rows, &waiting);
        if spliced.is_none()
            && let Some(extract) = extract_of(env, &waiting.job, &spans).await?
        {
            waiting.job.expect = vec![extract];
            spliced = splice(&rows, &waiting);
        }
        match spliced {
            Some(spliced) => {
                rows = spliced;
                wanted.jobs.push(waiting);
            }
            None => unwanted.push(waiting),
        }
    }
    Ok((wanted, unwanted))
}

/// Returns the span with a summary of the job's sources that no model wrote.
async fn extract_of(env: &Compaction<'_>, job: &Job, spans: &[Span]) -> Result<Option<Span>> {
    let shown = spans.iter().find(|span| {
        let depth =
            matches!(span.body, SpanBody::Summary { depth, .. } if Some(depth) == job.depth());
        depth && span.closed_range() == Some(job.range)
    });
    let Some((span, id)) = shown.and_then(|span| Some((span, span.body.summary()?))) else {
        return Ok(None);
    };
    let ids = std::slice::from_ref(id);
    let found = env.store.summaries(env.conversation, ids).await?;
    let extract = found
        .into_iter()
        .flatten()
        .any(|summary| summary.provisional && summary.sources == job.sources());
    Ok(extract.then(|| span.clone()))
}

/// Deletes a job's draft unless another owner works on it.
pub(crate) async fn delete_draft(
    env: &Compaction<'_>,
    waiting: Waiting,
    snapshot: &Snapshot,
) -> Result<()> {
    let Some(key) = waiting.draft.map(JobKey) else {
        return Ok(());
    };
    let lease = env.policy.lease();
    let now = env.clock.now();
    let until = now.saturating_add(lease);
    let Ok(_taken) = env.in_flight.take(env.conversation, &key, now, until) else {
        return Ok(());
    };
    let (owner, erasures) = (&env.owner(), snapshot.erasures);
    let claim = env
        .store
        .claim(env.conversation, &key, owner, lease, erasures);
    match claim.await? {
        Claim::Granted(fence) | Claim::Ready(fence, _) => release(env, [fence]).await,
        // An erasure deletes all drafts.
        Claim::Held { .. } | Claim::Outdated => Ok(()),
    }
}

/// Returns the rows of a view after a waiting job is published; `None` if they do not hold its expected spans.
fn splice(rows: &[SpanStart], waiting: &Waiting) -> Option<Vec<SpanStart>> {
    let Waiting { job, spans, .. } = waiting;
    let changed = splice_starts(rows, job.range, &job.expect, spans).ok()?;
    let mut rows = rows.to_vec();
    rows.retain(|row| !changed.removed.iter().any(|gone| gone.first == row.first));
    rows.extend(changed.added);
    rows.sort_by_key(|row| row.first);
    Some(rows)
}
