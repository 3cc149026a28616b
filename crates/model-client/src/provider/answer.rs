//! Text of an answer, and the reason for which the answer ends.

use std::sync::Arc;

use token_estimate::{TokenEstimator, default_estimator};

use super::http::shown;
use super::key::Secrets;
use crate::{
    AnswerProgress, Completion, Failure, FailureKind, ModelUsage, Stop, without_reasoning,
};

/// The part of a chat model's answer that has arrived.
#[derive(Debug)]
pub(super) struct Heard {
    /// The text, with reasoning that the model writes into it.
    pub(super) text: String,
    /// The provider's word for the reason for which the text ends.
    pub(super) reason: Option<String>,
    /// Reason for which the text ends, if the provider does not say it with a word. It has precedence.
    pub(super) stop: Option<Stop>,
    /// Whether the last event has arrived.
    pub(super) done: bool,
    /// Whether the answer is a stream of events.
    pub(super) streamed: bool,
    /// Whether the model has reasoned before its text.
    pub(super) reasoned: bool,
    /// Number of bytes that have arrived.
    pub(super) bytes: u64,
    /// Number of tokens in the prompt, as the provider counted them.
    pub(super) input: Option<u64>,
    /// Number of tokens in the answer, as the provider counted them.
    pub(super) output: Option<u64>,
    /// Number of the prompt's tokens that the provider read from a cache.
    pub(super) cached: Option<u64>,
    /// Number of the prompt's tokens that the provider wrote to a cache.
    pub(super) cache_write: Option<u64>,
    /// Estimated number of tokens of all pieces.
    estimated: u64,
    estimator: Arc<dyn TokenEstimator>,
}

impl Default for Heard {
    fn default() -> Self {
        Self {
            text: String::new(),
            reason: None,
            stop: None,
            done: false,
            streamed: false,
            reasoned: false,
            bytes: 0,
            input: None,
            output: None,
            cached: None,
            cache_write: None,
            estimated: 0,
            estimator: default_estimator(),
        }
    }
}

impl Heard {
    /// Adds a piece of the text.
    pub(super) fn write(&mut self, piece: &str) {
        self.text.push_str(piece);
        self.count(piece);
    }

    /// Counts a piece of reasoning, which is no part of the text.
    pub(super) fn think(&mut self, piece: &str) {
        self.reasoned |= !piece.is_empty();
        self.count(piece);
    }

    fn count(&mut self, piece: &str) {
        self.estimated = self.estimated.saturating_add(self.estimator.text(piece));
    }

    /// Returns whether the model has ended its answer.
    pub(super) fn is_complete(&self) -> bool {
        self.done || self.reason.is_some() || self.stop.is_some()
    }

    pub(super) fn progress(&self) -> AnswerProgress {
        // A provider that counts at the beginning of an answer has not counted the rest of it.
        let output = self.output.unwrap_or_default().max(self.estimated);
        AnswerProgress::new(self.bytes, output).with_input(self.input)
    }

    /// Returns the answer of the model named `model`.
    pub(super) fn finish(self, secrets: &Secrets, model: &str) -> Result<Completion, Failure> {
        let whom = format!("model {model}");
        let stop = match self.stop {
            Some(stop) => stop,
            None => {
                let reason = self.reason.map(|reason| secrets.redact(&reason));
                stop(&whom, reason.as_deref())?
            }
        };
        let text = secrets.redact_summary(&self.text);
        let usage = match (self.input, self.output) {
            (None, None) => None,
            (input, output) => Some(ModelUsage {
                cached_input: self.cached.unwrap_or_default(),
                cache_write: self.cache_write.unwrap_or_default(),
                ..ModelUsage::new(input.unwrap_or_default(), output.unwrap_or_default())
            }),
        };
        Ok(Completion {
            usage,
            ..written(&whom, &text, stop)?
        })
    }
}

/// Converts the stop reason of any provider, such as `length` or `end_turn`. An unknown reason is a failure; `whom` is
/// the model's name in it.
pub(super) fn stop(whom: &str, reason: Option<&str>) -> Result<Stop, Failure> {
    let Some(reason) = reason else {
        return Ok(Stop::Complete);
    };
    Ok(match reason.to_ascii_lowercase().as_str() {
        "" | "stop" | "end_turn" | "stop_sequence" | "eos" | "eos_token" | "complete"
        | "completed" => Stop::Complete,
        "length"
        | "max_tokens"
        | "max_output_tokens"
        | "model_length"
        | "incomplete"
        | "continuation"
        | "model_context_window_exceeded" => Stop::CutOff,
        "refusal" => Stop::Refused,
        "content_filter" | "safety" | "recitation" | "blocklist" | "prohibited_content"
        | "spii" | "language" | "image_safety" | "model_armor" | "escalation" => Stop::Filtered,
        _ => {
            let what = format!("{whom} stopped for an unknown reason ({})", shown(reason));
            return Err(Failure::new(FailureKind::BadAnswer, what));
        }
    })
}

/// Returns the text that the model wrote, [`without_reasoning`]. The text of an incomplete answer may be empty.
pub(super) fn written(whom: &str, text: &str, mut stop: Stop) -> Result<Completion, Failure> {
    let text = without_reasoning(text).unwrap_or_else(|| {
        // The model was stopped during its reasoning, even if the server reports completion.
        if stop == Stop::Complete {
            stop = Stop::CutOff;
        }
        ""
    });
    if text.is_empty() && stop == Stop::Complete {
        let what = format!("{whom} wrote nothing");
        return Err(Failure::new(FailureKind::Empty, what));
    }
    Ok(Completion {
        stop,
        ..Completion::new(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_to_stop_have_one_meaning_each() {
        let of = |reason| stop("m", Some(reason)).map_err(|failure| failure.kind());
        for good in ["stop", "end_turn", "STOP", ""] {
            assert_eq!(of(good), Ok(Stop::Complete));
        }
        assert_eq!(stop("m", None), Ok(Stop::Complete));
        for cut in ["length", "max_tokens", "MAX_TOKENS"] {
            assert_eq!(of(cut), Ok(Stop::CutOff));
        }
        for filtered in ["content_filter", "SAFETY"] {
            assert_eq!(of(filtered), Ok(Stop::Filtered));
        }
        assert_eq!(of("refusal"), Ok(Stop::Refused));
        for odd in ["tool_calls", "error", "MALFORMED_FUNCTION_CALL"] {
            assert_eq!(of(odd), Err(FailureKind::BadAnswer));
        }
    }

    #[test]
    fn reasoning_is_not_part_of_the_text() {
        let of = |text, stop| {
            let answer = written("m", text, stop).map_err(|failure| failure.kind());
            answer.map(|answer| (answer.text, answer.stop))
        };
        let complete = |text: &str| Ok((text.to_owned(), Stop::Complete));
        let cut = |text: &str| Ok((text.to_owned(), Stop::CutOff));
        assert_eq!(of(" a\n", Stop::Complete), complete("a"));
        let thought = "<think>hm</think>\n\na <think> b";
        assert_eq!(of(thought, Stop::Complete), complete("a <think> b"));
        assert_eq!(of("hm\n</think>a", Stop::Complete), complete("a"));
        assert_eq!(of("<think>hm", Stop::Complete), cut(""));
        assert_eq!(of(" \n", Stop::CutOff), cut(""));
        assert_eq!(of("a", Stop::CutOff), cut("a"));
        for nothing in ["<think>hm</think> \n", " \n\t"] {
            assert_eq!(of(nothing, Stop::Complete), Err(FailureKind::Empty));
        }
    }
}
