//! Reading of summaries.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::{Child, ConversationId, Hash, Recipe, Summary, SummaryId};
use memory_store::implementors::SummaryScope;
use memory_store::{ERASED, Error, ErrorKind, Page, Result};

use super::SqlStore;
use super::known_summaries::known_summaries;
use super::pages::{batched, one_more, page};
use crate::batch::Batch;
use crate::error::corrupt;
use crate::executor::{Database, Executor};
use crate::family::Family;
use crate::row::Columns;
use crate::summary::{self as sql, LinkRole, SummaryRow, SummaryStart};

/// Children and sources of summaries, by the summaries' row keys.
#[derive(Debug, Default)]
struct Links {
    children: BTreeMap<i64, Vec<Child>>,
    sources: BTreeMap<i64, Vec<Child>>,
}

impl Links {
    fn add(&mut self, rows: &[impl Columns]) -> Result<()> {
        for row in rows {
            let (parent, role, child) = sql::link(row)?;
            let links = match role {
                LinkRole::Child => &mut self.children,
                LinkRole::Source => &mut self.sources,
            };
            links.entry(parent).or_default().push(child);
        }
        Ok(())
    }

    /// Sets the children and sources of summaries, and returns the summaries.
    fn give(mut self, to: Vec<SummaryRow>) -> Vec<Summary> {
        let whole = |SummaryRow { id, mut summary }| {
            summary.children = self.children.remove(&id).unwrap_or_default();
            let sources = self.sources.remove(&id);
            summary.sources = sources.unwrap_or_else(|| summary.children.clone());
            summary
        };
        to.into_iter().map(whole).collect()
    }
}

/// Reads at most `limit` of a conversation's own summaries in the order of creation, in one request. Returns `None` if
/// the page begins after a summary that the conversation did not make.
async fn own_page(
    on: &mut impl Executor,
    family: Family,
    scope: SummaryScope,
    after: SummaryStart<'_>,
    limit: u64,
) -> Result<Option<Vec<Summary>>> {
    let log = sql::log(family, scope, &[], after, limit);
    let links = sql::links_of_log(family, &log);
    let mut batch = Batch::default();
    batch.push(log);
    // The links are read after the summaries. Summaries are only added, so each summary that was read has its links.
    batch.push(links);
    if let SummaryStart::Summary(id) = after {
        batch.push(sql::key(family, scope.conversation.0, id));
    }
    let mut answers = on.all_of_batch(batch).await?.into_iter();
    let (Some(summaries), Some(rows)) = (answers.next(), answers.next()) else {
        return Err(corrupt("a page of summaries", "an answer is missing"));
    };
    let is_there = answers.next().is_some_and(|place| !place.is_empty());
    if matches!(after, SummaryStart::Summary(_)) && !is_there {
        return Ok(None);
    }
    let mut links = Links::default();
    links.add(&rows)?;
    let summaries = summaries.iter().map(sql::summary).collect::<Result<_>>()?;
    Ok(Some(links.give(summaries)))
}

impl<D: Database> SqlStore<D> {
    /// Returns the summaries in these database rows, with their children and sources.
    pub(super) async fn with_links(
        &self,
        on: &mut impl Executor,
        family: Family,
        rows: &[impl Columns],
    ) -> Result<Vec<Summary>> {
        let found: Vec<SummaryRow> = rows.iter().map(sql::summary).collect::<Result<_>>()?;
        let keys: Vec<i64> = found.iter().map(|row| row.id).collect();
        let mut links = Links::default();
        for batch in batched(&keys) {
            links.add(&on.all(&sql::links(family, &batch)).await?)?;
        }
        Ok(links.give(found))
    }

    pub(super) async fn summaries_by_id(
        &self,
        id: ConversationId,
        ids: &[SummaryId],
    ) -> Result<Vec<Option<Summary>>> {
        let mut reader = self.database.read().await?;
        let on = &mut reader;
        self.lineage(on, id).await?;
        let family = self.family(on, id).await?;
        let asked: Vec<&str> = ids.iter().map(SummaryId::as_str).collect();
        let found = self.summaries_seen(on, family, id, &asked).await?;
        Ok(ids.iter().map(|id| found.get(id).cloned()).collect())
    }

    /// Reads the summaries with these ids that a conversation made or inherits from its ancestors, with their children
    /// and sources. If several of them made a summary, the nearest one's is returned.
    pub(super) async fn summaries_seen(
        &self,
        on: &mut impl Executor,
        family: Family,
        conversation: ConversationId,
        asked: &[&str],
    ) -> Result<BTreeMap<SummaryId, Summary>> {
        let mut found: BTreeMap<SummaryId, Summary> = BTreeMap::new();
        for batch in batched(asked) {
            let rows = on.all(&sql::by_ids(family, conversation.0, &batch)).await?;
            for summary in self.with_links(on, family, &rows).await? {
                found.entry(summary.id.clone()).or_insert(summary);
            }
        }
        Ok(found)
    }

    pub(super) async fn own_summaries_in_order(
        &self,
        id: ConversationId,
        after: Option<&SummaryId>,
        limit: usize,
    ) -> Result<Page<Summary, SummaryId>> {
        let mut reader = self.database.read().await?;
        let on = &mut reader;
        self.lineage(on, id).await?;
        let family = self.family(on, id).await?;
        let place = after.map_or(SummaryStart::Nothing, SummaryStart::Summary);
        let found = own_page(on, family, SummaryScope::own(id), place, one_more(limit)).await?;
        let Some(found) = found else {
            let after = after.map_or("", SummaryId::as_str);
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("conversation {id} has no summary {after} of its own"),
            ));
        };
        Ok(page(found, limit, |summary: &Summary| summary.id.clone()))
    }

    pub(super) async fn summaries_in_order(
        &self,
        id: ConversationId,
        after: Option<&SummaryId>,
        limit: usize,
    ) -> Result<Page<Summary, SummaryId>> {
        let mut reader = self.database.read().await?;
        let on = &mut reader;
        let lineage = self.lineage(on, id).await?.scope();
        let family = self.family(on, id).await?;
        let missing = || {
            let after = after.map_or("", SummaryId::as_str);
            Error::new(
                ErrorKind::NotFound,
                format!("conversation {id} has no summary {after}"),
            )
        };
        // Level in the lineage at which the last page ended, and the last summary of that page.
        let (mut index, mut place) = match after {
            None => (lineage.len(), SummaryStart::Nothing),
            Some(after) if lineage.len() == 1 => (1, SummaryStart::Summary(after)),
            Some(after) => {
                let known = known_summaries(on, family, id, &[after.as_str()]).await?;
                let known = known.into_values().next();
                let known = known.ok_or_else(missing)?;
                (known.level + 1, SummaryStart::Key(known.id))
            }
        };
        let wanted = one_more(limit);
        let mut found = Vec::new();
        // The summaries of ancestors come first.
        while let Some((scope, nearer)) =
            lineage.get(..index).and_then(<[SummaryScope]>::split_last)
        {
            let free = wanted.saturating_sub(found.len() as u64);
            if free == 0 {
                break;
            }
            if nearer.is_empty() {
                let page = own_page(on, family, *scope, place, free).await?;
                found.extend(page.ok_or_else(missing)?);
            } else {
                // The set of an ancestor's summaries that are left out may change between two SQL statements.
                let rows = on
                    .all(&sql::log(family, *scope, nearer, place, free))
                    .await?;
                found.extend(self.with_links(on, family, &rows).await?);
            }
            (index, place) = (nearer.len(), SummaryStart::Nothing);
        }
        Ok(page(found, limit, |summary: &Summary| summary.id.clone()))
    }

    pub(super) async fn parents_of(
        &self,
        id: ConversationId,
        summary: &SummaryId,
    ) -> Result<Vec<SummaryId>> {
        let mut reader = self.database.read().await?;
        let on = &mut reader;
        let lineage = self.lineage(on, id).await?.scope();
        let family = self.family(on, id).await?;
        let mut found: Vec<SummaryId> = Vec::new();
        for (index, scope) in lineage.iter().enumerate().rev() {
            // A summary's children belong to the same conversation or to one of its ancestors.
            for child in lineage.get(index..).unwrap_or_default() {
                let statement = sql::parents(family, *scope, child.conversation.0, summary);
                for row in on.all(&statement).await? {
                    let id = SummaryId::new(row.text(0)?);
                    // If several conversations made the same parent, it is listed at the place of the nearest
                    // conversation.
                    found.retain(|other| *other != id);
                    found.push(id);
                }
            }
        }
        Ok(found)
    }

    pub(super) async fn newest_by_source(
        &self,
        id: ConversationId,
        sources: &[(Hash, Recipe)],
    ) -> Result<Vec<Option<Summary>>> {
        let mut reader = self.database.read().await?;
        let on = &mut reader;
        self.lineage(on, id).await?;
        let family = self.family(on, id).await?;
        let recipes: BTreeSet<&str> = sources.iter().map(|(_, recipe)| recipe.as_str()).collect();
        let recipes: Vec<&str> = recipes.into_iter().collect();
        let hashes: Vec<Hash> = sources.iter().map(|(source, _)| *source).collect();
        let mut found: BTreeMap<(Hash, Recipe), Summary> = BTreeMap::new();
        for recipes in batched(&recipes) {
            for hashes in batched(&hashes) {
                let rows = on
                    .all(&sql::by_sources(family, id.0, &hashes, &recipes))
                    .await?;
                for summary in self.with_links(on, family, &rows).await? {
                    // An erased summary is not reused: a new one is made from the remaining messages.
                    if summary.text() == ERASED {
                        continue;
                    }
                    let key = (summary.source_hash, summary.recipe.clone());
                    found.entry(key).or_insert(summary);
                }
            }
        }
        Ok(sources.iter().map(|key| found.get(key).cloned()).collect())
    }
}
