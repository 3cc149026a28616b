//! Prompts and answers of chat models, and the trait of their clients.

use std::fmt::{self, Debug};
use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use token_estimate::models::TokenPrices;

use crate::Failure;

/// A chat model: the trait that a client of a provider implements.
///
/// Dropping the future of [`complete`](Self::complete) cancels the call.
#[async_trait]
pub trait ChatModel: Send + Sync + Debug {
    /// Sends the prompt and returns the model's answer. The answer contains the number of tokens that the call cost,
    /// if the client knows it.
    ///
    /// # Errors
    /// A [`Failure`] if there is no answer. [`Failure::retryable`] returns whether a retry may help.
    async fn complete(&self, prompt: &ChatPrompt) -> Result<Completion, Failure>;
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        #[async_trait]
        impl<M: ChatModel + ?Sized> ChatModel for $pointer {
            async fn complete(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
                (**self).complete(prompt).await
            }
        }
    )*};
}

forward!(&M, Box<M>, Arc<M>);

/// A prompt for a chat model: one system message and one user message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct ChatPrompt {
    /// Text of the system message: the model's role and task.
    pub system: String,
    /// Text of the user message.
    pub user: String,
    /// Requested output limit, in tokens. A client may send a higher limit, because some models count reasoning as
    /// output: see [`ChatPrompt::output_limit`].
    pub max_tokens: u64,
    /// Maximum number of tokens for which the model's window has space after this prompt; `None` if the window is not
    /// known. No client sends a higher output limit.
    pub output_room: Option<u64>,
}

impl ChatPrompt {
    /// Creates a prompt with an output limit of 1,024 tokens.
    pub fn new(system: impl Into<String>, user: impl Into<String>) -> Self {
        Self {
            system: system.into(),
            user: user.into(),
            max_tokens: 1_024,
            output_room: None,
        }
    }

    /// Returns the output limit to send to a provider, in tokens: the larger of `max_tokens` and `min`, but at most
    /// `output_room`.
    pub fn output_limit(&self, min: u64) -> u64 {
        let limit = self.max_tokens.max(min);
        self.output_room.map_or(limit, |room| limit.min(room))
    }
}

/// A chat model's answer to a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Text of the answer.
    pub text: String,
    /// Reason for which the text ends.
    pub stop: Stop,
    /// Numbers of tokens in the prompt and the answer, as the provider counted them; `None` if the provider reports
    /// none, and for an answer from a cache.
    pub usage: Option<ModelUsage>,
    /// Number of calls that were made for the answer. Each retry counts as one. 0 for an answer from a cache.
    pub calls: u32,
    /// Whether caches must not store the answer.
    pub no_store: bool,
}

impl Completion {
    /// Creates a complete answer with this text that took one call.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            stop: Stop::Complete,
            usage: None,
            calls: 1,
            no_store: false,
        }
    }

    /// Returns whether the model completed its answer without any text.
    pub fn is_empty(&self) -> bool {
        self.stop == Stop::Complete && self.text.trim().is_empty()
    }
}

/// Reason for which a model's answer ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The model completed its answer.
    #[default]
    Complete,
    /// The output limit was reached (`length`, `max_tokens`).
    CutOff,
    /// The provider reports that the model declined to answer (`refusal`).
    Refused,
    /// The provider's content filter withheld the answer or stopped it (`content_filter`,
    /// `SAFETY`).
    Filtered,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Stop::Complete => "the model had no more to write",
            Stop::CutOff => "the answer reached the output limit",
            Stop::Refused => "the model declined",
            Stop::Filtered => "the provider's content filter withheld the answer",
        })
    }
}

/// Number of tokens of a call, as the provider counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ModelUsage {
    /// Number of tokens in the prompt.
    pub input: u64,
    /// Number of tokens in the answer, including reasoning.
    pub output: u64,
    /// Number of the prompt's tokens that the provider read from its cache of prompts, which cost less. They are
    /// included in `input`.
    pub cached_input: u64,
    /// Number of the prompt's tokens that the provider wrote to its cache of prompts, which cost more with some
    /// providers. They are included in `input`.
    pub cache_write: u64,
}

impl ModelUsage {
    /// Creates the numbers of a call without cached tokens.
    pub fn new(input: u64, output: u64) -> Self {
        Self {
            input,
            output,
            cached_input: 0,
            cache_write: 0,
        }
    }

    /// Returns the number of tokens in the prompt and the answer together.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Returns the sum of the tokens of two calls. Sums above `u64::MAX` become `u64::MAX`.
    pub fn saturating_add(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cached_input: self.cached_input.saturating_add(other.cached_input),
            cache_write: self.cache_write.saturating_add(other.cache_write),
        }
    }

    /// Returns the money that these tokens cost at these prices, in billionths of a US dollar.
    pub fn cost(&self, prices: &TokenPrices) -> u64 {
        let plain = self.input.saturating_sub(self.cached_input);
        let parts = [
            (plain.saturating_sub(self.cache_write), prices.input),
            (
                self.cached_input,
                prices.cached_input.unwrap_or(prices.input),
            ),
            (self.cache_write, prices.cache_write.unwrap_or(prices.input)),
            (self.output, prices.output),
        ];
        let costs = parts.map(|(tokens, price)| tokens.saturating_mul(price));
        costs.into_iter().fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_counted_for_each_kind_of_token() {
        let usage = ModelUsage {
            cached_input: 4_000,
            cache_write: 1_000,
            ..ModelUsage::new(10_000, 500)
        };
        let prices = TokenPrices {
            cached_input: Some(25),
            cache_write: Some(300),
            ..TokenPrices::new(250, 2_000)
        };
        let cost = 5_000 * 250 + 4_000 * 25 + 1_000 * 300 + 500 * 2_000;
        assert_eq!(usage.cost(&prices), cost);
        // Without prices of their own, cached tokens cost as much as others.
        assert_eq!(
            usage.cost(&TokenPrices::new(250, 2_000)),
            10_000 * 250 + 500 * 2_000
        );
        assert_eq!(ModelUsage::default().cost(&prices), 0);
    }
}
