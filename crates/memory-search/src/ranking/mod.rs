//! Ranking: which messages answer a question best.
//!
//! A [`Corpus`] holds the words of one conversation and orders its documents by how well they answer a question. There
//! is no model: all is counted in the conversation itself, and other conversations do not count.

mod best;
mod block;
mod corpus;
mod dates;
mod document;
mod fusion;
mod question;
mod record;
mod score;
mod weights;

pub(crate) use corpus::Corpus;
pub(crate) use document::Document;
pub(crate) use question::Wanted;
pub(crate) use record::{Record, SummaryRecord};
pub(crate) use score::{Asked, Ranked, Scores};
