//! The facade, end to end.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::disallowed_types
)]

mod anna;
mod appended;
mod blocks;
mod branched;
mod branches;
mod by_place;
mod clearing;
mod contexts;
mod copied;
mod corpus;
mod corruption;
mod databases;
mod demonstration;
mod documents;
mod embedding;
mod engine;
mod erasure;
mod facade;
mod family;
mod figures;
mod filled;
mod forks;
mod fuzz;
mod handing_over;
mod handoff;
mod hard;
mod history;
mod laws;
mod long_loop;
mod model_windows;
mod numbered;
mod opencode;
mod overflowed;
mod placement;
mod plain_export;
#[path = "../../../context-assembler/tests/it/provider.rs"]
mod provider;
mod provider_shapes;
mod purging;
mod readme;
mod redo;
mod redo_again;
mod replay;
mod search_index;
mod session_files;
mod session_planners;
mod shapes;
mod simulated;
mod snapshots;
mod statements;
mod states;
mod support;
mod taken_back;
mod told_twice;
mod turns;
mod usage;
mod waiting;
mod whole_summaries;
mod whole_view;
mod windows;
