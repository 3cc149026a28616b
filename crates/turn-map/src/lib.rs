#![doc = include_str!("../README.md")]

#[cfg(feature = "json")]
pub mod anthropic;
mod atoms;
mod budget;
mod builder;
mod check;
mod clear;
mod clip;
mod cuts;
mod edit;
mod error;
mod id;
#[cfg(feature = "json")]
mod json;
mod message;
#[cfg(feature = "memory-model")]
mod model;
#[cfg(feature = "json")]
pub mod openai;
mod sanitize;
#[cfg(test)]
mod script;
mod trim;
mod turns;

pub use atoms::{
    Atom, AtomKind, Atoms, Cut, GroupState, GroupingPolicy, LateResult, UnansweredCall,
};
pub use budget::{Shortfall, SplitFn, TextSplitter, Trim, TrimStrategy, Trimmed, trim_to_budget};
pub use builder::{AtomBuilder, atoms};
pub use check::{Rule, Violation, check_anthropic, check_openai};
pub use clear::{ClearPolicy, ResultPlace, ResultScan};
pub use clip::{
    clip_chars, clip_counted, clip_lines, clip_tokens, is_left_out, left_out, stub_text,
};
pub use cuts::{CutPolicy, Cuts};
pub use edit::{Edit, EditableMessage, InsertedResult, apply};
pub use error::{Error, ErrorKind};
pub use sanitize::{
    CallIdPolicy, Finding, LateResultPolicy, MisplacedResultPolicy, OrphanPolicy, Problem, Remedy,
    SanitizePolicy, Sanitized, UnansweredCallPolicy, sanitize,
};
pub use token_estimate::{MessageView, PartView, Role};
pub use trim::TrimPolicy;
pub use turns::{TurnBoundary, TurnMap};
