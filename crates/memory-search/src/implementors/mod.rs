//! Parts for those who implement [`Search`](crate::Search) or [`SearchIndex`](crate::SearchIndex).
//!
//! A [`Matcher`] decides whether a message or a summary is a hit, with the query's filters and
//! with its snippet. A [`HitCollector`] keeps the limit. A [`RankedQuery`] orders what a conversation
//! holds by a question, and [`search_auto`] tries one mode after the other. A [`Position`] is the cursor of a search
//! whose hits come in the order of the log.

mod auto;
mod collector;
mod literal;
mod matcher;
mod pattern;
mod position;
mod ranked;
mod regex;
mod regex_need;
mod regex_unbroken;
mod snippet;
mod terms;

pub use auto::search_auto;
pub use collector::HitCollector;
pub use matcher::Matcher;
pub use position::Position;
pub use ranked::{RankedCursor, RankedOrder, RankedPage, RankedQuery, RankedTarget, RankedUpTo};
pub use regex::required_literal;

pub use crate::calls::is_one_of;
pub use crate::fold::{composed, fold_case, folded_forms};
