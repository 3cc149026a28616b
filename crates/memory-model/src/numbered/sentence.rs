//! The numbers of a sentence: those that name things, and those that are values.

use std::collections::BTreeSet;
use std::ops::Range;

/// The numbers of a sentence: those that name things, such as `tier 2`, and those that are values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NumberedSentence {
    pub(super) clauses: Vec<Clause>,
    pub(super) cues: Cues,
}

/// A part of a sentence with its own value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Clause {
    pub(super) names: Vec<Name>,
    pub(super) values: Vec<Value>,
    /// Words of the subject, without names, values and empty words.
    pub(super) terms: BTreeSet<String>,
    /// Pairs of words of the subject that follow each other directly, such as `read timeout`.
    pub(super) pairs: BTreeSet<(String, String)>,
    /// Sides of opposites, such as `open` and `close`: the index of the opposite, and the side.
    pub(super) opposites: BTreeSet<(usize, usize)>,
    pub(super) negated: bool,
    /// The noun of which the first name is a part or owner: `baggage` in `baggage on flight 12`.
    pub(super) head: Option<String>,
}

/// A number that names a thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    /// The kind of thing, such as `tier`. Empty if only a sign says that the number names, as in `#17`.
    pub(super) key: String,
    pub(super) number: String,
    /// Whether the name may itself change: the room in `the meeting is in room 5 at 10:00`.
    pub(super) is_place: bool,
    pub(super) range: Range<usize>,
}

/// A number that is a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Value {
    /// The measured quantity, or the things that are counted. Values of different dimensions are not compared.
    pub(super) dimension: String,
    /// Normal form: equal for `2 minutes` and `120 seconds`.
    pub(super) amount: String,
    /// The number as it is written.
    pub(super) number: String,
    /// Whether the sentence says that the value no longer holds: `not 5`.
    pub(super) is_former: bool,
    pub(super) range: Range<usize>,
}

/// Phrases of a sentence that say how it relates to earlier ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a kind of phrase")]
pub(super) struct Cues {
    /// A value is changed: `raised to`.
    pub(super) moves: bool,
    /// Something is so now.
    pub(super) now: bool,
    /// A rule for later steps.
    pub(super) rule: bool,
    /// Something is said again, or of one more thing.
    pub(super) same: bool,
    pub(super) past: bool,
    /// A case that is only thought of, or a question.
    pub(super) open: bool,
    /// Something is cancelled.
    pub(super) drops: bool,
    /// Somebody is responsible.
    pub(super) assigns: bool,
}

/// Dimension of a number without a unit.
pub(super) const PLAIN: &str = "";
/// Dimension of a day of the week.
pub(super) const WEEKDAY: &str = "weekday";
/// Dimension of a day of the year.
pub(super) const DATE: &str = "date";

impl NumberedSentence {
    /// Returns whether the sentence has a number.
    pub fn has_numbers(&self) -> bool {
        let mut clauses = self.clauses.iter();
        clauses.any(|clause| !clause.names.is_empty() || !clause.values.is_empty())
    }

    /// Returns the text ranges of the numbers that name things, with the kinds of the things.
    pub fn names(&self) -> impl Iterator<Item = (&str, Range<usize>)> {
        let names = self.clauses.iter().flat_map(|clause| &clause.names);
        names.map(|name| (name.key.as_str(), name.range.clone()))
    }

    /// Returns whether the same things are named in both sentences.
    pub fn has_names_of(&self, other: &Self) -> bool {
        let names = |one: &Self| -> BTreeSet<(String, String)> {
            let names = one.clauses.iter().flat_map(|clause| &clause.names);
            names
                .map(|name| (name.key.clone(), name.number.clone()))
                .collect()
        };
        names(self) == names(other)
    }

    /// Returns words by which sentences about the same thing can be found. Two sentences without a common one are
    /// about different things, except for [`NumberedRelation::ChangedIfNext`].
    pub fn keys(&self) -> BTreeSet<String> {
        let mut keys = BTreeSet::new();
        for clause in &self.clauses {
            keys.extend(clause.terms.iter().cloned());
            keys.extend(clause.names.iter().map(|name| format!("#{}", name.number)));
            keys.extend(clause.names.iter().map(|name| format!("#{}", name.key)));
            let of = clause.values.iter().map(|value| &value.dimension);
            let of = of.filter_map(|dimension| dimension.strip_prefix("of "));
            keys.extend(of.map(|key| format!("#{key}")));
        }
        keys
    }
}
