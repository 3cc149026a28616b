//! Detects later statements that contradict earlier ones about the same thing.
//!
//! There is no model. Sentences are compared, or the parts of a sentence with several values. Two statements are about
//! the same thing if they share most of their content words, and neither names a thing that the other does not: one of
//! a pair that is never the same (`start`, `end`), or a compound (`argument names`) of which the other has a part
//! alone. The later one must have another value in the same place, or a phrase by which people correct themselves,
//! decide otherwise or drop a plan. The phrases are data (`cues.txt`), in English, German, French, Spanish, Russian,
//! Chinese, Japanese and Korean. Precision counts more than recall: a false correction next to a hit costs trust.

mod changes;
mod cues;
mod statement;
mod values;

use std::collections::{BTreeMap, BTreeSet};

use crate::fold::composed;
pub use changes::{Change, Changes};
use statement::{SAME_SUBJECT, Statement, statements};

/// Share of the content words of the shorter of two statements that both must have, in percent, if only a negation or a
/// value shows that one corrects the other.
const SAME_STATEMENT: usize = 75;

/// Share of the content words of the longer of two statements that both must have, in percent.
const SAME_LENGTH: usize = 60;

/// The same share if the later one has another value.
const SAME_LENGTH_OF_VALUES: usize = 40;

/// Number of texts that have two words next to each other, from which on these are a compound.
const COMPOUND: usize = 2;

/// The statements in one text, ready to be compared with other texts by [`Changes`].
#[derive(Debug)]
pub struct Said {
    /// The statements of its sentences, one for each value.
    statements: Vec<Statement>,
    is_narration: bool,
}

/// Words that are adjacent in several texts, such as `argument names`. They name one thing, which neither word names
/// alone.
#[derive(Debug, Default)]
struct Compounds(BTreeSet<(String, String)>);

impl Compounds {
    /// Returns the compounds in some texts.
    fn of<'s>(said: impl IntoIterator<Item = &'s Said>) -> Self {
        let mut texts: BTreeMap<&(String, String), usize> = BTreeMap::new();
        for one in said {
            let statements = one.statements.iter();
            let neighbours: BTreeSet<_> = statements.flat_map(|one| &one.neighbours).collect();
            for pair in neighbours {
                *texts.entry(pair).or_default() += 1;
            }
        }
        let compounds = texts.into_iter().filter(|(_, texts)| *texts >= COMPOUND);
        Self(compounds.map(|(pair, _)| pair.clone()).collect())
    }

    /// Whether one of two statements has a compound of which the other has one word alone.
    fn are_apart(&self, one: &Statement, other: &Statement) -> bool {
        !self.0.is_empty() && (self.has_part(one, other) || self.has_part(other, one))
    }

    /// Whether `other` has one word alone of a compound of `one`. A word that both have within another compound is
    /// about the same thing.
    fn has_part(&self, one: &Statement, other: &Statement) -> bool {
        let both = || one.neighbours.intersection(&other.neighbours);
        let mut compounds = one.neighbours.intersection(&self.0);
        compounds.any(|(first, second)| {
            match (other.terms.contains(first), other.terms.contains(second)) {
                (false, true) => !both().any(|(_, same)| same == second),
                (true, false) => !both().any(|(a, b)| a == first || b == first),
                _ => false,
            }
        })
    }
}

impl Said {
    /// Finds the statements in a text.
    pub fn of(text: &str) -> Self {
        let text = composed(text).replace('’', "'");
        Self {
            statements: statements(&text).into_iter().flatten().collect(),
            is_narration: false,
        }
    }

    /// Marks the text as narration, such as the words of an agent between its tool calls. Narration does not change
    /// earlier statements.
    pub fn as_narration(mut self) -> Self {
        self.is_narration = true;
        self
    }
}

/// Number of content words that two statements share, and number of content words of the shorter one.
fn share(earlier: &Statement, later: &Statement) -> (usize, usize) {
    let shared = earlier.terms.intersection(&later.terms).count();
    (shared, earlier.terms.len().min(later.terms.len()).max(1))
}

/// Whether two statements name different things.
fn are_apart(earlier: &Statement, later: &Statement, compounds: &Compounds) -> bool {
    let mut lists = earlier.apart.iter();
    let others = lists.any(|(list, things)| {
        let other = later.apart.get(list);
        other.is_some_and(|other| things.is_disjoint(other))
    });
    others || compounds.are_apart(earlier, later)
}

/// Whether a later statement of a conversation changes an earlier one.
fn corrects(earlier: &Statement, later: &Statement, compounds: &Compounds) -> bool {
    if later.asks || later.example || later.same && !later.strong && !later.drop {
        return false;
    }
    let (shared, shorter) = share(earlier, later);
    let percent = shared * 100 / shorter;
    let longer = earlier.terms.len().max(later.terms.len());
    let same_subject = percent >= SAME_SUBJECT && (shared >= 2 || longer <= 2);
    // "It is cancelled" names the thing alone.
    let names_it = later.drop && !later.terms.is_empty() && later.terms.is_subset(&earlier.terms);
    if shared == 0 || !same_subject && !names_it || are_apart(earlier, later, compounds) {
        return false;
    }
    let same_statement = percent >= SAME_STATEMENT && shared >= 2;
    // Among many statements, only nearly equal ones are about the same thing.
    let is_near =
        |length: usize, fewest: usize| shared >= fewest && shared * 100 >= longer * length;
    if !is_near(SAME_LENGTH_OF_VALUES, longer.min(2)) {
        return false;
    }
    // Another value of a kind that the earlier statement has one of.
    let values = earlier.values.iter();
    let values = values.filter_map(|(kind, before)| Some((before, later.values.get(kind)?)));
    let changed = values
        .clone()
        .any(|(before, after)| !after.is_subset(before));
    let replaced = values
        .clone()
        .any(|(before, after)| after.is_disjoint(before));
    let is_more = later.adding || earlier.adding;
    if is_more && !later.strong && !later.drop {
        return false;
    }
    if changed && (later.strong || later.drop) || replaced && later.weak {
        return true;
    }
    // A rule for the same has one value.
    let says_rule = later.rule || earlier.rule && shared >= 3;
    if replaced && says_rule && same_statement {
        return true;
    }
    // Without a word for it, the same must be said of the same thing: one more word may name another.
    if changed
        && same_statement
        && later.terms.is_subset(&earlier.terms)
        && earlier.sets.iter().any(|(subject, value)| {
            let other = later.sets.iter().find(|(of, _)| of == subject);
            other.is_some_and(|(_, other)| other != value)
        })
    {
        return true;
    }
    if !same_statement || !is_near(SAME_LENGTH, 3) {
        return false;
    }
    let says_other = !later.terms.is_subset(&earlier.terms);
    let repeats_value = !earlier.values.is_empty() && earlier.values == later.values;
    let leaves_out = !earlier.terms.is_subset(&later.terms)
        || !earlier.values.is_empty() && later.values.is_empty();
    if later.strong && says_other && !repeats_value && leaves_out {
        return true;
    }
    if later.drop && !earlier.drop && !earlier.negated {
        return true;
    }
    !changed && later.negated != earlier.negated && !earlier.drop
}
