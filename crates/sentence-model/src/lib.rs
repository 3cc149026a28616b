#![doc = include_str!("../README.md")]

pub mod change;
mod ends;
pub mod fold;
mod numbered;
mod rule;
mod scripts;
pub mod words;

pub use ends::{sentences, sentences_with_notes};
pub use numbered::{NumberedRelation, NumberedSentence, is_point_of_number};
pub use rule::{RULE_PROBABILITY, is_rule, rule_features, rule_probability};
pub use scripts::is_unspaced;
