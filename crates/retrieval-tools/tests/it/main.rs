//! The tools over the reference store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod capability;
mod describe;
mod expand;
mod files;
mod grep;
#[cfg(unix)]
mod identity;
mod laws;
mod limits;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "mcp-http")]
mod mcp_http;
mod names;
mod recall;
mod requests;
mod time;
mod tools;
mod world;
