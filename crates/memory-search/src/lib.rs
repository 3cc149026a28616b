#![doc = include_str!("../README.md")]

mod calls;
mod embedding;
mod error;
mod fallback;
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

pub use embedding::Embedder;
#[cfg(feature = "static-embeddings")]
pub use embedding::{StaticTable, TableError};
pub use error::{Error, ErrorKind, Result};
pub use fallback::{Fallback, MAX_PATTERN_CHARS};
pub use hits::{Hit, HitTarget, Hits};
pub use index::{
    IndexCheck, IndexProgress, SegmentSearch, check_index, extend_index, mend_index, rebuild_index,
};
pub use matching::{AUTO_STAGES, search_auto};
pub use query::{HitOrder, Query, SearchMode, SearchScope};
pub use search::Search;
pub use sentence_model::change::{Change, Changes, Said, Statement, Why};
pub use sentence_model::fold::{composed, fold_case};
pub use stop::SearchStop;
pub use vectors::{VectorCheck, VectorProgress, check_vectors, extend_vectors};
