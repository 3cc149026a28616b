#![doc = include_str!("../README.md")]

mod condensed;
mod leaf;
mod planner;
mod policy;

pub use planner::DagPlanner;
pub use policy::{DagPolicy, FreshTail};
