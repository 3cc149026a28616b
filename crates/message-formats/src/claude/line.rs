//! Reads one line of a session file as a message.

use memory_model::{Message, Part, Role};

use super::attachment;
use super::queue::QUEUE;
use crate::blocks::{Dialect, only_results, set_meta};
use crate::json_lines::Line;
use crate::raw::{MetaBuilder, RawObject, list, string};
use crate::session::{note, unknown};

/// Types of lines that are not part of a conversation.
pub(super) const NOISE: [&str; 3] = ["progress", "file-history-snapshot", QUEUE];

/// Keys of a line that have fields in its message.
const CARRIED: [&str; 4] = ["type", "message", "uuid", "timestamp"];

/// Key of a copy of a tool's result in the program's shape, which is often the only full copy. The meta keeps the copy,
/// unless it equals the content of the line's only result.
const RESULT_COPY: &str = "toolUseResult";

/// Returns the session that a line of a session file or of an output stream names.
pub(super) fn session_of(object: &RawObject<'_>) -> Option<String> {
    object.id("sessionId").or_else(|| object.id("session_id"))
}

/// Returns the text of a line with a single text as content.
pub(super) fn prompt(line: &RawObject<'_>) -> Option<String> {
    let value = line.object("message")?.get("content")?;
    string(value).or_else(|| {
        let parts = Dialect::Claude.content(value, &mut MetaBuilder::default());
        match parts.as_slice() {
            [Part::Text { text }] => Some(text.clone()),
            _ => None,
        }
    })
}

/// Reads a line without its time. `only_trace` means that no message comes before the line.
pub(super) fn read(line: &Line<'_>, tag: &str, only_trace: bool) -> Message {
    let object = &line.object;
    let is_summary = object.is_true("isCompactSummary");
    match tag {
        // Errors of the client are not the assistant's words.
        "assistant" if object.is_true("isApiErrorMessage") => whole(line, tag),
        "user" if is_summary && only_trace => message(line, tag),
        "user" | "assistant" if !is_summary => message(line, tag),
        "attachment" => attachment::message(object).unwrap_or_else(|| whole(line, tag)),
        _ => whole(line, tag),
    }
}

/// Keeps a line whole as a note.
pub(super) fn whole(line: &Line<'_>, tag: &str) -> Message {
    let role = match tag {
        "user" => Role::User,
        "assistant" if !line.object.is_true("isCompactSummary") => Role::Assistant,
        _ => Role::System,
    };
    note(role, line.text)
}

/// Returns a message without its texts and without other parts that were said from the queue already.
pub(super) fn without_said(
    mut message: Message,
    said: &[Part],
    line: &Line<'_>,
    tag: &str,
) -> Message {
    let is_said = |part: &Part| matches!(part, Part::Text { .. }) || said.contains(part);
    message.parts.retain(|part| !is_said(part));
    match message.parts.is_empty() {
        true => whole(line, tag),
        false => message,
    }
}

/// Returns a note of a line that repeats another entry. The note lacks the content, because that entry has it.
pub(super) fn repeat(line: &Line<'_>, tag: &str, entry: &str) -> Message {
    let mut kept = line.object.rest(&["message"]);
    if let Some(inner) = line.object.object("message") {
        kept.nest("\"message\"", inner.rest(&["content"]));
    }
    kept.add("\"repeats\"", &serde_json::Value::from(entry).to_string());
    let role = whole(line, tag).role;
    kept.into_text()
        .map_or_else(|| whole(line, tag), |text| note(role, &text))
}

/// Reads a `user` or `assistant` line.
fn message(line: &Line<'_>, tag: &str) -> Message {
    let role = if tag == "assistant" {
        Role::Assistant
    } else {
        Role::User
    };
    let object = &line.object;
    let ambiguous = object.repeats_any(&["type", "message", "uuid", "isSidechain"]);
    let Some(inner) = object.object("message").filter(|_| !ambiguous) else {
        // The line has no readable message, or two of them. It is kept whole in its place.
        return Message::new(role, vec![unknown(line.text)]);
    };
    let mut blocks = MetaBuilder::default();
    let parts = match inner.get("content") {
        Some(value) if !inner.repeats_any(&["role", "content", "id"]) => {
            Dialect::Claude.content(value, &mut blocks)
        }
        _ => vec![unknown(line.text)],
    };
    let mut message = Message::new(role, parts);
    if role == Role::User && only_results(&message.parts) {
        message.role = Role::Tool;
    }
    if role == Role::Assistant {
        message.response = inner.id("id");
    }
    let mut outer = MetaBuilder::default();
    let copied = repeats_content(object, &inner);
    let others = object.others(&CARRIED);
    outer.extend(others.filter(|member| !(copied && member.name == RESULT_COPY)));
    outer.extend(object.inexact_time("timestamp"));
    let carried: &[&str] = match message.response {
        Some(_) => &["role", "content", "id", "type"],
        None => &["role", "content"],
    };
    let rest = inner.rest(carried);
    set_meta(&mut message, outer, rest, blocks);
    message
}

/// Returns whether the line's copy of the result is, byte for byte, the content of its only block, a result.
fn repeats_content(line: &RawObject<'_>, message: &RawObject<'_>) -> bool {
    let Some(copy) = line.get(RESULT_COPY) else {
        return false;
    };
    // The content of a result is never an object.
    if !copy.get().starts_with(['"', '[']) || line.repeats_any(&[RESULT_COPY]) {
        return false;
    }
    let blocks = message.get("content").and_then(list);
    let [block] = blocks.as_deref().unwrap_or_default() else {
        return false;
    };
    RawObject::parse(block.get()).is_some_and(|block| {
        block.string("type").as_deref() == Some("tool_result")
            && block
                .get("content")
                .is_some_and(|content| content.get() == copy.get())
    })
}
