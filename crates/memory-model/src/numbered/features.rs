//! Features of two sentences, by which fitted weights judge whether the later one changes the earlier one.

use super::comparison::{Comparison, Names};
use super::lexicon::{cue, is_han};
use super::sentence::{CLOCK, CODE, Clause, DATE, HOUR, NumberedSentence, PLAIN, Value, WEEKDAY};
use super::shape::{LONGEST, Number, PHRASES, Shape, Word, common, is_number};
use super::weights::Feature;

/// Ratio above which the words of two sentences are alike.
const ALIKE: f64 = 0.6;

/// Meanings of phrases, with the names of their features: only the later sentence has such a phrase, both have one, and only
/// the earlier one.
const CUES: [([&str; 3], u16); 10] = [
    (["new-move", "both-move", "old-move"], cue::MOVES),
    (["new-now", "both-now", "old-now"], cue::NOW),
    (["new-rule", "both-rule", "old-rule"], cue::RULE),
    (["new-same", "both-same", "old-same"], cue::SAME),
    (["new-past", "both-past", "old-past"], cue::PAST),
    (["new-open", "both-open", "old-open"], cue::OPEN),
    (["new-drop", "both-drop", "old-drop"], cue::DROPS),
    (
        ["new-assigned", "both-assigned", "old-assigned"],
        cue::ASSIGNS,
    ),
    (
        ["new-negation", "both-negation", "old-negation"],
        cue::NEGATES,
    ),
    (["new-was", "both-was", "old-was"], cue::WAS),
];

impl Shape {
    /// Returns the features of the form of this sentence and an earlier one.
    pub(super) fn features(&self, earlier: &Self) -> Vec<Feature> {
        let later = self;
        let shared = later.shared(earlier);
        let differences = Differences::of(&earlier.tokens, &later.tokens);
        let is_alike = differences.ratio > ALIKE;
        let replaced = differences.replaced.len();
        let alike = |holds: bool| truth(is_alike && holds);
        let (subject, other) = (later.subject(), earlier.subject());
        let both = common(subject, other);
        let (new, old) = (&later.numbers, &earlier.numbers);
        let is_old = |one: &&Number| old.iter().any(|other| other.text == one.text);
        let early = |numbers: &'_ [Number]| numbers.iter().any(|one| one.is_early);
        let is_early_old = |one: &Number| {
            let mut early = old.iter().filter(|other| other.is_early);
            one.is_early && early.any(|other| other.text == one.text)
        };
        let early_differ = early(new) && early(old) && !new.iter().any(is_early_old);
        let none = Number::default();
        let (last, last_old) = (new.last().unwrap_or(&none), old.last().unwrap_or(&none));
        let last_differ = last.text != last_old.text;
        let several = new.len() > 1 && old.len() > 1;
        let text = |one: Option<&Number>| one.map(|one| one.text);
        let first_same = text(new.first()) == text(old.first());
        let one_each = new.len() == 1 && old.len() == 1 && last_differ;
        let same_name = new.iter().filter(|one| one.is_name).any(|one| {
            let mut names = old.iter().filter(|other| other.is_name);
            names.any(|other| other.text == one.text)
        });
        let unit = |one: &Number| one.unit != 0 && old.iter().any(|other| other.unit == one.unit);
        let first_terms = earlier.terms.get(..2).unwrap_or(&earlier.terms);
        let mut out = vec![
            ("bias", 1.0),
            // How much the tokens are alike, in order.
            ("ratio", differences.ratio),
            // If they are alike: one difference, several, the first one is of numbers, and how many are.
            ("one-difference", alike(replaced == 1)),
            ("differences", alike(replaced > 1)),
            (
                "first-in-number",
                alike(differences.replaced.first() == Some(&true)),
            ),
            (
                "in-numbers",
                alike(true) * upto(differences.replaced.iter().filter(|is| **is).count(), 3) / 2.0,
            ),
            // Terms of both, of the later one alone, and the first terms of the earlier one.
            ("shared", upto(shared, 6) / 3.0),
            ("own", upto(later.terms.len() - shared, 10) / 5.0),
            ("first", truth(common(first_terms, &later.terms) > 0)),
            (
                "later-within",
                truth(shared > 0 && shared == later.terms.len()),
            ),
            (
                "earlier-within",
                truth(shared > 0 && shared == earlier.terms.len()),
            ),
            // Terms before the first number.
            ("subject", ratio(both, subject.len() + other.len() - both)),
            (
                "other-subject",
                truth(!subject.is_empty() && !other.is_empty() && both == 0),
            ),
            // Numbers at the beginning, at the end, and all of them.
            ("early-differ", truth(early_differ)),
            ("last-differ", truth(last_differ)),
            (
                "last-differ-in-unit",
                truth(last_differ && last.unit != 0 && last.unit == last_old.unit),
            ),
            ("none-new", truth(new.iter().all(|one| is_old(&one)))),
            ("several", truth(several)),
            (
                "all-differ",
                truth(several && !new.iter().any(|one| is_old(&one))),
            ),
            (
                "only-last-differs",
                truth(several && first_same && last_differ),
            ),
            ("more", upto(new.len().saturating_sub(old.len()), 3) / 2.0),
            // Numbers that name by their form.
            ("same-name", truth(same_name)),
            (
                "one-name-differs",
                truth(one_each && (last.is_name || last_old.is_name)),
            ),
            (
                "one-label-differs",
                truth(one_each && last.label != 0 && last.label == last_old.label),
            ),
            ("unit", truth(new.iter().any(unit))),
        ];
        out.push(("quoted", truth(later.is_quoting)));
        out.push(("commas", upto(later.commas.into(), 3) / 2.0));
        if !later.is_read {
            out.extend(later.phrases(earlier));
            out.extend(later.quantities(earlier));
        }
        out
    }

    /// Returns features of the phrases of this sentence and an earlier one.
    fn phrases(&self, earlier: &Self) -> impl Iterator<Item = Feature> {
        let counts = self.phrases.into_iter().zip(earlier.phrases);
        PHRASES
            .iter()
            .zip(counts)
            .flat_map(|((more, both, _), (own, other))| {
                let by = upto(own.saturating_sub(other).into(), 3) / 2.0;
                [(*more, by), (*both, truth(own > 0 && other > 0))]
            })
    }

    /// Returns features of the quantities of this sentence and an earlier one.
    fn quantities(&self, earlier: &Self) -> [Feature; 3] {
        let comparable = |(dimension, _): &&(&'static str, i64)| {
            let mut others = earlier.quantities.iter();
            others.any(|(other, _)| other == dimension)
        };
        let both = self.quantities.iter().filter(comparable);
        let is_equal = |one: &(&'static str, i64)| earlier.quantities.contains(one);
        [
            ("equal-quantity", truth(both.clone().any(is_equal))),
            (
                "new-quantity",
                truth(both.clone().any(|one| !is_equal(one))),
            ),
            (
                "no-new-quantity",
                truth(both.clone().next().is_some() && both.clone().all(is_equal)),
            ),
        ]
    }
}

impl Comparison<'_> {
    /// Returns the features of two clauses.
    pub(super) fn features(&self) -> Vec<Feature> {
        let (after, before) = (self.after, self.before);
        let new = self.new_value();
        let is_comparable =
            |value: &Value| before.held().any(|other| value.is_comparable(other, true));
        let kind = new.map_or("none", |value| match value.dimension.as_str() {
            PLAIN => "plain",
            CLOCK | HOUR => "clock",
            DATE | WEEKDAY | "day" | "month" => "date",
            CODE => "code",
            dimension if dimension.starts_with("of ") => "label",
            dimension if dimension.starts_with("count ") || dimension.starts_with(is_han) => {
                "count"
            }
            _ => "measure",
        });
        let holds = |clause: &Clause| clause.held().next().is_some();
        let mut out = vec![
            ("names-none", truth(self.names == Names::None)),
            ("names-one", truth(self.names == Names::OneSided)),
            ("names-same", truth(self.names == Names::Same)),
            ("names-apart", truth(self.names == Names::Apart)),
            ("names-moved", truth(self.names == Names::Moved)),
            ("equal-value", truth(self.has_equal_value())),
            ("no-value-before", truth(!holds(before))),
            ("no-value-after", truth(!holds(after))),
            (
                "incomparable",
                truth(holds(before) && holds(after) && !after.held().any(is_comparable)),
            ),
            ("takes-back", truth(self.takes_back)),
            ("opposite", truth(self.are_opposite())),
            ("contrasts", truth(self.contrasts())),
            ("narrows", truth(self.narrows())),
            (
                "part",
                truth(after.heads.iter().any(|head| !before.terms.contains(head))),
            ),
            ("clause-shared", upto(self.shared, 6) / 3.0),
            ("clause-own", upto(self.own, 10) / 5.0),
            ("clause-others", upto(self.others, 10) / 5.0),
            ("clause-none-own", truth(self.own == 0)),
            ("clause-no-others", truth(self.others == 0)),
            ("negated", truth(after.negated)),
            ("denies", truth(after.negated != before.negated)),
        ];
        let kinds = [
            "plain", "clock", "date", "code", "label", "count", "measure",
        ];
        out.extend(kinds.map(|one| (one, truth(one == kind))));
        out
    }
}

fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

#[allow(clippy::cast_precision_loss, reason = "small counts")]
fn upto(count: usize, most: usize) -> f64 {
    count.min(most) as f64
}

#[allow(clippy::cast_precision_loss, reason = "small counts")]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Differences of two lists of tokens.
struct Differences {
    /// Share of the tokens that both have in the same order.
    ratio: f64,
    /// The places where each has other tokens, in order, and whether all of them are numbers.
    replaced: Vec<bool>,
}

impl Differences {
    fn of(earlier: &[Word], later: &[Word]) -> Self {
        // Length of the longest common subsequence of the rests from each place on.
        let mut common = [[0_u8; LONGEST + 1]; LONGEST + 1];
        let get = |common: &[[u8; LONGEST + 1]; LONGEST + 1], i: usize, j: usize| {
            common
                .get(i)
                .and_then(|row| row.get(j))
                .copied()
                .unwrap_or(0)
        };
        for (i, one) in earlier.iter().enumerate().rev() {
            for (j, other) in later.iter().enumerate().rev() {
                let length = match one == other {
                    true => get(&common, i + 1, j + 1) + 1,
                    false => get(&common, i + 1, j).max(get(&common, i, j + 1)),
                };
                if let Some(place) = common.get_mut(i).and_then(|row| row.get_mut(j)) {
                    *place = length;
                }
            }
        }
        let (mut i, mut j) = (0, 0);
        let (mut removed, mut added): (Vec<Word>, Vec<Word>) = (Vec::new(), Vec::new());
        let mut replaced = Vec::new();
        let mut close = |removed: &mut Vec<Word>, added: &mut Vec<Word>| {
            if !removed.is_empty() && !added.is_empty() {
                replaced.push(
                    removed
                        .iter()
                        .chain(added.iter())
                        .all(|token| is_number(*token)),
                );
            }
            removed.clear();
            added.clear();
        };
        loop {
            match (earlier.get(i), later.get(j)) {
                (Some(one), Some(other)) if one == other => {
                    close(&mut removed, &mut added);
                    (i, j) = (i + 1, j + 1);
                }
                (Some(one), Some(_)) if get(&common, i + 1, j) >= get(&common, i, j + 1) => {
                    removed.push(*one);
                    i += 1;
                }
                (Some(one), None) => {
                    removed.push(*one);
                    i += 1;
                }
                (_, Some(other)) => {
                    added.push(*other);
                    j += 1;
                }
                (None, None) => break,
            }
        }
        close(&mut removed, &mut added);
        let length = usize::from(get(&common, 0, 0));
        Self {
            ratio: ratio(2 * length, earlier.len() + later.len()),
            replaced,
        }
    }
}

/// Returns the features of two sentences with known words.
pub(super) fn sentence_features(
    later: &NumberedSentence,
    earlier: &NumberedSentence,
) -> Vec<Feature> {
    let mut out = vec![
        ("clauses", upto(later.clauses.len(), 4) / 2.0),
        ("clauses-before", upto(earlier.clauses.len(), 4) / 2.0),
    ];
    for (names, cue) in CUES {
        let [own, other] = [later, earlier].map(|one| one.cues & cue != 0);
        let values = [own && !other, own && other, !own && other];
        out.extend(names.into_iter().zip(values.map(truth)));
    }
    out
}
