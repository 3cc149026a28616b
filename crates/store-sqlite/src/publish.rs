//! Publishing: new spans for a view, in one transaction.

use std::collections::BTreeMap;

use memory_model::{
    Body, Child, ConversationId, Hash, Seq, SeqRange, Span, SpanStart, SpliceError, SpliceRows,
    Summary, SummaryId, Timestamp, ViewName, ViewVersion, clip_starts, splice_starts,
};
use memory_store::{
    Conversation, ConversationRef, Error, ErrorKind, KnownSummary, Publish, Published, Result,
    check_references, check_shape, conversation_hash, publication_hash, spans_cost, views_hash,
};
use sea_query::SqliteQueryBuilder;
use store_sql::summary::{self, ChildRow, Known};
use store_sql::view::{self as sql, Where};
use store_sql::{Columns as _, Script, conversation, packed, to_count, to_hash, work};

use crate::db::On;
use crate::spans::first_row;
use crate::work::lost;
use crate::{SqliteStore, batched, no_conversation};

/// More spans than this can not be in a range.
const ALL: u64 = 1 << 32;

impl SqliteStore {
    pub(crate) async fn publish_spans(
        &self,
        id: ConversationId,
        publish: &Publish,
    ) -> Result<Published> {
        let mut writer = self.db.write().await?;
        let mut tx = writer.begin().await?;
        let mut on = tx.on();
        let view = &publish.view;
        // One row, one row if there is a fence, one if there is the conversation, and one if there is the view.
        let mut script = Script::default();
        script.push(&summary::last_key(id.0), SqliteQueryBuilder);
        if let Some(fence) = &publish.fence {
            script.push(&work::holds(fence), SqliteQueryBuilder);
        }
        let conversation = ConversationRef::Id(id);
        script.push(&conversation::find(&conversation), SqliteQueryBuilder);
        script.push(&sql::view(id.0, view), SqliteQueryBuilder);
        let mut rows = on.all_of_script(script).await?.into_iter();
        let last_key = match rows.next() {
            Some(row) => row.opt_int(0)?.unwrap_or(packed(id.0, 0)),
            None => packed(id.0, 0),
        };
        let held = match &publish.fence {
            None => None,
            Some(fence) => {
                let jobs = rows.next().map_or(Ok(0), |row| row.int(0))?;
                Some((fence, jobs > 0 && fence.conversation == id))
            }
        };
        let info = match rows.next() {
            Some(row) => self.found(&mut on, &row).await?,
            None => return Err(no_conversation(id)),
        };
        let referred = check_shape(publish, info.head)?;
        let asked: Vec<&str> = referred.iter().map(SummaryId::as_str).collect();
        let known = known_summaries(&mut on, id, &asked).await?;
        let stored: BTreeMap<SummaryId, KnownSummary> = known
            .iter()
            .map(|(id, known)| (id.clone(), known_summary(known)))
            .collect();
        check_references(publish, &stored)?;
        if let Some((fence, false)) = held {
            return Err(lost(&fence.key));
        }

        let (at, all) = (publish.at, Seq(u32::MAX));
        let found = rows.next();
        let (version, saved, chain) = match &found {
            None => (ViewVersion(0), 0, Hash::ZERO),
            Some(row) => (
                ViewVersion(to_count("version", row.int(0)?)?),
                row.int(1)?,
                to_hash("view", &row.bytes(2)?)?,
            ),
        };
        let rows = match found {
            None => vec![first_row()],
            Some(_) => {
                // From the row that covers the position before the range to the first one that begins well after it.
                let after = at.last.next();
                let mut script = Script::default();
                for (rows, limit) in [
                    (Where::Falling(at.first.prev()), 1),
                    (Where::Rising(at.first, after), ALL),
                    (Where::Rising(after.next(), all), 1),
                ] {
                    let found = sql::spans(id.0, view, version, rows, limit)?;
                    script.push(&found, SqliteQueryBuilder);
                }
                let found = on.all_of_script(script).await?;
                let rows = found.iter().map(|row| sql::start(row, 0));
                rows.collect::<Result<_>>()?
            }
        };
        let splice = match splice_starts(&rows, at, &publish.expect, &publish.spans) {
            Ok(splice) if splice.removed.is_empty() && splice.added.is_empty() => {
                return Ok(Published::Already(version));
            }
            Ok(splice) => splice,
            Err(SpliceError::Lost { found }) => {
                let same = found.len() == publish.spans.len()
                    && found.iter().zip(&publish.spans).all(|(a, b)| a.same(b));
                return Ok(match same {
                    true => Published::Already(version),
                    false => Published::Lost { found },
                });
            }
            Err(error) => {
                return Err(Error::new(ErrorKind::Invalid, error.to_string()).with_source(error));
            }
        };

        let before = clip_starts(&rows, at);
        let saving = self.saving(&mut on, &info, &before, &publish.spans).await?;
        let old = Old {
            version,
            saved,
            chain,
        };
        let now = publish.now;
        let old_version = old.version;
        let mut script = Script::default();
        let version = put_version(&mut script, id, view, &old, at, splice, saving, now)?;
        insert_summaries(&mut script, id, &publish.summaries, known, last_key)?;
        if old_version == ViewVersion(0) {
            let hash = with_view(&mut on, id, view).await?;
            script.push(&conversation::set_views(id.0, hash), SqliteQueryBuilder);
        }
        let after = Conversation {
            updated_at: now,
            ..info
        };
        let record = conversation_hash(&after);
        script.push(&conversation::touch(id.0, now, record), SqliteQueryBuilder);
        if let Some(fence) = &publish.fence {
            script.push(&work::delete_job(id, &fence.key), SqliteQueryBuilder);
        }
        on.run_script(script).await?;
        tx.commit().await?;
        Ok(Published::Done(version))
    }

    /// How much less `after` costs than `before`, in tokens.
    pub(crate) async fn saving(
        &self,
        on: &mut On<'_>,
        info: &Conversation,
        before: &[Span],
        after: &[Span],
    ) -> Result<i128> {
        let mut at: Vec<Seq> = before
            .iter()
            .chain(after)
            .filter(|span| span.body == Body::Raw)
            .filter_map(Span::closed_range)
            .flat_map(|range| [range.first.prev(), range.last])
            .collect();
        at.sort_unstable();
        at.dedup();
        let sums: BTreeMap<Seq, u64> = at
            .iter()
            .copied()
            .zip(self.running_at(on, info, &at).await?)
            .collect();
        let sum = |seq: Seq| sums.get(&seq).copied().unwrap_or(0);
        let raw = |range: SeqRange| sum(range.last).saturating_sub(sum(range.first.prev()));
        Ok(i128::from(spans_cost(before, raw)) - i128::from(spans_cost(after, raw)))
    }
}

/// A view's row before a publish.
pub(crate) struct Old {
    version: ViewVersion,
    saved: i64,
    chain: Hash,
}

impl Old {
    /// Before the first publish.
    pub(crate) const NEW: Self = Self {
        version: ViewVersion(0),
        saved: 0,
        chain: Hash::ZERO,
    };
}

/// The statements that write the next version of a view, which saves so many tokens more.
#[allow(clippy::too_many_arguments, reason = "they have no life of their own")]
pub(crate) fn put_version(
    script: &mut Script,
    id: ConversationId,
    view: &ViewName,
    old: &Old,
    at: SeqRange,
    splice: SpliceRows,
    saving: i128,
    now: Timestamp,
) -> Result<ViewVersion> {
    macro_rules! push {
        ($statement:expr) => {
            script.push(&$statement, SqliteQueryBuilder)
        };
    }
    let saved = (i128::from(old.saved) + saving).clamp(i64::MIN.into(), i64::MAX.into());
    let saved = i64::try_from(saved).unwrap_or_default();
    if old.version == ViewVersion(0) {
        // What every view begins with, so that the history is whole.
        push!(sql::insert_spans(id.0, view, old.version, &[first_row()])?);
    }
    let version = old.version.next();
    let hash = publication_hash(old.chain, version, at, &splice.removed, &splice.added);
    let firsts: Vec<Seq> = splice.removed.iter().map(|row| row.first).collect();
    for batch in batched(&firsts) {
        push!(sql::retire(id.0, view, version, &batch)?);
        push!(sql::delete_spans(id.0, view, &batch));
    }
    let mut added: &[SpanStart] = &splice.added;
    for batch in store_sql::message::batches(added.len()) {
        let (rows, rest) = added.split_at(batch.len());
        push!(sql::insert_spans(id.0, view, version, rows)?);
        added = rest;
    }
    push!(sql::insert_publication(id.0, view, version, at, now, hash)?);
    push!(sql::put_view(id.0, view, version, saved, hash)?);
    Ok(version)
}

/// The hash over the names of a conversation's views with one more.
async fn with_view(on: &mut On<'_>, id: ConversationId, view: &ViewName) -> Result<Hash> {
    let mut names = vec![view.clone()];
    for row in on.all(&sql::views(id.0)).await? {
        names.push(ViewName::new(row.text(0)?));
    }
    names.sort_unstable();
    Ok(views_hash(&names))
}

/// What a publish must know of a summary.
pub(crate) fn known_summary(row: &Known) -> KnownSummary {
    KnownSummary {
        range: row.range,
        depth: row.depth,
        tokens: row.tokens,
    }
}

/// The summaries with these ids that a conversation sees: of several with one id the nearest.
pub(crate) async fn known_summaries(
    on: &mut On<'_>,
    conversation: ConversationId,
    asked: &[&str],
) -> Result<BTreeMap<SummaryId, Known>> {
    let mut found: BTreeMap<SummaryId, Known> = BTreeMap::new();
    for batch in batched(asked) {
        for row in on
            .all(&summary::known_by_ids(conversation.0, &batch))
            .await?
        {
            let row = summary::known(&row)?;
            found.entry(row.public_id.clone()).or_insert(row);
        }
    }
    Ok(found)
}

/// Inserts the summaries that are not stored yet, and what they were made of. Keys go on from the last one.
fn insert_summaries(
    script: &mut Script,
    id: ConversationId,
    summaries: &[Summary],
    known: BTreeMap<SummaryId, Known>,
    mut key: i64,
) -> Result<()> {
    let mut keys: BTreeMap<SummaryId, i64> = known
        .into_iter()
        .map(|(public_id, known)| (public_id, known.id))
        .collect();
    let new: Vec<&Summary> = summaries
        .iter()
        .filter(|summary| !keys.contains_key(&summary.id))
        .collect();
    // All of them before any child: they may refer to each other.
    for summary in &new {
        key += 1;
        script.push(&summary::insert(key, id.0, summary)?, SqliteQueryBuilder);
        keys.insert(summary.id.clone(), key);
    }
    for summary in &new {
        let Some(container) = keys.get(&summary.id).copied() else {
            continue;
        };
        let children: Vec<ChildRow> = (0..)
            .zip(&summary.children)
            .map(|(ordinal, child)| ChildRow {
                ordinal,
                range: child.range(),
                constituent: child.summary().and_then(|child| keys.get(child)).copied(),
            })
            .collect();
        debug_assert!(
            summary.children.iter().zip(&children).all(|(child, row)| {
                matches!(child, Child::Messages { .. }) == row.constituent.is_none()
            }),
            "check_references found every child"
        );
        let mut rest: &[ChildRow] = &children;
        for batch in store_sql::message::batches(children.len()) {
            let (rows, left) = rest.split_at(batch.len());
            let children = summary::insert_children(container, rows)?;
            script.push(&children, SqliteQueryBuilder);
            rest = left;
        }
    }
    Ok(())
}
