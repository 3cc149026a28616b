//! Searches over the reference store, with an index and without.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    dead_code,
    missing_docs
)]

mod contradictions;
mod numbered;
mod oracle;
mod scan;
mod segments;
mod vectors;
