use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use crate::prompt::{PROMPT_VERSION, Prompt, render};
use crate::{Error, SummaryRequest};

/// Writes a summary. What it returns is judged by the ladder, so it need not be good.
///
/// Dropping the future cancels the call; nothing else is to be cleaned up.
#[async_trait]
pub trait Summarizer: Send + Sync + Debug {
    /// Name and version, such as `extractive@1`. It goes into the recipe: two summarizers that may
    /// write different texts have different ids.
    fn id(&self) -> &str;

    /// The model that writes, where there is one.
    fn model(&self) -> Option<&str> {
        None
    }

    /// Whether what it writes is to be redone once a model is available.
    fn provisional(&self) -> bool {
        false
    }

    /// Writes a summary of the request's source.
    ///
    /// # Errors
    /// [`Error::provider`] when the text could not be had.
    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummaryText, Error>;
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        #[async_trait]
        impl<S: Summarizer + ?Sized> Summarizer for $pointer {
            fn id(&self) -> &str {
                (**self).id()
            }

            fn model(&self) -> Option<&str> {
                (**self).model()
            }

            fn provisional(&self) -> bool {
                (**self).provisional()
            }

            async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummaryText, Error> {
                (**self).summarize(request).await
            }
        }
    )*};
}

forward!(&S, Box<S>, Arc<S>);

/// What a summarizer wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SummaryText {
    /// The text.
    pub text: String,
    /// The model that wrote it, where that is not always the same one.
    pub model: Option<String>,
    /// What the provider says it cost.
    pub usage: Option<ModelUsage>,
}

/// What a call cost, as the provider counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct ModelUsage {
    /// Tokens read.
    pub input: u64,
    /// Tokens written, those of reasoning included.
    pub output: u64,
}

impl ModelUsage {
    /// Tokens read and written.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl SummaryText {
    /// A text.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// Sets the model that wrote it.
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets what the provider says it cost.
    pub fn with_usage(mut self, usage: Option<ModelUsage>) -> Self {
        self.usage = usage;
        self
    }
}

/// Completes a prompt: the one thing that a model's client has to provide.
#[async_trait]
pub trait Generate: Send + Sync + Debug {
    /// The model's answer to the prompt.
    ///
    /// # Errors
    /// [`Error::provider`] when there is no answer.
    async fn generate(&self, prompt: &Prompt) -> Result<String, Error>;

    /// The model's answer, and what it cost where the client knows.
    ///
    /// # Errors
    /// As [`Generate::generate`].
    async fn complete(&self, prompt: &Prompt) -> Result<SummaryText, Error> {
        Ok(SummaryText::new(self.generate(prompt).await?))
    }
}

macro_rules! forward_generate {
    ($($pointer:ty),*) => {$(
        #[async_trait]
        impl<G: Generate + ?Sized> Generate for $pointer {
            async fn generate(&self, prompt: &Prompt) -> Result<String, Error> {
                (**self).generate(prompt).await
            }

            async fn complete(&self, prompt: &Prompt) -> Result<SummaryText, Error> {
                (**self).complete(prompt).await
            }
        }
    )*};
}

forward_generate!(Arc<G>, Box<G>);

/// A summarizer that asks a model with the prompts of [`prompt`](crate::prompt).
#[derive(Debug, Clone)]
pub struct LlmSummarizer<G> {
    id: String,
    model: String,
    client: G,
}

impl<G: Generate> LlmSummarizer<G> {
    /// A summarizer that asks `model` by way of `client`.
    ///
    /// Its id is made of the model's name and the version of the prompts.
    pub fn new(model: impl Into<String>, client: G) -> Self {
        let model = model.into();
        Self {
            id: format!("{model}/{PROMPT_VERSION}"),
            model,
            client,
        }
    }

    /// Puts the provider's name before the model's in the id: two providers may have models of the
    /// same name.
    pub fn with_provider(mut self, provider: &str) -> Self {
        self.id = format!("{provider}:{}", self.id);
        self
    }
}

#[async_trait]
impl<G: Generate> Summarizer for LlmSummarizer<G> {
    fn id(&self) -> &str {
        &self.id
    }

    fn model(&self) -> Option<&str> {
        Some(&self.model)
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummaryText, Error> {
        self.client.complete(&render(request)).await
    }
}
