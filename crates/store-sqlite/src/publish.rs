//! Publishing: new spans for a view, in one transaction.

use std::collections::BTreeMap;

use memory_model::{
    Body, Child, ConversationId, Hash, Seq, SeqRange, Span, SpanStart, SpliceError, Summary,
    SummaryId, ViewVersion, clip_starts, splice_starts,
};
use memory_store::{
    Conversation, Error, ErrorKind, KnownSummary, Publish, Published, Result, check_references,
    check_shape, publication_hash, spans_cost,
};
use sea_query::SqliteQueryBuilder;
use store_sql::summary::{self, ChildRow, Known};
use store_sql::view::{self as sql, Where};
use store_sql::{Columns as _, Script, conversation, packed, to_count, to_hash, work};

use crate::db::On;
use crate::spans::first_row;
use crate::{SqliteStore, batched};

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
        let info = self.get(&mut on, id).await?;
        let referred = check_shape(publish, info.head)?;
        let asked: Vec<&str> = referred.iter().map(SummaryId::as_str).collect();
        let known = known_summaries(&mut on, id, &asked).await?;
        let stored: BTreeMap<SummaryId, KnownSummary> = known
            .values()
            .map(|known| {
                let Known {
                    range,
                    depth,
                    tokens,
                    ..
                } = *known;
                (
                    known.public_id.clone(),
                    KnownSummary {
                        range,
                        depth,
                        tokens,
                    },
                )
            })
            .collect();
        check_references(publish, &stored)?;
        if let Some(fence) = &publish.fence {
            self.check_fence(&mut on, id, fence).await?;
        }

        let view = &publish.view;
        let (at, all) = (publish.at, Seq(u32::MAX));
        let found = on.first(&sql::view(id.0, view)).await?;
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

        let saved = self.saving(&mut on, &info, publish, &rows, saved).await?;
        let mut script = Script::default();
        macro_rules! push {
            ($statement:expr) => {
                script.push(&$statement, SqliteQueryBuilder)
            };
        }
        if version == ViewVersion(0) {
            // What every view begins with, so that the history is whole.
            push!(sql::insert_spans(id.0, view, version, &[first_row()])?);
        }
        let version = version.next();
        let hash = publication_hash(chain, version, at, &splice.removed, &splice.added);
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
        let now = publish.now;
        push!(sql::insert_publication(id.0, view, version, at, now, hash)?);
        push!(sql::put_view(id.0, view, version, saved, hash)?);
        insert_summaries(&mut on, &mut script, id, &publish.summaries, known).await?;
        push!(conversation::touch(id.0, publish.now));
        if let Some(fence) = &publish.fence {
            push!(work::delete_job(id, &fence.key));
        }
        on.run_script(script).await?;
        tx.commit().await?;
        Ok(Published::Done(version))
    }

    /// What the view saves after the publish, in tokens.
    async fn saving(
        &self,
        on: &mut On<'_>,
        info: &Conversation,
        publish: &Publish,
        rows: &[SpanStart],
        saved: i64,
    ) -> Result<i64> {
        let before = clip_starts(rows, publish.at);
        let mut at: Vec<Seq> = before
            .iter()
            .chain(&publish.spans)
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
        let saving =
            i128::from(spans_cost(&before, raw)) - i128::from(spans_cost(&publish.spans, raw));
        let saved = (i128::from(saved) + saving).clamp(i64::MIN.into(), i64::MAX.into());
        Ok(i64::try_from(saved).unwrap_or_default())
    }
}

async fn known_summaries(
    on: &mut On<'_>,
    id: ConversationId,
    asked: &[&str],
) -> Result<BTreeMap<SummaryId, Known>> {
    let mut found = BTreeMap::new();
    for batch in batched(asked) {
        for row in on.all(&summary::known_by_ids(id.0, &batch)).await? {
            let known = summary::known(&row)?;
            found.insert(known.public_id.clone(), known);
        }
    }
    Ok(found)
}

/// Inserts the summaries that are not stored yet, and what they were made of.
async fn insert_summaries(
    on: &mut On<'_>,
    script: &mut Script,
    id: ConversationId,
    summaries: &[Summary],
    known: BTreeMap<SummaryId, Known>,
) -> Result<()> {
    let mut keys: BTreeMap<SummaryId, i64> = known
        .into_iter()
        .map(|(public_id, known)| (public_id, known.id))
        .collect();
    let new: Vec<&Summary> = summaries
        .iter()
        .filter(|summary| !keys.contains_key(&summary.id))
        .collect();
    if new.is_empty() {
        return Ok(());
    }
    let mut key = match on.first(&summary::last_key(id.0)).await? {
        Some(row) => row.opt_int(0)?.unwrap_or(packed(id.0, 0)),
        None => packed(id.0, 0),
    };
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
