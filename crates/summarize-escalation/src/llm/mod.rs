//! A summarizer that asks a model.

mod asker;
mod parts;
mod window;

use std::sync::Arc;

use async_trait::async_trait;
use model_client::{CallGuard, ChatModel, FailureKind, Unguarded};

use crate::error::Error;
use crate::prompt::PromptSet;
use crate::request::SummaryRequest;
use crate::summarizer::{Summarizer, SummarizerResponse};
use asker::Asker;
use window::LearntWindow;

pub use window::{ModelWindow, Overflow};

/// A summarizer that asks a model with the prompts of a [`PromptSet`].
#[derive(Debug, Clone)]
#[must_use]
pub struct LlmSummarizer<M> {
    id: String,
    provider: Option<String>,
    model: String,
    client: M,
    prompts: PromptSet,
    window: Option<ModelWindow>,
    learnt: Arc<LearntWindow>,
}

impl<M: ChatModel> LlmSummarizer<M> {
    /// Creates a summarizer that asks the model named `model` through `client`. It uses the standard prompts and does
    /// not limit the length of a prompt.
    ///
    /// Its id consists of the model's name, the id of the prompts, and the window.
    pub fn new(model: impl Into<String>, client: M) -> Self {
        let mut summarizer = Self {
            id: String::new(),
            provider: None,
            model: model.into(),
            client,
            prompts: PromptSet::standard(),
            window: None,
            learnt: Arc::default(),
        };
        summarizer.update_id();
        summarizer
    }

    /// Adds the provider's name to the id, before the model's name, because two providers may have models with the same
    /// name.
    pub fn with_provider(mut self, provider: &str) -> Self {
        self.provider = Some(provider.to_owned());
        self.update_id();
        self
    }

    /// Sets the prompts that the model receives.
    pub fn with_prompts(mut self, prompts: PromptSet) -> Self {
        self.prompts = prompts;
        self.update_id();
        self
    }

    /// Sets the model's context window, which limits the length of a prompt. A smaller window that a server names when it
    /// rejects a prompt replaces it from then on, and the rejected source is summarized in parts.
    pub fn with_window(mut self, window: ModelWindow) -> Self {
        self.window = Some(window);
        self.update_id();
        self
    }

    fn update_id(&mut self) {
        self.id = format!("{}/{}", self.model, self.prompts.id);
        if let Some(provider) = &self.provider {
            self.id = format!("{provider}:{}", self.id);
        }
        if let Some(window) = self.window {
            self.id.push_str(&format!("/{}", window.tokens));
            self.id.push_str(match window.overflow {
                Overflow::Parts => "",
                Overflow::Fail => "-fail",
            });
        }
    }

    fn asker<'a>(&'a self, guard: &'a dyn CallGuard) -> Asker<'a> {
        Asker::new(&self.id, &self.client, &self.prompts, guard, &self.learnt)
    }
}

/// Maximum number of times that a server may show that its window is smaller than assumed.
const MAX_LEARNT: u32 = 3;

/// Writes a summary. If the server rejects a prompt as too long and names its window, the source is summarized within
/// that window.
async fn write(
    asker: &mut Asker<'_>,
    request: &SummaryRequest<'_>,
    configured: Option<ModelWindow>,
) -> Result<SummarizerResponse, Error> {
    let mut window = asker.learnt.within(configured, request);
    for _ in 0..MAX_LEARNT {
        let result = write_within(asker, request, window).await;
        let failure = result.as_ref().err().and_then(Error::failure);
        let too_long = failure.is_some_and(|failure| failure.kind() == FailureKind::TooLong);
        let smaller = asker.learnt.within(configured, request);
        let tokens = |window: Option<ModelWindow>| window.map_or(u64::MAX, |window| window.tokens);
        if !too_long || tokens(smaller) >= tokens(window) {
            return result;
        }
        window = smaller;
    }
    write_within(asker, request, window).await
}

/// Writes a summary. A source that does not fit in the model's window takes several calls, or is an error with
/// [`Overflow::Fail`].
async fn write_within(
    asker: &mut Asker<'_>,
    request: &SummaryRequest<'_>,
    window: Option<ModelWindow>,
) -> Result<SummarizerResponse, Error> {
    let Some(window) = window else {
        let prompt = asker.prompts.render(request);
        return asker.ask(&prompt, request).await;
    };
    let without_context = SummaryRequest {
        before: &[],
        ..*request
    };
    let again = Some(&without_context).filter(|_| !request.before.is_empty());
    for request in std::iter::once(request).chain(again) {
        if let Some(prompt) = window.prompt(asker.prompts, request) {
            return asker.ask(&prompt, request).await;
        }
    }
    match window.overflow {
        Overflow::Parts => parts::summarize(asker, request, window).await,
        Overflow::Fail => Err(asker.too_long(request, window)),
    }
}

#[async_trait]
impl<M: ChatModel> Summarizer for LlmSummarizer<M> {
    fn id(&self) -> &str {
        &self.id
    }

    fn model(&self) -> Option<&str> {
        Some(&self.model)
    }

    fn calls_needed(&self, request: &SummaryRequest<'_>) -> u64 {
        let Some(window) = self.learnt.within(self.window, request) else {
            return 1;
        };
        let request = &SummaryRequest {
            before: &[],
            ..*request
        };
        let fits = window.prompt(&self.prompts, request).is_some();
        match window.overflow {
            Overflow::Parts if !fits => {
                parts::calls_needed(&self.asker(&Unguarded), request, window)
            }
            _ => 1,
        }
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
        self.summarize_guarded(request, &Unguarded).await
    }

    async fn summarize_guarded(
        &self,
        request: &SummaryRequest<'_>,
        guard: &dyn CallGuard,
    ) -> Result<SummarizerResponse, Error> {
        let mut asker = self.asker(guard);
        match write(&mut asker, request, self.window).await {
            Ok(text) => Ok(SummarizerResponse {
                calls: asker.calls,
                usage: asker.usage,
                ..text
            }),
            Err(error) => Err(error.with_calls(asker.calls)),
        }
    }
}
