#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod fixtures;
mod gate;
mod gate_laws;
mod guards;
mod ladder;
mod languages;
mod laws;
mod long;
mod misbehaviour;
mod observe;
mod prompts;
mod providers;
mod windows;
