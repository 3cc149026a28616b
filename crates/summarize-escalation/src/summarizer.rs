use std::fmt::{self, Debug};
use std::sync::Arc;

use async_trait::async_trait;
use memory_model::SeqRange;
use serde::{Deserialize, Serialize};

use crate::prompt::Prompt;
use crate::{CallGuard, Error, ModelCall, SummaryRequest};

/// Writes a summary. What it returns is judged by the ladder, so it need not be good.
///
/// Dropping the future cancels the call; nothing else is to be cleaned up.
#[async_trait]
pub trait Summarizer: Send + Sync + Debug {
    /// Name and version, such as `extractive@2`. It goes into the recipe: two summarizers that may
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

    /// Returns how many calls of a model a summary of this request takes at least: more than one
    /// where the source is too long for one call. Calls no model.
    fn calls_needed(&self, _request: &SummaryRequest<'_>) -> u64 {
        1
    }

    /// Writes a summary of the request's source.
    ///
    /// # Errors
    /// [`Error::provider`] when the text could not be had.
    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummaryText, Error>;

    /// Writes a summary of the request's source, and makes each call of a model by way of `guard`.
    ///
    /// Unless implemented, the whole summary is one call: right for whatever asks a model once.
    ///
    /// # Errors
    /// Those of [`Summarizer::summarize`], and those of the guard.
    async fn summarize_guarded(
        &self,
        request: &SummaryRequest<'_>,
        guard: &dyn CallGuard,
    ) -> Result<SummaryText, Error> {
        let tokens = (request.source_tokens(), request.target_tokens);
        let call = ModelCall::new(tokens, request.estimator, || self.summarize(request));
        guard.call(call).await
    }
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

            fn calls_needed(&self, request: &SummaryRequest<'_>) -> u64 {
                (**self).calls_needed(request)
            }

            async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummaryText, Error> {
                (**self).summarize(request).await
            }

            async fn summarize_guarded(
                &self,
                request: &SummaryRequest<'_>,
                guard: &dyn CallGuard,
            ) -> Result<SummaryText, Error> {
                (**self).summarize_guarded(request, guard).await
            }
        }
    )*};
}

forward!(&S, Box<S>, Arc<S>);

/// What a summarizer wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SummaryText {
    /// The text.
    pub text: String,
    /// Why it ends where it ends.
    pub stop: Stop,
    /// Calls of a model that it took; each retry counts.
    pub calls: u32,
    /// What of the source no model saw, where the source was too long and the policy says so.
    pub left_out: Option<LeftOut>,
    /// The model that wrote it, where that is not always the same one.
    pub model: Option<String>,
    /// What the provider says it cost.
    pub usage: Option<ModelUsage>,
}

/// Why a text ends where it ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// Its writer had no more to say.
    #[default]
    Complete,
    /// The provider's limit of tokens was reached (`length`, `max_tokens`).
    CutOff,
    /// The provider says that the model declined (`refusal`).
    Refused,
    /// The provider's content filter withheld the answer or stopped it (`content_filter`,
    /// `SAFETY`).
    Filtered,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Stop::Complete => "the model had no more to say",
            Stop::CutOff => "the provider cut the answer off at its limit of tokens",
            Stop::Refused => "the model declined",
            Stop::Filtered => "the provider's content filter withheld the answer",
        })
    }
}

/// Pieces of a source that a summary does not speak of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// From the first message to the last.
    pub range: SeqRange,
    /// How many pieces.
    pub pieces: u64,
    /// What they cost, in tokens.
    pub tokens: u64,
}

impl Default for SummaryText {
    fn default() -> Self {
        Self::new("")
    }
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
    /// A complete text, by one call.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            stop: Stop::Complete,
            calls: 1,
            left_out: None,
            model: None,
            usage: None,
        }
    }

    /// Sets why it ends where it ends.
    pub fn with_stop(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
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
