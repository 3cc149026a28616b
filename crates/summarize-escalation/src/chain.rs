//! Several summarizers, asked in order.

use async_trait::async_trait;

use model_client::{CallGuard, Failure, FailureKind, Stop, Unguarded};

use crate::error::Error;
use crate::request::SummaryRequest;
use crate::summarizer::{Summarizer, SummaryText};

/// Asks several summarizers in order until one writes a summary: a cheap model first, the main
/// model when that fails.
///
/// An answer of nothing but white space counts as a failure, and so does one that its provider
/// stopped; when no link does better, the last stopped answer is the chain's. A summary names the
/// model that wrote it; the id, and so the recipe, is that of the whole chain.
///
/// A chain skips summarizers that need no model: the ladder has a tier for them and marks their
/// summaries as provisional.
#[derive(Debug)]
pub struct Chain {
    id: String,
    links: Vec<Box<dyn Summarizer>>,
}

impl Chain {
    /// Returns a chain of one summarizer.
    pub fn new(first: impl Summarizer + 'static) -> Self {
        Self {
            id: first.id().to_owned(),
            links: vec![Box::new(first)],
        }
    }

    /// Adds the summarizer to ask when all before it failed.
    pub fn or(mut self, next: impl Summarizer + 'static) -> Self {
        self.id = format!("{}|{}", self.id, next.id());
        self.links.push(Box::new(next));
        self
    }
}

#[async_trait]
impl Summarizer for Chain {
    fn id(&self) -> &str {
        &self.id
    }

    /// Returns the model that is asked first.
    fn model(&self) -> Option<&str> {
        self.links.first().and_then(|link| link.model())
    }

    fn provisional(&self) -> bool {
        self.links.iter().all(|link| link.provisional())
    }

    fn calls_needed(&self, request: &SummaryRequest<'_>) -> u64 {
        let first = self.links.first();
        first.map_or(1, |link| link.calls_needed(request))
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummaryText, Error> {
        self.summarize_guarded(request, &Unguarded).await
    }

    async fn summarize_guarded(
        &self,
        request: &SummaryRequest<'_>,
        guard: &dyn CallGuard,
    ) -> Result<SummaryText, Error> {
        let pass_over = !self.provisional();
        let mut failed: Vec<String> = Vec::new();
        let mut last: Option<Error> = None;
        // An answer that a provider stopped: the rules of a ladder decide about it.
        let mut stopped: Option<SummaryText> = None;
        let mut calls = 0_u32;
        for link in &self.links {
            if pass_over && link.provisional() {
                continue;
            }
            let error = match link.summarize_guarded(request, guard).await {
                Ok(mut answer) => {
                    calls = calls.saturating_add(answer.calls);
                    let model = answer.model.or_else(|| link.model().map(str::to_owned));
                    answer.model = model;
                    match answer.stop {
                        Stop::Complete if !answer.text.trim().is_empty() => {
                            return Ok(SummaryText { calls, ..answer });
                        }
                        Stop::Complete => {}
                        _ => {
                            stopped = Some(answer);
                            continue;
                        }
                    }
                    let failure = Failure::new(FailureKind::Empty, "it wrote nothing");
                    Error::provider(link.id(), failure)
                }
                Err(error) => {
                    calls = calls.saturating_add(error.calls());
                    error
                }
            };
            failed.push(error.chain());
            last = Some(error);
        }
        if let Some(answer) = stopped {
            return Ok(SummaryText { calls, ..answer });
        }
        // The last failure's kind says whether to ask again; the text names every failure.
        let failure = last.as_ref().and_then(Error::failure);
        let whole = failure.filter(|_| failed.len() > 1).map(|failure| {
            Failure::new(failure.kind(), failed.join("; then "))
                .with_retry_after(failure.retry_after())
        });
        let error = match (whole, last) {
            (Some(whole), _) => Error::provider(&self.id, whole),
            (None, Some(error)) => error,
            (None, None) => Error::provider(&self.id, "nothing in the chain can write"),
        };
        Err(error.with_calls(calls))
    }
}
