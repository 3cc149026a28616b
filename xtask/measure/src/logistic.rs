//! Fits a logistic model to examples: weights of features, of products of two features, and of grams.

use std::collections::{BTreeMap, BTreeSet};

/// Weights by the names of features, of products as `ONE*OTHER`, and of grams. Names of grams begin with `+` or `-`.
pub(crate) type Weights = BTreeMap<String, f64>;

/// An example to which weights are fitted.
pub(crate) struct Example<'t> {
    /// Examples of one group are never apart when the model is judged.
    pub(crate) group: &'t str,
    /// How often the example counts.
    pub(crate) count: f64,
    /// Whether the example is of the kind that the model tells.
    pub(crate) is_so: bool,
    /// Whether the example counts when grams are chosen.
    pub(crate) chooses: bool,
    /// Features that are not 0.
    pub(crate) features: BTreeMap<String, f64>,
}

/// Size of a model, and how it is fitted.
pub(crate) struct Shape {
    /// Number of grams with weights, and minimum number of examples in which one is.
    pub(crate) grams: usize,
    pub(crate) fewest: f64,
    /// Number of products with weights, and minimum shares of examples in which a feature and a product are not 0.
    pub(crate) products: usize,
    pub(crate) often: (f64, f64),
    /// Penalties on the squares of the weights of features and grams, and of products.
    pub(crate) penalty: (f64, f64),
    /// Number of passes over all weights.
    pub(crate) passes: usize,
}

/// Returns the probabilities of examples by weights that are fitted without the groups of their part: every n-th group, for each
/// of n parts.
pub(crate) fn cross<'e, 't>(
    examples: &[&'e Example<'t>],
    parts: usize,
    shape: &Shape,
) -> Vec<(&'e Example<'t>, f64)> {
    let groups: BTreeSet<&str> = examples.iter().map(|one| one.group).collect();
    let mut judged = Vec::new();
    for part in 0..parts {
        let own: BTreeSet<&str> = groups.iter().skip(part).step_by(parts).copied().collect();
        let (left, rest): (Vec<_>, Vec<_>) = examples
            .iter()
            .copied()
            .partition(|one| own.contains(one.group));
        let weights = fit(&rest, shape);
        judged.extend(left.into_iter().map(|one| (one, one.probability(&weights))));
    }
    judged
}

fn is_gram(name: &str) -> bool {
    name.starts_with(['+', '-'])
}

/// Returns the names of two features, if a name is that of their product.
fn product(name: &str) -> Option<(&str, &str)> {
    name.split_once('*').filter(|_| !is_gram(name))
}

impl Example<'_> {
    fn value(&self, name: &str) -> f64 {
        let own = |name: &str| self.features.get(name).copied().unwrap_or(0.0);
        match product(name) {
            Some((one, other)) => own(one) * own(other),
            None => own(name),
        }
    }

    /// Returns the probability of the example by fitted weights.
    pub(crate) fn probability(&self, weights: &Weights) -> f64 {
        let score = weights
            .iter()
            .map(|(name, weight)| self.value(name) * weight);
        probability(score.sum())
    }
}

fn probability(score: f64) -> f64 {
    1.0 / (1.0 + (-score).exp())
}

/// Fits the weights of all features, of the grams that tell most, and of the products with the largest weights.
pub(crate) fn fit(examples: &[&Example<'_>], shape: &Shape) -> Weights {
    let names = examples.iter().flat_map(|one| one.features.keys());
    let features: BTreeSet<&str> = names
        .map(String::as_str)
        .filter(|name| !is_gram(name))
        .collect();
    let own: Vec<String> = features
        .iter()
        .map(|name| (*name).to_owned())
        .chain(telling_grams(examples, shape))
        .collect();
    let share = |name: &str| {
        examples.iter().filter(|one| one.value(name) != 0.0).count() as f64
            / examples.len().max(1) as f64
    };
    let often: Vec<&str> = features
        .iter()
        .copied()
        .filter(|name| *name != "bias" && share(name) > shape.often.0)
        .collect();
    let products = often.iter().enumerate().flat_map(|(n, one)| {
        often
            .iter()
            .skip(n + 1)
            .map(move |other| format!("{one}*{other}"))
    });
    let products: Vec<String> = products
        .filter(|product| share(product) > shape.often.1)
        .collect();
    let all = descend(
        examples,
        shape,
        own.iter().chain(&products).cloned().collect(),
    );
    let mut products: Vec<(f64, String)> = products
        .into_iter()
        .map(|name| (all.get(&name).map_or(0.0, |weight| weight.abs()), name))
        .collect();
    products.sort_by(|one, other| other.0.total_cmp(&one.0));
    let products = products.into_iter().map(|(_, name)| name);
    let names = own.into_iter().chain(products.take(shape.products));
    descend(examples, shape, names.collect())
}

/// Returns the grams with which the share of examples that are so differs most from that of all, in standard errors.
fn telling_grams(examples: &[&Example<'_>], shape: &Shape) -> Vec<String> {
    let mut all = [1.0, 1.0];
    let mut with: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
    for one in examples.iter().filter(|one| one.chooses) {
        let side = usize::from(one.is_so);
        all[side] += 1.0;
        for gram in one.features.keys().filter(|name| is_gram(name)) {
            with.entry(gram).or_insert([0.5; 2])[side] += 1.0;
        }
    }
    let with = with
        .into_iter()
        .filter(|(_, [none, so])| none + so > shape.fewest);
    let mut told: Vec<(f64, &str)> = with
        .map(|(gram, [none, so])| {
            let ratio = (so / all[1]) / (none / all[0]);
            (ratio.ln().abs() / (1.0 / none + 1.0 / so).sqrt(), gram)
        })
        .collect();
    told.sort_by(|one, other| other.0.total_cmp(&one.0));
    told.into_iter()
        .take(shape.grams)
        .map(|(_, gram)| gram.to_owned())
        .collect()
}

/// Fits weights with penalties on the squares of all but that of `bias`, by Newton's method for one weight after the other.
fn descend(examples: &[&Example<'_>], shape: &Shape, names: Vec<String>) -> Weights {
    let places: BTreeMap<&str, usize> = names
        .iter()
        .enumerate()
        .map(|(n, name)| (name.as_str(), n))
        .collect();
    let mut columns: Vec<Vec<(usize, f64)>> = vec![Vec::new(); names.len()];
    for (n, one) in examples.iter().enumerate() {
        for (name, value) in &one.features {
            if let Some(column) = places
                .get(name.as_str())
                .and_then(|at| columns.get_mut(*at))
            {
                column.push((n, *value));
            }
        }
    }
    for (name, column) in names.iter().zip(&mut columns) {
        if product(name).is_some() {
            let values = examples.iter().enumerate();
            let values = values.map(|(n, one)| (n, one.value(name)));
            column.extend(values.filter(|(_, value)| *value != 0.0));
        }
    }
    let mut scores = vec![0.0_f64; examples.len()];
    let mut weights = vec![0.0_f64; names.len()];
    for _ in 0..shape.passes {
        for ((name, column), weight) in names.iter().zip(&columns).zip(&mut weights) {
            let penalty = match () {
                () if name == "bias" => 1e-6,
                () if product(name).is_some() => shape.penalty.1,
                () => shape.penalty.0,
            };
            let (mut slope, mut curvature) = (penalty * *weight, penalty);
            for (n, value) in column {
                let (one, probability) = (examples[*n], probability(scores[*n]));
                let is_so = f64::from(u8::from(one.is_so));
                slope += one.count * (probability - is_so) * value;
                curvature += one.count * probability * (1.0 - probability) * value * value;
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
