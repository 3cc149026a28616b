//! Fitted weights, by which it is judged whether a sentence changes an earlier one.
//!
//! A logistic model gives the probability of a change from the features of both sentences, from products of two of them, and
//! from the grams that only one of the sentences has. Its weights are in `weights.txt`, which `cargo xtask fit-changes` fits to
//! pairs of statements that authors invented.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

/// A feature with its name. Each is between 0 and 2.
pub(super) type Feature = (&'static str, f64);

/// The place of a gram among all of them.
pub(super) type Gram = u16;

/// The weights of features and of their products.
#[derive(Debug, Default)]
struct Weights {
    /// In the order of the features.
    of_features: Vec<f64>,
    /// The places of two features, and the weight of their product.
    of_products: Vec<(usize, usize, f64)>,
}

/// Known grams with their weights.
#[derive(Debug, Default)]
struct Grams {
    places: HashMap<&'static str, Gram>,
    /// By place: the weights of a gram that only the later sentence has, and that only the earlier one has.
    weights: Vec<[f64; 2]>,
}

/// Lines of the file: a name, and its weights.
fn lines() -> impl Iterator<Item = (&'static str, Vec<f64>)> {
    let lines = include_str!("weights.txt").lines();
    lines.filter_map(|line| {
        let (name, numbers) = line.split_once('\t')?;
        let numbers = numbers.split('\t').map(|one| one.parse().unwrap_or(0.0));
        Some((name, numbers.collect()))
    })
}

static GRAMS: LazyLock<Grams> = LazyLock::new(Grams::new);
/// Weights in the order of the features, which is always the same.
static WEIGHTS: OnceLock<Weights> = OnceLock::new();

impl Grams {
    fn new() -> Self {
        let mut out = Self::default();
        for (gram, weights) in lines() {
            let Ok(weights) = <[f64; 2]>::try_from(weights) else {
                continue;
            };
            let place = Gram::try_from(out.weights.len()).unwrap_or(Gram::MAX);
            out.places.insert(gram, place);
            out.weights.push(weights);
        }
        out
    }

    /// Returns the sum of the weights of the grams that only one of two sentences has.
    fn score(&self, later: &[Gram], earlier: &[Gram]) -> f64 {
        let sum = |own: &[Gram], others: &[Gram], side: usize| -> f64 {
            let only = own.iter().filter(|gram| !others.contains(gram));
            let weights = only.filter_map(|gram| self.weights.get(usize::from(*gram)));
            weights.filter_map(|weights| weights.get(side)).sum()
        };
        sum(later, earlier, 0) + sum(earlier, later, 1)
    }
}

impl Weights {
    fn new(features: &[Feature]) -> Self {
        let place = |name: &str| features.iter().position(|(one, _)| *one == name);
        let mut out = Self {
            of_features: vec![0.0; features.len()],
            ..Self::default()
        };
        for (name, weights) in lines() {
            let [weight] = weights[..] else { continue };
            match name.split_once('*') {
                Some((one, other)) => {
                    let places = place(one).zip(place(other));
                    out.of_products
                        .extend(places.map(|(one, other)| (one, other, weight)));
                }
                None => {
                    if let Some(own) = place(name).and_then(|place| out.of_features.get_mut(place))
                    {
                        *own = weight;
                    }
                }
            }
        }
        out
    }
}

/// Returns the place of a gram that has weights.
pub(super) fn gram(text: &str) -> Option<Gram> {
    GRAMS.places.get(text).copied()
}

/// Returns the probability that a sentence changes an earlier one, from the features of both and from their grams.
pub(super) fn probability(features: &[Feature], later: &[Gram], earlier: &[Gram]) -> f64 {
    let weights = WEIGHTS.get_or_init(|| Weights::new(features));
    let value = |place: usize| features.get(place).map_or(0.0, |(_, value)| *value);
    let of_features = weights.of_features.iter().zip(features);
    let of_products = weights.of_products.iter();
    let score = of_features
        .map(|(weight, (_, value))| weight * value)
        .sum::<f64>()
        + of_products
            .map(|(one, other, weight)| weight * value(*one) * value(*other))
            .sum::<f64>()
        + GRAMS.score(later, earlier);
    1.0 / (1.0 + (-score).exp())
}
