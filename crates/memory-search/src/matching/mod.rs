//! Matching of messages and summaries, and the cursors of answers.

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

pub use auto::{AUTO_STAGES, search_auto};
pub(crate) use collector::HitCollector;
pub(crate) use matcher::Matcher;
pub(crate) use position::Position;
pub(crate) use ranked::{RankedCursor, RankedUpTo};

pub(crate) use crate::calls::is_one_of;
