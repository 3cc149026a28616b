//! Laws of atoms, turns and cuts, of trimming and of sanitizing, over any list of messages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod budget;
#[cfg(feature = "json")]
mod json;
#[cfg(all(feature = "json", feature = "serde"))]
mod langchain;
mod laws;
mod parts;
mod reference;
mod sanitize;
mod single;
mod trim;
