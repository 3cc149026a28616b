#![doc = include_str!("../README.md")]

mod calls;
mod contradiction;
mod embedding;
mod error;
mod fallback;
mod fold;
mod hits;
mod index;
mod log_calls;
mod matching;
mod query;
mod ranking;
mod search;
mod segment;
mod stop;
mod vectors;
mod words;

pub use contradiction::{Change, Changes, Said};
pub use embedding::Embedder;
#[cfg(feature = "static-embeddings")]
pub use embedding::{StaticTable, TableError};
pub use error::{Error, ErrorKind, Result};
pub use fallback::{Fallback, MAX_PATTERN_CHARS};
pub use fold::{composed, fold_case};
pub use hits::{Hit, HitTarget, Hits};
pub use index::{
    IndexCheck, IndexProgress, SegmentSearch, check_index, extend_index, mend_index, rebuild_index,
};
pub use matching::{AUTO_STAGES, search_auto};
pub use query::{HitOrder, Query, SearchMode, SearchScope};
pub use search::Search;
pub use stop::SearchStop;
pub use vectors::{VectorCheck, VectorProgress, check_vectors, extend_vectors};
