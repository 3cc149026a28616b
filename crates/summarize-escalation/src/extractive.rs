//! [`ExtractiveSummarizer`] as a [`Summarizer`], so that a ladder can use it.

use async_trait::async_trait;
use extractive_summarizer::ExtractiveSummarizer;

use crate::error::Error;
use crate::ladder::Ladder;
use crate::request::SummaryRequest;
use crate::summarizer::{Summarizer, SummarizerResponse};

#[async_trait]
impl Summarizer for ExtractiveSummarizer {
    fn id(&self) -> &str {
        self.id()
    }

    fn provisional(&self) -> bool {
        true
    }

    /// A request without a target length gets the target length of the default ladder.
    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
        let target = match request.target_tokens {
            0 => Ladder::default()
                .target_rule(request.kind())
                .target(request.source_tokens()),
            tokens => tokens,
        };
        let body = self.extract_ranked(request.source, target, request.estimator);
        Ok(SummarizerResponse::ranked(&body))
    }
}
