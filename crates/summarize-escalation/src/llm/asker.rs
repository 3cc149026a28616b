//! Model calls for one summary.

use std::fmt;

use model_client::{CacheKey, CallGuard, ChatModel, ChatPrompt, ModelCall, ModelUsage, Stop};

use super::window::{LearntWindow, ModelWindow, input};
use crate::error::{Error, ErrorKind};
use crate::gate;
use crate::prompt::PromptSet;
use crate::request::SummaryRequest;
use crate::summarizer::SummarizerResponse;

/// Makes the model calls for one summary and counts them.
pub(super) struct Asker<'a> {
    pub(super) id: &'a str,
    model: &'a dyn ChatModel,
    pub(super) prompts: &'a PromptSet,
    guard: &'a dyn CallGuard,
    pub(super) learnt: &'a LearntWindow,
    /// Number of calls made; each retry counts.
    pub(super) calls: u32,
    /// Tokens of all calls so far, as the provider counted them.
    pub(super) usage: Option<ModelUsage>,
}

impl fmt::Debug for Asker<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asker")
            .field("id", &self.id)
            .field("calls", &self.calls)
            .finish_non_exhaustive()
    }
}

impl<'a> Asker<'a> {
    pub(super) fn new(
        id: &'a str,
        model: &'a dyn ChatModel,
        prompts: &'a PromptSet,
        guard: &'a dyn CallGuard,
        learnt: &'a LearntWindow,
    ) -> Self {
        Self {
            id,
            model,
            prompts,
            guard,
            learnt,
            calls: 0,
            usage: None,
        }
    }

    /// Makes one model call through the guard, which may retry the call or refuse it.
    pub(super) async fn ask(
        &mut self,
        prompt: &ChatPrompt,
        request: &SummaryRequest<'_>,
    ) -> Result<SummarizerResponse, Error> {
        let estimated = input(prompt, request);
        let tokens = (estimated, request.target_tokens);
        let withdrawn = |failure| Error::provider(self.id, failure);
        request.before_call().await.map_err(withdrawn)?;
        // The guard may run this closure again for a retry.
        let model = self.model;
        let call = ModelCall::new(tokens, request.estimator, || {
            Box::pin(async move {
                request.before_call().await?;
                model.complete(prompt).await
            })
        })
        // A prompt that shows a part of the source asks for a shorter answer, and allows twice its length.
        .with_desired_tokens(request.target_tokens.min(prompt.max_tokens / 2))
        .with_cache_key(Some(CacheKey::of_prompt(self.id, prompt)));
        match self.guard.call(call).await {
            Ok(answer) => {
                self.calls = self.calls.saturating_add(answer.calls);
                if let Some(usage) = answer.usage {
                    self.learnt.counted(estimated, usage.input);
                }
                self.usage = match (self.usage, answer.usage) {
                    (Some(before), Some(now)) => Some(before.saturating_add(now)),
                    (before, now) => before.or(now),
                };
                let mut text = SummarizerResponse::from(answer);
                let prompts = request.prompts.unwrap_or(self.prompts);
                let body = prompts.read_body(&text.text, request.estimator);
                text.ranks = body.ranks().map(<[u8]>::to_vec);
                text.text = body.text().to_owned();
                let is_judged = request.gate.is_some() && text.stop == Stop::Complete;
                if is_judged && gate::is_cut(prompts.template(request), &text.text) {
                    text.stop = Stop::CutOff;
                }
                Ok(text)
            }
            Err(failure) => {
                self.calls = self.calls.saturating_add(failure.calls());
                self.learnt.failed(&failure, estimated);
                Err(Error::provider(self.id, failure))
            }
        }
    }

    pub(super) fn too_long(&self, request: &SummaryRequest<'_>, window: ModelWindow) -> Error {
        let range = request.range().map_or_else(String::new, |r| r.to_string());
        Error::new(
            ErrorKind::TooLong,
            format!(
                "messages {range} are too long for the window of {} tokens of summarizer {}: give \
                 it a larger window or more calls, or let it summarise parts",
                window.tokens, self.id,
            ),
        )
    }
}
