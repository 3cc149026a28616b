//! Vectors of messages: kept behind a watermark, and read by searches.

mod extend;
mod nearness;

pub use extend::{VectorCheck, VectorProgress, check_vectors, extend_vectors};
pub(crate) use nearness::{Nearness, nearness};
