//! Fitted weights of the model of rules.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

struct Weights {
    of_features: HashMap<&'static str, f64>,
    of_products: Vec<(&'static str, &'static str, f64)>,
}

static WEIGHTS: LazyLock<Weights> = LazyLock::new(|| {
    let lines = include_str!("weights.txt").lines();
    let lines = lines.filter_map(|line| line.split_once('\t'));
    let (mut of_features, mut of_products) = (HashMap::new(), Vec::new());
    for (name, weight) in lines {
        let weight: f64 = weight.parse().unwrap_or(0.0);
        match name.split_once('*').filter(|_| !name.starts_with('+')) {
            Some((one, other)) => of_products.push((one, other, weight)),
            None => drop(of_features.insert(name, weight)),
        }
    }
    Weights {
        of_features,
        of_products,
    }
});

/// Returns the probability for the features of a sentence.
pub(super) fn probability(features: &BTreeMap<String, f64>) -> f64 {
    let value = |name: &str| features.get(name).copied().unwrap_or(0.0);
    let of_features = features.iter().map(|(name, value)| {
        value
            * WEIGHTS
                .of_features
                .get(name.as_str())
                .copied()
                .unwrap_or(0.0)
    });
    let of_products = WEIGHTS.of_products.iter();
    let of_products = of_products.map(|(one, other, weight)| weight * value(one) * value(other));
    let score: f64 = of_features.chain(of_products).sum();
    1.0 / (1.0 + (-score).exp())
}
