//! Compares the numbers of two sentences.
//!
//! A change needs a value that differs from a comparable earlier one, and evidence that both sentences speak of one
//! property of one thing. Evidence is added up: see [`Comparison::evidence`].

use std::collections::BTreeSet;
use std::ops::Range;

use super::fitted::Fitted;
use super::lexicon::{cue, is_han};
use super::sentence::{
    CLOCK, CODE, Clause, DATE, HOUR, Name, NumberedSentence, PLAIN, Value, WEEKDAY,
};

/// Relation of a later sentence to an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NumberedRelation {
    /// The numbers of the sentences do not decide it.
    Undecided,
    /// The sentences are about different things, or the later one leaves the earlier one as it is.
    Unchanged,
    /// The later sentence changes the earlier one.
    Changed {
        /// Text range of the new value in the later sentence. `None` if the new value is not a number.
        value: Option<Range<usize>>,
        /// Whether a part of the earlier sentence is not changed.
        in_part: bool,
    },
    /// The later sentence has a new value but hardly says of what. It changes the earlier sentence if it directly
    /// follows it: `Make that 30.`
    ChangedIfNext {
        /// Text range of the new value in the later sentence.
        value: Range<usize>,
    },
}

/// Evidence for a change, wherever the sentences are. The same numbered thing gives half of it, so that it must be
/// clear that it is the same property, too: by two words, by a word and a word of change, or by no other word than those
/// of the earlier sentence.
const ENOUGH: usize = 4;

/// Evidence for a change, with a phrase of change, if one sentence directly follows the other: neighbours are
/// mostly about one thing.
const ENOUGH_NEXT: usize = 3;

/// Maximum number of words that are in one sentence only: this many, and [`FOR_SHARED`] for each word of both. Long
/// sentences share words by chance, and have several subjects.
const MOST_APART: usize = 6;
const FOR_SHARED: usize = 3;

/// Evidence of one numbered thing in both sentences.
const SAME_NAME: usize = 2;

/// Evidence of a value that is taken back: `not 5`. No other sentence is meant.
const TAKEN_BACK: usize = 4;

/// Maximum evidence of shared words: parallel sentences about two things share most words.
const MOST_SHARED: usize = 3;

impl NumberedSentence {
    /// Returns how this sentence relates to an earlier one.
    pub fn relation_to(&self, earlier: &Self) -> NumberedRelation {
        let mut relation = NumberedRelation::Undecided;
        if !self.has_numbers() || !earlier.has_numbers() {
            return relation;
        }
        match (&self.fitted, &earlier.fitted) {
            (Some(later), Some(earlier)) => return by_weights(later, earlier),
            (None, None) => {}
            _ => return relation,
        }
        for before in &earlier.clauses {
            for after in &self.clauses {
                let found = match Names::of(after, before) {
                    Names::Apart => NumberedRelation::Unchanged,
                    names => {
                        let comparison = Comparison::new(self, earlier, after, before, names);
                        comparison.relation(earlier.clauses.len() > 1)
                    }
                };
                if found.rank() > relation.rank() {
                    relation = found;
                }
            }
        }
        relation
    }
}

/// Returns how sentences in Japanese or Korean relate.
fn by_weights(later: &Fitted, earlier: &Fitted) -> NumberedRelation {
    let (in_part, value) = (false, later.new_number(earlier));
    match (later.changes(earlier), value) {
        ((_, true), value) => NumberedRelation::Changed { value, in_part },
        ((true, _), Some(value)) => NumberedRelation::ChangedIfNext { value },
        (_, Some(_)) => NumberedRelation::Unchanged,
        // The change is not one of a number.
        (_, None) => NumberedRelation::Undecided,
    }
}

impl NumberedRelation {
    /// Among the relations of the parts of two sentences, the highest rank decides.
    fn rank(&self) -> usize {
        match self {
            Self::Undecided => 0,
            Self::Unchanged => 1,
            Self::ChangedIfNext { .. } => 2,
            Self::Changed { .. } => 3,
        }
    }
}

/// How the numbered things of two clauses relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
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
    fn is_comparable(&self, other: &Self, loosely: bool) -> bool {
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

    fn is(&self, other: &Self) -> bool {
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
struct Comparison<'s> {
    after: &'s Clause,
    before: &'s Clause,
    /// Meanings of the phrases of the later sentence.
    cues: u16,
    /// Meanings of the phrases of the earlier sentence.
    earlier: u16,
    /// Whether the later sentence says that the earlier value no longer holds.
    takes_back: bool,
    names: Names,
    /// Words of both clauses.
    shared: usize,
    /// Words of the later clause that the earlier one does not have.
    own: usize,
    /// Words of the earlier clause that the later one does not have.
    others: usize,
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
    fn new(
        later: &NumberedSentence,
        earlier: &NumberedSentence,
        after: &'s Clause,
        before: &'s Clause,
        names: Names,
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
            names,
            shared: words + chars / 2 + places.filter(place).count(),
            own: own.0 + own.1.div_ceil(2),
            others: others.0 + others.1 / 2,
        }
    }

    fn has(&self, cue: u16) -> bool {
        self.cues & cue != 0
    }

    fn moves(&self) -> bool {
        self.takes_back || self.has(cue::MOVES)
    }

    /// Returns the value that replaces another one: none of the earlier values is equal to it.
    fn new_value(&self) -> Option<&'s Value> {
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

    /// Returns whether the clauses are about two properties: of opposites such as `open` and `close`, or of `the read
    /// timeout` and `the connect timeout`, or of a part of the earlier property.
    fn are_apart(&self) -> bool {
        let (after, before) = (self.after, self.before);
        let opposite = after.sides.iter().any(|(list, _)| {
            let sides = |clause: &Clause| -> BTreeSet<usize> {
                let sides = clause.sides.iter().filter(|(other, _)| other == list);
                sides.map(|(_, side)| *side).collect()
            };
            let others = sides(before);
            !others.is_empty() && others.is_disjoint(&sides(after))
        });
        let apart = |own: &String, other: &String| {
            own != other && !before.terms.contains(own) && !after.terms.contains(other)
        };
        let contrasts = after.pairs.iter().any(|(part, whole)| {
            let mut others = before.pairs.iter();
            others.any(|(other, same)| {
                (same == whole && apart(part, other)) || (other == part && apart(whole, same))
            })
        });
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
        opposite
            || !self.takes_back && (is_part && !self.moves())
            || !self.takes_back && (contrasts || narrows && !is_told)
    }

    /// Returns the evidence that is a phrase of change. A phrase that the earlier sentence has, too, is no change, but
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
    fn relation(&self, in_part: bool) -> NumberedRelation {
        use NumberedRelation::{Changed, ChangedIfNext, Unchanged};
        let (after, before) = (self.after, self.before);
        let no = match self.names {
            Names::None => NumberedRelation::Undecided,
            _ => Unchanged,
        };
        let told = self.told();
        if self.names == Names::Moved && told == 0 {
            // In other languages, a place cannot be distinguished from a thing.
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
        if self.own + self.others > MOST_APART + FOR_SHARED * self.shared {
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
        // The counted noun is a unit, and is not the property.
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
        // A clause without a number leaves a number as it is.
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
