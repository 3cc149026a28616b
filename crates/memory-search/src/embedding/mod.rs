//! Embeddings: the meaning of a text as a vector, in addition to its words.

mod embedder;
mod similarity;
#[cfg(feature = "static-embeddings")]
mod static_table;

pub use embedder::Embedder;
pub(crate) use embedder::embed;
pub(crate) use similarity::cosines;
#[cfg(feature = "static-embeddings")]
pub use static_table::{StaticTable, TableError};
