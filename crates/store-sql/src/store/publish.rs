//! Publishing: replaces spans of a view, in one transaction.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::{ConversationId, Hash, Seq, SeqRange, SummaryId, ViewName};
use memory_store::implementors::{
    check_one_view, check_references, check_shape, conversation_hash, lease_lost, no_conversation,
    unfit, views_hash,
};
use memory_store::{Conversation, ConversationRef, Fence, Publish, Published, Result};

use super::SqlStore;
use super::known_summaries::{known_of, push_known_summaries};
use super::leases::{fences_of, push_granted_fences};
use super::log::Log;
use super::new_summaries::NewSummaries;
use super::pages::batched;
use super::running::{RunningSums, push_running};
use super::view_change::{ViewChange, ends_of_raw, saving};
use crate::batch::Batch;
use crate::convert::packed;
use crate::executor::{Database, Executor};
use crate::family::Family;
use crate::row::Columns as _;
use crate::summary::{self, StoredSummary};
use crate::view::{self as sql, SpanRows};
use crate::{conversation, work};

/// Limit on a number of spans, larger than any range can have.
const ALL: u64 = 1 << 32;

/// Data that are read before the publishes to one view are applied.
struct PublishInput {
    info: Conversation,
    /// Whether the view was never published before.
    is_new: bool,
    change: ViewChange,
    /// Visible summaries to which the publishes refer, by id.
    known: BTreeMap<SummaryId, StoredSummary>,
    /// Row key of the latest summary that the conversation made.
    last_key: i64,
    /// Fencing tokens of leased jobs, by key.
    fences: BTreeMap<String, u64>,
    /// Running sums at the ends of the raw spans that the publishes name.
    sums: RunningSums,
}

impl<D: Database> SqlStore<D> {
    pub(super) async fn publish_spans(
        &self,
        id: ConversationId,
        publishes: &[Publish],
    ) -> Result<Vec<Result<Published>>> {
        check_one_view(publishes)?;
        let Some(first) = publishes.first() else {
            return Ok(Vec::new());
        };
        let mut writer = self.database.write().await?;
        let (mut tx, family) = self.begin_in(&mut writer, id).await?;
        let on = &mut tx;
        let PublishInput {
            info,
            is_new,
            mut change,
            known,
            last_key,
            fences,
            sums,
        } = self.read_before(on, family, id, publishes).await?;

        let mut summaries = NewSummaries::new(known, last_key);
        let mut outcomes = Vec::with_capacity(publishes.len());
        let mut done_fences: Vec<&Fence> = Vec::new();
        let mut now = None;
        for publish in publishes {
            let holds = |fence: &Fence| {
                fence.conversation == id && fences.get(&fence.key.0) == Some(&fence.token)
            };
            let fenced = publish.fence.as_ref();
            let lost_fence = fenced.filter(|fence| !holds(fence) || done_fences.contains(fence));
            let outcome = match lost_fence {
                _ if publish.erasures != info.erasures => {
                    check_shape(publish, info.head).map(|_| Published::Outdated)
                }
                Some(fence) => check_shape(publish, info.head).and(Err(lease_lost(&fence.key))),
                None => apply(publish, &info, &mut change, &mut summaries),
            };
            if matches!(outcome, Ok(Published::Done(_))) {
                done_fences.extend(fenced);
                now = Some(publish.now);
            }
            outcomes.push(outcome);
        }
        let Some(now) = now else {
            // No publish succeeded, so there are no rows to write.
            return Ok(outcomes);
        };

        let saving = saving(on, &Log::new(family, &info), sums, change.replaced()).await?;
        let view = &first.view;
        let mut batch = Batch::default();
        change.write(&mut batch, family, id, view, saving)?;
        summaries.write(&mut batch, family, id)?;
        if is_new {
            let hash = with_view(on, family, id, view).await?;
            batch.push(conversation::set_views(family, id.0, hash));
        }
        let after = Conversation {
            updated_at: now,
            ..info
        };
        let record = conversation_hash(&after);
        batch.push(conversation::touch(family, id.0, now, record));
        let keys: Vec<&str> = done_fences
            .iter()
            .map(|fence| fence.key.0.as_str())
            .collect();
        for keys in batched(&keys) {
            batch.push(work::delete_jobs(family, id, &keys));
        }
        on.run_batch(batch).await?;
        self.database.commit(tx).await?;
        Ok(outcomes)
    }

    async fn read_before(
        &self,
        on: &mut impl Executor,
        family: Family,
        id: ConversationId,
        publishes: &[Publish],
    ) -> Result<PublishInput> {
        let view = publishes.first().map(|publish| &publish.view);
        let view = view.ok_or_else(|| no_conversation(id))?;
        let referred: BTreeSet<&str> = publishes.iter().flat_map(referred).collect();
        let referred: Vec<&str> = referred.into_iter().collect();
        let fences = publishes
            .iter()
            .filter_map(|publish| publish.fence.as_ref());
        let fenced: Vec<&str> = fences.map(|fence| fence.key.0.as_str()).collect();

        let mut batch = Batch::default();
        batch.push(summary::last_key(family, id.0));
        batch.push(conversation::find(family, &ConversationRef::Id(id)));
        batch.push(sql::view(family, id.0, view));
        let fence_statements = push_granted_fences(&mut batch, family, id, &fenced);
        push_known_summaries(&mut batch, family, id, &referred);
        let answers = on.all_of_batch(batch).await?;
        let [last_key, found, view_row, rest @ ..] = answers.as_slice() else {
            return Err(no_conversation(id));
        };
        let (fence_rows, known_rows) = rest.split_at_checked(fence_statements).unwrap_or_default();
        let last_key = match last_key.first() {
            Some(row) => row.opt_int(0)?.unwrap_or(packed(id.0, 0)),
            None => packed(id.0, 0),
        };
        let info = match found.first() {
            Some(row) => self.found(on, row).await?,
            None => return Err(no_conversation(id)),
        };
        let mut change = match view_row.first() {
            None => ViewChange::new(),
            Some(row) => ViewChange::of(row)?,
        };
        let sums = read_around(on, family, &info, &mut change, publishes).await?;
        Ok(PublishInput {
            is_new: change.is_new(),
            fences: fences_of(fence_rows.iter().flatten())?,
            known: known_of(known_rows.iter().flatten())?,
            info,
            change,
            last_key,
            sums,
        })
    }
}

/// Applies one publish to the span starts of its view in memory.
fn apply<'p>(
    publish: &'p Publish,
    info: &Conversation,
    change: &mut ViewChange,
    summaries: &mut NewSummaries<'p>,
) -> Result<Published> {
    let referred = check_shape(publish, info.head)?;
    let rows = match change.splice(publish) {
        Ok(rows) => rows,
        Err(error) => return unfit(publish, change.version(), error),
    };
    check_references(publish, &summaries.known(&referred))?;
    if rows.removed.is_empty() && rows.added.is_empty() {
        return Ok(Published::Already(change.version()));
    }
    change.apply(publish, rows);
    summaries.add(&publish.summaries);
    Ok(Published::Done(change.version()))
}

/// Returns the ids of all summaries to which a publish refers.
fn referred(publish: &Publish) -> impl Iterator<Item = &str> {
    let shown = publish.spans.iter().filter_map(|span| span.body.summary());
    let brought = publish.summaries.iter().flat_map(|summary| {
        let children = summary.children.iter().filter_map(|child| child.summary());
        children
            .chain(summary.source_summaries())
            .chain([&summary.id])
    });
    shown.chain(brought).map(SummaryId::as_str)
}

/// Returns the smallest range that contains the ranges of all publishes. Returns `None` if there are no publishes.
fn hull(publishes: &[Publish]) -> Option<SeqRange> {
    let first = publishes.iter().map(|publish| publish.at.first).min()?;
    let last = publishes.iter().map(|publish| publish.at.last).max()?;
    SeqRange::new(first, last)
}

/// Reads the current rows of a view around the publishes, and the running sums at the ends of the raw spans that the
/// publishes name, in one round trip. The rows begin with the row that covers the position before the publishes, and
/// end with the first row that begins two or more positions after them.
async fn read_around(
    on: &mut impl Executor,
    family: Family,
    info: &Conversation,
    change: &mut ViewChange,
    publishes: &[Publish],
) -> Result<RunningSums> {
    let spans = publishes
        .iter()
        .flat_map(|publish| publish.expect.iter().chain(&publish.spans));
    let ends = ends_of_raw(spans);
    let log = Log::new(family, info);
    let mut batch = Batch::default();
    let hull = hull(publishes).filter(|_| !change.is_new());
    let around = match (hull, publishes.first()) {
        (Some(at), Some(first)) => {
            let (after, all) = (at.last.next(), Seq(u32::MAX));
            let rows = [
                (SpanRows::Falling(at.first.prev()), 1),
                (SpanRows::Rising(at.first, after), ALL),
                (SpanRows::Rising(after.next(), all), 1),
            ];
            for (rows, limit) in rows {
                let version = change.version();
                let found = sql::spans(family, info.id.0, &first.view, version, rows, limit)?;
                batch.push(found);
            }
            rows.len()
        }
        _ => 0,
    };
    push_running(&mut batch, &log, &ends);
    let answers = match batch.statements() {
        [] => Vec::new(),
        _ => on.all_of_batch(batch).await?,
    };
    let (rows, sums) = answers.split_at_checked(around).unwrap_or_default();
    if around > 0 {
        let rows = rows.iter().flatten().map(sql::added_span);
        change.set_rows(rows.collect::<Result<_>>()?);
    }
    RunningSums::new(sums.iter().flatten())
}

/// Returns the hash over the names of a conversation's views together with one more name.
async fn with_view(
    on: &mut impl Executor,
    family: Family,
    id: ConversationId,
    view: &ViewName,
) -> Result<Hash> {
    let mut names = vec![view.clone()];
    for row in on.all(&sql::views(family, id.0)).await? {
        names.push(ViewName::new(row.text(0)?));
    }
    names.sort_unstable();
    Ok(views_hash(&names))
}
