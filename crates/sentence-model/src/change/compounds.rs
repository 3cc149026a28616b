//! Compounds: pairs of words that name one thing.

use std::collections::{BTreeMap, BTreeSet};

use super::statement::Statement;

/// Minimum number of texts in which two words are adjacent, so that they are a compound.
const COMPOUND: usize = 2;

/// Pairs of words that are adjacent in several texts, such as `argument names`. A pair names one thing, which neither
/// word names alone.
#[derive(Debug, Default)]
pub(super) struct Compounds(BTreeSet<(String, String)>);

impl Compounds {
    /// Returns the compounds in texts, which are given by their statements.
    pub(super) fn of<'s>(texts: impl IntoIterator<Item = &'s [Statement]>) -> Self {
        let mut counts: BTreeMap<&(String, String), usize> = BTreeMap::new();
        for statements in texts {
            let pairs = statements.iter().flat_map(|one| &one.neighbours);
            for pair in pairs.collect::<BTreeSet<_>>() {
                *counts.entry(pair).or_default() += 1;
            }
        }
        let compounds = counts.into_iter().filter(|(_, texts)| *texts >= COMPOUND);
        Self(compounds.map(|(pair, _)| pair.clone()).collect())
    }

    /// Returns whether one of two statements contains a compound, and the other contains only one of its words.
    pub(super) fn are_apart(&self, one: &Statement, other: &Statement) -> bool {
        !self.0.is_empty() && (self.has_part(one, other) || self.has_part(other, one))
    }

    /// Returns whether `one` contains a compound of which `other` contains only one word. Always `false` if both contain
    /// the same compound.
    fn has_part(&self, one: &Statement, other: &Statement) -> bool {
        let mut both = one.neighbours.intersection(&other.neighbours);
        if both.any(|pair| self.0.contains(pair)) {
            return false;
        }
        let mut compounds = one.neighbours.intersection(&self.0);
        compounds.any(|(first, second)| other.terms.contains(first) != other.terms.contains(second))
    }
}
