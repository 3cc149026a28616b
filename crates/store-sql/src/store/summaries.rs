//! Reading summaries.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::{ConversationId, Hash, Recipe, Summary, SummaryId};
use memory_store::implementors::SummaryScope;
use memory_store::{ERASED, Error, ErrorKind, Page, Result};

use super::SqlStore;
use super::known_summaries::known_summaries;
use super::pages::{batched, one_more, page};
use crate::executor::{Database, Executor};
use crate::row::Columns;
use crate::summary::{self as sql, LinkRole, SummaryRow};

impl<D: Database> SqlStore<D> {
    /// Summaries from their rows, with their children and sources.
    pub(super) async fn with_links(
        &self,
        on: &mut impl Executor,
        rows: &[impl Columns],
    ) -> Result<Vec<Summary>> {
        let mut found: Vec<SummaryRow> = rows.iter().map(sql::summary).collect::<Result<_>>()?;
        let keys: Vec<i64> = found.iter().map(|row| row.id).collect();
        let mut children = BTreeMap::<i64, Vec<_>>::new();
        let mut sources = BTreeMap::<i64, Vec<_>>::new();
        for batch in batched(&keys) {
            for row in on.all(&sql::links(&batch)).await? {
                let (parent, role, child) = sql::link(&row)?;
                let links = match role {
                    LinkRole::Child => &mut children,
                    LinkRole::Source => &mut sources,
                };
                links.entry(parent).or_default().push(child);
            }
        }
        for SummaryRow { id, summary } in &mut found {
            summary.children = children.remove(id).unwrap_or_default();
            let sources = sources.remove(id);
            summary.sources = sources.unwrap_or_else(|| summary.children.clone());
        }
        Ok(found.into_iter().map(|row| row.summary).collect())
    }

    pub(super) async fn summaries_by_id(
        &self,
        id: ConversationId,
        ids: &[SummaryId],
    ) -> Result<Vec<Option<Summary>>> {
        let mut reader = self.database.read().await?;
        let on = &mut reader;
        self.lineage(on, id).await?;
        let asked: Vec<&str> = ids.iter().map(SummaryId::as_str).collect();
        let found = self.summaries_seen(on, id, &asked).await?;
        Ok(ids.iter().map(|id| found.get(id).cloned()).collect())
    }

    /// The summaries with these ids, with their children; of several with one id the nearest.
    pub(super) async fn summaries_seen(
        &self,
        on: &mut impl Executor,
        conversation: ConversationId,
        asked: &[&str],
    ) -> Result<BTreeMap<SummaryId, Summary>> {
        let mut found: BTreeMap<SummaryId, Summary> = BTreeMap::new();
        for batch in batched(asked) {
            let rows = on.all(&sql::by_ids(conversation.0, &batch)).await?;
            for summary in self.with_links(on, &rows).await? {
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
        let after = match after {
            None => None,
            Some(after) => match on.first(&sql::key(id.0, after)).await? {
                Some(row) => Some(row.int(0)?),
                None => {
                    return Err(Error::new(
                        ErrorKind::NotFound,
                        format!("conversation {id} has no summary {after} of its own"),
                    ));
                }
            },
        };
        let rows = on
            .all(&sql::log(
                SummaryScope::own(id),
                &[],
                after,
                one_more(limit),
            ))
            .await?;
        let found = self.with_links(on, &rows).await?;
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
        // Where in the lineage the last page ended, and the key of the summary there.
        let (mut index, mut after) = match after {
            None => (lineage.len(), None),
            Some(after) => {
                let known = known_summaries(on, id, &[after.as_str()]).await?;
                match known.into_values().next() {
                    Some(known) => (known.level + 1, Some(known.id)),
                    None => {
                        return Err(Error::new(
                            ErrorKind::NotFound,
                            format!("conversation {id} has no summary {after}"),
                        ));
                    }
                }
            }
        };
        let wanted = one_more(limit);
        let mut found = Vec::new();
        // Ancestors first.
        while let Some((scope, nearer)) =
            lineage.get(..index).and_then(<[SummaryScope]>::split_last)
        {
            let missing = wanted.saturating_sub(found.len() as u64);
            if missing == 0 {
                break;
            }
            let rows = on.all(&sql::log(*scope, nearer, after, missing)).await?;
            found.extend(self.with_links(on, &rows).await?);
            (index, after) = (nearer.len(), None);
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
        let mut found: Vec<SummaryId> = Vec::new();
        for (index, scope) in lineage.iter().enumerate().rev() {
            // A parent's child is its conversation's own, or an ancestor's.
            for child in lineage.get(index..).unwrap_or_default() {
                let statement = sql::parents(*scope, child.conversation.0, summary);
                for row in on.all(&statement).await? {
                    let id = SummaryId::new(row.text(0)?);
                    // Its place is that of the nearest.
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
        let recipes: BTreeSet<&str> = sources.iter().map(|(_, recipe)| recipe.as_str()).collect();
        let recipes: Vec<&str> = recipes.into_iter().collect();
        let hashes: Vec<Hash> = sources.iter().map(|(source, _)| *source).collect();
        let mut found: BTreeMap<(Hash, Recipe), Summary> = BTreeMap::new();
        for recipes in batched(&recipes) {
            for hashes in batched(&hashes) {
                let rows = on.all(&sql::by_sources(id.0, &hashes, &recipes)).await?;
                for summary in self.with_links(on, &rows).await? {
                    // Whose words are gone is made again, from what is left.
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
