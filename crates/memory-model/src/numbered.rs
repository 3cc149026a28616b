//! Sentences about things that a number names, such as `tier 2`, `room 5`, the year 2024 or `#17`.
//!
//! A number in a sentence is a name or a value. It is a name if it belongs to the subject: `tier 2` in `limit tier 2 to
//! 300 requests`, where `300 requests` is the value. Two sentences whose names differ are about different things, and
//! neither changes the other. If the names are equal, a later sentence changes an earlier one if a comparable value
//! differs and nothing suggests that it is another property. Where this cannot be decided, nothing changes.
//!
//! The words by which numbers are understood are data, in English, German and Chinese: `words.txt`.

mod lexicon;
mod read;

use std::collections::BTreeSet;
use std::ops::Range;

/// What a sentence says about numbered things: the numbers that name things, and the values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NumberedSentence {
    clauses: Vec<Clause>,
    cues: Cues,
}

/// Relation of a later sentence to an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NumberedRelation {
    /// The numbers of the sentences do not decide it.
    Undecided,
    /// The sentences are about different things, or the later one leaves the earlier one as it is.
    Unchanged,
    /// The later sentence changes what the earlier one says.
    Changed {
        /// Text range of the new value in the later sentence. `None` if the new value is not a number.
        value: Option<Range<usize>>,
        /// Whether the earlier sentence says more than what is changed.
        in_part: bool,
    },
    /// The later sentence has a new value but names no thing. It changes the earlier sentence if it directly follows
    /// it: `Make that 30.`
    ChangedIfNext {
        /// Text range of the new value in the later sentence.
        value: Range<usize>,
    },
}

/// A part of a sentence with its own value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Clause {
    names: Vec<Name>,
    values: Vec<Value>,
    /// Words of the subject, without names, values and words that say nothing.
    terms: BTreeSet<String>,
    /// Pairs of words of the subject that follow each other directly, such as `read timeout`.
    pairs: BTreeSet<(String, String)>,
    /// Sides of opposites, such as `open` and `close`: the index of the opposite, and the side.
    opposites: BTreeSet<(usize, usize)>,
    negated: bool,
    /// The noun of which the first name is a part or owner: `baggage` in `baggage on flight 12`.
    head: Option<String>,
}

/// A number that names a thing.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Name {
    /// What is numbered, such as `tier`. Empty if only a sign says that the number names, as in `#17`.
    key: String,
    number: String,
    /// Whether the name may itself be what changes: the room in `the meeting is in room 5 at 10:00`.
    is_place: bool,
    range: Range<usize>,
}

/// A number that is a value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Value {
    /// What is measured or counted. Values of different dimensions are not compared.
    dimension: String,
    /// Normal form: equal for `2 minutes` and `120 seconds`.
    amount: String,
    /// The number as it is written.
    number: String,
    /// Whether the sentence says that the value no longer holds: `not 5`.
    is_former: bool,
    range: Range<usize>,
}

/// Phrases of a sentence that say how it relates to earlier ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a kind of phrase")]
struct Cues {
    /// A value is changed: `raised to`.
    moves: bool,
    /// Something is so now.
    now: bool,
    /// A rule for later steps.
    rule: bool,
    /// Something is said again, or of one more thing.
    same: bool,
    past: bool,
    /// A case that is only thought of, or a question.
    open: bool,
    /// Something is cancelled.
    drops: bool,
    /// Somebody is responsible.
    assigns: bool,
}

/// Dimension of a number without a unit.
const PLAIN: &str = "";
/// Dimension of a day of the week.
const WEEKDAY: &str = "weekday";
/// Dimension of a day of the year.
const DATE: &str = "date";

impl NumberedSentence {
    /// Reads a sentence.
    pub fn read(sentence: &str) -> Self {
        read::sentence(sentence)
    }

    /// Returns whether the sentence has a number.
    pub fn has_numbers(&self) -> bool {
        let mut clauses = self.clauses.iter();
        clauses.any(|clause| !clause.names.is_empty() || !clause.values.is_empty())
    }

    /// Returns the text ranges of the numbers that name things, with what they number.
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

    /// Returns how this sentence relates to an earlier one.
    pub fn relation_to(&self, earlier: &Self) -> NumberedRelation {
        let none = || NumberedRelation::Undecided;
        if !self.has_numbers() || !earlier.has_numbers() {
            return none();
        }
        let mut relation = none();
        let former = || {
            let values = self.clauses.iter().flat_map(|clause| &clause.values);
            values.filter(|value| value.is_former)
        };
        for before in &earlier.clauses {
            for after in &self.clauses {
                let held = before.values.iter().filter(|other| !other.is_former);
                let is_held = |value: &Value| held.clone().any(|other| value.is(other));
                // `5 was too little, now it is 8`: another clause names the value that no longer holds.
                let others = self
                    .clauses
                    .iter()
                    .filter(|clause| !std::ptr::eq(*clause, after));
                let mut others = others.flat_map(|clause| &clause.values);
                let takes_back =
                    former().any(is_held) || (self.cues.now && others.any(|value| is_held(value)));
                let cues = Cues {
                    moves: self.cues.moves || takes_back,
                    ..self.cues
                };
                match cues.relation(after, before, earlier.cues) {
                    NumberedRelation::Changed { value, .. } => {
                        let in_part = earlier.clauses.len() > 1;
                        return NumberedRelation::Changed { value, in_part };
                    }
                    NumberedRelation::Undecided if relation != none() => {}
                    found @ NumberedRelation::ChangedIfNext { .. } => relation = found,
                    NumberedRelation::Unchanged
                        if matches!(relation, NumberedRelation::ChangedIfNext { .. }) => {}
                    found => relation = found,
                }
            }
        }
        relation
    }
}

/// How the names of two clauses relate.
#[derive(Debug, PartialEq, Eq)]
enum Names {
    /// Neither has a name.
    None,
    /// Only one has a name.
    OneSided,
    Same,
    Apart,
    /// They differ in a name that may be what changes.
    Moved(Range<usize>),
}

fn names(after: &Clause, before: &Clause) -> Names {
    if after.names.is_empty() && before.names.is_empty() {
        return Names::None;
    }
    if after.names.is_empty() || before.names.is_empty() {
        return Names::OneSided;
    }
    let (mut same, mut moved) = (false, None);
    for own in &after.names {
        let of_key = || before.names.iter().filter(|name| name.is_of(own));
        if of_key().any(|name| name.number == own.number) {
            same = true;
        } else if let Some(other) = of_key().next() {
            match own.is_place && other.is_place {
                true => moved = Some(own.range.clone()),
                false => return Names::Apart,
            }
        }
    }
    match moved {
        Some(range) => Names::Moved(range),
        None if same => Names::Same,
        None => Names::Apart,
    }
}

impl Name {
    /// Returns whether both number the same kind of thing.
    fn is_of(&self, other: &Self) -> bool {
        // Without spaces, the end of a name is not known.
        let first = |key: &str| key.chars().next().filter(|c| *c >= '\u{3400}');
        self.key == other.key
            || self.key.is_empty()
            || other.key.is_empty()
            || (first(&self.key).is_some() && first(&self.key) == first(&other.key))
    }
}

impl Value {
    /// Returns whether a value can replace another. `loosely` also compares a date with a day of the week.
    fn is_comparable(&self, other: &Self, loosely: bool) -> bool {
        let days = |value: &Self| matches!(value.dimension.as_str(), WEEKDAY | DATE);
        let plain = |one: &Self, other: &Self| {
            one.dimension == PLAIN
                && !days(other)
                && !matches!(other.dimension.as_str(), "clock" | "code")
        };
        self.dimension == other.dimension
            || plain(self, other)
            || plain(other, self)
            || (loosely && days(self) && days(other))
    }

    fn is(&self, other: &Self) -> bool {
        match self.dimension == other.dimension {
            true => self.amount == other.amount,
            false => self.number == other.number,
        }
    }
}

impl Cues {
    /// Returns how a clause of a sentence with these phrases relates to a clause of an earlier sentence.
    fn relation(self, after: &Clause, before: &Clause, earlier: Self) -> NumberedRelation {
        use NumberedRelation::{ChangedIfNext, Unchanged, Undecided};
        let names = names(after, before);
        let changed = |value: Option<Range<usize>>| NumberedRelation::Changed {
            value,
            in_part: false,
        };
        let numbered = !after.names.is_empty() || !before.names.is_empty();
        if names == Names::Apart {
            return Unchanged;
        }
        let is_past = self.past && !self.moves && !self.now;
        let shared = after.terms.intersection(&before.terms).count();
        let own = after.terms.len() - shared;
        let others = before.terms.len() - shared;
        let mut live = after.values.iter().filter(|value| !value.is_former);
        let held = || before.values.iter().filter(|value| !value.is_former);
        let apart = after.opposites.iter().any(|(list, side)| {
            let sides = || before.opposites.iter().filter(|(other, _)| other == list);
            sides().next().is_some() && !sides().any(|(_, other)| other == side)
        });
        // A value that another one replaces: none of the earlier values is equal to it.
        let new = live.clone().find(|value| {
            let comparable = || held().filter(|other| value.is_comparable(other, self.moves));
            comparable().next().is_some() && !comparable().any(|other| value.is(other))
        });
        let known = |head: &Option<String>, other: &Clause| {
            head.as_ref().is_none_or(|head| {
                let mut of = other
                    .values
                    .iter()
                    .filter_map(|value| value.dimension.strip_prefix("of "));
                other.terms.contains(head) || of.any(|key| key == head)
            })
        };
        let is_other_part = !known(&after.head, before) || !known(&before.head, after);
        // `The read timeout` is a part of what `the timeout` is.
        let narrows = after
            .pairs
            .iter()
            .any(|(part, whole)| before.terms.contains(whole) && !before.terms.contains(part));
        let is_other_part = is_other_part || narrows;
        let is_other_noun = shared == 0
            && after.head.is_some()
            && before.head.is_some()
            && after.head != before.head;
        let is_again = self.same && !self.moves && !self.drops;
        let is_again = is_again && !(new.is_some() && (self.now || self.rule));
        if self.open || earlier.open || is_past || is_again {
            return if numbered { Unchanged } else { Undecided };
        }
        match names {
            Names::Same => {
                if apart {
                    // `It is closed now` after `it is open` says how it is, and no other property.
                    let turns = new.is_none() && (self.moves || self.now) && shared > 0;
                    return if turns { changed(None) } else { Unchanged };
                }
                if let Some(new) = new {
                    let is_count = own == 0 && new.dimension.starts_with("count ");
                    let alike = own == 0 || (shared > 0 && others == 0);
                    let near = shared > 0 || own == 0 || others == 0;
                    let told = (self.moves && !is_other_noun)
                        || ((self.now || self.rule) && near && (!is_other_part || is_count))
                        || (alike && !is_other_part);
                    return match told {
                        true => changed(Some(new.range.clone())),
                        false => Unchanged,
                    };
                }
                let repeats = live.any(|value| held().any(|other| value.is(other)));
                if self.drops && (own == 0 || shared > 0) && !repeats {
                    return changed(None);
                }
                let other_words = own > 0 && others > 0;
                let assigns = self.assigns && earlier.assigns;
                let told = (self.moves || self.now)
                    && (shared > 0 || assigns)
                    && (other_words || assigns && own + others > 0)
                    && !repeats;
                let denied = after.negated != before.negated && own == 0 && shared > 0;
                if told || denied {
                    return changed(None);
                }
                Unchanged
            }
            Names::Moved(range) => {
                let told = (self.moves || self.now) && shared > 0 && new.is_none() && !apart;
                match told {
                    true => changed(Some(range)),
                    false => Unchanged,
                }
            }
            Names::None => {
                let Some(new) = new.filter(|_| !apart && !narrows) else {
                    return Undecided;
                };
                let alike = shared > 0 && (own == 0 || others == 0 || shared >= own.min(others));
                let bare = new.dimension.starts_with("of ") && own == 0 && others == 0;
                let ruled = self.rule && own == 0 && (others == 0 || alike);
                if ruled || ((self.moves || self.now) && (alike || bare)) {
                    return changed(Some(new.range.clone()));
                }
                match self.moves && own == 0 && shared == 0 {
                    true => ChangedIfNext {
                        value: new.range.clone(),
                    },
                    false => Undecided,
                }
            }
            Names::OneSided => {
                let dimension = |name: &Name| format!("of {}", name.key);
                let one = |names: &[Name], values: &[Value]| {
                    names.iter().find_map(|name| {
                        let key = dimension(name);
                        let other = values.iter().find(|value| value.dimension == key)?;
                        (other.number != name.number)
                            .then(|| (name.range.clone(), other.range.clone()))
                    })
                };
                let moved = one(&after.names, &before.values).map(|(own, _)| own);
                let moved = moved.or_else(|| one(&before.names, &after.values).map(|(_, own)| own));
                if let Some(range) = moved
                    && (self.moves || self.now)
                    && shared > 0
                    && !apart
                {
                    return changed(Some(range));
                }
                match new {
                    Some(new)
                        if after.names.is_empty() && self.moves && own == 0 && shared == 0 =>
                    {
                        ChangedIfNext {
                            value: new.range.clone(),
                        }
                    }
                    Some(_) => Unchanged,
                    None => Undecided,
                }
            }
            Names::Apart => Unchanged,
        }
    }
}

/// Returns whether the full stop at a byte offset belongs to a number or an abbreviation, as in `am 3. Mai` and `Nr. 5`,
/// and does not end the sentence.
pub fn is_point_of_number(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or("");
    let behind = text.get(at + 1..).unwrap_or("");
    let mut words = before.rsplit(' ');
    let word = words.next().unwrap_or("");
    let digits = (1..=2).contains(&word.len()) && word.bytes().all(|c| c.is_ascii_digit());
    let article = [
        "am", "im", "der", "die", "das", "den", "dem", "des", "vom", "zum", "zur", "beim", "bis",
        "ab", "seit", "ins", "jeden",
    ];
    let follows = behind
        .strip_prefix(' ')
        .is_some_and(|rest| rest.starts_with(char::is_alphabetic));
    let is_article = words
        .next()
        .is_some_and(|word| article.contains(&word.to_lowercase().as_str()));
    let is_number = || {
        behind
            .trim_start()
            .starts_with(|c: char| c.is_ascii_digit())
    };
    digits && is_article && follows || matches!(word, "Nr" | "nr" | "No") && is_number()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what a sentence names, and its values with their dimensions.
    fn read(sentence: &str) -> (Vec<String>, Vec<String>) {
        let clauses = NumberedSentence::read(sentence).clauses;
        let names = clauses.iter().flat_map(|clause| &clause.names);
        let names = names.map(|name| format!("{} {}", name.key, name.number));
        let values = clauses.iter().flat_map(|clause| &clause.values);
        let values = values.map(|value| format!("{} {}", value.dimension, value.amount));
        (
            names.collect(),
            values.map(|value| value.trim().to_owned()).collect(),
        )
    }

    #[test]
    fn numbers_of_the_subject_are_names_and_others_are_values() {
        for (sentence, names, values) in [
            (
                "From now on, limit tier 2 to 300 requests.",
                "tier 2",
                "count reque 300",
            ),
            (
                "Always set the timeout of worker-3 to 2 minutes.",
                "worke 3",
                "time 120",
            ),
            ("The port of service 42 is 8042.", "servi 42", "8042"),
            ("The service listens on port 8042.", "", "of port 8042"),
            ("The budget for 2024 is $1,200.", "year 2024", "money 1200"),
            ("PR #17 changes 12 files.", "pr 17", "count file 12"),
            (
                "The second draft is due at 9:30 pm.",
                "draft 2",
                "clock 21:30",
            ),
            ("Am 3. Mai kommen 12 Gäste.", "date 05-03", "count gäste 12"),
            ("Der Zug 512 fährt um 9 Uhr 30.", "zug 512", "clock 09:30"),
            ("2024年的预算是80万元。", "year 2024", "money 800000"),
            ("第三次会议在5月8日。", "次 3", "date 05-08"),
            ("会议在5号会议室。", "", "of 会议室 5"),
        ] {
            let (own, amounts) = read(sentence);
            assert_eq!(
                (own.join(", "), amounts.join(", ")),
                (names.to_owned(), values.to_owned()),
                "{sentence}"
            );
        }
    }

    #[test]
    fn a_new_value_of_the_same_thing_is_a_change() {
        let earlier = NumberedSentence::read("Tier 2 is limited to 300 requests.");
        let relation = |later: &str| NumberedSentence::read(later).relation_to(&earlier);
        let later = "Tier 2 is limited to 400 requests.";
        let NumberedRelation::Changed {
            value: Some(value),
            in_part: false,
        } = relation(later)
        else {
            panic!("{:?}", relation(later));
        };
        assert!(later[value].starts_with("400"));
        for same in [
            "Tier 12 is limited to 400 requests.",
            "Tier 2 stays at 300 requests.",
            "Is tier 2 limited to 400 requests?",
            "Tier 2 has 40 customers.",
            "The limit is 400 requests.",
        ] {
            assert_eq!(relation(same), NumberedRelation::Unchanged, "{same}");
        }
        assert!(matches!(
            relation("Make that 400."),
            NumberedRelation::ChangedIfNext { .. }
        ));
        assert_eq!(
            relation("The tests are green."),
            NumberedRelation::Undecided
        );
        let both = NumberedSentence::read("Tier 1 gets 100 calls, tier 2 gets 200 calls.");
        let one = NumberedSentence::read("Tier 2 gets 250 calls.").relation_to(&both);
        assert!(
            matches!(one, NumberedRelation::Changed { in_part: true, .. }),
            "{one:?}"
        );
    }

    #[test]
    fn a_full_stop_after_an_ordinal_does_not_end_a_sentence() {
        for (text, expected) in [
            ("am 3. Mai", true),
            ("Im 1. Quartal", true),
            ("Zimmer Nr. 5", true),
            ("It is 12. Then we go.", false),
            ("Seite 3. Danach", false),
        ] {
            let at = text.find('.').unwrap_or(0);
            assert_eq!(is_point_of_number(text, at), expected, "{text}");
        }
    }
}
