//! Search with the index segments that a store keeps.

mod base;
mod cache;
mod candidates;
mod extend;
mod found;
mod ranked;
mod reading;
mod seal;
mod search;
mod side_by_side;
mod visible;

pub use extend::{IndexCheck, IndexProgress, check_index, extend_index, mend_index, rebuild_index};
pub use search::SegmentSearch;
