//! Laws of atoms, turns and cuts, of trimming and of sanitizing, over any list of messages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod atoms;
mod budget;
mod cuts;
#[cfg(feature = "json")]
mod json;
mod laws;
#[cfg(feature = "memory-model")]
mod model;
mod parts;
mod reference;
mod sanitize;
mod script;
mod trim;
mod turns;
