//! Two sentences with numbers, and how likely it is that the later one changes the earlier one.
//!
//! Rules judge it first. Fitted weights find further changes, but not where the form of the later sentence says of itself that
//! nothing changes.

use std::ops::Range;

use super::comparison::{Comparison, Names};
use super::features::sentence_features;
use super::lexicon::cue;
use super::relation::NumberedRelation;
use super::sentence::{CODE, NumberedSentence, PLAIN, Value};
use super::shape::{Shape, grams};
use super::weights::{Feature, probability};

/// Minimum probability of a change by the sentence that directly follows, and by any later one, in languages with known
/// words, where rules find some changes before, and in others. `cargo xtask fit-changes` prints how many pairs of statements by
/// chance reach such probabilities.
const READ: (f64, f64) = (0.7, 0.9);
const OTHER: (f64, f64) = (0.6, 0.8);
/// Minimum number of terms that both sentences have, for a change by any later sentence. The same numbered thing is one, and a
/// word of change.
const SHARED: usize = 2;

impl NumberedSentence {
    /// Returns how this sentence relates to an earlier one.
    ///
    /// Rules decide for sentences with known words, and fitted weights find further changes. A sentence in Japanese or
    /// Korean is compared only with another one in these languages, by weights alone.
    pub fn relation_to(&self, earlier: &Self) -> NumberedRelation {
        use NumberedRelation::{Changed, ChangedIfNext, Unchanged, Undecided};
        let Some(pair) = Pair::of(self, earlier) else {
            return Undecided;
        };
        let new = pair.new_value();
        let in_part = earlier.clauses.len() > 1;
        let by_rules = match (pair.clauses(), &new) {
            (Some(_), _) => pair.by_rules(in_part),
            (None, Some(_)) => Unchanged,
            // The new value may be no number.
            (None, None) => Undecided,
        };
        if matches!(by_rules, Changed { .. }) {
            return by_rules;
        }
        match (pair.changes(), new, by_rules) {
            ((_, true), value, _) => Changed { value, in_part },
            (_, _, by_rules @ ChangedIfNext { .. }) => by_rules,
            ((true, _), Some(value), _) => ChangedIfNext { value },
            (_, _, by_rules) => by_rules,
        }
    }

    /// Returns the features by which weights judge whether a later text changes an earlier one, each with its name: those of
    /// both texts, and for each gram that only the later text has `+GRAM`, for each that only the earlier one has `-GRAM`. And
    /// whether the words of their languages are known. `None` unless both are in such languages, or neither, and have numbers, and
    /// if the form of the later one says of itself that nothing changes.
    ///
    /// The weights are fitted to these.
    pub fn features(earlier: &str, later: &str) -> Option<(Vec<(String, f64)>, bool)> {
        let [before, after] = [earlier, later].map(Self::read);
        let pair = Pair::of(&after, &before).filter(|pair| !pair.leaves_it())?;
        let mut out: Vec<(String, f64)> = Vec::new();
        out.extend(
            pair.features()
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value)),
        );
        let is_read = pair.later.1.is_read;
        let [before, after] = [earlier, later].map(|text| grams(text, is_read));
        out.extend(
            after
                .difference(&before)
                .map(|gram| (format!("+{gram}"), 1.0)),
        );
        out.extend(
            before
                .difference(&after)
                .map(|gram| (format!("-{gram}"), 1.0)),
        );
        Some((out, is_read))
    }
}

/// Two sentences with numbers that can be compared.
struct Pair<'s> {
    later: (&'s NumberedSentence, &'s Shape),
    earlier: (&'s NumberedSentence, &'s Shape),
    /// All pairs of their clauses, but none in languages without known words.
    all: Vec<Comparison<'s>>,
    /// The place of the clauses that have most in common.
    nearest: usize,
}

impl<'s> Pair<'s> {
    fn of(later: &'s NumberedSentence, earlier: &'s NumberedSentence) -> Option<Self> {
        let (after, before) = (later.shape.as_deref()?, earlier.shape.as_deref()?);
        if after.is_read != before.is_read {
            return None;
        }
        let befores = earlier.clauses.iter().filter(|_| after.is_read);
        let all = befores.flat_map(|before| {
            let own = later.clauses.iter();
            own.map(move |after| Comparison::new(later, earlier, after, before))
        });
        let all: Vec<Comparison<'_>> = all.collect();
        let likeness = |(_, one): &(usize, &Comparison<'_>)| one.likeness();
        let nearest = all.iter().enumerate().max_by_key(likeness);
        Some(Self {
            later: (later, after),
            earlier: (earlier, before),
            nearest: nearest.map_or(0, |(n, _)| n),
            all,
        })
    }

    /// Returns how the sentences relate by their clauses, of which the one that says most decides. `in_part` says whether the
    /// earlier sentence has several.
    fn by_rules(&self, in_part: bool) -> NumberedRelation {
        let relations = self.all.iter().map(|comparison| match comparison.names {
            Names::Apart => NumberedRelation::Unchanged,
            _ => comparison.relation(in_part),
        });
        let first = relations.reduce(|one, other| match other.rank() > one.rank() {
            true => other,
            false => one,
        });
        first.unwrap_or(NumberedRelation::Undecided)
    }

    fn clauses(&self) -> Option<&Comparison<'s>> {
        self.all.get(self.nearest)
    }

    fn features(&self) -> Vec<Feature> {
        let ((later, after), (earlier, before)) = (self.later, self.earlier);
        let mut out = after.features(before);
        if let Some(clauses) = self.clauses() {
            out.extend(clauses.features());
            out.extend(sentence_features(later, earlier));
        }
        out
    }

    fn probability(&self) -> f64 {
        let (after, before) = (self.later.1, self.earlier.1);
        probability(after.is_read, &self.features(), &after.grams, &before.grams)
    }

    /// Returns whether the later sentence likely changes the earlier one if it directly follows it, and wherever it is.
    fn changes(&self) -> (bool, bool) {
        let (is_near, is_about) = (self.has_words_in_common(), self.is_about_one_thing());
        if !is_near && !is_about || self.leaves_it() {
            return (false, false);
        }
        let probability = self.probability();
        let (next, any) = if self.later.1.is_read { READ } else { OTHER };
        (
            is_near && probability >= next,
            is_about && probability >= any,
        )
    }

    /// Returns whether the form of the later sentence says that the earlier one still holds, or that it is about another
    /// property, whatever else the sentences have in common.
    fn leaves_it(&self) -> bool {
        let Some(clauses) = self.clauses() else {
            return false;
        };
        let (cues, before) = (self.later.0.cues, self.earlier.0.cues);
        let has = |cue: u16| cues & cue != 0;
        let (new, moves) = (clauses.new_value(), has(cue::MOVES));
        let asks = (cues | before) & cue::OPEN != 0;
        let was = has(cue::PAST) && !moves && !has(cue::NOW) || before & cue::PAST != 0;
        let is_past = was && new.is_some();
        let is_again = has(cue::SAME) && !moves && !has(cue::DROPS);
        let is_equal = clauses.has_equal_value() && new.is_none() && !moves;
        let is_opposite = clauses.are_opposite() && !clauses.takes_back;
        // `Chapter 7` after `chapter 3` is the next one, unless it is told that something changes.
        let is_named = clauses.names != Names::Same && new.is_some_and(Value::may_number);
        let is_next = clauses.names == Names::Apart || is_named && !self.is_told();
        // Nothing is fitted to sentences in other languages.
        let is_foreign = (cues | before) & cue::FOREIGN != 0;
        let is_apart = is_opposite || is_next || clauses.are_far_apart();
        is_foreign || asks || is_past || is_again || is_equal || is_apart
    }

    /// Returns whether the later sentence has a phrase of change.
    fn is_told(&self) -> bool {
        let told = cue::MOVES | cue::NOW | cue::RULE | cue::DROPS;
        self.later.0.cues & told != 0 || self.clauses().is_some_and(|one| one.takes_back)
    }

    /// Returns whether the sentences have a word in common, or the later one has no other words than the earlier one.
    fn has_words_in_common(&self) -> bool {
        match self.clauses() {
            Some(clauses) => {
                let is_same = clauses.names == Names::Same || clauses.takes_back;
                is_same || clauses.shared > 0 || clauses.own == 0
            }
            None => self.later.1.shared(self.earlier.1) > 0,
        }
    }

    /// Returns whether the sentences have enough in common to be about one thing wherever they are. Neighbours need less.
    fn is_about_one_thing(&self) -> bool {
        let Some(clauses) = self.clauses() else {
            return self.later.1.shared(self.earlier.1) >= SHARED;
        };
        let is_same = clauses.names == Names::Same;
        let moves = clauses.shared > 0 && self.later.0.cues & (cue::MOVES | cue::DROPS) != 0;
        let shared = usize::from(is_same) + usize::from(moves) + clauses.shared;
        let is_part = !is_same && (clauses.contrasts() || clauses.narrows());
        let may_number = clauses
            .new_value()
            .is_some_and(|value| value.may_number() || value.dimension == PLAIN);
        let is_named = !is_same && !self.is_told() && may_number;
        clauses.names != Names::OneSided && !is_part && !is_named && shared >= SHARED
    }

    /// Returns the place of the value in the later sentence that the earlier one does not have.
    fn new_value(&self) -> Option<Range<usize>> {
        match self.clauses() {
            Some(clauses) => clauses.new_value().map(|value| value.range.clone()),
            None => self.later.1.new_number(self.earlier.1),
        }
    }
}

impl Value {
    /// Returns whether the number may number a thing, as in `room 5`, and does not measure or count.
    fn may_number(&self) -> bool {
        self.dimension == CODE || self.dimension.starts_with("of ")
    }
}
