#![doc = include_str!("../README.md")]

mod compose;
mod cues;
mod cut;
mod edits;
mod failure;
mod folders;
mod frame;
mod gather;
mod item;
mod ledger;
mod lines;
mod news;
mod parse;
mod parts;
mod print;
mod ran;
mod rank;
mod results;
mod rules;
mod shell;
pub mod source;
mod standing;
mod state;
mod summarizer;
mod tasks;
pub mod text;
mod tool_call;
mod users;
mod value;
mod words;
mod wrap;

pub use cut::{CUT_NOTE, cut_to_tokens};
pub use rank::{HEADLINE_TOKENS, rank_lines, rank_of};
pub use source::{Source, SummarySource};
pub use state::{ConversationState, Overtaken};
pub use summarizer::ExtractiveSummarizer;
