//! A summarizer that asks several summarizers in order.

use async_trait::async_trait;

use model_client::{CallGuard, Failure, FailureKind, Stop, Unguarded};

use crate::error::Error;
use crate::gate;
use crate::request::SummaryRequest;
use crate::summarizer::{Summarizer, SummarizerResponse};

/// Asks several summarizers in order until one writes a summary: a cheap model first, the main
/// model when that fails.
///
/// A blank answer counts as a failure, and so does an answer that the provider stopped early or that the request's gate
/// refuses. If all summarizers fail, the last answer that was stopped early or refused is returned. A summary records the name of the model that wrote it. The id of
/// this summarizer contains the ids of all its summarizers, and is part of the summary's recipe.
///
/// Summarizers that need no model are skipped: the ladder has a tier for them and marks their
/// summaries as provisional.
#[derive(Debug)]
#[must_use]
pub struct FallbackSummarizer {
    id: String,
    links: Vec<Box<dyn Summarizer>>,
}

impl FallbackSummarizer {
    /// Creates a chain that consists of one summarizer. Add others with [`or`](Self::or).
    pub fn new(first: impl Summarizer + 'static) -> Self {
        Self {
            id: first.id().to_owned(),
            links: vec![Box::new(first)],
        }
    }

    /// Adds a summarizer that is asked if all summarizers before it failed.
    pub fn or(mut self, next: impl Summarizer + 'static) -> Self {
        self.id = format!("{}|{}", self.id, next.id());
        self.links.push(Box::new(next));
        self
    }
}

#[async_trait]
impl Summarizer for FallbackSummarizer {
    fn id(&self) -> &str {
        &self.id
    }

    /// Returns the model of the first summarizer in the chain.
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

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
        self.summarize_guarded(request, &Unguarded).await
    }

    async fn summarize_guarded(
        &self,
        request: &SummaryRequest<'_>,
        guard: &dyn CallGuard,
    ) -> Result<SummarizerResponse, Error> {
        let skip_provisional = !self.provisional();
        let mut tries = Tries::default();
        for link in &self.links {
            if skip_provisional && link.provisional() {
                continue;
            }
            let answer = link.summarize_guarded(request, guard).await;
            if let Some(summary) = tries.add(&**link, request, answer) {
                return Ok(summary);
            }
        }
        tries.finish(&self.id)
    }
}

/// Answers and failures of the summarizers that were asked so far.
#[derive(Default)]
struct Tries {
    calls: u32,
    /// Last answer that a provider stopped early, or that the gate refuses. A ladder decides whether to accept it.
    stopped: Option<SummarizerResponse>,
    /// Error texts of all failed summarizers.
    failures: Vec<String>,
    last: Option<Error>,
}

/// Returns whether the request's gate refuses an answer.
fn is_refused(request: &SummaryRequest<'_>, answer: &SummarizerResponse) -> bool {
    let refused = request
        .gate
        .and_then(|criteria| gate::refuses(criteria, &answer.text, request));
    answer.refused.is_some() || refused.is_some()
}

impl Tries {
    /// Records the answer of one summarizer, and returns it if it is a complete summary.
    fn add(
        &mut self,
        link: &dyn Summarizer,
        request: &SummaryRequest<'_>,
        answer: Result<SummarizerResponse, Error>,
    ) -> Option<SummarizerResponse> {
        let calls = answer
            .as_ref()
            .map_or_else(Error::calls, |answer| answer.calls);
        self.calls = self.calls.saturating_add(calls);
        let error = match answer {
            Ok(mut answer) => {
                answer.model = answer.model.or_else(|| link.model().map(str::to_owned));
                answer.calls = self.calls;
                match answer.stop {
                    Stop::Complete if answer.text.trim().is_empty() => {
                        let failure = Failure::new(FailureKind::Empty, "it wrote nothing");
                        Error::provider(link.id(), failure)
                    }
                    Stop::Complete if !is_refused(request, &answer) => return Some(answer),
                    _ => {
                        self.stopped = Some(answer);
                        return None;
                    }
                }
            }
            Err(error) => error,
        };
        self.failures.push(error.chain());
        self.last = Some(error);
        None
    }

    /// Returns the last answer that was stopped early, if there is one. Otherwise returns an error with the kind of the
    /// last failure and the texts of all failures.
    fn finish(self, chain: &str) -> Result<SummarizerResponse, Error> {
        if let Some(answer) = self.stopped {
            let calls = self.calls;
            return Ok(SummarizerResponse { calls, ..answer });
        }
        let last = self
            .last
            .unwrap_or_else(|| Error::provider(chain, "nothing in the chain can write"));
        let failure = last.failure().filter(|_| self.failures.len() > 1);
        let error = match failure {
            Some(failure) => {
                let all = Failure::new(failure.kind(), self.failures.join("; then "));
                Error::provider(chain, all.with_retry_after(failure.retry_after()))
            }
            None => last,
        };
        Err(error.with_calls(self.calls))
    }
}
