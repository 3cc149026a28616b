//! Writes session files: a header, an optional summary of earlier messages, and messages. Each line names the line
//! before it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;

use serde_json::value::RawValue;

use memory_model::raw::RawObject;
use memory_model::{
    EntryKind, Media, MediaSource, Message, Part, ResultContent, Role, SessionKey, Timestamp,
    short_hash,
};

/// A session as a file of JSON lines, in the form that pi and anna share.
///
/// The file has a line `session`, a line `compaction` with the summary in the place of older messages, and a line
/// `message` for each message. The format `pi` of `message-formats` reads it.
///
/// Answers have the facts that pi requires. The values come from the message's meta. Missing names are `unknown`, and a
/// missing usage is 0.
///
/// The form has one line for each result. It has no lines for notes, so they are left out. A message of the system is
/// written, and reading makes it a note.
#[derive(Debug, Clone, Copy)]
pub struct SessionFile<'a> {
    /// Key of the session.
    pub key: &'a SessionKey,
    /// Time at which the session began.
    pub created_at: Timestamp,
    /// Folder in which the session works, or empty if it is not known.
    pub folder: &'a str,
    /// Summary of the entries before the messages, if there were any.
    pub summary: Option<&'a str>,
    /// Cost of the messages before the summary was made, in tokens.
    pub tokens_before: u64,
    /// Messages, oldest first.
    pub messages: &'a [Message],
}

impl SessionFile<'_> {
    /// Returns the lines, without line ends.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{{\"type\":\"session\",\"version\":3,\"id\":{},\"timestamp\":\"{}\",\"cwd\":{}}}",
            text(self.key.as_str()),
            self.created_at,
            text(self.folder)
        )];
        let mut parent: Option<String> = None;
        if let Some(summary) = self.summary {
            let at = self
                .messages
                .first()
                .map_or(self.created_at, |m| m.created_at);
            // Another summary has another id, so that an import can distinguish the two.
            let id = format!("compaction-{}", short_hash(summary));
            let line = Line {
                kind: "compaction",
                id: &id,
                parent: parent.as_deref(),
                at,
            };
            // An entry that names itself as the first kept one keeps no older entries.
            let value = format!(
                "{},\"firstKeptEntryId\":{},\"tokensBefore\":{}",
                text(summary),
                text(&id),
                self.tokens_before
            );
            lines.push(line.with("summary", &value));
            parent = Some(id);
        }
        let mut tools: HashMap<&str, &str> = HashMap::new();
        for (position, message) in self.messages.iter().enumerate() {
            if message.kind == EntryKind::Note {
                continue;
            }
            for part in &message.parts {
                if let Part::ToolCall { id, name, .. } = part {
                    tools.insert(id, name);
                }
            }
            let own = message.external_id.clone();
            let own = own.unwrap_or_else(|| format!("message-{}", position + 1));
            for (piece, body) in bodies(message, &tools).into_iter().enumerate() {
                let id = match piece {
                    0 => own.clone(),
                    _ => format!("{own}/{}", piece + 1),
                };
                let line = Line {
                    kind: "message",
                    id: &id,
                    parent: parent.as_deref(),
                    at: message.created_at,
                };
                lines.push(line.with("message", &body));
                parent = Some(id);
            }
        }
        lines
    }

    /// Writes the lines.
    ///
    /// # Errors
    /// Fails if the writer fails.
    pub fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        for line in self.lines() {
            out.write_all(line.as_bytes())?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Returns the cost of the lines as they are stored, in tokens. It includes the envelopes and the summary's line.
    ///
    /// `text` returns the cost of a text, for example by an estimator.
    pub fn tokens(&self, text: impl Fn(&str) -> u64) -> u64 {
        let lines = self.lines();
        let costs = lines.iter().map(|line| text(line));
        costs.fold(0, u64::saturating_add)
    }
}

/// Fields that all lines except the header have in common.
struct Line<'a> {
    kind: &'static str,
    id: &'a str,
    parent: Option<&'a str>,
    at: Timestamp,
}

impl Line<'_> {
    fn with(&self, name: &str, value: &str) -> String {
        let parent = self.parent.map_or_else(|| "null".to_owned(), text);
        let mut line = format!(
            "{{\"type\":\"{}\",\"id\":{},\"parentId\":{parent},",
            self.kind,
            text(self.id)
        );
        // Writing to a string cannot fail.
        if self.at != Timestamp::default() {
            let _ = write!(line, "\"timestamp\":\"{}\",", self.at);
        }
        let _ = write!(line, "\"{name}\":{value}}}");
        line
    }
}

/// Returns the messages that are written for a message: one for each result, and one for the other parts.
fn bodies(message: &Message, tools: &HashMap<&str, &str>) -> Vec<String> {
    let is_result = |part: &&Part| matches!(part, Part::ToolResult { .. });
    let results = message.parts.iter().filter_map(|part| match part {
        Part::ToolResult {
            call_id,
            content,
            is_error,
        } => Some(result(call_id, content, *is_error, tools)),
        _ => None,
    });
    let mut bodies: Vec<String> = results.collect();
    let rest: Vec<String> = message
        .parts
        .iter()
        .filter(|part| !is_result(part))
        .map(block)
        .collect();
    if bodies.is_empty() || !rest.is_empty() {
        let role = match message.role {
            Role::Assistant => "assistant",
            Role::System => "system",
            Role::User | Role::Tool => "user",
        };
        let mut body = format!("{{\"role\":\"{role}\",\"content\":[{}]", rest.join(","));
        if message.role == Role::Assistant {
            answer_facts(message, &mut body);
        }
        bodies.push(body + "}");
    }
    for body in &mut bodies {
        body.pop();
        let millis = message.created_at.0.div_euclid(1000);
        let _ = write!(body, ",\"timestamp\":{millis}}}");
    }
    bodies
}

/// Adds the facts about an answer that pi reads without a check.
fn answer_facts(message: &Message, body: &mut String) {
    const NO_USAGE: &str = concat!(
        r#"{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"#,
        r#""cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}"#
    );
    let meta = message
        .meta
        .as_ref()
        .and_then(|meta| RawObject::parse(meta.as_str()));
    let inner = meta.and_then(|meta| meta.object("message"));
    let is_call = |part: &Part| matches!(part, Part::ToolCall { .. });
    let reason = match message.parts.iter().any(is_call) {
        true => r#""toolUse""#,
        false => r#""stop""#,
    };
    for (key, default) in [
        ("api", r#""unknown""#),
        ("provider", r#""unknown""#),
        ("model", r#""unknown""#),
        ("usage", NO_USAGE),
        ("stopReason", reason),
    ] {
        let known = inner
            .as_ref()
            .and_then(|inner| inner.present(key))
            .map(RawValue::get);
        // The usage of other agents has other keys.
        let known = known.filter(|value| key != "usage" || is_pi_usage(value));
        let _ = write!(body, ",\"{key}\":{}", known.unwrap_or(default));
    }
}

fn is_pi_usage(usage: &str) -> bool {
    RawObject::parse(usage).is_some_and(|usage| usage.get("cacheRead").is_some())
}

fn result(
    call_id: &str,
    content: &ResultContent,
    is_error: Option<bool>,
    tools: &HashMap<&str, &str>,
) -> String {
    let content = match content {
        ResultContent::Text(said) => format!("[{}]", block(&Part::text(&**said))),
        ResultContent::Parts(parts) => {
            let blocks: Vec<String> = parts.iter().map(block).collect();
            format!("[{}]", blocks.join(","))
        }
    };
    let mut body = format!(
        "{{\"role\":\"toolResult\",\"toolCallId\":{},",
        text(call_id)
    );
    if let Some(tool) = tools.get(call_id) {
        let _ = write!(body, "\"toolName\":{},", text(tool));
    }
    let failed = is_error.unwrap_or_default();
    let _ = write!(body, "\"content\":{content},\"isError\":{failed}}}");
    body
}

/// Returns a block of content. A part without a block in this form is written as the part itself.
fn block(part: &Part) -> String {
    match part {
        Part::Text { text: said } => format!("{{\"type\":\"text\",\"text\":{}}}", text(said)),
        Part::Reasoning {
            text: thought,
            signature,
        } => {
            let mut block = format!("{{\"type\":\"thinking\",\"thinking\":{}", text(thought));
            if let Some(signature) = signature {
                let _ = write!(block, ",\"thinkingSignature\":{}", text(signature));
            }
            block.push('}');
            block
        }
        Part::ToolCall {
            id,
            name,
            arguments,
        } => format!(
            "{{\"type\":\"toolCall\",\"id\":{},\"name\":{},\"arguments\":{}}}",
            text(id),
            text(name),
            arguments.as_str()
        ),
        Part::Image(Media {
            media_type,
            source: MediaSource::Data(data),
        }) => format!(
            "{{\"type\":\"image\",\"mimeType\":{},\"data\":{}}}",
            text(media_type),
            text(data)
        ),
        Part::Unknown { raw } => raw.as_str().to_owned(),
        Part::Image(_) | Part::File(_) | Part::ToolResult { .. } => {
            serde_json::to_string(part).unwrap_or_default()
        }
    }
}

/// Returns a text as JSON.
fn text(said: &str) -> String {
    serde_json::Value::from(said).to_string()
}
