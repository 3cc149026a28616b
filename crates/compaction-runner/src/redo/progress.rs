//! The progress of a redo, and of one of its trees of summaries.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::{Summary, SummaryId};
use memory_store::Fence;

use crate::redo::alone::Alone;
use crate::redo::refused::Refused;
use crate::redo::report::{RedoFailure, ReplacedSummary};
use crate::watch::Watch;

/// State of a redo.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) watch: Watch,
    /// Lease on the view. `None` before and after the redo has it.
    pub(super) alone: Option<Alone>,
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

/// New summaries of one tree that are not published yet.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// The new summaries by id.
    pub(super) summaries: BTreeMap<SummaryId, Summary>,
    /// Ids of the new summaries by the id of the replaced summary.
    pub(super) instead: BTreeMap<SummaryId, SummaryId>,
    /// Ids of the new summaries in the order of their creation.
    pub(super) order: Vec<SummaryId>,
    pub(super) fences: Vec<Fence>,
}

impl Made {
    /// Returns the new summary `top` and all new summaries from which it was made, in the order of creation. Does not
    /// include summaries of a parent that could not be made. They stay drafts and are used when the parent is made.
    pub(super) fn below(&self, top: &SummaryId) -> Vec<&Summary> {
        let mut reached = BTreeSet::new();
        let mut todo = vec![top];
        while let Some(summary) = todo.pop().and_then(|id| self.summaries.get(id)) {
            if reached.insert(&summary.id) {
                let sources = summary.source_summaries();
                todo.extend(sources.filter(|id| self.summaries.contains_key(*id)));
            }
        }
        let order = self.order.iter().filter(|id| reached.contains(id));
        order.filter_map(|id| self.summaries.get(id)).collect()
    }

    /// Returns the summaries that are replaced if `top` is published, in the order of creation.
    pub(super) fn replaced(&self, top: &SummaryId) -> Vec<ReplacedSummary> {
        let pairs = self.below(top).into_iter().flat_map(|summary| {
            let olds = self.instead.iter().filter(|(_, new)| **new == summary.id);
            olds.map(|(old, new)| ReplacedSummary {
                old: old.clone(),
                new: new.clone(),
            })
        });
        pairs.collect()
    }

    /// Adds a new summary that replaces the summary `old`.
    pub(super) fn add(&mut self, old: &SummaryId, summary: Summary) {
        self.instead.insert(old.clone(), summary.id.clone());
        self.order.push(summary.id.clone());
        self.summaries.insert(summary.id.clone(), summary);
    }

    /// Returns the new summary that replaces the summary `old`.
    pub(super) fn instead_of(&self, old: &SummaryId) -> Option<&Summary> {
        self.instead.get(old).and_then(|id| self.summaries.get(id))
    }
}

#[cfg(test)]
mod tests {
    use memory_model::{Child, Hash, Recipe, Seq, SeqRange};

    use super::*;

    #[test]
    fn what_only_a_refused_parent_would_use_is_not_below_the_top() {
        let mut made = Made::default();
        let mut add = |old: &str, new: &str, sources: &[&str]| {
            let range = SeqRange::single(Seq(1));
            let children = sources.iter().map(|id| Child::Summary {
                range,
                id: SummaryId::new(*id),
            });
            let (children, recipe) = (children.collect(), Recipe::new("test"));
            let summary = Summary {
                id: SummaryId::new(new),
                ..Summary::new(range, 0, children, Hash::ZERO, recipe, "")
            };
            made.add(&SummaryId::new(old), summary);
        };
        // The parent of `a` was refused, so the new top is made from the old parent.
        add("a", "new_a", &[]);
        add("b", "new_b", &[]);
        add("top", "new_top", &["parent_of_a", "new_b"]);
        let below = made.below(&SummaryId::new("new_top"));
        let below: Vec<&str> = below.iter().map(|summary| summary.id.as_str()).collect();
        assert_eq!(below, ["new_b", "new_top"]);
    }
}
