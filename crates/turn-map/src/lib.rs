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
#[cfg(feature = "json")]
mod json;
mod message;
#[cfg(feature = "memory-model")]
mod model;
#[cfg(feature = "json")]
pub mod openai;
mod sanitize;
mod trim;
mod turns;

pub use atoms::{Atom, AtomKind, Atoms, Cut, GroupState, LateResult, UnansweredCall};
pub use budget::{Shortfall, Trim, Trimmed, trim_to_budget};
pub use builder::{AtomBuilder, atoms};
pub use check::{Rule, Violation, check_anthropic, check_openai};
pub use clear::{ClearPolicy, ResultPlace, ResultScan};
pub use clip::{clip_counted, is_left_out, left_out};
pub use cuts::{CutPolicy, Cuts};
pub use edit::{Edit, EditableMessage, InsertedResult, apply};
pub use sanitize::{Finding, Problem, Remedy, Sanitized, sanitize};
pub use token_estimate::{
    HeuristicEstimator, MessageView, PartView, Role, TokenEstimator, TokenEstimatorExt,
    default_estimator, estimator,
};
pub use trim::{TrimPolicy, UnknownTrimPolicy};
pub use turns::{TurnBoundary, TurnMap};
