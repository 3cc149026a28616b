//! What is known of a redo while it runs: of the whole, and of one tree.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::{Summary, SummaryId};
use memory_store::Fence;

use crate::redo::refused::Refused;
use crate::redo::report::{RedoFailure, ReplacedSummary};
use crate::watch::Watch;

/// What is known of a redo so far.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) watch: Watch,
    pub(super) given_up: BTreeSet<SummaryId>,
    pub(super) failed_in_a_row: u32,
    pub(super) held: bool,
    /// Whether a limit on calls or tokens was reached.
    pub(super) limited: bool,
    pub(super) written: u64,
    pub(super) failures: Vec<RedoFailure>,
    pub(super) replaced: Vec<ReplacedSummary>,
    pub(super) refused: Refused,
}

/// What was made for one tree and is not published yet.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// By id.
    pub(super) summaries: BTreeMap<SummaryId, Summary>,
    /// Old id to new.
    pub(super) instead: BTreeMap<SummaryId, SummaryId>,
    /// In the order of their making.
    pub(super) order: Vec<SummaryId>,
    pub(super) fences: Vec<Fence>,
}

impl Made {
    /// What took the place of what, as far as the new top leads to it, in the order of making. A
    /// summary whose parent could not be made is kept in the store, but it replaced nothing.
    pub(super) fn replaced(&self, top: &SummaryId) -> Vec<ReplacedSummary> {
        let mut reached = BTreeSet::new();
        let mut todo = vec![top];
        while let Some(summary) = todo.pop().and_then(|id| self.summaries.get(id)) {
            reached.insert(&summary.id);
            let sources = summary.source_summaries();
            todo.extend(sources.filter(|id| self.summaries.contains_key(*id)));
        }
        let mut pairs: Vec<(usize, ReplacedSummary)> = Vec::new();
        for (old, new) in &self.instead {
            let place = self.order.iter().position(|id| id == new);
            if let Some(place) = place.filter(|_| reached.contains(new)) {
                let (old, new) = (old.clone(), new.clone());
                pairs.push((place, ReplacedSummary { old, new }));
            }
        }
        pairs.sort_by_key(|(place, _)| *place);
        pairs.into_iter().map(|(_, pair)| pair).collect()
    }
    /// Adds a summary that takes the place of an old one.
    pub(super) fn add(&mut self, old: &SummaryId, summary: Summary) {
        self.instead.insert(old.clone(), summary.id.clone());
        self.order.push(summary.id.clone());
        self.summaries.insert(summary.id.clone(), summary);
    }

    /// The summary that takes the place of an old one.
    pub(super) fn instead_of(&self, old: &SummaryId) -> Option<&Summary> {
        self.instead.get(old).and_then(|id| self.summaries.get(id))
    }

    /// All summaries, in the order of their making.
    pub(super) fn in_order(&self) -> impl Iterator<Item = &Summary> + Clone {
        self.order.iter().filter_map(|id| self.summaries.get(id))
    }
}
