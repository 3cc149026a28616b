//! `cargo xtask fit-changes [--check | --dry-run] [--cross]`: fits the weights by which it is judged whether a sentence in
//! Japanese or Korean changes an earlier one, to the pairs of all authors but the held ones. `--cross` fits them also without a quarter
//! of the authors at a time, and prints how well these are judged.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use memory_model::NumberedSentence;

use super::{HELD, Pair};
use crate::mode::Mode;

const WEIGHTS: &str = "crates/memory-model/src/numbered/weights.txt";
const COMMAND: &str = "cargo xtask fit-changes";
/// Beginning of the names of authors who were asked for numbers. Their pairs count three times, since others also wrote pairs
/// in which the numbers do not matter.
const NUMBERS: &str = "n-";
/// Counts of the pairs of these authors, of other pairs, and the factor of pairs by chance: statements of two pairs of one author.
const COUNTS: (f64, f64, f64) = (3.0, 1.0, 0.3);
/// Places of the other pair of a pair by chance.
const CHANCE: [usize; 3] = [7, 31, 101];
/// Number of grams with weights, and minimum number of pairs in which one is.
const GRAMS: usize = 800;
const FEWEST: f64 = 5.0;
/// Number of products of two features with weights, and minimum shares of pairs in which a feature and a product are not 0.
const PRODUCTS: usize = 60;
const OFTEN: (f64, f64) = (0.03, 0.01);
/// Penalties on the squares of the weights of features and grams, and of products: of a few, the best ones on other authors.
const PENALTY: (f64, f64) = (10.0 / 3.0, 37.0);
/// Number of passes over all weights. They have converged to two digits.
const PASSES: usize = 40;
/// Probabilities above which a pair is told to be a change, in the printed counts: next to the earlier statement, and anywhere.
/// Other conditions for a change are not counted.
const TOLD: (f64, f64) = (0.6, 0.9);
const FOLDS: usize = 4;

/// Two statements with their features.
struct Example<'t> {
    author: &'t str,
    is_change: bool,
    is_chance: bool,
    features: BTreeMap<String, f64>,
}

/// Fitted weights by the names of features, of products as `ONE*OTHER`, and of grams as `+GRAM` and `-GRAM`.
type Weights = BTreeMap<String, f64>;

pub(super) fn run(flags: &[String], pairs: &[Pair<'_>]) -> anyhow::Result<()> {
    let (cross, flags): (Vec<_>, Vec<_>) =
        flags.iter().cloned().partition(|flag| flag == "--cross");
    let mode = Mode::from_flags(&flags)?;
    let examples = examples(pairs);
    let (held, own): (Vec<_>, Vec<_>) = examples
        .iter()
        .partition(|one| one.author.starts_with(HELD));
    let authors: BTreeSet<&str> = own.iter().map(|one| one.author).collect();
    println!("{} pairs of {} authors", own.len(), authors.len());
    if !cross.is_empty() {
        let mut judged = Vec::new();
        for fold in 0..FOLDS {
            let in_fold: BTreeSet<&str> =
                authors.iter().skip(fold).step_by(FOLDS).copied().collect();
            let (left, rest): (Vec<_>, Vec<_>) =
                own.iter().partition(|one| in_fold.contains(one.author));
            let weights = fit(&rest);
            judged.extend(left.into_iter().map(|one| (one, one.probability(&weights))));
        }
        let numbers = judged
            .iter()
            .filter(|(one, _)| one.author.starts_with(NUMBERS));
        report("left out", numbers.copied());
    }
    let weights = fit(&own);
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
    let mut add = |author, earlier: &str, later: &str, is_change, is_chance| {
        if let Some(features) = NumberedSentence::features(earlier, later) {
            let features = features
                .into_iter()
                .filter(|(_, value)| *value != 0.0)
                .collect();
            out.push(Example {
                author,
                is_change,
                is_chance,
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
        let side = usize::from(one.is_change);
        if one.is_chance {
            chance[0] += 1;
            chance[1] += u32::from(probability >= TOLD.0);
            chance[2] += u32::from(probability >= TOLD.1);
        } else {
            pairs[side] += 1;
            wrong[side] += u32::from((probability >= TOLD.0) != one.is_change);
        }
    }
    println!(
        "  {which}: {} of {} false, {} of {} missed; of {} by chance {} are changes next to the earlier one, {} anywhere",
        wrong[0], pairs[0], wrong[1], pairs[1], chance[0], chance[1], chance[2]
    );
}

impl Example<'_> {
    fn is_gram(name: &str) -> bool {
        name.starts_with(['+', '-'])
    }

    fn count(&self) -> f64 {
        let count = if self.author.starts_with(NUMBERS) {
            COUNTS.0
        } else {
            COUNTS.1
        };
        if self.is_chance {
            count * COUNTS.2
        } else {
            count
        }
    }

    fn value(&self, name: &str) -> f64 {
        let own = |name: &str| self.features.get(name).copied().unwrap_or(0.0);
        match name.split_once('*') {
            Some((one, other)) if !Self::is_gram(name) => own(one) * own(other),
            _ => own(name),
        }
    }

    fn probability(&self, weights: &Weights) -> f64 {
        let score = weights
            .iter()
            .map(|(name, weight)| self.value(name) * weight);
        1.0 / (1.0 + (-score.sum::<f64>()).exp())
    }
}

/// Fits the weights of all features, of the grams that tell most, and of the products with the largest weights.
fn fit(examples: &[&Example<'_>]) -> Weights {
    let features: BTreeSet<&str> = names(examples)
        .filter(|name| !Example::is_gram(name))
        .collect();
    let own: Vec<String> = features
        .iter()
        .map(|name| (*name).to_owned())
        .chain(telling_grams(examples))
        .collect();
    let share = |name: &str| {
        examples.iter().filter(|one| one.value(name) != 0.0).count() as f64
            / examples.len().max(1) as f64
    };
    let often: Vec<&str> = features
        .iter()
        .copied()
        .filter(|name| *name != "bias" && share(name) > OFTEN.0)
        .collect();
    let products = often.iter().enumerate().flat_map(|(n, one)| {
        often
            .iter()
            .skip(n + 1)
            .map(move |other| format!("{one}*{other}"))
    });
    let products: Vec<String> = products
        .filter(|product| share(product) > OFTEN.1)
        .collect();
    let all = descend(examples, own.iter().chain(&products).cloned().collect());
    let mut products: Vec<(f64, String)> = products
        .into_iter()
        .map(|name| (all.get(&name).map_or(0.0, |weight| weight.abs()), name))
        .collect();
    products.sort_by(|one, other| other.0.total_cmp(&one.0));
    let products = products.into_iter().take(PRODUCTS).map(|(_, name)| name);
    descend(examples, own.into_iter().chain(products).collect())
}

fn names<'e>(examples: &'e [&Example<'_>]) -> impl Iterator<Item = &'e str> {
    examples
        .iter()
        .flat_map(|one| one.features.keys())
        .map(String::as_str)
}

/// Returns the grams with which the share of changes differs most from that of all pairs, in standard errors.
fn telling_grams(examples: &[&Example<'_>]) -> Vec<String> {
    let mut all = [1.0, 1.0];
    let mut with: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
    for one in examples.iter().filter(|one| !one.is_chance) {
        let side = usize::from(one.is_change);
        all[side] += 1.0;
        for gram in one.features.keys().filter(|name| Example::is_gram(name)) {
            with.entry(gram).or_insert([0.5; 2])[side] += 1.0;
        }
    }
    let with = with
        .into_iter()
        .filter(|(_, [none, change])| none + change > FEWEST);
    let mut told: Vec<(f64, &str)> = with
        .map(|(gram, [none, change])| {
            let ratio = (change / all[1]) / (none / all[0]);
            (ratio.ln().abs() / (1.0 / none + 1.0 / change).sqrt(), gram)
        })
        .collect();
    told.sort_by(|one, other| other.0.total_cmp(&one.0));
    told.into_iter()
        .take(GRAMS)
        .map(|(_, gram)| gram.to_owned())
        .collect()
}

/// Fits a logistic model with penalties on the squares of all weights but that of `bias`, by Newton's method for one weight
/// after the other.
fn descend(examples: &[&Example<'_>], names: Vec<String>) -> Weights {
    let column = |name: &String| -> Vec<(usize, f64)> {
        let values = examples
            .iter()
            .enumerate()
            .map(|(n, one)| (n, one.value(name)));
        values.filter(|(_, value)| *value != 0.0).collect()
    };
    let columns: Vec<Vec<(usize, f64)>> = names.iter().map(column).collect();
    let counts: Vec<f64> = examples.iter().map(|one| one.count()).collect();
    let is_change: Vec<f64> = examples
        .iter()
        .map(|one| f64::from(u8::from(one.is_change)))
        .collect();
    let mut scores = vec![0.0_f64; examples.len()];
    let mut weights = vec![0.0_f64; names.len()];
    for _ in 0..PASSES {
        for ((name, column), weight) in names.iter().zip(&columns).zip(&mut weights) {
            let is_product = !Example::is_gram(name) && name.contains('*');
            let penalty = match () {
                () if name == "bias" => 1e-6,
                () if is_product => PENALTY.1,
                () => PENALTY.0,
            };
            let (mut slope, mut curvature) = (penalty * *weight, penalty);
            for (n, value) in column {
                let probability = 1.0 / (1.0 + (-scores[*n]).exp());
                slope += counts[*n] * (probability - is_change[*n]) * value;
                curvature += counts[*n] * probability * (1.0 - probability) * value * value;
            }
            let step = (-slope / curvature).clamp(-1.0, 1.0);
            *weight += step;
            for (n, value) in column {
                scores[*n] += step * value;
            }
        }
    }
    names.into_iter().zip(weights).collect()
}
