//! Stored vectors of messages: embedding of new messages, and reading by searches.

mod extend;
mod nearness;

pub use extend::{VectorCheck, VectorProgress, check_vectors, extend_vectors};
pub(crate) use nearness::{Nearness, nearness};
