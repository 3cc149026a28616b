//! Integration tests, in one binary.

#![allow(clippy::unwrap_used, clippy::panic)]

mod messages;
mod model;
mod requests;
#[path = "../../examples/genai_agent/server.rs"]
mod server;
mod tools;
