//! For tests: a second opinion on what a transcript holds.

pub mod raw_check;
mod walker;
