//! Detects later statements that contradict earlier statements about the same thing.
//!
//! The method uses no model. It compares sentences, or the parts of a sentence that each contain a value. Two
//! statements are about the same thing if they share most of their content words and do not name different things. They
//! name different things if each contains another word of a group that never means the same (`start`, `end`), or if one
//! contains a compound (`argument names`) and the other only one word of it. A number in the subject (`tier 2`) names
//! a thing, too: [`NumberedSentence`](sentence_model::NumberedSentence) says which numbers name and which are values. The later statement must also contain
//! another value in the same place, or a phrase with which people correct themselves, change a decision or drop a plan.
//! The phrases are data (`cues.txt`), in English, German, French, Spanish, Russian, Chinese, Japanese and Korean.
//! Precision is more important than recall, because a false correction shown with a hit costs trust.

mod changes;
mod cues;
mod statement;
mod values;

use std::collections::{BTreeMap, BTreeSet};

use sentence_model::NumberedRelation;

use crate::fold::composed;
pub use changes::{Change, Changes};
use statement::{SAME_SUBJECT, Statement, statements};

/// Minimum share of the shorter statement's content words that both statements contain, in percent. Does not apply
/// if both a new value and a phrase of correction show that one statement corrects the other.
const SAME_STATEMENT: usize = 75;

/// Minimum share of the longer statement's content words that both statements contain, in percent.
const SAME_LENGTH: usize = 60;

/// Minimum share of the longer statement's content words that both statements contain, in percent, if the later
/// statement has another value.
const SAME_LENGTH_OF_VALUES: usize = 40;

/// Minimum number of texts in which two words are adjacent, so that they are a compound.
const COMPOUND: usize = 2;

/// The statements of one text, ready to be compared with other texts by [`Changes`].
#[derive(Debug, Clone)]
pub struct Said {
    /// The statements of the sentences. A sentence with several values may have several statements.
    statements: Vec<Statement>,
    is_narration: bool,
}

/// Pairs of words that are adjacent in several texts, such as `argument names`. A pair names one thing, which neither
/// word names alone.
#[derive(Debug, Default)]
struct Compounds(BTreeSet<(String, String)>);

impl Compounds {
    /// Returns the compounds in these texts.
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

    /// Returns whether one of two statements contains a compound, and the other contains only one of its words.
    fn are_apart(&self, one: &Statement, other: &Statement) -> bool {
        !self.0.is_empty() && (self.has_part(one, other) || self.has_part(other, one))
    }

    /// Returns whether `one` contains a compound of which `other` contains only one word. This word does not count if
    /// both statements contain it within another pair of adjacent words.
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
    /// Finds the statements in a text: its sentences, or the parts of a sentence that each set a value.
    pub fn of(text: &str) -> Self {
        let text = composed(text).replace('’', "'");
        Self {
            statements: statements(&text).into_iter().flatten().collect(),
            is_narration: false,
        }
    }

    /// Marks the text as narration, such as the comments of an agent between its tool calls. [`Changes`] does not let
    /// narration change earlier statements.
    pub fn as_narration(mut self) -> Self {
        self.is_narration = true;
        self
    }
}

/// Returns the number of content words that two statements share, and the number of content words of the shorter
/// statement.
fn share(earlier: &Statement, later: &Statement) -> (usize, usize) {
    let shared = earlier.terms.intersection(&later.terms).count();
    (shared, earlier.terms.len().min(later.terms.len()).max(1))
}

/// Returns whether two statements name different things.
fn are_apart(earlier: &Statement, later: &Statement, compounds: &Compounds) -> bool {
    let mut lists = earlier.apart.iter();
    let others = lists.any(|(list, things)| {
        let other = later.apart.get(list);
        other.is_some_and(|other| things.is_disjoint(other))
    });
    others || compounds.are_apart(earlier, later)
}

/// Returns whether the numbers of two statements show that the later one changes the earlier one, or that it does not.
/// `None` if the numbers do not decide it. `is_next` says whether the later text directly follows the earlier one.
fn renumbers(earlier: &Statement, later: &Statement, is_next: bool) -> Option<bool> {
    match later.numbered.relation_to(&earlier.numbered) {
        NumberedRelation::Unchanged => Some(false),
        NumberedRelation::Changed { .. } => Some(earlier.leads),
        NumberedRelation::ChangedIfNext { .. } if is_next => Some(earlier.leads),
        _ => None,
    }
}

/// Returns whether a later statement changes an earlier one, judged by their words.
fn corrects(earlier: &Statement, later: &Statement, compounds: &Compounds) -> bool {
    if later.asks || later.example || later.same && !later.strong && !later.drop {
        return false;
    }
    let (shared, shorter) = share(earlier, later);
    let percent = shared * 100 / shorter;
    let longer = earlier.terms.len().max(later.terms.len());
    let same_subject = percent >= SAME_SUBJECT && (shared >= 2 || longer <= 2);
    // "It is cancelled" contains only the name of the thing.
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
    // Both statements have a value of the same kind.
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
    // A rule for one thing has one value.
    let says_rule = later.rule || earlier.rule && shared >= 3;
    if replaced && says_rule && same_statement {
        return true;
    }
    // Without a signal phrase, both statements must be about exactly the same thing. One more word may name another
    // thing.
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
