//! Statements: sentences, or the parts of a sentence that each set a value.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::values::ValueKind;
use crate::NumberedSentence;

/// Minimum share of the shorter statement's content words that both statements contain, in percent.
pub(super) const SAME_SUBJECT: usize = 60;

/// Minimum number of content words of a sentence that names its subject itself.
const FEW_TERMS: usize = 2;

/// A sentence, or a part of a sentence that contains a value.
#[derive(Debug, Clone, Default)]
pub struct Statement {
    /// Text of the statement.
    pub(super) text: String,
    /// Text of its sentence.
    pub(super) sentence: Arc<str>,
    /// The first characters of the stems of its content words, which describe the subject.
    pub(super) terms: BTreeSet<String>,
    /// Pairs of adjacent content words.
    pub(super) neighbours: BTreeSet<(String, String)>,
    /// Its last content words, which follow each other directly. A pronoun in the next sentence is likely to mean them.
    pub(super) last_words: Vec<String>,
    pub(super) values: BTreeMap<ValueKind, BTreeSet<String>>,
    /// The values as they are written, without quotes, each with its kind and its form in `values`.
    pub(super) written: Vec<(ValueKind, String, String)>,
    /// Pairs of a subject and its value, such as `("port", "8080")`.
    pub(super) sets: Vec<(String, String)>,
    /// The things that the statement names from groups that never mean the same, such as `start` and `end`. Maps the
    /// index of the group to the indexes of its things.
    pub(super) apart: BTreeMap<usize, BTreeSet<usize>>,
    /// Whether the statement is a question.
    pub(super) asks: bool,
    /// Whether the statement or its sentence contains a phrase with the meaning `Weak`. The next fields do the same for
    /// other meanings: see [`Cue`].
    pub(super) weak: bool,
    pub(super) strong: bool,
    pub(super) drop: bool,
    pub(super) negated: bool,
    pub(super) same: bool,
    pub(super) example: bool,
    /// Whether the statement refers to something named earlier.
    pub(super) speaks_of_it: bool,
    /// Whether its sentence is a rule, or is likely to be one.
    pub(super) rule: bool,
    /// Whether it adds a value to others.
    pub(super) adding: bool,
    /// The numbers of its sentence.
    pub(super) numbered: Arc<NumberedSentence>,
    /// Whether no statement before it in its sentence has a value. The numbers of a sentence belong to this statement.
    pub(super) leads: bool,
}

/// Returns the term for one of several things that are never the same.
pub(super) fn apart_term(list: usize, thing: usize) -> String {
    format!("{list}:{thing}")
}

/// Returns whether a term stands for one of several things that are never the same.
pub(super) fn is_apart(term: &str) -> bool {
    term.contains(':')
}

impl Statement {
    /// Returns whether the statement sets a value of something that it only refers to, as in `end them with`.
    pub(super) fn lacks_subject(&self) -> bool {
        let own = self.terms.iter().filter(|term| !is_apart(term)).count();
        self.speaks_of_it && !self.values.is_empty() && own < FEW_TERMS
    }

    /// Adds the subject of an earlier statement if this statement contains a value and only refers to the subject, as
    /// in `end them with`.
    pub(super) fn is_of_same_thing(&mut self, before: &Self) {
        if !self.lacks_subject() {
            return;
        }
        let apart = !self.apart.is_empty();
        let terms = before.terms.iter().filter(|term| !apart || !is_apart(term));
        self.terms.extend(terms.cloned());
        self.neighbours.extend(before.neighbours.iter().cloned());
    }

    /// Adds the subject of the part before if this part has none, as in `… and end with 'x'`.
    pub(super) fn is_of_same_subject(&mut self, before: &Self) {
        if !self.values.is_empty() && self.terms.iter().all(|term| is_apart(term)) {
            let terms = before.terms.iter().filter(|term| !is_apart(term));
            self.terms.extend(terms.cloned());
        }
    }

    /// Adds the thing of another statement from a group that never means the same, if this statement names none: in
    /// `start a with x and b with y`, the second part is about the start too.
    pub(super) fn is_of_same_end(&mut self, other: &Self) {
        if !self.apart.is_empty() || self.values.is_empty() {
            return;
        }
        for (list, things) in &other.apart {
            let terms = things.iter().map(|thing| apart_term(*list, *thing));
            self.terms.extend(terms);
        }
        self.apart.clone_from(&other.apart);
    }

    /// Returns whether this statement repeats another statement's value for the same subject.
    pub(super) fn says_again(&self, other: &Self) -> bool {
        let shared = self.terms.intersection(&other.terms).count();
        !self.values.is_empty()
            && self.values == other.values
            && shared > 0
            && shared * 100 >= self.terms.len() * SAME_SUBJECT
    }

    /// Returns the first value, as it is written, that differs from the other statement's values of its kind.
    pub(super) fn new_value(&self, other: &Self) -> Option<&str> {
        let mut written = self.written.iter();
        let first = written.find(|(kind, text, _)| {
            let values = other.values.get(kind);
            values.is_some_and(|values| !values.contains(text))
        });
        first.map(|(.., written)| written.as_str())
    }

    /// Returns the text of the statement.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether this statement is a claim that a later statement can change.
    pub(super) fn is_claim(&self) -> bool {
        !self.asks && !self.example
    }

    /// Returns whether this statement may change an earlier one.
    pub(super) fn may_change(&self) -> bool {
        let says = self.weak || self.strong || self.drop || self.negated || self.rule;
        let has_values = !self.values.is_empty() || self.numbered.has_numbers();
        !self.asks && !self.example && (says || has_values)
    }
}
