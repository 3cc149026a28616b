//! Compares the numbers of two sentences.
//!
//! A change needs a value that differs from a comparable earlier one, and evidence that both sentences speak of one
//! property of one thing. Evidence is added up: see [`Comparison::evidence`].

use std::collections::BTreeSet;

use super::lexicon::{cue, is_han};
use super::relation::NumberedRelation;
use super::sentence::{
    CLOCK, CODE, Clause, DATE, HOUR, Name, NumberedSentence, PLAIN, Value, WEEKDAY,
};

/// Evidence for a change, wherever the sentences are. The same numbered thing gives half of it, so that it must be
/// told that it is the same property, too: by two words, by a word and a word of change, or by no other word than those
/// of the earlier sentence.
const ENOUGH: usize = 4;

/// Evidence for a change, with a phrase of change, if one sentence directly follows the other: what is next to each
/// other is mostly about one thing.
const ENOUGH_NEXT: usize = 3;

/// Maximum number of words that are in one sentence only: this many, and [`FOR_SHARED`] for each word of both. Long
/// sentences share words by chance, and tell of several things.
const MOST_APART: usize = 6;
const FOR_SHARED: usize = 3;

/// Evidence of one numbered thing in both sentences.
const SAME_NAME: usize = 2;

/// Evidence of a value that is taken back: `not 5`. No other sentence is meant.
const TAKEN_BACK: usize = 4;

/// Maximum evidence of shared words: parallel sentences about two things share most words.
const MOST_SHARED: usize = 3;

/// How the numbered things of two clauses relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// Neither names a thing.
    None,
    /// Only one names a thing.
    OneSided,
    Same,
    Apart,
    /// They differ in a name that may itself change: `in room 5`.
    Moved,
}

impl Names {
    fn of(after: &Clause, before: &Clause) -> Self {
        let (mut same, mut moved) = (after.refers_to(before) || before.refers_to(after), false);
        for own in &after.names {
            let alike = before.names.iter().filter(|name| name.may_be(own));
            same |= alike.clone().any(|name| !(own.is_place && name.is_place));
            let mut of_key = before.names.iter().filter(|name| name.key == own.key);
            if let Some(other) = of_key.next()
                && alike.count() == 0
            {
                match own.is_place && other.is_place {
                    true => moved = true,
                    false => return Self::Apart,
                }
            }
        }
        let names = |clause: &Clause| clause.names.iter().any(|name| !name.is_place);
        match (names(after), names(before)) {
            _ if same => Self::Same,
            (true, true) => Self::Apart,
            (false, false) if moved => Self::Moved,
            (false, false) => Self::None,
            _ => Self::OneSided,
        }
    }
}

impl Name {
    /// Returns whether both may name the same thing.
    fn may_be(&self, other: &Self) -> bool {
        // Without spaces, the end of a name is not known. Of names in two scripts, only the number can be compared.
        let is_alike = |c: char| is_han(c) && other.key.contains(c);
        let is_latin = |name: &Self| !name.key.starts_with(is_han);
        self.number == other.number
            && (self.key == other.key
                || [&self.key, &other.key]
                    .iter()
                    .any(|key| key.is_empty() || *key == "year")
                || self.key.contains(is_alike)
                || is_latin(self) != is_latin(other) && is_id(&self.number))
    }
}

/// Returns whether two things hardly have the same number by chance.
fn is_id(number: &str) -> bool {
    number.chars().count() > 2
}

impl Clause {
    /// Returns whether a number without any other word, such as `the 40`, is the number of a thing of another clause.
    fn refers_to(&self, other: &Self) -> bool {
        self.values.iter().any(|value| value.names(other))
    }
}

impl Value {
    /// Returns whether the number is the number of a thing of another clause.
    fn names(&self, other: &Clause) -> bool {
        let mut names = other.names.iter().filter(|name| !name.is_place);
        (self.may_name || (self.dimension == PLAIN && is_id(&self.number)))
            && names.any(|name| name.number == self.number)
    }

    /// Returns whether a value can replace another. `loosely` also compares a date with a day of the week.
    pub(super) fn is_comparable(&self, other: &Self, loosely: bool) -> bool {
        let days = |value: &Self| matches!(value.dimension.as_str(), WEEKDAY | DATE | "day");
        let is_weekday = |value: &Self| value.dimension == WEEKDAY;
        let clocks = |value: &Self| matches!(value.dimension.as_str(), CLOCK | HOUR);
        let plain = |one: &Self, other: &Self| {
            matches!(one.dimension.as_str(), PLAIN | HOUR)
                && !days(other)
                && !matches!(other.dimension.as_str(), CLOCK | CODE)
        };
        self.dimension == other.dimension
            || plain(self, other)
            || plain(other, self)
            || clocks(self) && clocks(other)
            || (days(self) && days(other) && (loosely || !is_weekday(self) && !is_weekday(other)))
    }

    /// Returns whether both are the same value.
    pub(super) fn is(&self, other: &Self) -> bool {
        match self.dimension == other.dimension {
            true => self.amount == other.amount,
            false => self.number == other.number || self.ends_alike(other),
        }
    }

    /// Returns whether one is a part of the other: the hour 8 of 20:00, or the 14th of the 14th of May.
    fn ends_alike(&self, other: &Self) -> bool {
        let hour = |value: &Self| {
            let (hour, minute) = value
                .amount
                .split_once(':')
                .unwrap_or((&value.amount, "00"));
            Some((hour.parse::<u32>().ok()? % 12, minute.to_owned()))
        };
        match (self.dimension.as_str(), other.dimension.as_str()) {
            (CLOCK, HOUR) | (HOUR, CLOCK) => hour(self) == hour(other),
            ("day", DATE) => other.amount.ends_with(&self.amount),
            (DATE, "day") => self.amount.ends_with(&other.amount),
            _ => false,
        }
    }
}

/// Two clauses of two sentences.
pub(super) struct Comparison<'s> {
    pub(super) after: &'s Clause,
    pub(super) before: &'s Clause,
    /// Meanings of the phrases of the later sentence.
    cues: u16,
    /// Meanings of the phrases of the earlier sentence.
    earlier: u16,
    /// Whether the later sentence says that the earlier value no longer holds.
    pub(super) takes_back: bool,
    pub(super) names: Names,
    /// Words of both clauses.
    pub(super) shared: usize,
    /// Words of the later clause that the earlier one does not have.
    pub(super) own: usize,
    /// Words of the earlier clause that the later one does not have.
    pub(super) others: usize,
}

/// Returns how much words say. In a script without spaces, two characters are a word.
fn size<'t>(words: impl Iterator<Item = &'t String>) -> (usize, usize) {
    words.fold((0, 0), |(words, chars), word| {
        match word.starts_with(is_han) {
            true => (words, chars + 1),
            false => (words + 1, chars),
        }
    })
}

impl<'s> Comparison<'s> {
    pub(super) fn new(
        later: &NumberedSentence,
        earlier: &NumberedSentence,
        after: &'s Clause,
        before: &'s Clause,
    ) -> Self {
        let is_held = |value: &Value| before.held().any(|other| value.is(other));
        // `5 was too little, now it is 8`: another clause names the value that no longer holds.
        let others = later
            .clauses
            .iter()
            .filter(|one| !std::ptr::eq(*one, after));
        let all = later.clauses.iter().flat_map(|clause| &clause.values);
        let denies = later.cues & (cue::MOVES | cue::NOW | cue::RULE | cue::NEGATES) != 0;
        let takes_back = all.filter(|value| value.is_former).any(is_held)
            || (denies && others.flat_map(|clause| &clause.values).any(is_held));
        let (words, chars) = size(after.terms.intersection(&before.terms));
        let rest = |one: &BTreeSet<String>, other: &BTreeSet<String>| size(one.difference(other));
        let (own, others) = (
            rest(&after.terms, &before.terms),
            rest(&before.terms, &after.terms),
        );
        let place = |own: &&Name| {
            before
                .names
                .iter()
                .any(|name| name.is_place && name.may_be(own))
        };
        let places = after.names.iter().filter(|name| name.is_place);
        Self {
            after,
            before,
            cues: later.cues,
            earlier: earlier.cues,
            takes_back,
            names: Names::of(after, before),
            shared: words + chars / 2 + places.filter(place).count(),
            own: own.0 + own.1.div_ceil(2),
            others: others.0 + others.1 / 2,
        }
    }

    /// Returns how likely it is that the clauses are about one thing. The names decide, then a new value, then words.
    pub(super) fn likeness(&self) -> (usize, bool, usize) {
        let names = match self.names {
            Names::Same => 3,
            Names::None | Names::OneSided => 2,
            Names::Moved => 1,
            Names::Apart => 0,
        };
        (names, self.new_value().is_some(), self.shared)
    }

    fn has(&self, cue: u16) -> bool {
        self.cues & cue != 0
    }

    fn moves(&self) -> bool {
        self.takes_back || self.has(cue::MOVES)
    }

    /// Returns the value that replaces another one: none of the earlier values is equal to it.
    pub(super) fn new_value(&self) -> Option<&'s Value> {
        let (after, before) = (self.after, self.before);
        after
            .held()
            .filter(|value| !value.names(before))
            .find(|value| {
                let others = || before.held().filter(|other| !other.names(after));
                let comparable =
                    || others().filter(|other| value.is_comparable(other, self.moves()));
                comparable().next().is_some() && !comparable().any(|other| value.is(other))
            })
    }

    /// Returns whether so many words are in one clause only that they tell of several things.
    pub(super) fn are_far_apart(&self) -> bool {
        self.own + self.others > MOST_APART + FOR_SHARED * self.shared
    }

    /// Returns whether a value that holds is equal in both clauses.
    pub(super) fn has_equal_value(&self) -> bool {
        let is_held = |value: &Value| self.before.held().any(|other| value.is(other));
        self.after.held().any(is_held)
    }

    /// Returns whether the clauses tell of opposites, such as `open` and `close`.
    pub(super) fn are_opposite(&self) -> bool {
        self.after.sides.iter().any(|(list, _)| {
            let sides = |clause: &Clause| -> BTreeSet<usize> {
                let sides = clause.sides.iter().filter(|(other, _)| other == list);
                sides.map(|(_, side)| *side).collect()
            };
            let others = sides(self.before);
            !others.is_empty() && others.is_disjoint(&sides(self.after))
        })
    }

    /// Returns whether each clause has a word that the other lacks, next to a word of both: `the read timeout` and `the
    /// connect timeout`.
    pub(super) fn contrasts(&self) -> bool {
        let (after, before) = (self.after, self.before);
        let apart = |own: &String, other: &String| {
            own != other && !before.terms.contains(own) && !after.terms.contains(other)
        };
        after.pairs.iter().any(|(part, whole)| {
            let mut others = before.pairs.iter();
            others.any(|(other, same)| {
                (same == whole && apart(part, other)) || (other == part && apart(whole, same))
            })
        })
    }

    /// Returns whether the later clause is about a part of the thing of the earlier one: `the read timeout` after `the timeout`.
    pub(super) fn narrows(&self) -> bool {
        let before = self.before;
        let mut pairs = self.after.pairs.iter();
        pairs.any(|(part, whole)| before.terms.contains(whole) && !before.terms.contains(part))
    }

    /// Returns whether the clauses tell of two properties: of opposites such as `open` and `close`, or of `the read
    /// timeout` and `the connect timeout`, or of a part of the thing of the earlier one.
    fn are_apart(&self) -> bool {
        let (after, before) = (self.after, self.before);
        // A longer compound that both have is the same thing, if the sentence says that it changed.
        let has_both = |word: &String| {
            let mut both = after.pairs.intersection(&before.pairs);
            both.any(|(one, other)| other == word || one == word && !self.has(cue::NOW))
        };
        let narrows = after.pairs.iter().any(|(part, whole)| {
            before.terms.contains(whole) && !before.terms.contains(part) && !has_both(whole)
        });
        let is_told = self.names == Names::Same && self.told() > 0;
        // `The balcony of flat 6` after `flat 6`.
        let is_part = after.heads.iter().any(|head| !before.terms.contains(head));
        self.are_opposite()
            || !self.takes_back && (is_part && !self.moves())
            || !self.takes_back && (self.contrasts() || narrows && !is_told)
    }

    /// Returns the evidence that is a phrase of change. What the earlier sentence says in the same way is no change, but
    /// one more of such sentences.
    fn told(&self) -> usize {
        let is_new = |cue: u16| {
            self.has(cue) && (self.earlier & cue == 0 || self.own == 0 || self.others == 0)
        };
        match () {
            () if self.takes_back => TAKEN_BACK,
            () if is_new(cue::MOVES | cue::DROPS) => 2,
            () if is_new(cue::NOW) || is_new(cue::RULE) && !self.has(cue::WAS) => 1,
            () => 0,
        }
    }

    /// Adds up the evidence that both clauses tell of one property of one thing, and that it changed.
    fn evidence(&self) -> usize {
        let is_same = self.names == Names::Same;
        let contained = match (self.own, self.others) {
            (0, _) if is_same || self.shared > 0 => 2,
            (0, _) => 1,
            (_, 0) if is_same || self.shared > 0 => 1,
            _ => 0,
        };
        let name = if is_same { SAME_NAME } else { 0 };
        name + self.told() + self.shared.min(MOST_SHARED) + contained
    }

    /// Returns how the clauses relate. `in_part` says whether the earlier sentence has other clauses.
    pub(super) fn relation(&self, in_part: bool) -> NumberedRelation {
        use NumberedRelation::{Changed, ChangedIfNext, Unchanged};
        let (after, before) = (self.after, self.before);
        let no = match self.names {
            Names::None => NumberedRelation::Undecided,
            _ => Unchanged,
        };
        let told = self.told();
        if self.names == Names::Moved && told == 0 {
            // In other languages, a place cannot be told from a thing.
            return match (self.cues | self.earlier) & cue::FOREIGN != 0 {
                true => NumberedRelation::Undecided,
                false => Unchanged,
            };
        }
        let new = self.new_value();
        let is_past = self.earlier & cue::PAST != 0
            || self.has(cue::PAST) && !self.moves() && !self.has(cue::NOW);
        let is_again = self.has(cue::SAME) && !self.moves() && !self.has(cue::DROPS);
        let is_again = is_again && !(new.is_some() && told > 0);
        if (self.cues | self.earlier) & cue::OPEN != 0 || is_past || is_again {
            return if is_past && new.is_some() {
                Unchanged
            } else {
                no
            };
        }
        let is_same = self.names == Names::Same;
        if self.are_far_apart() {
            return no;
        }
        let Some(new) = new else {
            return match is_same && self.says_otherwise() {
                true => Changed {
                    value: None,
                    in_part,
                },
                // Where only one names a thing, and no value is comparable, numbers do not decide.
                false if self.names == Names::OneSided => NumberedRelation::Undecided,
                false => no,
            };
        };
        // Another value differs, too: the places are two things.
        let is_place = new.dimension == CODE || new.dimension.starts_with("of ");
        let is_other = self.names == Names::Moved && !is_place;
        if is_other || self.are_apart() {
            return Unchanged;
        }
        // The counted noun is a unit, and does not tell the property.
        let unit = new.dimension.strip_prefix("count ").unwrap_or_default();
        let is_unit = is_same && [after, before].iter().all(|one| one.terms.contains(unit));
        let evidence = self.evidence().saturating_sub(usize::from(is_unit));
        let value = new.range.clone();
        let is_short = self.own == 0 && self.shared == 0 && after.names.is_empty();
        // A property is no thing: `the price` of two things is not one.
        let properties = after
            .terms
            .intersection(&before.terms)
            .filter(|word| word.contains('/'));
        let is_thing = self.shared > properties.count().min(1);
        let is_about = is_same || (self.shared > 0 && self.names != Names::OneSided);
        // `now` alone does not make parallel sentences about two things a change.
        let is_parallel = self.own > 0 && self.others > 0;
        let is_told = told > usize::from(is_parallel);
        match () {
            () if is_about && (is_same || is_thing && is_told) && evidence >= ENOUGH => Changed {
                value: Some(value),
                in_part,
            },
            () if (is_about || is_short || self.takes_back)
                && told > 0
                && evidence >= ENOUGH_NEXT =>
            {
                ChangedIfNext { value }
            }
            () if self.names == Names::OneSided => Unchanged,
            () => no,
        }
    }

    /// Returns whether the later clause tells of the same numbered thing something else that is no number: another
    /// person, another place, or that it is no longer so.
    fn says_otherwise(&self) -> bool {
        let drops = self.has(cue::DROPS) || self.moves() && self.has(cue::NEGATES);
        let denies = self.after.negated != self.before.negated;
        let moves = self.has(cue::MOVES) && self.after.held().next().is_none();
        let assigns = self.earlier & cue::ASSIGNS != 0 && (self.has(cue::ASSIGNS) || moves);
        let differs = self.after.terms != self.before.terms;
        let repeats = self
            .after
            .held()
            .any(|value| self.before.held().any(|other| value.is(other)));
        // What is told without a number leaves a number as it is.
        let is_numberless = drops || assigns || self.before.held().next().is_none();
        let is_other =
            self.own > 0 && self.others > 0 || assigns && differs || denies && self.own > 0;
        let is_other = is_other && self.told() > 0;
        let is_about = self.shared > 0 || assigns || drops && self.own == 0;
        let evidence = self.evidence() + usize::from(denies) + usize::from(assigns);
        is_about
            && is_numberless
            && !repeats
            && (is_other || drops || denies && self.own == 0)
            && evidence >= ENOUGH
    }
}
