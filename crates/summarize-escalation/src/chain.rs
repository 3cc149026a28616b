use async_trait::async_trait;

use crate::call::Unguarded;
use crate::{
    CallGuard, Error, Failure, FailureKind, Stop, Summarizer, SummaryRequest, SummaryText,
};

/// Asks one summarizer after the other until one writes something: the cheap model first, the main
/// model when it fails (koda's tiers).
///
/// An answer of nothing but white space counts as a failure, and so does one that its provider
/// stopped; when nobody does better, the last of the latter is the chain's answer. What is written names the model that
/// wrote it; the id, and so the recipe, is that of the whole chain.
///
/// Summarizers that need no model do not belong here: the ladder has them as tiers of their own,
/// and marks what they write as provisional. A chain passes over them.
#[derive(Debug)]
pub struct Chain {
    id: String,
    links: Vec<Box<dyn Summarizer>>,
}

impl Chain {
    /// A chain of one.
    pub fn new(first: impl Summarizer + 'static) -> Self {
        Self {
            id: first.id().to_owned(),
            links: vec![Box::new(first)],
        }
    }

    /// Adds the one to ask when all before it failed.
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

    /// The model that is asked first.
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
        // What a provider stopped: the rules of a ladder decide about it when nobody does better.
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
        // What is worth trying again is told by the last one's failure; what each said, by the text.
        let kind = last.as_ref().and_then(Error::failure).map(Failure::kind);
        let wait = last.as_ref().and_then(Error::failure);
        let wait = wait.and_then(Failure::retry_after);
        match (last, kind) {
            (Some(_), Some(kind)) if failed.len() > 1 => {
                let failure = Failure::new(kind, failed.join("; then "));
                let error = Error::provider(&self.id, failure.with_retry_after(wait));
                Err(error.with_calls(calls))
            }
            (Some(error), _) => Err(error.with_calls(calls)),
            (None, _) => {
                let error = Error::provider(&self.id, "nothing in the chain can write");
                Err(error.with_calls(0))
            }
        }
    }
}
