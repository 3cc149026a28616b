//! Which format a source is in, by its content.

use crate::raw::RawObject;
use crate::{Format, claude, pi};

/// Finds the format of a source from its first bytes; `None` when no complete line among them
/// belongs to a known format.
pub fn detect(head: &[u8]) -> Option<Format> {
    head.strip_prefix(BOM)
        .unwrap_or(head)
        .split(|&byte| byte == b'\n')
        .filter_map(|line| std::str::from_utf8(line).ok())
        .filter_map(RawObject::parse)
        .find_map(|object| classify(&object))
}

/// The byte order mark of UTF-8.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// The format that a line belongs to.
pub(crate) fn classify(line: &RawObject<'_>) -> Option<Format> {
    if claude::owns(line) {
        return Some(Format::ClaudeCode);
    }
    if pi::owns(line) {
        return Some(Format::Pi);
    }
    let content = ["content", "parts", "tool_calls"]
        .iter()
        .any(|key| line.get(key).is_some());
    (content && line.string("role").is_some()).then_some(Format::Jsonl)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_decides() {
        for (head, format) in [
            (
                r#"{"type":"summary","summary":"x","leafUuid":"u"}"#,
                Some(Format::ClaudeCode),
            ),
            (
                r#"{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user"}}"#,
                Some(Format::ClaudeCode),
            ),
            (
                r#"{"type":"session","id":"s","timestamp":"x"}"#,
                Some(Format::Pi),
            ),
            (
                "\u{feff}{\"role\":\"user\",\"content\":\"x\"}",
                Some(Format::Jsonl),
            ),
            (
                "not json\n{\"x\":1}\n{\"role\":\"user\",\"parts\":[]}",
                Some(Format::Jsonl),
            ),
            (
                r#"{"timestamp":"t","type":"session_meta","payload":{"id":"x"}}"#,
                None,
            ),
            ("{\"role\":\"user\",\"content\":\"cut", None),
            ("", None),
        ] {
            assert_eq!(detect(head.as_bytes()), format, "{head}");
        }
    }
}
