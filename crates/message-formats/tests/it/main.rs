//! Integration tests of `message-formats`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::type_complexity,
    missing_docs
)]

mod agents;
mod claude;
mod codex_history;
mod corpus;
mod damaged;
mod fixtures;
mod formats;
mod fuzz;
mod growing;
mod hard;
mod jsonl;
mod laws;
#[path = "../../../provider-shapes/tests/it/lists.rs"]
mod lists;
mod overflow;
mod own_compactions;
mod pi;
mod session_file;
mod shapes;
mod still_sent;
mod support;
mod torn;
mod whole_files;
