//! For tests and benches: a second reading of transcripts, generated transcripts, the providers' rules for
//! the messages of a request, and mutated inputs.

pub mod fixtures;
pub mod fuzz;
pub mod provider_rules;
pub mod raw_check;
mod walker;
