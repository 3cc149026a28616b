use std::collections::BTreeMap;

use super::machine::{self, START, STATES};
use super::*;

type Pair = (u16, u16);

/// The most (or least) that the same text can weigh more when it is read from `from` than when it is read from the
/// start, apart from the pair that its first character makes: the longest path over pairs of states.
fn extremes(model: &Model, sign: i64) -> BTreeMap<u16, i64> {
    let weight = |state: u16, class: u8| sign * i64::from(model.counter_weight(state, class));
    let mut best: BTreeMap<Pair, i64> = BTreeMap::new();
    // Pairs that can be met.
    let mut todo: Vec<Pair> = (0..STATES as u16).map(|s| (s, START)).collect();
    while let Some(pair) = todo.pop() {
        if best.insert(pair, 0).is_none() {
            for class in 0..32 {
                let next = (machine::step(pair.0, class).0, machine::step(pair.1, class).0);
                if next.0 != next.1 && !best.contains_key(&next) {
                    todo.push(next);
                }
            }
        }
    }
    for _ in 0..200 {
        let mut changed = false;
        let before = best.clone();
        for (pair, value) in &mut best {
            for class in 0..32 {
                let next = (machine::step(pair.0, class).0, machine::step(pair.1, class).0);
                let rest = if next.0 == next.1 { 0 } else { before[&next] };
                let found = weight(pair.0, class) - weight(pair.1, class) + rest;
                if found > *value {
                    *value = found;
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    best.into_iter().filter(|((_, t), _)| *t == START).map(|((s, _), v)| (s, sign * v)).collect()
}

#[test]
fn show() {
    for model in [&O200K, &CL100K] {
        let (most, least) = (extremes(model, 1), extremes(model, -1));
        for s in 0..STATES as u16 {
            let (a, b) = (most[&s] as f64 / 4096.0, least[&s] as f64 / 4096.0);
            if a > 0.7 || b < -0.7 {
                println!("state {s}: {b:+.2} .. {a:+.2}");
            }
        }
        println!("--");
    }
}
