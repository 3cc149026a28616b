//! Search with the index segments that a store keeps.

mod base;
mod cache;
mod candidates;
mod check;
mod extend;
mod extension;
mod found;
mod merging;
mod ranked;
mod reading;
mod seal;
mod search;
mod side_by_side;
mod visible;

pub use check::{IndexCheck, check_index, mend_index};
pub use extend::{IndexProgress, extend_index, rebuild_index};
pub use search::SegmentSearch;
