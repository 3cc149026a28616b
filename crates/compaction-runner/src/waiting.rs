//! The stored list of jobs whose summaries were written in advance and are not published yet.

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

/// Maximum number of attempts to write the list while other runs change it.
const TRIES: usize = 4;

/// A job (a summary to publish, or another change of the view) that is prepared and waits to be published.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Waiting {
    pub(crate) job: Job,
    /// Key of the draft in the store. `None` if the summary is already stored, or if the job has no summary.
    draft: Option<String>,
    /// Spans of the view over the job's range after the job is published.
    pub(crate) spans: Vec<Span>,
}

impl Waiting {
    pub(crate) fn new(one: &Publishable) -> Self {
        let mut job = one.job.clone();
        // The list contains no text of messages, because an erasure would not find it.
        if let Some(request) = &mut job.request {
            request.previous = None;
        }
        Self {
            job,
            draft: one.fence.as_ref().map(|fence| fence.key.0.clone()),
            spans: one.spans(),
        }
    }

    /// Returns the ids of the summaries in the new spans.
    fn shows(&self) -> impl Iterator<Item = &SummaryId> {
        self.spans.iter().filter_map(|span| span.body.summary())
    }
}

/// Prepared jobs (changes of the view) that wait to be published, in the order of their preparation. A later job may
/// build on the summary of an earlier one.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct WaitingList {
    pub(crate) jobs: Vec<Waiting>,
}

impl WaitingList {
    /// Returns the waiting jobs in groups, in order. No job of a group uses the summary of another job of the group.
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

    /// Returns the ids of the summaries in the new spans of all jobs.
    pub(crate) fn shows(&self) -> BTreeSet<&SummaryId> {
        self.jobs.iter().flat_map(Waiting::shows).collect()
    }

    /// Returns the range from the first position of all jobs to the last one; `None` for an empty list.
    fn range(&self) -> Option<SeqRange> {
        let ranges = || self.jobs.iter().map(|waiting| waiting.job.range);
        let first = ranges().map(|range| range.first).min()?;
        let last = ranges().map(|range| range.last).max()?;
        SeqRange::new(first, last)
    }
}

/// Reads the stored list and its revision; `None` if there is none. A list that cannot be parsed is returned as an
/// empty list.
pub(crate) async fn read_list(env: &Compaction<'_>) -> Result<Option<(WaitingList, u64)>> {
    let Stored { value, revision } = load::<WaitingList>(env, &key(env)).await?;
    Ok((revision > 0).then(|| (value.unwrap_or_default(), revision)))
}

/// Returns the waiting jobs that can be published over the view in `snapshot`, and the list's revision. Removes all
/// other jobs from the stored list and deletes their drafts.
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

/// Adds jobs to the stored list of waiting jobs, and returns the new length of the list. Keeps the changes that other
/// runs made to the list in the meantime.
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
    // The list could not be written. Runs that plan the same jobs find the drafts.
    Ok(list.jobs.len())
}

/// Removes the stored list, unless another run changed it since `revision` was read.
pub(crate) async fn remove_list(env: &Compaction<'_>, revision: u64) -> Result<()> {
    save::<WaitingList>(env, &key(env), revision, None).await?;
    Ok(())
}

/// Stores the list, and returns its new revision. `None` if another run changed the list in the meantime. Removes an
/// empty list.
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

/// Divides a list of written summaries into those that can still be published, and the others. A summary can be
/// published if the view still shows the spans that it replaces. It can also be published if the view shows an extract
/// of the same sources in their place: a summary that was written without a model.
pub(crate) async fn split_wanted(
    env: &Compaction<'_>,
    list: WaitingList,
    snapshot: &Snapshot,
) -> Result<(WaitingList, Vec<Waiting>)> {
    let (mut wanted, mut unwanted) = (WaitingList::default(), Vec::new());
    let Some(range) = list.range() else {
        return Ok((wanted, unwanted));
    };
    // The range has one more position on each side, so that the spans include the neighbours.
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

/// Returns the span of the view with a summary of the job's sources that was written without a model. `None` if there
/// is none.
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
        .any(|summary| summary.provisional && summary.sources.ends_with(job.sources()));
    Ok(extract.then(|| span.clone()))
}

/// Deletes the draft (the written summary) of a waiting job. Keeps the draft if another owner is working on the job.
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
        // In these cases the draft belongs to another owner, or an erasure has deleted all drafts.
        Claim::Held { .. } | Claim::Outdated => Ok(()),
    }
}

/// Returns the spans of a view after a waiting job is published. `None` if the view does not show the spans that the
/// job expects.
fn splice(rows: &[SpanStart], waiting: &Waiting) -> Option<Vec<SpanStart>> {
    let Waiting { job, spans, .. } = waiting;
    let changed = splice_starts(rows, job.range, &job.expect, spans).ok()?;
    let mut rows = rows.to_vec();
    rows.retain(|row| !changed.removed.iter().any(|gone| gone.first == row.first));
    rows.extend(changed.added);
    rows.sort_by_key(|row| row.first);
    Some(rows)
}
