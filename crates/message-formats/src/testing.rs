//! For tests and benches: a second opinion on what a transcript holds, and generated transcripts.

pub mod fixtures;
pub mod raw_check;
mod walker;
