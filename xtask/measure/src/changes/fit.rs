//! `cargo xtask fit-changes [--check | --dry-run] [--cross]`: fits the weights by which it is judged whether a sentence in
//! Japanese or Korean changes an earlier one, to the pairs of all authors but the held ones. `--cross` fits them also without a quarter
//! of the authors at a time, and prints how well these are judged.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use sentence_model::NumberedSentence;

use super::{HELD, Pair};
use crate::logistic::{self, Example, Shape};
use crate::mode::Mode;

const WEIGHTS: &str = "crates/sentence-model/src/numbered/weights.txt";
const COMMAND: &str = "cargo xtask fit-changes";
/// Beginning of the names of authors who were asked for numbers. Their pairs count three times, since others also wrote pairs
/// in which the numbers do not matter.
const NUMBERS: &str = "n-";
/// Counts of the pairs of these authors, of other pairs, and the factor of pairs by chance: statements of two pairs of one author.
const COUNTS: (f64, f64, f64) = (3.0, 1.0, 0.3);
/// Places of the other pair of a pair by chance.
const CHANCE: [usize; 3] = [7, 31, 101];
/// The best penalties, of a few, on other authors; the weights have converged to two digits.
const SHAPE: Shape = Shape {
    grams: 800,
    fewest: 5.0,
    products: 60,
    often: (0.03, 0.01),
    penalty: (10.0 / 3.0, 37.0),
    passes: 40,
};
/// Probabilities above which a pair is told to be a change, in the printed counts: next to the earlier statement, and anywhere.
/// Other conditions for a change are not counted.
const TOLD: (f64, f64) = (0.6, 0.9);
const FOLDS: usize = 4;

pub(super) fn run(flags: &[String], pairs: &[Pair<'_>]) -> anyhow::Result<()> {
    let (cross, flags): (Vec<_>, Vec<_>) =
        flags.iter().cloned().partition(|flag| flag == "--cross");
    let mode = Mode::from_flags(&flags)?;
    let examples = examples(pairs);
    let (held, own): (Vec<_>, Vec<_>) =
        examples.iter().partition(|one| one.group.starts_with(HELD));
    let authors: BTreeSet<&str> = own.iter().map(|one| one.group).collect();
    println!("{} pairs of {} authors", own.len(), authors.len());
    if !cross.is_empty() {
        let judged = logistic::cross(&own, FOLDS, &SHAPE);
        let numbers = judged
            .iter()
            .filter(|(one, _)| one.group.starts_with(NUMBERS));
        report("left out", numbers.copied());
    }
    let weights = logistic::fit(&own, &SHAPE);
    report(
        "held",
        held.iter().map(|one| (*one, one.probability(&weights))),
    );
    let mut text = String::from(
        "# Weights of a logistic model, fitted by `cargo xtask fit-changes` to the pairs in xtask/measure/src/changes/pairs.tsv in Japanese\n\
         # and Korean with digits in both statements: a feature or product of two features with its weight, or a gram with the weights\n\
         # that it has if only the later statement has it, and if only the earlier one has it.\n",
    );
    let mut grams: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
    for (feature, weight) in &weights {
        match (feature.strip_prefix('+'), feature.strip_prefix('-')) {
            (Some(gram), _) => grams.entry(gram).or_default()[0] = *weight,
            (_, Some(gram)) => grams.entry(gram).or_default()[1] = *weight,
            _ => {
                let _ = writeln!(text, "{feature}\t{weight:.2}");
            }
        }
    }
    for (gram, [later, earlier]) in grams {
        let _ = writeln!(text, "{gram}\t{later:.2}\t{earlier:.2}");
    }
    mode.apply(WEIGHTS, &text, COMMAND)
}

/// Returns the pairs in Japanese and Korean with digits, and pairs by chance.
fn examples<'t>(pairs: &[Pair<'t>]) -> Vec<Example<'t>> {
    let mut out = Vec::new();
    let mut add = |author: &'t str, earlier: &str, later: &str, is_change, is_chance| {
        if let Some(features) = NumberedSentence::features(earlier, later) {
            let features = features
                .into_iter()
                .filter(|(_, value)| *value != 0.0)
                .collect();
            let count = match author.starts_with(NUMBERS) {
                true => COUNTS.0,
                false => COUNTS.1,
            };
            out.push(Example {
                group: author,
                count: if is_chance { count * COUNTS.2 } else { count },
                is_so: is_change,
                chooses: !is_chance,
                features,
            });
        }
    };
    let mut by_author: BTreeMap<_, Vec<&Pair<'t>>> = BTreeMap::new();
    for pair in pairs {
        by_author
            .entry((pair.author, pair.language))
            .or_default()
            .push(pair);
        add(pair.author, pair.earlier, pair.later, pair.is_change, false);
    }
    for ((author, _), own) in by_author {
        for (n, pair) in own.iter().enumerate() {
            for places in CHANCE {
                if let Some(other) = own.get((n + places) % own.len())
                    && other.later != pair.later
                {
                    add(author, pair.earlier, other.later, false, true);
                }
            }
        }
    }
    out
}

fn report<'e>(which: &str, judged: impl Iterator<Item = (&'e Example<'e>, f64)>) {
    let (mut pairs, mut wrong, mut chance) = ([0_u32; 2], [0_u32; 2], [0_u32; 3]);
    for (one, probability) in judged {
        let side = usize::from(one.is_so);
        if !one.chooses {
            chance[0] += 1;
            chance[1] += u32::from(probability >= TOLD.0);
            chance[2] += u32::from(probability >= TOLD.1);
        } else {
            pairs[side] += 1;
            wrong[side] += u32::from((probability >= TOLD.0) != one.is_so);
        }
    }
    println!(
        "  {which}: {} of {} false, {} of {} missed; of {} by chance {} are changes next to the earlier one, {} anywhere",
        wrong[0], pairs[0], wrong[1], pairs[1], chance[0], chance[1], chance[2]
    );
}
