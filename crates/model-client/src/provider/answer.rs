//! Text of an answer, and the reason for which the answer ends.

use super::http::shown;
use crate::{Completion, Failure, FailureKind, Stop, without_reasoning};

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
        | "model_length"
        | "incomplete"
        | "model_context_window_exceeded" => Stop::CutOff,
        "refusal" => Stop::Refused,
        "content_filter" | "safety" | "recitation" | "blocklist" | "prohibited_content"
        | "spii" | "language" => Stop::Filtered,
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
