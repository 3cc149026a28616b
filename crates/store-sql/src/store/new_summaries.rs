//! Summaries that publishes contain and the database does not.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::{Child, ConversationId, Summary, SummaryId};
use memory_store::Result;
use memory_store::implementors::KnownSummary;

use super::ROWS;
use super::known_summaries::known_summary;
use crate::batch::Batch;
use crate::summary::{self, LinkRole, LinkRow, StoredSummary};

/// The summaries that a conversation sees, and those that publishes add.
#[derive(Debug)]
pub(super) struct NewSummaries<'p> {
    known: BTreeMap<SummaryId, (i64, KnownSummary)>,
    last_key: i64,
    /// In the order of their keys.
    new: Vec<(i64, &'p Summary)>,
}

impl<'p> NewSummaries<'p> {
    /// `known` are stored; new keys follow the last one.
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

    /// The facts about the summaries among these that are stored or will be.
    pub(super) fn known(&self, asked: &BTreeSet<SummaryId>) -> BTreeMap<SummaryId, KnownSummary> {
        let known = asked.iter().filter_map(|id| {
            let (_, known) = self.known.get(id)?;
            Some((id.clone(), known.clone()))
        });
        known.collect()
    }

    /// Adds the summaries of a publish that are not there yet.
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

    /// Adds the statements that write the new summaries and their children and sources.
    pub(super) fn write(&self, batch: &mut Batch, id: ConversationId) -> Result<()> {
        // All of them before any link: they may refer to each other.
        for summaries in self.new.chunks(ROWS) {
            let insert = summary::insert_all(id.0, summaries)?;
            batch.push(insert);
        }
        let links: Vec<LinkRow> = self.new.iter().flat_map(|new| self.links(new)).collect();
        for links in links.chunks(ROWS) {
            let insert = summary::insert_links(links)?;
            batch.push(insert);
        }
        Ok(())
    }

    /// The rows of a summary's children, and of its sources if they differ.
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
