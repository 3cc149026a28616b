//! The properties that the crate promises, over random conversations and by example.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs
)]

mod acknowledged;
mod budget;
mod degrading;
mod examples;
mod forms;
mod large;
mod laws;
mod media;
mod prefix;
mod provider;
mod requests;
mod script;
mod snapshots;
mod state;
mod written;
