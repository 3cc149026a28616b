//! Integration tests of `message-formats`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod claude;
mod corpus;
mod hard;
mod jsonl;
mod laws;
mod pi;
mod support;
