//! Ranking: which messages answer a question best.
//!
//! A [`Corpus`] holds the words of one conversation; [`Corpus::rank`] orders its documents by how well
//! they answer a question. A [`RankingPolicy`] has the weight of each part of the score. There is no
//! model: all is counted in the conversation itself, and nothing of another conversation counts.
//!
//! ```
//! use memory_model::Timestamp;
//! use memory_search::ranking::{Corpus, Document, RankingPolicy};
//!
//! let mut corpus = Corpus::new(RankingPolicy::default());
//! for (name, text) in [
//!     ("Ann", "Where did you spend your holidays?"),
//!     ("Ben", "We were in Lisbon."),
//!     ("Ann", "The tests are green."),
//! ] {
//!     corpus.add(&Document::new(text, Timestamp(0)).with_name(name));
//! }
//! let ranked = corpus.rank("Where did Ben spend his holiday?");
//! assert_eq!(ranked[0].document, 1);
//! ```

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
pub(crate) use corpus::is_stop_word;
pub(crate) use document::Document;
pub(crate) use question::Wanted;
pub(crate) use record::{Record, SummaryRecord};
pub(crate) use score::{Asked, Ranked, Scores};
