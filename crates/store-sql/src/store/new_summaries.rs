//! Summaries that publishes contain and that are not in the database yet.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::{Child, ConversationId, Summary, SummaryId};
use memory_store::Result;
use memory_store::implementors::KnownSummary;

use super::ROWS;
use super::known_summaries::known_summary;
use crate::batch::Batch;
use crate::family::Family;
use crate::summary::{self, LinkRole, LinkRow, StoredSummary};

/// The stored summaries that publishes refer to, and the summaries that the publishes add.
#[derive(Debug)]
pub(super) struct NewSummaries<'p> {
    known: BTreeMap<SummaryId, (i64, KnownSummary)>,
    last_key: i64,
    /// Summaries to insert, each with its row key, in the order of the keys.
    new: Vec<(i64, &'p Summary)>,
}

impl<'p> NewSummaries<'p> {
    /// Creates the collection from the stored summaries. New row keys begin after `last_key`.
    pub(super) fn new(known: BTreeMap<SummaryId, StoredSummary>, last_key: i64) -> Self {
        let known = known
            .into_iter()
            .map(|(id, row)| (id, (row.id, known_summary(&row))))
            .collect();
        Self {
            known,
            last_key,
            new: Vec::new(),
        }
    }

    /// Returns the range, depth and cost of the summaries in `asked` that are stored or will be inserted. Other ids are
    /// left out.
    pub(super) fn known(&self, asked: &BTreeSet<SummaryId>) -> BTreeMap<SummaryId, KnownSummary> {
        let known = asked.iter().filter_map(|id| {
            let (_, known) = self.known.get(id)?;
            Some((id.clone(), known.clone()))
        });
        known.collect()
    }

    /// Adds the summaries of a publish that are neither stored nor added already.
    pub(super) fn add(&mut self, summaries: &'p [Summary]) {
        for summary in summaries {
            if !self.known.contains_key(&summary.id) {
                self.last_key += 1;
                let known = (self.last_key, KnownSummary::from(summary));
                self.known.insert(summary.id.clone(), known);
                self.new.push((self.last_key, summary));
            }
        }
    }

    /// Adds the SQL statements that insert the new summaries with their children and sources.
    pub(super) fn write(
        &self,
        batch: &mut Batch,
        family: Family,
        id: ConversationId,
    ) -> Result<()> {
        // All summaries are inserted before the links, because summaries may refer to each other.
        for summaries in self.new.chunks(ROWS) {
            let insert = summary::insert_all(family, id.0, summaries)?;
            batch.push(insert);
        }
        let links: Vec<LinkRow> = self.new.iter().flat_map(|new| self.links(new)).collect();
        for links in links.chunks(ROWS) {
            let insert = summary::insert_links(family, links)?;
            batch.push(insert);
        }
        Ok(())
    }

    /// Returns the rows of a summary's children, and of its sources if they differ from the children.
    fn links(&self, (key, summary): &(i64, &'p Summary)) -> Vec<LinkRow> {
        let key_of = |child: &Child| child.summary().and_then(|id| self.known.get(id));
        let row = |role| {
            move |(ordinal, child): (u32, &Child)| LinkRow {
                parent: *key,
                role,
                ordinal,
                range: child.range(),
                child: key_of(child).map(|(key, _)| *key),
            }
        };
        let sources: &[Child] = match summary.sources == summary.children {
            true => &[],
            false => &summary.sources,
        };
        let children = (0..).zip(&summary.children).map(row(LinkRole::Child));
        let sources = (0..).zip(sources).map(row(LinkRole::Source));
        children.chain(sources).collect()
    }
}
