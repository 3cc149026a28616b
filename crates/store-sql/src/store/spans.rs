//! Reading of views, at any version.

use memory_model::{
    ConversationId, Seq, SeqRange, Span, SpanStart, ViewName, ViewVersion, spans_of,
};
use memory_store::implementors::no_conversation;
use memory_store::{Error, ErrorKind, Order, Page, Publication, Result, Snapshot, ViewInfo};

use super::SqlStore;
use super::pages::{one_more, page};
use crate::batch::Batch;
use crate::convert::{to_count, to_hash, to_seq};
use crate::executor::{Database, Executor};
use crate::family::Family;
use crate::row::Columns as _;
use crate::view::{self as sql, SpanRows};

/// Reads the starts of the spans of a version of a view.
pub(super) async fn starts(
    on: &mut impl Executor,
    family: Family,
    id: ConversationId,
    view: &ViewName,
    version: ViewVersion,
    rows: SpanRows,
    limit: u64,
) -> Result<Vec<SpanStart>> {
    let found = on
        .all(&sql::spans(family, id.0, view, version, rows, limit)?)
        .await?;
    found.iter().map(|row| sql::start(row, 0)).collect()
}

impl<D: Database> SqlStore<D> {
    pub(super) async fn look_at(&self, id: ConversationId, view: &ViewName) -> Result<Snapshot> {
        let mut reader = self.database.read().await?;
        let family = self.family(&mut reader, id).await?;
        let snapshot = snapshot(&mut reader, family, id, view).await?;
        self.reached().remember(&snapshot);
        Ok(snapshot)
    }

    pub(super) async fn list_views(&self, id: ConversationId) -> Result<Vec<ViewInfo>> {
        let mut reader = self.database.read().await?;
        let on = &mut reader;
        self.lineage(on, id).await?;
        let family = self.family(on, id).await?;
        let rows = on.all(&sql::views(family, id.0)).await?;
        rows.iter()
            .map(|row| {
                Ok(ViewInfo {
                    name: ViewName::new(row.text(0)?),
                    version: ViewVersion(to_count("version", row.int(1)?)?),
                    saved: row.int(2)?,
                    chain: to_hash("view", &row.bytes(3)?)?,
                    spans: to_count("spans", row.int(4)?)?,
                })
            })
            .collect()
    }

    pub(super) async fn spans_page(
        &self,
        shot: &Snapshot,
        range: SeqRange,
        order: Order,
        limit: usize,
    ) -> Result<Page<Span>> {
        let limit = limit.max(1);
        let (id, view, version) = (shot.conversation, &shot.view, shot.version);
        let mut reader = self.database.read().await?;
        let on = &mut reader;
        let family = self.family(on, id).await?;
        let is_known = self.reached().has_version(id, view, version);
        if version == ViewVersion(0) || !is_known {
            let now = snapshot(on, family, id, view).await?;
            if now.version == ViewVersion(0) && version == now.version {
                return Ok(Page::complete(spans_of(&[SpanStart::FIRST], None)));
            }
            if version > now.version {
                return Err(Error::new(
                    ErrorKind::Invalid,
                    format!("view {view} of conversation {id} has no version {version} yet"),
                ));
            }
        }
        let all = Seq(u32::MAX);
        match order {
            Order::OldestFirst => {
                // The answer has the row that covers the first position, and the rows after it, with one row more than
                // the limit: that row marks the end of the last span.
                let after = SpanRows::Rising(range.first.next(), all);
                let asked = [
                    (SpanRows::Falling(range.first), 1),
                    (after, one_more(limit)),
                ];
                let mut batch = Batch::default();
                for (rows, limit) in asked {
                    batch.push(sql::spans(family, id.0, view, version, rows, limit)?);
                }
                let rows = on.all_of_batch(batch).await?;
                let rows: Vec<SpanStart> = rows
                    .iter()
                    .flatten()
                    .map(|row| sql::start(row, 0))
                    .collect::<Result<_>>()?;
                let mut items = spans_of(&rows, None);
                items.retain(|span| span.range.first <= range.last);
                let more = items.len() > limit;
                items.truncate(limit);
                let next = match items.last().and_then(|span| span.range.last) {
                    Some(last) if more => SeqRange::new(last.next(), range.last),
                    _ => None,
                };
                Ok(Page { items, next })
            }
            Order::NewestFirst => {
                let before = SpanRows::Falling(range.last);
                let mut rows =
                    starts(on, family, id, view, version, before, one_more(limit)).await?;
                rows.reverse();
                let after = SpanRows::Rising(range.last.next(), all);
                let end = match range.last {
                    last if last == all => Vec::new(),
                    _ => starts(on, family, id, view, version, after, 1).await?,
                };
                let last = end.first().map(|row| row.first.prev());
                let mut items = spans_of(&rows, last);
                items.retain(|span| span.range.last.is_none_or(|last| last >= range.first));
                items.reverse();
                let more = items.len() > limit;
                items.truncate(limit);
                let next = match items.last() {
                    Some(span) if more => SeqRange::new(range.first, span.range.first.prev()),
                    _ => None,
                };
                Ok(Page { items, next })
            }
        }
    }

    pub(super) async fn publication_log(
        &self,
        id: ConversationId,
        view: &ViewName,
        after: ViewVersion,
        limit: usize,
    ) -> Result<Page<Publication, ViewVersion>> {
        let mut reader = self.database.read().await?;
        let on = &mut reader;
        self.lineage(on, id).await?;
        let family = self.family(on, id).await?;
        let rows = on
            .all(&sql::publications(
                family,
                id.0,
                view,
                after,
                one_more(limit),
            )?)
            .await?;
        let rows: Vec<sql::PublicationRow> =
            rows.iter().map(sql::publication).collect::<Result<_>>()?;
        let page = page(rows, limit, |row: &sql::PublicationRow| row.version);
        let (Some(from), Some(to)) = (page.items.first(), page.items.last()) else {
            return Ok(Page::complete(Vec::new()));
        };
        let removed = on
            .all(&sql::removed(family, id.0, view, from.version, to.version)?)
            .await?;
        let added = on
            .all(&sql::added(family, id.0, view, from.version, to.version)?)
            .await?;
        let mut items: Vec<Publication> = page
            .items
            .into_iter()
            .map(|row| Publication {
                version: row.version,
                at: row.at,
                removed: Vec::new(),
                added: Vec::new(),
                created_at: row.created_at,
                hash: row.hash,
            })
            .collect();
        for (rows, of_removed) in [(&removed, true), (&added, false)] {
            for row in rows {
                let version = ViewVersion(to_count("version", row.int(0)?)?);
                let place = items.binary_search_by_key(&version, |item| item.version);
                if let Some(item) = place.ok().and_then(|place| items.get_mut(place)) {
                    let list = if of_removed {
                        &mut item.removed
                    } else {
                        &mut item.added
                    };
                    list.push(sql::start(row, 1)?);
                }
            }
        }
        Ok(Page {
            items,
            next: page.next,
        })
    }
}

/// Reads the current state of a view with one SQL statement.
pub(super) async fn snapshot(
    on: &mut impl Executor,
    family: Family,
    id: ConversationId,
    view: &ViewName,
) -> Result<Snapshot> {
    let row = on
        .first(&sql::snapshot(family, id.0, view))
        .await?
        .ok_or_else(|| no_conversation(id))?;
    Ok(Snapshot {
        conversation: id,
        head: to_seq(row.int(0)?)?,
        log_tokens: to_count("tokens of a conversation", row.int(1)?)?,
        view: view.clone(),
        version: ViewVersion(to_count("version", row.opt_int(2)?.unwrap_or(0))?),
        saved: row.opt_int(3)?.unwrap_or(0),
        // A view that was never published is one raw span.
        spans: to_count("spans", row.int(4)?)?.max(1),
        erasures: to_count("erasures", row.int(5)?)?,
    })
}
