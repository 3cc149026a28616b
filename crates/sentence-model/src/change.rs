//! Detects later statements that contradict earlier statements about the same thing.
//!
//! The method uses no model. It compares sentences, or the parts of a sentence that each contain a value. Two
//! statements are about the same thing if they share most of their content words and do not name different things. They
//! name different things in these cases:
//!
//! - Each contains another word of a group that never means the same (`start`, `end`).
//! - One contains a compound (`argument names`), and the other only one word of it.
//! - A word that both contain belongs to another word in each: `staging key` and `production key`, `function names` and
//!   `function arguments`.
//! - Another number names the thing (`tier 2`). [`NumberedSentence`](crate::NumberedSentence) decides which numbers do.
//!
//! The later statement must also contain another value in the same place, or a phrase with which people correct themselves,
//! change a decision or drop a plan. The phrases are data (`cues.txt`), in English, German, French, Spanish, Russian,
//! Chinese, Japanese and Korean. Precision is more important than recall, because a false change costs trust.

mod changes;
mod compounds;
mod cues;
mod sentence;
mod statement;
#[cfg(test)]
mod tests;
mod values;

use crate::NumberedRelation;
pub use changes::{Change, Changes, Said};
use compounds::Compounds;
use statement::SAME_SUBJECT;
pub use statement::Statement;
use values::ValueKind;

/// Minimum share of the shorter statement's content words that both statements contain, in percent. Does not apply
/// if both a new value and a phrase of correction show that one statement corrects the other.
const SAME_STATEMENT: usize = 75;

/// Minimum share of the longer statement's content words that both statements contain, in percent.
const SAME_LENGTH: usize = 60;

/// Minimum share of the longer statement's content words that both statements contain, in percent, if the later
/// statement has another value.
const SAME_LENGTH_OF_VALUES: usize = 40;

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

/// Returns whether two statements name different things, or the words that they share belong to different words.
fn have_other_subjects(earlier: &Statement, later: &Statement, compounds: &Compounds) -> bool {
    are_apart(earlier, later, compounds)
        || contrast(earlier, later)
        || has_other_head(earlier, later)
        || has_other_head(later, earlier)
}

/// Returns whether a word that both have is followed by a word in `one` that `other` lacks: `function arguments`, but `function
/// names` in the other.
fn has_other_head(one: &Statement, other: &Statement) -> bool {
    one.neighbours.iter().any(|(part, head)| {
        let others = || other.neighbours.iter().filter(|(same, _)| same == part);
        !other.terms.contains(head)
            && others().next().is_some()
            && !others().any(|pair| one.neighbours.contains(pair))
    })
}

/// Returns whether the subjects contrast: each has a word that the other lacks, directly before the same word, as in `the
/// staging key` and `the production key`.
fn contrast(one: &Statement, other: &Statement) -> bool {
    let own = |pair: &(String, String)| !other.terms.contains(&pair.0);
    let others = |pair: &(String, String)| !one.terms.contains(&pair.0);
    let mut pairs = one.neighbours.iter().filter(|pair| own(pair));
    pairs.any(|pair| {
        let mut same = other.neighbours.iter().filter(|pair| others(pair));
        same.any(|same| same.1 == pair.1)
    })
}

/// Why a later statement changes an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// It sets another value.
    Value {
        /// The value, as the later statement writes it. `None` if only numbers show the change, and the new value is none.
        value: Option<String>,
        /// Whether it is the value of only a part of what the earlier statement is about.
        in_part: bool,
    },
    /// It says something else instead of the earlier statement.
    Instead,
    /// It drops the earlier statement, such as a plan.
    Dropped,
    /// It says the opposite.
    Opposite,
}

/// Whether the numbers of two statements show a change.
enum Renumbered {
    /// They do not decide it.
    Open,
    /// Both statements hold. Only the first part of a sentence can be changed by numbers.
    Unchanged,
    Changed(Why),
}

/// Compares the numbers of two statements. `is_next` says whether the later text directly follows the earlier one.
fn renumbered(earlier: &Statement, later: &Statement, is_next: bool) -> Renumbered {
    let (value, in_part) = match later.numbered.relation_to(&earlier.numbered) {
        NumberedRelation::Unchanged => return Renumbered::Unchanged,
        NumberedRelation::Changed { value, in_part } => (value, in_part),
        NumberedRelation::ChangedIfNext { value } if is_next => (Some(value), false),
        _ => return Renumbered::Open,
    };
    let value = value.and_then(|range| later.sentence.get(range));
    match earlier.leads {
        true => Renumbered::Changed(Why::Value {
            value: value.map(str::to_owned),
            in_part,
        }),
        false => Renumbered::Unchanged,
    }
}

/// Returns why a later statement changes an earlier one. `None` if it does not. `is_next` says whether the later text
/// directly follows the earlier one.
fn change(
    earlier: &Statement,
    later: &Statement,
    compounds: &Compounds,
    is_next: bool,
) -> Option<Why> {
    match renumbered(earlier, later, is_next) {
        Renumbered::Changed(_) if has_other_name(earlier, later) => None,
        Renumbered::Changed(why) => Some(why),
        Renumbered::Unchanged => None,
        Renumbered::Open => corrects(earlier, later, compounds),
    }
}

/// Returns whether the statements have other values of one list, such as two languages.
fn are_kin(earlier: &Statement, later: &Statement) -> bool {
    let values = earlier.values.iter();
    let mut lists = values.filter(|(kind, _)| matches!(kind, ValueKind::Word(_)));
    lists.any(|(kind, before)| {
        let after = later.values.get(kind);
        after.is_some_and(|after| after.is_disjoint(before))
    })
}

/// Returns the number of kinds of which a later statement has other values.
fn replaced_kinds(earlier: &Statement, later: &Statement) -> usize {
    let values = earlier.values.iter();
    let both = values.filter_map(|(kind, before)| Some((before, later.values.get(kind)?)));
    both.filter(|(before, after)| after.is_disjoint(before))
        .count()
}

/// Returns whether the statements have other names and also other values of another kind: `orders` that runs version 1, and
/// `bills` that runs version 2.
fn has_other_name(earlier: &Statement, later: &Statement) -> bool {
    let before = earlier.values.get(&ValueKind::Name);
    let names = before.zip(later.values.get(&ValueKind::Name));
    names.is_some_and(|(before, after)| after.is_disjoint(before))
        && replaced_kinds(earlier, later) > 1
}

/// Returns why a later statement changes an earlier one, judged by their words.
fn corrects(earlier: &Statement, later: &Statement, compounds: &Compounds) -> Option<Why> {
    if later.asks || later.example || later.same && !later.strong && !later.drop {
        return None;
    }
    let value = || Why::Value {
        value: later.new_value(earlier).map(str::to_owned),
        in_part: false,
    };
    let (shared, shorter) = share(earlier, later);
    let longer = earlier.terms.len().max(later.terms.len());
    if shared == 0 || shared < 2 && longer > 2 {
        return None;
    }
    let percent = shared * 100 / shorter;
    let same_subject = percent >= SAME_SUBJECT;
    // "It is cancelled" contains only the name of the thing.
    let names_it = later.drop && !later.terms.is_empty() && later.terms.is_subset(&earlier.terms);
    if !same_subject && !names_it || have_other_subjects(earlier, later, compounds) {
        return None;
    }
    let keeps_value = later.values.is_empty() || later.values == earlier.values;
    if names_it
        && keeps_value
        && shared + later.values.len() >= 2
        && !earlier.drop
        && !earlier.negated
    {
        return Some(Why::Dropped);
    }
    let same_statement = percent >= SAME_STATEMENT && shared >= 2;
    // Among many statements, only nearly equal ones are about the same thing.
    let is_near =
        |length: usize, fewest: usize| shared >= fewest && shared * 100 >= longer * length;
    // Two values of one list are about the same thing themselves.
    let kin = usize::from(are_kin(earlier, later));
    if !is_near(SAME_LENGTH_OF_VALUES, longer.min(2) - kin) {
        return None;
    }
    let mut values = earlier.values.iter();
    let changed = values.any(|(kind, before)| {
        let after = later.values.get(kind);
        after.is_some_and(|after| !after.is_subset(before))
    });
    let replaced = match replaced_kinds(earlier, later) {
        // Values of two kinds differ: it is said of another thing.
        2.. => return None,
        kinds => kinds > 0,
    };
    let is_more = if later.adding {
        !later.strong
    } else {
        earlier.adding
    };
    if is_more && !later.drop {
        return None;
    }
    let subset = later.terms.is_subset(&earlier.terms) || earlier.terms.is_subset(&later.terms);
    if changed && (later.strong || later.drop)
        || replaced && later.weak && (same_statement || subset)
    {
        return Some(value());
    }
    // A rule for one thing has one value.
    let says_rule = later.rule || earlier.rule && shared >= 3;
    if replaced && says_rule && same_statement {
        return Some(value());
    }
    // Without a signal phrase, both statements must be about exactly the same thing. One more word may name another
    // thing.
    let is_exact = same_statement && later.terms.is_subset(&earlier.terms);
    if changed && is_exact && sets_other_value(earlier, later) {
        return Some(value());
    }
    if !same_statement || !is_near(SAME_LENGTH, 3) {
        return None;
    }
    takes_back(earlier, later, changed)
}

/// Returns whether both statements set a value of the same subject, and the values differ.
fn sets_other_value(earlier: &Statement, later: &Statement) -> bool {
    earlier.sets.iter().any(|(subject, value)| {
        let other = later.sets.iter().find(|(of, _)| of == subject);
        other.is_some_and(|(_, other)| other != value)
    })
}

/// Returns why a later statement about the same thing takes an earlier one back, other than by a new value. `changed` is
/// whether its values differ.
fn takes_back(earlier: &Statement, later: &Statement, changed: bool) -> Option<Why> {
    let says_other = !later.terms.is_subset(&earlier.terms);
    let repeats_value = !earlier.values.is_empty() && earlier.values == later.values;
    let leaves_out = !earlier.terms.is_subset(&later.terms)
        || !earlier.values.is_empty() && later.values.is_empty();
    if later.strong && says_other && !repeats_value && leaves_out {
        return Some(Why::Instead);
    }
    if later.drop && !earlier.drop && !earlier.negated {
        return Some(Why::Dropped);
    }
    (!changed && later.negated != earlier.negated && !earlier.drop).then_some(Why::Opposite)
}
