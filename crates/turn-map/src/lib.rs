#![doc = include_str!("../README.md")]

mod atoms;
mod builder;
mod cuts;
mod message;
#[cfg(feature = "memory-model")]
mod model;
#[cfg(test)]
mod script;
mod turns;

pub use atoms::{
    Atom, AtomKind, Atoms, Cut, GroupState, HullPolicy, LateResult, UnansweredCall, atoms,
};
pub use builder::AtomBuilder;
pub use cuts::{CutPolicy, Cuts};
pub use message::TurnMessage;
pub use token_estimate::Role;
pub use turns::{Grouping, TurnMap};
