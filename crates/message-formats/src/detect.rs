//! Detects this crate's formats of lines by the shapes of their lines.

use crate::raw::RawObject;
use crate::torn;
use crate::{Confidence, Head};

/// Number of lines without a known shape that make the source none of these formats.
const MAX_UNDECIDED: usize = 1000;

/// Types of the lines that Claude Code writes.
const CLAUDE_CODE_TYPES: [&str; 8] = [
    "user",
    "assistant",
    "system",
    "summary",
    "progress",
    "file-history-snapshot",
    "queue-operation",
    "pr-link",
];

/// Types of the lines that Codex writes.
const CODEX_TYPES: [&str; 5] = [
    "session_meta",
    "response_item",
    "event_msg",
    "turn_context",
    "compacted",
];

/// Roles of Kimi Code's records that are not messages.
pub(crate) const KIMI_RECORDS: [&str; 3] = ["_checkpoint", "_usage", "_system_prompt"];

/// Formats that this module can detect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    ClaudeCode,
    Codex,
    GeminiCli,
    KimiCode,
    Pi,
    Plain,
    QwenCode,
}

/// Returns how certain it is that the source has this kind. The first line with a known shape decides.
pub(crate) fn sniff(head: &Head<'_>, kind: Kind) -> Confidence {
    if head.is_directory() {
        return Confidence::No;
    }
    let mut undecided = 0;
    for object in head.lines().flat_map(objects) {
        match classify(&object) {
            Some(found) if found == kind => {
                return match kind {
                    Kind::Plain => Confidence::Possible,
                    _ => Confidence::Certain,
                };
            }
            Some(_) => return Confidence::No,
            None => undecided += 1,
        }
        if undecided > MAX_UNDECIDED {
            return Confidence::No;
        }
    }
    match head.is_complete() {
        true => Confidence::No,
        false => Confidence::Undecided,
    }
}

/// Returns the objects in a line of a head.
fn objects(line: &[u8]) -> Vec<RawObject<'_>> {
    let line = line.trim_ascii();
    let whole = std::str::from_utf8(line).ok().and_then(RawObject::parse);
    match whole {
        Some(object) => vec![object],
        None if !line.starts_with(b"{") => Vec::new(),
        None => torn::records(line, false)
            .filter_map(RawObject::parse)
            .collect(),
    }
}

/// Returns the kind of source that a line belongs to.
fn classify(line: &RawObject<'_>) -> Option<Kind> {
    // Qwen Code's lines have the same envelope as Claude Code's, so they are checked first.
    if is_qwen_code(line) {
        return Some(Kind::QwenCode);
    }
    if is_codex(line) {
        return Some(Kind::Codex);
    }
    if is_gemini_cli(line) {
        return Some(Kind::GeminiCli);
    }
    if is_claude_code(line) {
        return Some(Kind::ClaudeCode);
    }
    if is_pi(line) {
        return Some(Kind::Pi);
    }
    if is_kimi_code(line) {
        return Some(Kind::KimiCode);
    }
    is_plain(line).then_some(Kind::Plain)
}

/// Returns whether Claude Code wrote a line.
fn is_claude_code(line: &RawObject<'_>) -> bool {
    let has = |key: &str| line.string(key).is_some();
    let typed = line
        .string("type")
        .is_some_and(|tag| CLAUDE_CODE_TYPES.contains(&tag.as_str()));
    let id = ["uuid", "sessionId", "leafUuid", "messageId"]
        .into_iter()
        .any(has);
    (typed && id) || (has("type") && has("uuid") && has("sessionId"))
}

/// Returns whether Qwen Code wrote a line: it has a body in the shape of Gemini's interface.
fn is_qwen_code(line: &RawObject<'_>) -> bool {
    let has = |key: &str| line.string(key).is_some();
    let body = || line.object("message")?.get("parts").map(|_| ());
    has("type")
        && has("uuid")
        && has("sessionId")
        && (body().is_some() || line.get("systemPayload").is_some())
}

/// Returns whether Codex wrote a line: it has a type and a payload.
fn is_codex(line: &RawObject<'_>) -> bool {
    let tag = line.string("type");
    tag.is_some_and(|tag| CODEX_TYPES.contains(&tag.as_str())) && line.object("payload").is_some()
}

/// Returns whether a line is the header of a Gemini CLI chat, a whole chat, or a message of the model.
fn is_gemini_cli(line: &RawObject<'_>) -> bool {
    let has = |key: &str| line.string(key).is_some();
    let header = has("sessionId") && has("projectHash") && has("startTime");
    header || (has("id") && line.string("type").as_deref() == Some("gemini"))
}

/// Returns whether pi wrote a line.
fn is_pi(line: &RawObject<'_>) -> bool {
    match line.string("type").as_deref() {
        Some("session") => line.string("id").is_some() && line.get("payload").is_none(),
        Some("message") => line
            .object("message")
            .and_then(|message| message.string("role"))
            .is_some_and(|role| {
                ["user", "assistant", "toolResult", "bashExecution", "custom"]
                    .contains(&role.as_str())
            }),
        _ => false,
    }
}

/// Returns whether a line is one of the records without a message with which Kimi Code's files begin.
fn is_kimi_code(line: &RawObject<'_>) -> bool {
    let role = line.string("role");
    role.is_some_and(|role| KIMI_RECORDS.contains(&role.as_str()))
}

/// Returns whether a line is a message of plain JSON lines.
fn is_plain(line: &RawObject<'_>) -> bool {
    let content = ["content", "parts", "tool_calls"]
        .iter()
        .any(|key| line.get(key).is_some());
    content && line.string("role").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Formats;

    #[test]
    fn the_first_line_that_shows_a_format_decides() {
        for (head, format) in [
            (
                r#"{"type":"summary","summary":"x","leafUuid":"u"}"#,
                Some("claude-code"),
            ),
            (
                r#"{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user"}}"#,
                Some("claude-code"),
            ),
            (r#"{"type":"session","id":"s","timestamp":"x"}"#, Some("pi")),
            (
                "\u{feff}{\"role\":\"user\",\"content\":\"x\"}",
                Some("jsonl"),
            ),
            (
                "not json\n{\"x\":1}\n{\"role\":\"user\",\"parts\":[]}",
                Some("jsonl"),
            ),
            (
                "{\"role\":\"user\",\"content\":\"x\"}\n{\"type\":\"session\",\"id\":\"s\"}",
                Some("jsonl"),
            ),
            (
                r#"{"timestamp":"t","type":"session_meta","payload":{"id":"x"}}"#,
                Some("codex"),
            ),
            (r#"{"role":"_checkpoint","id":0}"#, Some("kimi-code")),
            ("{\"role\":\"user\",\"content\":\"cut", None),
            ("", None),
        ] {
            let formats = Formats::default();
            let found = formats.detect(&Head::new(head.as_bytes(), true));
            assert_eq!(found.map(|format| format.name()), format, "{head}");
        }
    }

    #[test]
    fn a_line_without_its_end_decides_nothing() {
        let line = br#"{"type":"session","id":"s","timestamp":"x"}"#;
        let head = Head::new(line, false);
        assert_eq!(sniff(&head, Kind::Pi), Confidence::Undecided);
        let line = [line, b"\n".as_slice()].concat();
        let head = Head::new(&line, false);
        assert_eq!(sniff(&head, Kind::Pi), Confidence::Certain);
        assert_eq!(sniff(&head, Kind::Plain), Confidence::No);
    }
}
