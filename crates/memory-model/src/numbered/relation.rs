//! Compares the numbers of two sentences.

use std::ops::Range;

use super::sentence::{Clause, Cues, DATE, Name, NumberedSentence, PLAIN, Value, WEEKDAY};

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
    /// The later sentence has a new value but names no thing. It changes the earlier sentence if it directly follows
    /// it: `Make that 30.`
    ChangedIfNext {
        /// Text range of the new value in the later sentence.
        value: Range<usize>,
    },
}

impl NumberedSentence {
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
                let takes_back = former().any(is_held) || (self.cues.now && others.any(is_held));
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
    /// They differ in a name that may itself change.
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
        // `The staging key` and `the production key` are two things, and so are `the key check` and `the key store`.
        let apart_words = |own: &String, other: &String| {
            !before.terms.contains(own) && !after.terms.contains(other)
        };
        let contrasts = after.pairs.iter().any(|(part, whole)| {
            let mut others = before.pairs.iter();
            others.any(|(other, same)| {
                (same == whole && apart_words(part, other))
                    || (other == part && apart_words(whole, same))
            })
        });
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
                let Some(new) = new.filter(|_| !apart && !narrows && !contrasts) else {
                    return Undecided;
                };
                let near = own == 0 || others == 0;
                let alike = shared > 0 && (near || (self.moves && shared >= own.min(others)));
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
