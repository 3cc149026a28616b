#![doc = include_str!("../README.md")]

mod calls;
mod contradiction;
mod cursor;
pub mod embedding;
mod error;
mod fallback;
mod fold;
mod hits;
pub mod implementors;
mod index;
mod query;
pub mod ranking;
mod search;
pub mod segment;
mod stop;
mod words;

pub use calls::{CALL_WINDOW, CallNames};
pub use contradiction::{Said, contradicts};
pub use cursor::Cursor;
pub use error::{Error, ErrorKind, Result};
pub use fallback::{Fallback, MAX_PATTERN_CHARS};
pub use hits::{Hit, HitTarget, Hits};
pub use index::{IndexedHits, SearchIndex, Watermark};
pub use query::{HitOrder, Query, SearchMode, SearchScope};
pub use search::Search;
pub use stop::SearchStop;
