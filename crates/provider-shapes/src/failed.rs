//! Marks failed results in shapes that have no field for failures.

use memory_model::{Part, ResultContent};
use serde_json::{Value, json};

/// Beginning of the text of a failed result.
const MARK: &str = "[tool error]";

/// Marks the written content of a failed result. `kind` is the `type` of a text block.
pub(crate) fn mark(content: Value, is_error: Option<bool>, kind: &str) -> Value {
    if is_error != Some(true) {
        return content;
    }
    match content {
        Value::Array(mut blocks) => {
            blocks.insert(0, json!({"type": kind, "text": MARK}));
            blocks.into()
        }
        content => match content.as_str().unwrap_or_default() {
            "" => MARK.into(),
            text => format!("{MARK} {text}").into(),
        },
    }
}

/// Removes the mark of a failed result. Returns `Some(true)` if there was one.
pub(crate) fn unmark(content: ResultContent) -> (ResultContent, Option<bool>) {
    match content {
        ResultContent::Text(text) => match text.strip_prefix(MARK) {
            Some(rest) => {
                let rest = rest.strip_prefix(' ').unwrap_or(rest);
                (ResultContent::Text(rest.to_owned()), Some(true))
            }
            None => (ResultContent::Text(text), None),
        },
        ResultContent::Parts(mut parts) => match parts.first() {
            Some(Part::Text { text }) if text == MARK => {
                parts.remove(0);
                (ResultContent::Parts(parts), Some(true))
            }
            _ => (ResultContent::Parts(parts), None),
        },
    }
}
