//! Lines of type `attachment`: words that a user typed while a tool ran, and context from the program for the model.

use memory_model::{Media, MediaSource, Message, Part, Role};

use crate::blocks::{Dialect, set_meta};
use crate::raw::{MetaBuilder, RawObject, list, string};

/// Type of an attachment with a user's words.
const QUEUED_COMMAND: &str = "queued_command";

/// Path of the text for the model, by type of attachment.
const TEXTS: [(&str, &[&str]); 9] = [
    ("file", &["content", "file", "content"]),
    ("edited_text_file", &["snippet"]),
    ("selected_lines_in_ide", &["content"]),
    ("directory", &["content"]),
    ("nested_memory", &["content", "content"]),
    ("mcp_resource", &["content", "contents"]),
    ("hook_additional_context", &["content"]),
    ("hook_success", &["content"]),
    ("hook_blocking_error", &["blockingError", "blockingError"]),
];

/// Events of hooks that show their output to the model.
const SHOWN_HOOKS: [&str; 2] = ["SessionStart", "UserPromptSubmit"];

/// Path of the bytes of an attached picture or document.
const BYTES: &[&str] = &["content", "file", "base64"];

/// Keys of a line that have fields in its message.
const CARRIED: [&str; 2] = ["uuid", "timestamp"];

/// Returns whether a line holds words that a user typed while a tool ran.
pub(super) fn is_queued_command(line: &RawObject<'_>) -> bool {
    kind(line).is_some_and(|kind| kind == QUEUED_COMMAND)
}

fn kind(line: &RawObject<'_>) -> Option<String> {
    line.object("attachment")?.string("type")
}

/// Returns the message of an attachment.
///
/// The message has a user's words, or in the role of a tool a text from the program for the model. Returns `None` if
/// the model does not see the attachment, or if it cannot be read.
pub(super) fn message(line: &RawObject<'_>) -> Option<Message> {
    if line.repeats_any(&["type", "attachment", "uuid", "isSidechain"]) {
        return None;
    }
    let attachment = line.object("attachment").filter(|found| !found.repeats())?;
    let kind = attachment.string("type")?;
    let mut blocks = MetaBuilder::default();
    let (role, parts, path): (Role, Vec<Part>, &[&str]) = match kind.as_str() {
        QUEUED_COMMAND => {
            let prompt = attachment.get("prompt")?;
            let parts = Dialect::Claude.content(prompt, &mut blocks);
            if parts.iter().all(is_blank) {
                return None;
            }
            (Role::User, parts, &["prompt"])
        }
        _ => given(&attachment, &kind)?,
    };
    let mut message = Message::new(role, parts);
    let mut meta = MetaBuilder::default();
    for member in line.others(&CARRIED) {
        match member.name.as_ref() {
            "attachment" => meta.add(member.key, &without(&attachment, path)),
            _ => meta.add(member.key, member.value.get()),
        }
    }
    meta.extend(line.inexact_time("timestamp"));
    set_meta(&mut message, meta, MetaBuilder::default(), blocks);
    Some(message)
}

fn is_blank(part: &Part) -> bool {
    matches!(part, Part::Text { text } if text.trim().is_empty())
}

/// Returns the role and the parts of context from the program, and the path of its content. The parts are a heading and
/// the content.
fn given(
    attachment: &RawObject<'_>,
    kind: &str,
) -> Option<(Role, Vec<Part>, &'static [&'static str])> {
    let (_, path) = TEXTS.iter().find(|(known, _)| *known == kind)?;
    let hook = attachment.string("hookEvent");
    if kind == "hook_success" && !SHOWN_HOOKS.contains(&hook.as_deref()?) {
        return None;
    }
    let name = ["hookName", "filename", "displayPath", "path", "uri"]
        .iter()
        .find_map(|key| attachment.string(key))
        .unwrap_or_default();
    let heading = match (kind.starts_with("hook"), name.is_empty()) {
        (true, false) => format!("Context from the hook {name}:"),
        (true, true) => "Context from a hook:".to_owned(),
        (false, _) => format!("Attached {}: {name}", kind.replace('_', " ")),
    };
    let (content, path) = match bytes(attachment) {
        Some(media) if kind == "file" => (vec![media], BYTES),
        _ => {
            let texts = texts(attachment, path)?;
            (texts.into_iter().map(Part::text).collect(), *path)
        }
    };
    let parts = std::iter::once(Part::text(heading.trim_end()));
    Some((Role::Tool, parts.chain(content).collect(), path))
}

/// Returns the texts at a path: a string, or a list of strings and of objects with one text each. Returns `None` for
/// any other value, and if all texts are blank.
fn texts(object: &RawObject<'_>, path: &[&str]) -> Option<Vec<String>> {
    let (last, above) = path.split_last()?;
    let value = match above.split_first() {
        None => object.get(last)?,
        Some((first, _)) => {
            return texts(&object.object(first)?, path.get(1..)?);
        }
    };
    let texts = match value.get().starts_with('[') {
        false => vec![string(value)?],
        true => {
            let items = list(value)?;
            let text = |item: &&serde_json::value::RawValue| {
                string(item).or_else(|| {
                    let object = RawObject::parse(item.get())?;
                    // An object with further keys holds more than its text.
                    let others = object.others(&["type", "text"]).next().is_some();
                    object.string("text").filter(|_| !others)
                })
            };
            items.iter().map(text).collect::<Option<Vec<_>>>()?
        }
    };
    texts
        .iter()
        .any(|text| !text.trim().is_empty())
        .then_some(texts)
}

/// Returns an attached picture or document.
fn bytes(attachment: &RawObject<'_>) -> Option<Part> {
    let content = attachment.object("content")?;
    let file = content.object("file")?;
    let data = MediaSource::Data(file.string("base64")?);
    let media = |media_type: String| Media {
        media_type,
        source: data,
    };
    match content.string("type")?.as_str() {
        "image" => Some(Part::Image(media(file.string("type")?))),
        "pdf" => Some(Part::File(media("application/pdf".to_owned()))),
        _ => None,
    }
}

/// Returns an object without the value at a path.
fn without(object: &RawObject<'_>, path: &[&str]) -> String {
    let mut rest = MetaBuilder::default();
    for member in &object.members {
        let inner = || RawObject::parse(member.value.get());
        match path.split_first() {
            Some((first, below)) if member.name == *first => {
                if let (false, Some(inner)) = (below.is_empty(), inner()) {
                    rest.add(member.key, &without(&inner, below));
                }
            }
            _ => rest.add(member.key, member.value.get()),
        }
    }
    rest.into_text().unwrap_or_else(|| "{}".to_owned())
}
