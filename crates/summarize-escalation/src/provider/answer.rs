//! When an answer may be taken as a text.

use super::http::shown;
use crate::{Failure, FailureKind};

/// Why the model stopped, in the words of all providers.
pub(super) fn stopped(whom: &str, reason: Option<&str>) -> Result<(), Failure> {
    let Some(reason) = reason else { return Ok(()) };
    let kind = match reason.to_ascii_lowercase().as_str() {
        "" | "stop" | "end_turn" | "stop_sequence" | "eos" | "eos_token" | "complete"
        | "completed" => return Ok(()),
        "length"
        | "max_tokens"
        | "model_length"
        | "incomplete"
        | "model_context_window_exceeded" => FailureKind::CutShort,
        "content_filter" | "refusal" | "safety" | "recitation" | "blocklist"
        | "prohibited_content" | "spii" | "language" => FailureKind::Refused,
        _ => FailureKind::BadAnswer,
    };
    let what = match kind {
        FailureKind::CutShort => format!("{whom} was stopped before it was done ({reason})"),
        FailureKind::Refused => format!("{whom} refused to write ({reason})"),
        _ => format!("{whom} stopped for an unknown reason ({})", shown(reason)),
    };
    Err(Failure::new(kind, what))
}

/// The text that the model wrote, without the reasoning that some models put before it in
/// `<think>` tags.
pub(super) fn written(whom: &str, text: &str) -> Result<String, Failure> {
    let mut text = text.trim();
    if let Some(rest) = text.strip_prefix("<think>") {
        let Some((_, after)) = rest.split_once("</think>") else {
            let what = format!("{whom} was stopped while it was still reasoning");
            return Err(Failure::new(FailureKind::CutShort, what));
        };
        text = after.trim();
    }
    if text.is_empty() {
        let what = format!("{whom} wrote nothing");
        return Err(Failure::new(FailureKind::Empty, what));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_that_came_to_its_end_is_taken() {
        let kind = |reason| stopped("m", Some(reason)).map_err(|failure| failure.kind());
        for good in ["stop", "end_turn", "STOP", ""] {
            assert_eq!(kind(good), Ok(()));
        }
        assert_eq!(stopped("m", None), Ok(()));
        for cut in ["length", "max_tokens", "MAX_TOKENS"] {
            assert_eq!(kind(cut), Err(FailureKind::CutShort));
        }
        for refused in ["content_filter", "refusal", "SAFETY"] {
            assert_eq!(kind(refused), Err(FailureKind::Refused));
        }
        for odd in ["tool_calls", "error", "MALFORMED_FUNCTION_CALL"] {
            assert_eq!(kind(odd), Err(FailureKind::BadAnswer));
        }
    }

    #[test]
    fn reasoning_is_no_part_of_the_text() {
        let kind = |text| written("m", text).map_err(|failure| failure.kind());
        assert_eq!(kind(" a\n").unwrap(), "a");
        assert_eq!(
            kind("<think>hm</think>\n\na <think> b").unwrap(),
            "a <think> b"
        );
        assert_eq!(kind("<think>hm"), Err(FailureKind::CutShort));
        assert_eq!(kind("<think>hm</think> \n"), Err(FailureKind::Empty));
        assert_eq!(kind(" \n\t"), Err(FailureKind::Empty));
    }
}
