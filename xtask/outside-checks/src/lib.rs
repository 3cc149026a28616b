//! For tests and benches: a second opinion on what a transcript holds, generated transcripts, and the providers' rules for
//! the messages of a request.

pub mod fixtures;
pub mod provider_rules;
pub mod raw_check;
mod walker;
