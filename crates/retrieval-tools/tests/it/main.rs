//! The tools over the reference store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod capability;
mod describe;
mod expand;
mod files;
mod grep;
mod laws;
mod limits;
#[cfg(feature = "mcp")]
mod mcp;
mod recall;
mod tools;
mod world;
