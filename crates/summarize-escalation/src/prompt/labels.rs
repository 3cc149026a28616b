//! Messages behind labels, as pi writes them.

use std::borrow::Cow;
use std::fmt::{self, Write};

use memory_model::{LogEntry, Part, Role};
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use super::clip::{Clip, shorten};
use super::data::{attribute, fence, medium, result_text};

/// What the labels begin with.
const SPEAKERS: [&str; 4] = ["[User", "[Assistant", "[Tool result", "[System"];

/// Writes a message: what was thought, said and called, and what came back, each behind its label and with an empty
/// line after it.
pub(super) fn message(out: &mut String, entry: &LogEntry, limits: Clip) {
    let whole = format!("message {}", entry.seq);
    let clip = |text: &str, limit: Option<usize>| match limit {
        Some(chars) => shorten(text, (chars, limits.shown), &whole),
        None => text.to_owned(),
    };
    let (mut thought, mut said) = (Vec::new(), Vec::new());
    let (mut called, mut results) = (Vec::new(), Vec::new());
    for part in &entry.parts {
        match part {
            Part::Text { text } => said.push(clip(text.trim(), limits.text)),
            Part::Reasoning { text, .. } => thought.push(clip(text.trim(), limits.text)),
            Part::ToolCall {
                name, arguments, ..
            } => {
                let arguments = named_arguments(arguments.as_str());
                called.push(format!("{name}({})", clip(&arguments, limits.arguments)));
            }
            Part::ToolResult {
                content, is_error, ..
            } => {
                let failed = if *is_error == Some(true) {
                    "(error) "
                } else {
                    ""
                };
                let text = clip(&result_text(content), limits.results);
                results.push(format!("{failed}{text}"));
            }
            Part::Image(media) => said.push(medium("image", media)),
            Part::File(media) => said.push(medium("file", media)),
            Part::Unknown { raw } => said.push(clip(&raw.without_bytes(), limits.results)),
        }
    }
    let name = entry.name.as_deref().map(attribute).unwrap_or_default();
    let name = name.replace(['[', ']'], " ");
    let speaker = match entry.role {
        Role::Assistant => "Assistant",
        Role::System => "System",
        Role::Tool => "Tool result",
        _ => "User",
    };
    let speaker = match name.trim() {
        "" => speaker.to_owned(),
        name => format!("{speaker} {name}"),
    };
    block(out, &format!("{speaker} thinking"), &lines(&thought));
    block(out, &speaker, &lines(&said));
    block(out, &format!("{speaker} tool calls"), &called.join("; "));
    for result in results {
        block(out, "Tool result", &result);
    }
}

fn lines(texts: &[String]) -> String {
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    texts.join("\n")
}

fn block(out: &mut String, label: &str, text: &str) {
    if !text.trim().is_empty() {
        let _ = writeln!(out, "[{label}]: {}\n", escape(&fence(text)));
    }
}

/// Escapes lines that begin as a label does, behind the first line, which follows a label of its own.
fn escape(text: &str) -> Cow<'_, str> {
    let is_label = |line: &str| {
        let line = line.trim_start();
        SPEAKERS.iter().any(|speaker| line.starts_with(speaker))
    };
    if !text.lines().any(is_label) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for (index, line) in text.lines().enumerate() {
        if index > 0 {
            escaped.push('\n');
        }
        if is_label(line) {
            escaped.push('\\');
        }
        escaped.push_str(line);
    }
    Cow::Owned(escaped)
}

/// A call's arguments as `name=value, …`, in their order; as they are where they are no object.
fn named_arguments(arguments: &str) -> String {
    let Ok(Fields(fields)) = serde_json::from_str::<Fields<'_>>(arguments) else {
        return arguments.to_owned();
    };
    let fields = fields
        .into_iter()
        .map(|(name, value)| format!("{name}={}", value.get()));
    fields.collect::<Vec<_>>().join(", ")
}

/// The fields of an object, in their order.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Object).map(Fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_named_in_their_order() {
        for (arguments, shown) in [
            (
                r#"{"path":"a b","limit":2,"at":{"x":[1]}}"#,
                r#"path="a b", limit=2, at={"x":[1]}"#,
            ),
            ("{}", ""),
            ("[1]", "[1]"),
            ("{", "{"),
        ] {
            assert_eq!(named_arguments(arguments), shown);
        }
    }

    #[test]
    fn no_line_of_a_message_passes_for_a_label() {
        assert_eq!(escape("a\nb"), "a\nb");
        assert_eq!(
            escape("[User]: x\n  [Tool result]: y\n[User guide](z)\n- [User]: w"),
            "\\[User]: x\n\\  [Tool result]: y\n\\[User guide](z)\n- [User]: w"
        );
    }
}
