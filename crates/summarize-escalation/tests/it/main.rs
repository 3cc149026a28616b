#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../../../extractive-summarizer/tests/it/fixtures.rs"]
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
#[path = "../../../extractive-summarizer/tests/it/strategies.rs"]
mod strategies;
mod text;
mod windows;

use summarize_escalation::testing::log;
