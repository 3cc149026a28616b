//! Messages of opencode 2: `{"id":…,"type":…,"time":{…}, …}`, as its database and its export have them.

use memory_model::{Message, Part, RawJson, ResultContent, Role, Timestamp};
use serde_json::value::RawValue;

use super::{Reader, TOLD};
use crate::chat::linked_media;
use crate::raw::{MetaBuilder, RawObject, list, text};
use crate::session::{note, unknown};
use crate::{SourceScope, SourceSummary};

/// Keys of a message that are not in its meta.
const ENVELOPE: [&str; 4] = ["id", "type", "sessionID", "time"];

/// Types of messages that only say that something ended.
const COUNTED: [&str; 1] = ["idle"];

/// Types of messages that are notes. The model does not see them.
const NOTES: [&str; 3] = ["agent-switched", "model-switched", "location-switched"];

impl Reader<'_> {
    /// Reads a message of opencode 2, or returns `None` if it has no type.
    pub(super) fn second(
        &mut self,
        object: &RawObject<'_>,
        line: &str,
        is_last: bool,
    ) -> Option<()> {
        let tag = object.string("type")?;
        // It has no parts with ids, of which only the first could stay.
        if !self.suffix.is_empty() {
            return Some(());
        }
        let time = object.object("time");
        let created_at = time.as_ref().and_then(|time| time.time("created"));
        let created_at = created_at.unwrap_or_default();
        let id = object.id("id");
        let number = self.report.lines;
        let mut message = match tag.as_str() {
            tag if COUNTED.contains(&tag) => {
                self.report.skip(tag);
                return Some(());
            }
            "assistant" => {
                let has_ended = time.is_some_and(|time| time.present("completed").is_some())
                    || object.present("error").is_some();
                if is_last && !has_ended {
                    self.report.warn("incomplete", number);
                    return Some(());
                }
                self.answer(object, line, created_at);
                return Some(());
            }
            "compaction" => {
                let status = object.string("status");
                if is_last && status.as_deref() == Some("running") {
                    self.report.warn("incomplete", number);
                    return Some(());
                }
                let mut kept = note(Role::User, line);
                kept.created_at = created_at;
                let entry = self.push(kept, id, line);
                let texts = ["summary", "recent"].map(|name| object.string(name));
                let texts: Vec<String> = texts.into_iter().flatten().collect();
                if let Some(entry) = entry.filter(|_| status.is_none_or(|it| it == "completed")) {
                    self.log.push_summary(SourceSummary {
                        entry,
                        text: texts.join("\n\n").trim().to_owned(),
                        scope: SourceScope::Before { kept_from: None },
                        details: None,
                    });
                }
                return Some(());
            }
            "user" => said(object, Role::User, None)?,
            "synthetic" | "skill" => said(object, Role::User, Some("true"))?,
            "system" => said(object, Role::System, None)?,
            "shell" => shell(object)?,
            tag => {
                if !NOTES.contains(&tag) {
                    self.report.warn(tag, number);
                }
                note(Role::System, line)
            }
        };
        message.created_at = created_at;
        self.push(message, id, line);
        Some(())
    }

    /// Reads an answer of the model: its parts, and the results of its calls behind it.
    fn answer(&mut self, object: &RawObject<'_>, line: &str, created_at: Timestamp) {
        let id = object.id("id");
        let mut parts = Vec::new();
        let mut results: Vec<(Message, String, &str)> = Vec::new();
        let mut blocks = MetaBuilder::default();
        let content = object.get("content").and_then(list).unwrap_or_default();
        for raw in content {
            let mut extra = MetaBuilder::default();
            let read = RawObject::parse(raw.get())
                .and_then(|part| content_part(&part, created_at, &mut extra));
            let (part, result) = read.unwrap_or_else(|| {
                self.report.lose("content");
                (unknown(raw.get()), None)
            });
            if let (Part::ToolCall { id: call, .. }, Some(result)) = (&part, result) {
                let own = id.as_deref().unwrap_or_default();
                results.push((result, format!("{own}-{call}"), raw.get()));
            }
            blocks.nest(&format!("\"{}\"", parts.len()), extra);
            parts.push(part);
        }
        let mut message = Message::new(Role::Assistant, parts);
        if message.parts.is_empty() {
            message = note(Role::Assistant, line);
        } else {
            let mut meta = object.rest(&[&ENVELOPE[..], &["content"]].concat());
            meta.nest("\"blocks\"", blocks);
            message.meta = meta.finish();
            message.response = id.clone();
        }
        message.created_at = created_at;
        self.push(message, id, line);
        for (result, id, text) in results {
            self.push(result, Some(id), text);
        }
    }
}

/// Reads a message with one text, and the files that the user added to it.
fn said(object: &RawObject<'_>, role: Role, synthetic: Option<&str>) -> Option<Message> {
    let mut extra = MetaBuilder::default();
    let said = text(object.get("text")?, "\"text\"", &mut extra)?;
    let mut parts = vec![Part::text(said)];
    for file in object.get("files").and_then(list).unwrap_or_default() {
        parts.push(attached(file));
    }
    let mut message = Message::new(role, parts);
    let mut meta = object.rest(&[&ENVELOPE[..], &["text", "files"]].concat());
    if let Some(value) = synthetic {
        meta.add("\"synthetic\"", value);
    }
    meta.take(extra);
    message.meta = meta.finish();
    Some(message)
}

/// Reads a command that the user ran. The model sees it as a text.
fn shell(object: &RawObject<'_>) -> Option<Message> {
    let command = object.string("command")?;
    let output = object.object("output");
    let output = match output {
        Some(output) => output.string("output"),
        None => object.string("output"),
    };
    let text = format!("Shell command: {command}\n\n{}", output.unwrap_or_default());
    let mut message = Message::user(text);
    let mut meta = object.rest(&[&ENVELOPE[..], &["command", "output"]].concat());
    meta.add("\"synthetic\"", "true");
    message.meta = meta.finish();
    Some(message)
}

/// Reads a file of a user's message or of a result: its bytes, or its address.
fn attached(file: &RawValue) -> Part {
    let read = || {
        let object = RawObject::parse(file.get())?;
        let media_type = object.string("mime")?;
        if TOLD.contains(&media_type.as_str()) {
            return None;
        }
        let url = match object.id("data") {
            Some(data) => format!("data:{media_type};base64,{data}"),
            None => object.id("uri").or_else(|| object.id("url"))?,
        };
        Some(linked_media(Some(&media_type), &url))
    };
    read().unwrap_or_else(|| unknown(file.get()))
}

/// Reads a part of an answer, and the result of a call.
fn content_part(
    part: &RawObject<'_>,
    created_at: Timestamp,
    extra: &mut MetaBuilder,
) -> Option<(Part, Option<Message>)> {
    let read = match part.string("type")?.as_str() {
        "text" => {
            let text = text(part.get("text")?, "\"text\"", extra)?;
            extra.extend(part.others(&["type", "id", "text"]));
            (Part::Text { text }, None)
        }
        "reasoning" => {
            let text = text(part.get("text")?, "\"text\"", extra)?;
            extra.extend(part.others(&["type", "id", "text", "time"]));
            let state = part.object("native").or_else(|| part.object("state"));
            let signature = state.and_then(|state| state.string("signature"));
            (Part::Reasoning { text, signature }, None)
        }
        "tool" => {
            let state = part.object("state")?;
            let id = part.id("id")?;
            let input = state.get("input").map(RawJson::from_raw);
            let arguments = input.map_or_else(|| RawJson::parse("{}"), Ok).ok()?;
            let result = result(&id, part, &state, created_at);
            extra.extend(part.others(&["type", "id", "name", "state", "time"]));
            let name = part.string("name")?;
            let call = Part::ToolCall {
                id,
                name,
                arguments,
            };
            (call, result)
        }
        _ => return None,
    };
    Some(read)
}

/// Reads the result of a call that has ended.
fn result(
    call_id: &str,
    part: &RawObject<'_>,
    state: &RawObject<'_>,
    created_at: Timestamp,
) -> Option<Message> {
    let is_error = match state.string("status")?.as_str() {
        "completed" => None,
        "error" => Some(true),
        _ => return None,
    };
    let mut parts = Vec::new();
    if let Some(error) = state.object("error") {
        parts.extend(error.string("message").map(Part::text));
    }
    for item in state.get("content").and_then(list).unwrap_or_default() {
        let object = RawObject::parse(item.get());
        let said = object.filter(|object| object.string("type").as_deref() == Some("text"));
        let said = said.and_then(|object| object.string("text"));
        parts.push(said.map_or_else(|| attached(item), Part::text));
    }
    let content = match parts.as_slice() {
        [Part::Text { text }] => ResultContent::Text(text.clone()),
        _ => ResultContent::Parts(parts),
    };
    let result = Part::ToolResult {
        call_id: call_id.to_owned(),
        content,
        is_error,
    };
    let mut message = Message::new(Role::Tool, vec![result]);
    let end = part.object("time");
    let end = end.and_then(|time| time.time("completed"));
    message.created_at = end.unwrap_or(created_at);
    message.meta = state
        .rest(&["status", "input", "content", "error"])
        .finish();
    Some(message)
}
