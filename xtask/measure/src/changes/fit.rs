//! `cargo xtask fit-changes [--check | --dry-run]`: fits the weights by which sentences in Japanese and Korean are judged, to the
//! pairs of all authors but the held ones.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::Context as _;
use memory_model::{FEATURES, NumberedRelation, NumberedSentence};

use super::{HELD, Pair};
use crate::mode::Mode;

const WEIGHTS: &str = "crates/memory-model/src/numbered/weights.txt";
const COMMAND: &str = "cargo xtask fit-changes";
/// Penalties on the squares of the weights, of which the best one on other authors is used.
const PENALTIES: [f64; 5] = [0.3, 1.0, 3.0, 10.0, 30.0];
/// Number of steps of Newton's method. It has converged after about eight.
const STEPS: usize = 20;
/// Probability above which a pair is told to be a change in the printed counts.
const TOLD: f64 = 0.7;

/// Number of following pairs with whose later statements an earlier one is compared by chance.
const NEIGHBOURS: usize = 100;

type Features = [f64; FEATURES];

/// A pair with its features.
struct Example<'t> {
    author: &'t str,
    features: Features,
    is_change: bool,
}

pub(super) fn run(flags: &[String], pairs: &[Pair<'_>]) -> anyhow::Result<()> {
    let mode = Mode::from_flags(flags)?;
    let examples = pairs.iter().filter_map(|pair| {
        let [earlier, later] = [pair.earlier, pair.later].map(NumberedSentence::read);
        Some(Example {
            author: pair.author,
            features: later.features(&earlier)?.map(|(_, feature)| feature),
            is_change: pair.is_change,
        })
    });
    let (held, all): (Vec<_>, Vec<_>) = examples.partition(|one| one.author.starts_with(HELD));
    let authors: BTreeSet<&str> = all.iter().map(|one| one.author).collect();
    let loss = |penalty: f64| -> f64 {
        let of = |author: &&str| {
            let (own, others): (Vec<_>, Vec<_>) = all.iter().partition(|one| one.author == *author);
            let weights = fit(&others, penalty);
            own.iter().map(|one| one.loss(&weights)).sum::<f64>()
        };
        authors.iter().map(of).sum()
    };
    let losses = PENALTIES.map(|penalty| (penalty, loss(penalty)));
    let best = losses
        .into_iter()
        .min_by(|one, other| one.1.total_cmp(&other.1));
    let (penalty, loss) = best.unwrap_or_default();
    let weights = fit(&all.iter().collect::<Vec<_>>(), penalty);
    let count = |wrong: bool| {
        held.iter()
            .filter(|one| one.is_change != wrong && (one.probability(&weights) > TOLD) == wrong)
            .count()
    };
    println!(
        "{} pairs of {} authors, penalty {penalty}, loss {:.3} a pair on other authors; of {} held pairs {} false, {} missed",
        all.len(),
        authors.len(),
        loss / all.len().max(1) as f64,
        held.len(),
        count(true),
        count(false)
    );
    println!("{}", by_chance(pairs));
    let mut text = String::from(
        "# Weights of a logistic model: a feature and its weight a line. Fitted by `cargo xtask fit-changes` to the pairs in\n\
         # xtask/measure/src/changes/pairs.tsv in Japanese and Korean with digits in both statements.\n",
    );
    let any = NumberedSentence::read("の1");
    let named = any.features(&any).context("the sentence has no features")?;
    for ((name, _), weight) in named.iter().zip(weights) {
        let _ = writeln!(text, "{name} {weight:.4}");
    }
    mode.apply(WEIGHTS, &text, COMMAND)
}

/// Returns how many pairs of statements of different pairs are told as changes.
fn by_chance(pairs: &[Pair<'_>]) -> String {
    let read = |text: &str| NumberedSentence::read(text);
    let [earlier, later]: [Vec<_>; 2] = [
        pairs.iter().map(|pair| read(pair.earlier)).collect(),
        pairs.iter().map(|pair| read(pair.later)).collect(),
    ];
    let (mut all, mut next, mut any) = (0_u32, 0_u32, 0_u32);
    for (n, earlier) in earlier.iter().enumerate() {
        for later in later.iter().skip(n + 1).take(NEIGHBOURS) {
            let is_judged = later.features(earlier).is_some();
            all += u32::from(is_judged);
            match later.relation_to(earlier) {
                NumberedRelation::Changed { .. } if is_judged => any += 1,
                NumberedRelation::ChangedIfNext { .. } if is_judged => next += 1,
                _ => {}
            }
        }
    }
    format!(
        "of {all} pairs by chance {any} are changes anywhere, {next} if one is next to the other"
    )
}

impl Example<'_> {
    fn probability(&self, weights: &Features) -> f64 {
        let score: f64 = self.features.iter().zip(weights).map(|(x, w)| x * w).sum();
        1.0 / (1.0 + (-score).exp())
    }

    fn loss(&self, weights: &Features) -> f64 {
        let probability = self.probability(weights);
        match self.is_change {
            true => -probability.ln(),
            false => -(1.0 - probability).ln(),
        }
    }
}

/// Fits a logistic model with a penalty on the squares of all weights but the first, by Newton's method.
fn fit(examples: &[&Example<'_>], penalty: f64) -> Features {
    let mut weights = [0.0; FEATURES];
    for _ in 0..STEPS {
        let mut gradient = weights.map(|weight| penalty * weight);
        gradient[0] = 0.0;
        let mut curvature = [[0.0; FEATURES]; FEATURES];
        for (n, row) in curvature.iter_mut().enumerate() {
            // A feature that no pair has must not make the system singular.
            row[n] = if n == 0 { 1e-6 } else { penalty };
        }
        for one in examples {
            let probability = one.probability(&weights);
            let error = probability - f64::from(u8::from(one.is_change));
            let weight = probability * (1.0 - probability);
            for (n, x) in one.features.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                gradient[n] += error * x;
                for (sum, y) in curvature[n].iter_mut().zip(&one.features) {
                    *sum += weight * x * y;
                }
            }
        }
        let step = solve(curvature, gradient);
        for (weight, step) in weights.iter_mut().zip(step) {
            *weight -= step;
        }
    }
    weights
}

/// Solves a system of linear equations with a positive definite matrix by elimination.
fn solve(mut matrix: [[f64; FEATURES]; FEATURES], mut right: Features) -> Features {
    for n in 0..FEATURES {
        let pivot = matrix[n];
        for row in n + 1..FEATURES {
            let factor = matrix[row][n] / pivot[n];
            for (value, from) in matrix[row].iter_mut().zip(pivot) {
                *value -= factor * from;
            }
            right[row] -= factor * right[n];
        }
    }
    let mut out = [0.0; FEATURES];
    for n in (0..FEATURES).rev() {
        let known: f64 = matrix[n]
            .iter()
            .zip(out)
            .skip(n + 1)
            .map(|(a, x)| a * x)
            .sum();
        out[n] = (right[n] - known) / matrix[n][n];
    }
    out
}
