//! The number of database statements of an operation does not grow with the forks of a session, and linearly with a chain
//! of forks.

use crate::branched::{SHAPES, Shape};
use crate::family::{Family, OPERATIONS};

/// Sizes at equal distances.
const SIZES: [usize; 3] = [3, 20, 37];

#[tokio::test]
async fn a_chain_of_forks_costs_statements_in_proportion_and_other_forks_cost_none() {
    for shape in SHAPES {
        let mut families = Vec::new();
        for size in SIZES {
            families.push(Family::new(shape, size).await);
        }
        for operation in OPERATIONS {
            let mut costs = Vec::new();
            for family in &families {
                let before = family.store.statements();
                family.operate(operation, 0).await.unwrap();
                costs.push(family.store.statements() - before);
            }
            let [few, more, most] = costs[..] else {
                panic!("{costs:?}");
            };
            println!("{shape:?}, {operation}: {few}, {more}, {most}");
            let what = format!("{operation} in a {shape:?} of {SIZES:?}: {few}, {more}, {most}");
            match (shape, operation) {
                (Shape::Star, _) | (_, "open" | "append" | "read" | "fork" | "metadata") => {
                    assert!(few == more && more == most, "{what}");
                }
                // A page of a log takes a statement for each part of the log that it crosses.
                _ => {
                    assert!(most - more <= (more - few) * 5 / 4 + 2, "{what}");
                }
            }
            // A search reads the log once.
            if operation == "search" {
                assert!(most <= 3 + 1 + SIZES[2] as u64, "{what}");
            }
        }
    }
}
