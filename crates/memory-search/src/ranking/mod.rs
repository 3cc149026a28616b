//! Ranking: orders messages by how well they answer a question.
//!
//! A [`Corpus`] contains the words of one conversation, and orders its documents by how well they answer a question. No
//! model is used: all numbers are counted in this conversation, independently of other conversations.

mod best;
mod block;
mod corpus;
mod dates;
mod document;
mod fusion;
mod postings;
mod question;
mod record;
mod score;
mod weights;

pub(crate) use corpus::Corpus;
pub(crate) use document::Document;
pub(crate) use question::Wanted;
pub(crate) use record::{Record, SummaryRecord};
pub(crate) use score::{Asked, Ranked, Scores};
