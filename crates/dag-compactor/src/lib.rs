#![doc = include_str!("../README.md")]

mod condensed;
mod leaf;
mod planner;
mod policy;

pub use planner::{CONDENSED, DagPlanner, LEAF};
pub use policy::{DagPolicy, FreshTail};
