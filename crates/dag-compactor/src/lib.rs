#![doc = include_str!("../README.md")]

mod condensed;
mod labels;
mod leaf;
mod planner;
mod policy;
mod request;

pub use labels::{CONDENSED, LEAF};
pub use planner::DagPlanner;
pub use policy::{DagPolicy, FreshTail};
