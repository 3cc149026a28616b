//! A model's context window.

use std::sync::atomic::{AtomicU64, Ordering};

use model_client::{ChatPrompt, Failure};
use serde::{Deserialize, Serialize};
use token_estimate::SafetyFactor;

use crate::prompt::{LEAST_ANSWER, PromptSet, Rendered};
use crate::request::SummaryRequest;

/// Size of a model's context window, and the rule for a source that does not fit in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[must_use]
pub struct ModelWindow {
    /// Size of the window, in tokens as the model counts them. Prompt and answer together must fit.
    pub tokens: u64,
    /// Rule that applies if a source does not fit in the window.
    #[serde(default)]
    pub overflow: Overflow,
    /// Maximum number of calls for one summary. A source that needs more calls is an error of the kind
    /// [`ErrorKind::TooLong`](crate::ErrorKind::TooLong).
    #[serde(default = "max_calls")]
    pub max_calls: u32,
}

fn max_calls() -> u32 {
    64
}

/// Rule for a source that does not fit in a [`ModelWindow`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Overflow {
    /// Summarizes the source in parts, then merges the summaries of the parts. A single message that is too long is
    /// shortened, with a note. No message is left out. The default.
    #[default]
    Parts,
    /// Returns an error of the kind [`ErrorKind::TooLong`](crate::ErrorKind::TooLong).
    Fail,
}

/// Maximum number of tokens that a chat format adds to a request of two messages.
const FRAMING: u64 = 24;

impl ModelWindow {
    /// Creates a window of `tokens` tokens. A source that does not fit is summarized in parts.
    pub fn tokens(tokens: u64) -> Self {
        Self {
            tokens,
            overflow: Overflow::Parts,
            max_calls: max_calls(),
        }
    }

    /// Returns the maximum cost of prompt and answer together, in estimated tokens. This is the window divided by the
    /// [`safety_factor`](token_estimate::TokenEstimator::safety_factor) of the request's estimator.
    pub(super) fn usable(&self, request: &SummaryRequest<'_>) -> u64 {
        let factor = request.estimator.safety_factor().max(SafetyFactor::ONE);
        factor.divide(self.tokens.saturating_sub(FRAMING))
    }

    /// Returns the prompt for a request, with as much of the source as fits in the window together with the answer.
    /// `None` if the shortest prompt does not fit.
    pub(super) fn prompt(
        &self,
        prompts: &PromptSet,
        request: &SummaryRequest<'_>,
    ) -> Option<ChatPrompt> {
        self.fit(
            prompts.render_within(request, self.usable(request)),
            request,
        )
    }

    /// Returns the prompt with the answer limited to the rest of the window. `None` if the rest is less than the maximum
    /// length that the prompt names.
    pub(super) fn fit(
        &self,
        rendered: Rendered,
        request: &SummaryRequest<'_>,
    ) -> Option<ChatPrompt> {
        let room = self.usable(request).checked_sub(rendered.input)?;
        if room < rendered.answer_room() {
            return None;
        }
        let mut prompt = rendered.prompt;
        prompt.max_tokens = prompt.max_tokens.min(room);
        prompt.output_room = Some(room);
        Some(prompt)
    }
}

/// Properties of a model that its server's answers have shown: the size of the window, and how its tokens compare with estimates.
#[derive(Debug, Default)]
pub(super) struct LearntWindow {
    /// Size of the window, in tokens of the model; 0 if it is unknown.
    tokens: AtomicU64,
    /// Largest number of the model's tokens for a thousand estimated ones.
    per_thousand: AtomicU64,
}

/// Minimum estimated length of a prompt that is compared with the model's count, in tokens: the tokens that a chat format
/// adds would distort shorter ones.
const LEAST_COMPARED: u64 = 500;
/// Maximum of [`LearntWindow::per_thousand`]. More would be a mistake of the server.
const MOST_PER_THOUSAND: u64 = 4_000;

impl LearntWindow {
    /// Compares an estimate of a prompt with the number of tokens that the server counted.
    pub(super) fn counted(&self, estimated: u64, tokens: u64) {
        if estimated >= LEAST_COMPARED {
            let share = tokens.saturating_mul(1_000) / estimated;
            let share = share.min(MOST_PER_THOUSAND);
            self.per_thousand.fetch_max(share, Ordering::Relaxed);
        }
    }

    /// Records the window that a failure names. `estimated` is the estimated cost of the prompt.
    pub(super) fn failed(&self, failure: &Failure, estimated: u64) {
        if let Some(window) = failure.window() {
            // A server that is started again may have another window.
            self.tokens.store(window, Ordering::Relaxed);
            if let Some(tokens) = failure.prompt_tokens() {
                self.counted(estimated, tokens);
            }
        }
    }

    /// Returns the window to keep to: the smaller one of the configured and of the server's window, and smaller still if
    /// the model's tokens are shorter than the safety factor of the request's estimator allows for.
    pub(super) fn within(
        &self,
        configured: Option<ModelWindow>,
        request: &SummaryRequest<'_>,
    ) -> Option<ModelWindow> {
        let learnt = match self.tokens.load(Ordering::Relaxed) {
            0 => None,
            tokens => Some(tokens),
        };
        let mut window = configured.or_else(|| learnt.map(ModelWindow::tokens))?;
        window.tokens = window.tokens.min(learnt.unwrap_or(u64::MAX));
        let allowed = request.estimator.safety_factor().max(SafetyFactor::ONE);
        let tokens = allowed.divide(window.tokens);
        let share = self.per_thousand.load(Ordering::Relaxed).max(1_000);
        let needed = window.tokens.saturating_mul(1_000) / share;
        if needed < tokens && tokens > 0 {
            window.tokens = window.tokens.saturating_mul(needed) / tokens;
        }
        Some(window)
    }
}

/// Returns the estimated cost of a prompt, in tokens.
pub(super) fn input(prompt: &ChatPrompt, request: &SummaryRequest<'_>) -> u64 {
    let count = |text: &str| request.estimator.text(text);
    count(&prompt.system).saturating_add(count(&prompt.user))
}

/// Returns the number of tokens to reserve for an answer with this target length: one and a half times the target,
/// because a ladder accepts an answer of that length, but at least [`LEAST_ANSWER`].
pub(super) fn answer_room(target_tokens: u64) -> u64 {
    target_tokens
        .saturating_add(target_tokens / 2)
        .max(LEAST_ANSWER)
}

/// Returns the largest target length with an answer that fits in `room` tokens.
pub(super) fn answer_in(room: u64) -> u64 {
    room.saturating_mul(2) / 3
}
