//! Integration tests of `agent-conventions`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::type_complexity,
    missing_docs
)]

mod conventions;
