//! Parts for those who implement [`Search`](crate::Search) or [`SearchIndex`](crate::SearchIndex).
//!
//! A [`Matcher`] decides whether a message or a summary is a hit, with the query's filters and
//! with its snippet. A [`HitCollector`] keeps the limit. A [`Position`] is the cursor of a search
//! whose hits come in the order of the log.

mod collector;
mod matcher;
mod position;
mod snippet;

pub use collector::HitCollector;
pub use matcher::Matcher;
pub use position::Position;

pub use crate::fold::fold_case;
