#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../../../extractive-summarizer/tests/it/fixtures.rs"]
mod fixtures;
mod floor;
mod gate;
mod gate_laws;
mod guards;
mod ladder;
mod languages;
mod laws;
mod long;
mod misbehaviour;
mod observe;
mod prompt_laws;
mod prompt_page;
mod prompts;
mod providers;
#[path = "../../../extractive-summarizer/tests/it/strategies.rs"]
mod strategies;
mod text;
mod windows;

use summarize_escalation::testing::log;
use summarize_escalation::{Source, SummaryRequest};
use token_estimate::HeuristicEstimator;

/// A request for a summary of at most so many tokens.
fn request<'a>(source: &'a [Source<'a>], target_tokens: u64) -> SummaryRequest<'a> {
    SummaryRequest {
        target_tokens,
        ..SummaryRequest::new(source, &HeuristicEstimator::Bytes4)
    }
}
