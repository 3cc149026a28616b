//! The program as a user runs it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    unreachable_pub
)]

mod commands;
mod compact;
mod errors;
mod forks;
mod providers;
mod reference;
mod replay;
mod support;
mod terminal;
