//! Integration tests of `provider-shapes`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::type_complexity,
    missing_docs
)]

mod fuzz;
mod lists;
mod providers;
