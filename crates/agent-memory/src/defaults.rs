//! What is used where a caller sets nothing.

use std::sync::Arc;

use extractive_summarizer::ExtractiveSummarizer;
use memory_model::conventions::AgentConventions;

/// Returns a summarizer that extracts lines without a model. With the feature `conventions`, it recognizes the tools of
/// agents with transcripts that this crate can import.
pub(crate) fn default_extractive() -> ExtractiveSummarizer {
    #[cfg(feature = "conventions")]
    let extracts = ExtractiveSummarizer::new().with_conventions(default_conventions());
    // Without conventions, its id names none.
    #[cfg(not(feature = "conventions"))]
    let extracts = ExtractiveSummarizer::new();
    extracts
}

/// Returns the conventions for reading messages. With the feature `conventions`, they are the conventions of agents with
/// transcripts that this crate can import.
pub(crate) fn default_conventions() -> Arc<dyn AgentConventions> {
    #[cfg(feature = "conventions")]
    let conventions = agent_conventions::KnownAgents;
    #[cfg(not(feature = "conventions"))]
    let conventions = memory_model::conventions::GenericConventions;
    Arc::new(conventions)
}
