//! The trait that every summarizer implements.

use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use auto_impl::auto_impl;
use memory_model::{SeqRange, SummaryBody};
use model_client::{CallGuard, Completion, ModelCall, ModelUsage, Stop};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::refusal::Reason;
use crate::request::SummaryRequest;

/// Writes summaries. A [`Ladder`](crate::Ladder) accepts or refuses them.
///
/// Dropping the future of a call cancels the call.
#[async_trait]
#[auto_impl(&, Box, Arc)]
pub trait Summarizer: Send + Sync + Debug {
    /// Returns the summarizer's name and version, such as `extractive@3`. It is part of each summary's recipe: two
    /// summarizers that may write different texts must have different ids.
    fn id(&self) -> &str;

    /// Returns the name of the model that writes the summaries; `None` if they are written without a model.
    fn model(&self) -> Option<&str> {
        None
    }

    /// Returns whether the summaries should be rewritten once a model is available.
    fn provisional(&self) -> bool {
        false
    }

    /// Returns the minimum number of model calls that the request takes. It is more than 1 if the source is too long
    /// for one call. This method calls no model.
    fn calls_needed(&self, _request: &SummaryRequest<'_>) -> u64 {
        1
    }

    /// Writes a summary of the request's source.
    ///
    /// # Errors
    /// The error that [`Error::provider`] creates, if the provider fails.
    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error>;

    /// Writes a summary of the request's source, and calls the model only through `guard`.
    ///
    /// By default, `guard` treats the whole summary as one call. This is right for a summarizer that asks a model once.
    ///
    /// # Errors
    /// The errors of [`Summarizer::summarize`], and the error of a call that the guard refused.
    async fn summarize_guarded(
        &self,
        request: &SummaryRequest<'_>,
        guard: &dyn CallGuard,
    ) -> Result<SummarizerResponse, Error> {
        // The guard handles only a completion, so the full summary or error is kept here.
        let last = Mutex::new(None);
        let keep = |result| *last.lock().unwrap_or_else(PoisonError::into_inner) = result;
        let (last_result, keep) = (&last, &keep);
        let tokens = (request.source_tokens(), request.target_tokens);
        let call = ModelCall::new(tokens, request.estimator, move || {
            Box::pin(async move {
                keep(None);
                let result = self.summarize(request).await;
                let seen = match &result {
                    Ok(text) => Ok(text.completion()),
                    Err(error) => Err(error.as_failure()),
                };
                keep(Some(result));
                seen
            })
        });
        let answer = guard
            .call(call.with_cache_key(request.cache_key(self.id())))
            .await;
        let mut last_result = last_result.lock().unwrap_or_else(PoisonError::into_inner);
        match (answer, last_result.take()) {
            (Ok(answer), Some(Ok(text))) => Ok(SummarizerResponse {
                calls: answer.calls,
                ..text
            }),
            (Ok(answer), _) => Ok(answer.into()),
            (Err(failure), Some(Err(error))) => Err(error.with_calls(failure.calls())),
            (Err(failure), _) => {
                let calls = failure.calls();
                Err(Error::provider(self.id(), failure).with_calls(calls))
            }
        }
    }
}

/// A summary as the summarizer wrote it, before the ladder judges it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummarizerResponse {
    /// Text of the summary.
    pub text: String,
    /// Importance rank of each line of the text; `None` if the summarizer ranks no lines. See [`SummaryBody`].
    pub ranks: Option<Vec<u8>>,
    /// Reason for which the model stopped writing.
    pub stop: Stop,
    /// Number of model calls that the summary took; each retry counts.
    pub calls: u32,
    /// Parts of the source that no model read because the source was too long; `None` if all parts were read.
    pub left_out: Option<OmittedSource>,
    /// Name of the model that wrote the summary, if the summarizer has several models.
    pub model: Option<String>,
    /// Tokens of the calls as the provider counted them; `None` if it did not report them.
    pub usage: Option<ModelUsage>,
    /// Reason for which the summary of a part of the source was refused twice, so that the ladder refuses the whole;
    /// `None` if it was not.
    pub refused: Option<Reason>,
}

/// Messages and summaries of a source that no summary text covers, because the source was too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OmittedSource {
    /// Range from the first message that is left out to the last one.
    pub range: SeqRange,
    /// Number of messages and summaries that are left out.
    pub pieces: u64,
    /// Cost of the messages and summaries that are left out, in tokens.
    pub tokens: u64,
}

impl Default for SummarizerResponse {
    fn default() -> Self {
        Self::new("")
    }
}

impl From<Completion> for SummarizerResponse {
    fn from(answer: Completion) -> Self {
        Self {
            text: answer.text,
            ranks: None,
            stop: answer.stop,
            calls: answer.calls,
            left_out: None,
            model: None,
            usage: answer.usage,
            refused: None,
        }
    }
}

impl SummarizerResponse {
    /// Returns the summary in the form that a guard handles. A cache keeps only text, so the returned value forbids
    /// caching if the summary has further data.
    fn completion(&self) -> Completion {
        Completion {
            text: self.text.clone(),
            stop: self.stop,
            usage: self.usage,
            calls: self.calls,
            no_store: self.left_out.is_some()
                || self.model.is_some()
                || self.ranks.is_some()
                || self.refused.is_some(),
        }
    }

    /// Creates the response with a complete text that took one call.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ranks: None,
            stop: Stop::Complete,
            calls: 1,
            left_out: None,
            model: None,
            usage: None,
            refused: None,
        }
    }

    /// Creates the response with a complete text that took one call, and the ranks of its lines.
    pub fn ranked(body: &SummaryBody) -> Self {
        Self {
            ranks: body.ranks().map(<[u8]>::to_vec),
            ..Self::new(body.text())
        }
    }
}
