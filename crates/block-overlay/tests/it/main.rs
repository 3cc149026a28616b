//! Integration tests, in one binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)]

mod blocks;
mod bugs;
mod corpus;
mod golden;
mod json;
mod laws;
mod planner;
mod reduce;
mod running;
mod session;
mod summaries;
mod world;
