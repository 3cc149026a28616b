//! Tests of the store on real files.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_types,
    clippy::print_stdout,
    missing_docs
)]

mod backup;
mod bytes;
mod cancel;
mod common;
mod conformance;
mod damage;
mod erase;
mod failing_calls;
mod files;
mod opening;
mod plans;
mod processes;
mod search;
mod statements;
mod triggers;
mod vectors;
