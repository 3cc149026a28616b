//! The numbers of a sentence: those that name things, and those that are values.

use std::collections::BTreeSet;
use std::ops::Range;

use super::fitted::Fitted;

/// The numbers of a sentence: those that name things, such as `tier 2`, and those that are values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NumberedSentence {
    pub(super) clauses: Vec<Clause>,
    /// The form of a sentence in Japanese or Korean.
    pub(super) fitted: Option<Box<Fitted>>,
    /// Meanings of the phrases that say how the sentence relates to earlier ones.
    pub(super) cues: u16,
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
    /// Properties that exclude each other, such as `open` and `close`: the index of their list, and the property.
    pub(super) sides: BTreeSet<(usize, usize)>,
    /// Words of which the thing is a part or owner: `balcony` in `the balcony of flat 6`.
    pub(super) heads: BTreeSet<String>,
    pub(super) negated: bool,
}

impl Clause {
    /// Returns the values that hold.
    pub(super) fn held(&self) -> impl Iterator<Item = &Value> + Clone {
        self.values.iter().filter(|value| !value.is_former)
    }
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
    /// Whether the number may mean a thing that was named before: `the 40`.
    pub(super) may_name: bool,
    pub(super) range: Range<usize>,
}

impl Value {
    /// Returns the kind of things that the number numbers or counts.
    pub(super) fn thing(&self) -> Option<&str> {
        let dimension = self.dimension.as_str();
        dimension
            .strip_prefix("of ")
            .or_else(|| dimension.strip_prefix("count "))
    }
}

/// Dimension of a number without a unit.
pub(super) const PLAIN: &str = "";
/// Dimension of a day of the week.
pub(super) const WEEKDAY: &str = "weekday";
/// Dimension of a day of the year.
pub(super) const DATE: &str = "date";
/// Dimension of a time of the day.
pub(super) const CLOCK: &str = "clock";
/// Dimension of a number that may be a time of the day: `until ten`.
pub(super) const HOUR: &str = "hour";
/// Dimension of a word with digits.
pub(super) const CODE: &str = "code";

impl NumberedSentence {
    /// Returns whether the sentence has a number.
    pub fn has_numbers(&self) -> bool {
        let mut clauses = self.clauses.iter();
        clauses.any(|clause| !clause.names.is_empty() || !clause.values.is_empty())
    }

    /// Returns the text ranges of the numbers that name things, with the kinds of the things.
    pub fn names(&self) -> impl Iterator<Item = (&str, Range<usize>)> {
        self.clauses.iter().flat_map(|clause| {
            let is_value =
                |name: &&Name| clause.values.iter().any(|value| value.range == name.range);
            let names = clause.names.iter().filter(move |name| !is_value(name));
            names.map(|name| (name.key.as_str(), name.range.clone()))
        })
    }

    /// Returns whether the same things are named in both sentences.
    pub fn has_names_of(&self, other: &Self) -> bool {
        let names = |one: &Self| -> BTreeSet<(String, String)> {
            let names = one.clauses.iter().flat_map(|clause| &clause.names);
            let names = names.filter(|name| !name.is_place);
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
            let things = clause.values.iter().filter_map(Value::thing);
            keys.extend(things.map(|key| format!("#{key}")));
            let plain = clause
                .values
                .iter()
                .filter(|value| value.dimension == PLAIN);
            keys.extend(plain.map(|value| format!("#{}", value.number)));
        }
        keys
    }
}
