#![doc = include_str!("../README.md")]

mod cursor;
mod error;
mod hits;
pub mod implementors;
mod index;
mod query;
mod search;

pub use cursor::Cursor;
pub use error::{Error, ErrorKind, Result};
pub use hits::{Hit, HitTarget, Hits};
pub use index::{IndexedHits, SearchIndex, Watermark};
pub use query::{HitOrder, Query, SearchMode, SearchScope};
pub use search::Search;
