//! Is every word of a source found in what was made of it?
//!
//! The checker reads the source and the export format with a small JSON walker of its own and
//! shares no code with this crate's readers or with `memory-model`. It knows the formats only as
//! far as it must to say which strings are a conversation's words.
//!
//! ```
//! use outside_checks::raw_check::{Source, check};
//!
//! let source = "{\"role\":\"user\",\"content\":\"Deploy.\"}\n";
//! let export = "{\"kind\":\"message\",\"external_id\":\"h-1\",\"role\":\"user\",\
//!               \"parts\":[{\"type\":\"text\",\"text\":\"Deploy.\"}]}\n";
//! let source = Source::parse(source.as_bytes());
//! assert_eq!(check(&source, &[export.to_owned()]).unwrap().strings, 1);
//! assert!(check(&source, &[export.replace("Deploy.", "Deploy")]).is_err());
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::walker::{Json, parse};

/// What a string of the source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A text, decoded.
    Text,
    /// Reasoning, decoded.
    Reasoning,
    /// The signature over reasoning.
    Signature,
    /// The id of a call, at the call.
    CallId,
    /// The tool that is called.
    ToolName,
    /// A call's arguments: the exact JSON bytes.
    Arguments,
    /// The id of a call, at its result.
    ResultId,
    /// A text that a tool returned, decoded.
    ResultText,
    /// Whether a tool failed, as the source says it: `true`, `false` or `null`.
    IsError,
    /// Data or URL of an image or file.
    Media,
    /// JSON bytes of what has no meaning that the checker knows, or is no Unicode.
    Raw,
}

/// One string that must be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The source's line, counted from 1.
    pub line: usize,
    /// What it is.
    pub kind: Kind,
    /// The string: decoded, or raw JSON for [`Kind::Arguments`] and [`Kind::Raw`].
    pub text: String,
}

/// A line of the source that must be found.
#[derive(Debug, Clone)]
struct SourceLine {
    number: usize,
    id: Option<String>,
    note: bool,
    strings: Vec<(Kind, String)>,
    /// Claude Code's own copy of a result, as JSON, where it says more than the result.
    copy: Option<String>,
    text: String,
}

/// How deep results are looked into: a result on this level that holds a list is raw JSON.
const MAX_LEVEL: usize = 8;

/// The roles of plain JSON lines.
const ROLES: [&str; 5] = ["system", "developer", "user", "assistant", "tool"];

/// What a source holds, as the checker reads it.
#[derive(Debug, Clone, Default)]
pub struct Source {
    lines: Vec<SourceLine>,
    /// Words in Claude Code's queue. They are messages only if no other line has them.
    queued: Vec<String>,
}

/// What a check found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checked {
    /// Messages that were found.
    pub messages: usize,
    /// Notes that were found.
    pub notes: usize,
    /// Strings that were found.
    pub strings: usize,
}

impl Source {
    /// Reads a source: a Claude Code file, a pi file, or plain JSON lines.
    pub fn parse(bytes: &[u8]) -> Source {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let mut lines: Vec<SourceLine> = Vec::new();
        let mut queued = Vec::new();
        for (at, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
            let Some(text) = std::str::from_utf8(line).ok().map(str::trim_ascii) else {
                continue;
            };
            let Some(value @ Json::Object(..)) = parse(text) else {
                continue;
            };
            if value.get("type").and_then(Json::text).as_deref() == Some("queue-operation") {
                queued.extend(value.get("content").and_then(Json::text));
            }
            let said = lines.iter().any(|line| !line.note);
            let Some(mut found) = source_line(&value, text, said) else {
                continue;
            };
            found.number = at + 1;
            // The same line once more under the same id is no second message.
            let again = |other: &SourceLine| {
                found.id.is_some() && other.id == found.id && other.text == found.text
            };
            if !lines.iter().any(again) {
                lines.push(found);
            }
        }
        Source { lines, queued }
    }

    /// Every string that must be found, in file order.
    pub fn expected(&self) -> Vec<Expected> {
        let lines = self.lines.iter();
        lines
            .flat_map(|line| {
                line.strings.iter().map(|(kind, text)| Expected {
                    line: line.number,
                    kind: *kind,
                    text: text.clone(),
                })
            })
            .collect()
    }
}

/// Checks that the conversations of a source, each as the export format writes it, hold every line
/// of the source exactly once, in file order within a conversation, with every string byte for
/// byte. A fork may be given with or without the stretch that it shares with its parent, which
/// then must stand before it.
///
/// # Errors
/// The first difference, with the source's line.
pub fn check(source: &Source, exports: &[String]) -> Result<Checked, String> {
    let mut by_id: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut without_id = Vec::new();
    for (at, line) in source.lines.iter().enumerate() {
        match &line.id {
            Some(id) => by_id.entry(id).or_default().push(at),
            None => without_id.push(at),
        }
    }
    let mut free = without_id.into_iter();
    let mut matched: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = vec![false; source.lines.len()];
    let mut checked = Checked::default();
    for export in exports {
        let mut last = None;
        let mut here = BTreeSet::new();
        let mut queued: Vec<String> = Vec::new();
        for text in export.lines() {
            let entry = exported(text).ok_or_else(|| format!("not an export line: {text:.200}"))?;
            if entry.id.starts_with("queued-") {
                let words = entry.strings.first().map(|(_, text)| text);
                let known = |words: &&String| entry.note || source.queued.contains(words);
                match words.filter(known) {
                    Some(words) => queued.push(words.clone()),
                    None => return Err(format!("{}: no such words in the queue", entry.id)),
                }
                continue;
            }
            let named = by_id.get(entry.id.as_str()).or_else(|| {
                let (id, _) = entry.id.rsplit_once('#')?;
                by_id.get(id)
            });
            let known = matched.get(&entry.id).copied();
            let at = match named {
                Some(places) => {
                    let mut places = places.iter().copied();
                    places.find(|&at| found.get(at) == Some(&false)).or(known)
                }
                None => known.or_else(|| free.next()),
            };
            let at = at.ok_or_else(|| format!("{}: no such line in the source", entry.id))?;
            let line = source.lines.get(at).ok_or("no such line")?;
            if !here.insert(at) {
                return Err(format!("line {}: found twice", line.number));
            }
            if last > Some(at) {
                return Err(format!("line {}: out of order", line.number));
            }
            last = Some(at);
            let said = |(_, text): &(Kind, String)| queued.contains(text);
            // Words that were said from the queue are not said again.
            if entry.note && line.strings.iter().any(said) {
                let whole = SourceLine {
                    note: true,
                    strings: vec![(Kind::Raw, line.text.clone())],
                    copy: None,
                    ..line.clone()
                };
                compare(&whole, &entry)?;
            } else if !entry.note && !entry.strings.iter().any(said) {
                // A picture may have come with them.
                let mut rest = line.clone();
                rest.strings.retain(|string| !said(string));
                compare(&rest, &entry)?;
            } else {
                compare(line, &entry)?;
            }
            matched.insert(entry.id, at);
            match found.get_mut(at) {
                Some(flag) if !*flag => *flag = true,
                // The stretch that a fork shares with its parent.
                _ => continue,
            }
            checked.strings += line.strings.len();
            if line.note {
                checked.notes += 1;
            } else {
                checked.messages += 1;
            }
        }
    }
    match found.iter().position(|found| !found) {
        Some(at) => Err(format!(
            "line {}: not found",
            source.lines.get(at).map_or(0, |line| line.number)
        )),
        None => Ok(checked),
    }
}

fn compare(line: &SourceLine, entry: &Exported) -> Result<(), String> {
    if line.note != entry.note {
        return Err(format!("line {}: note or message?", line.number));
    }
    if line.copy.is_some() && line.copy != entry.copy {
        return Err(format!("line {}: toolUseResult is lost", line.number));
    }
    for (at, want) in line.strings.iter().enumerate() {
        let got = entry.strings.get(at);
        if got != Some(want) {
            return Err(format!(
                "line {}: string {at} differs: {:.300} is not {:.300}",
                line.number,
                format!("{got:?}"),
                format!("{want:?}")
            ));
        }
    }
    if entry.strings.len() != line.strings.len() {
        return Err(format!(
            "line {}: more strings than the source",
            line.number
        ));
    }
    Ok(())
}

struct Exported {
    id: String,
    note: bool,
    strings: Vec<(Kind, String)>,
    copy: Option<String>,
}

fn exported(text: &str) -> Option<Exported> {
    let value = parse(text)?;
    let mut strings = Vec::new();
    let meta = value.get("meta");
    for (at, part) in value.get("parts")?.items().iter().enumerate() {
        let block = meta.and_then(|meta| meta.get("blocks")?.get(&at.to_string()));
        let inner = meta.and_then(|meta| meta.get("message"));
        // What the part has no place for.
        export_part(part, 1, [block, inner], &mut strings);
    }
    let tag = meta.and_then(|meta| meta.get("type")?.text());
    let role = value.get("role").and_then(Json::text);
    if tag.as_deref() == Some("attachment") && role.as_deref() == Some("tool") {
        // The heading is the program's.
        strings.drain(..1.min(strings.len()));
    }
    Some(Exported {
        id: value.get("external_id")?.text()?,
        note: value.get("kind").and_then(Json::text).as_deref() == Some("note"),
        strings,
        copy: meta
            .and_then(|meta| meta.get("toolUseResult"))
            .map(|copy| copy.raw().to_owned()),
    })
}

/// The kind of a text on a level: 1 is the message's own parts.
fn text_kind(level: usize) -> Kind {
    match level {
        1 => Kind::Text,
        _ => Kind::ResultText,
    }
}

/// Adds the strings of a part; `beside` are the objects in which a message may keep the rest of the part.
fn export_part(
    part: &Json<'_>,
    level: usize,
    beside: [Option<&Json<'_>>; 2],
    out: &mut Vec<(Kind, String)>,
) {
    let kept = |keys: &[&str]| {
        let found = |beside: &Option<&Json<'_>>| {
            let mut found = *beside;
            for key in keys {
                found = found?.get(key);
            }
            found.map(|value| value.raw().to_owned())
        };
        beside.iter().find_map(found)
    };
    let mut put = |kind, key: &str| {
        if let Some(text) = part.get(key).and_then(Json::text) {
            out.push((kind, text));
        }
    };
    match part.get("type").and_then(Json::text).as_deref() {
        Some("text") => {
            put(text_kind(level), "text");
            let whole = kept(&["text"]).or_else(|| kept(&["output"]));
            out.extend(whole.map(|raw| (Kind::Raw, raw)));
        }
        Some("reasoning") => {
            put(Kind::Reasoning, "text");
            put(Kind::Signature, "signature");
        }
        Some("tool_call") => {
            put(Kind::CallId, "id");
            put(Kind::ToolName, "name");
            if let Some(arguments) = part.get("arguments") {
                out.push((Kind::Arguments, arguments.raw().to_owned()));
            }
        }
        Some("tool_result") => {
            put(Kind::ResultId, "call_id");
            let stated = part.get("is_error").map(|stated| stated.raw().to_owned());
            let stated = stated
                .or_else(|| kept(&["is_error"]))
                .or_else(|| kept(&["isError"]));
            out.extend(stated.map(|stated| (Kind::IsError, stated)));
            match part.get("content") {
                Some(Json::Array(_, items)) => {
                    for (at, item) in items.iter().enumerate() {
                        if well_formed(item, level + 1) {
                            let at = at.to_string();
                            let inner = beside.map(|beside| {
                                beside.and_then(|kept| kept.get("content")?.get(&at))
                            });
                            export_part(item, level + 1, inner, out);
                        } else {
                            out.push((Kind::Raw, item.raw().to_owned()));
                        }
                    }
                }
                content => {
                    let text = content.and_then(Json::text);
                    out.extend(text.map(|text| (Kind::ResultText, text)));
                    out.extend(kept(&["content"]).map(|raw| (Kind::Raw, raw)));
                }
            }
        }
        Some("image" | "file") => {
            put(Kind::Media, "data");
            put(Kind::Media, "url");
        }
        _ => {
            let raw = part.get("raw").unwrap_or(part);
            out.push((Kind::Raw, raw.raw().to_owned()));
        }
    }
}

/// Returns the expected reading of a line; `None` for a product's noise. `said`: whether anything was said before it.
fn source_line(line: &Json<'_>, text: &str, said: bool) -> Option<SourceLine> {
    let tag = line.get("type").and_then(Json::text).unwrap_or_default();
    if ["progress", "file-history-snapshot", "queue-operation"].contains(&tag.as_str()) {
        return None;
    }
    let is_true = |key: &str| line.get(key).is_some_and(|value| value.raw() == "true");
    // A summary of entries in the same file, and a client's own error, are notes.
    let summary = is_true("isCompactSummary") && (said || tag != "user")
        || is_true("isApiErrorMessage") && tag == "assistant";
    let role = |value: &Json<'_>| value.get("role").and_then(Json::text).unwrap_or_default();
    let mut found = SourceLine {
        number: 0,
        id: ["uuid", "external_id", "id"]
            .into_iter()
            .find_map(|key| line.get(key).and_then(Json::text))
            .filter(|_| tag != "session"),
        note: false,
        strings: Vec::new(),
        copy: None,
        text: text.to_owned(),
    };
    let out = &mut found.strings;
    match (tag.as_str(), line.get("message")) {
        ("user" | "assistant", Some(message)) if !summary => match message.get("content") {
            Some(content) if !line.repeats() => {
                claude_content(content, out);
                found.copy = own_copy(line, content);
            }
            _ => out.push((Kind::Raw, text.to_owned())),
        },
        ("message", Some(message)) if pi_message(message, &role(message), out).is_some() => {}
        ("custom_message", None) if line.get("content").is_some() => {
            claude_content(line.get("content")?, out);
        }
        ("attachment", None) if attached(line, out).is_some() => {}
        _ if ROLES.contains(&role(line).as_str()) && line.repeats() => {
            out.push((Kind::Raw, text.to_owned()));
        }
        _ if ROLES.contains(&role(line).as_str()) => jsonl(line, out),
        _ => {
            found.note = true;
            out.push((Kind::Raw, text.to_owned()));
        }
    }
    if line.get("kind").and_then(Json::text).as_deref() == Some("note") {
        found.note = true;
    }
    Some(found)
}

/// Claude Code's copy of a result, unless it is the result's content.
fn own_copy(line: &Json<'_>, content: &Json<'_>) -> Option<String> {
    let copy = line.get("toolUseResult")?.raw();
    let same = match content.items() {
        [block] => {
            block.get("type").and_then(Json::text).as_deref() == Some("tool_result")
                && block.get("content").is_some_and(|own| own.raw() == copy)
        }
        _ => false,
    };
    (!same).then(|| copy.to_owned())
}

/// Adds the strings that Claude Code attached for the model; `None` for other attachments.
fn attached(line: &Json<'_>, out: &mut Vec<(Kind, String)>) -> Option<()> {
    let attachment = line.get("attachment")?;
    let tag = attachment.get("type")?.text()?;
    let content = || attachment.get("content");
    match tag.as_str() {
        "queued_command" => claude_content(attachment.get("prompt")?, out),
        "file" => push(content()?.get("file")?.get("content")?, Kind::Text, out),
        "hook_additional_context" => {
            for text in content()?.items() {
                push(text, Kind::Text, out);
            }
        }
        _ => return None,
    }
    Some(())
}

fn jsonl(line: &Json<'_>, out: &mut Vec<(Kind, String)>) {
    let mut level = 1;
    if let Some(id) = line.get("tool_call_id").and_then(Json::text) {
        out.push((Kind::ResultId, id));
        level = 2;
    }
    match line.get("parts").or_else(|| line.get("content")) {
        Some(Json::Array(_, parts)) => {
            for part in parts {
                match part {
                    Json::Object(..) if well_formed(part, level) => {
                        export_part(part, level, [None, None], out);
                    }
                    Json::Object(..) if of_others(part, level, out).is_some() => {}
                    Json::Object(raw, _) => out.push((Kind::Raw, (*raw).to_owned())),
                    _ => push(part, text_kind(level), out),
                }
            }
        }
        Some(Json::Other("null")) | None => {}
        Some(content) => push(content, text_kind(level), out),
    }
    for call in line.get("tool_calls").map_or(&[][..], Json::items) {
        let function = call.get("function").unwrap_or(call);
        let string = |value: Option<&Json<'_>>| value.and_then(Json::text).unwrap_or_default();
        let arguments = function.get("arguments").map_or("", Json::raw);
        out.extend([
            (Kind::CallId, string(call.get("id"))),
            (Kind::ToolName, string(function.get("name"))),
            (Kind::Arguments, arguments.to_owned()),
        ]);
    }
}

/// A text or a picture as providers' interfaces write it.
fn of_others(part: &Json<'_>, level: usize, out: &mut Vec<(Kind, String)>) -> Option<()> {
    match part.get("type")?.text()?.as_str() {
        _ if part.repeats() => return None,
        "text" | "input_text" | "output_text" => {
            let text = part.get("text")?;
            text.decoded()?;
            push(text, text_kind(level), out);
        }
        "image_url" => {
            let image = part.get("image_url")?;
            let url = image.get("url").unwrap_or(image).text()?;
            let data = url.split_once(";base64,").map(|(_, data)| data.to_owned());
            out.push((Kind::Media, data.unwrap_or(url)));
        }
        _ => return None,
    }
    Some(())
}

/// Whether a part has the shape that the export format documents, and nothing beside it. On the
/// message's own level a member that may be missing may be `null`.
fn well_formed(part: &Json<'_>, level: usize) -> bool {
    let tag = part.get("type").and_then(Json::text).unwrap_or_default();
    let (strings, others): (&[&str], &[&str]) = match tag.as_str() {
        "text" => (&["text"], &[]),
        "reasoning" => (&["text"], &["signature"]),
        "tool_call" => (&["id", "name"], &["arguments"]),
        "tool_result" => (&["call_id"], &["content", "is_error"]),
        "image" | "file" => (&["media_type"], &["data", "url"]),
        "unknown" => (&[], &["raw"]),
        _ => return false,
    };
    let text = |key: &&str| part.get(key).and_then(Json::text).is_some();
    let known = |key: &&str| {
        let key = key.trim_matches('"');
        key == "type" || strings.contains(&key) || others.contains(&key)
    };
    let null = |key: &&str| part.get(key).is_some_and(|value| value.raw() == "null");
    let content = match part.get("content") {
        Some(Json::Array(_, items)) => {
            level < MAX_LEVEL && items.iter().all(|item| matches!(item, Json::Object(..)))
        }
        content => tag != "tool_result" || content.and_then(Json::text).is_some(),
    };
    strings.iter().all(text)
        && content
        && part.keys().iter().all(known)
        && !part.repeats()
        && (level == 1 || !["signature", "is_error", "data", "url"].iter().any(null))
}

/// Adds a string's text. Adds its bytes too if the text is not all of it, or if it is no string.
fn push(value: &Json<'_>, kind: Kind, out: &mut Vec<(Kind, String)>) {
    let decoded = value.decoded();
    let whole = decoded.as_ref().is_some_and(|(_, whole)| *whole);
    out.extend(decoded.map(|(text, _)| (kind, text)));
    if !whole {
        out.push((Kind::Raw, value.raw().to_owned()));
    }
}

fn claude_content(content: &Json<'_>, out: &mut Vec<(Kind, String)>) {
    match content {
        Json::Array(_, blocks) => {
            for block in blocks {
                if claude_block(block, 1, out).is_none() {
                    out.push((Kind::Raw, block.raw().to_owned()));
                }
            }
        }
        _ => push(content, Kind::Text, out),
    }
}

fn claude_block(block: &Json<'_>, level: usize, out: &mut Vec<(Kind, String)>) -> Option<()> {
    let string = |key: &str| block.get(key).and_then(Json::text);
    let tag = string("type")?;
    if block.repeats() {
        return None;
    }
    match tag.as_str() {
        "text" => {
            let text = block.get("text")?;
            text.decoded()?;
            push(text, text_kind(level), out);
        }
        "thinking" => {
            out.push((Kind::Reasoning, string("thinking")?));
            let signature = string("signature").or_else(|| string("thinkingSignature"));
            out.extend(signature.map(|text| (Kind::Signature, text)));
        }
        "tool_use" => {
            let (id, name) = (string("id")?, string("name")?);
            let input = block.get("input")?.raw().to_owned();
            out.extend([
                (Kind::CallId, id),
                (Kind::ToolName, name),
                (Kind::Arguments, input),
            ]);
        }
        "toolCall" => {
            let (id, name) = (string("id")?, string("name")?);
            let input = block.get("arguments")?.raw().to_owned();
            out.extend([
                (Kind::CallId, id),
                (Kind::ToolName, name),
                (Kind::Arguments, input),
            ]);
        }
        "tool_result" => {
            let is_error = block.get("is_error").map(Json::raw);
            let content = block.get("content");
            match (is_error, content) {
                (_, Some(Json::Array(..))) if level >= MAX_LEVEL => return None,
                (None | Some("true" | "false" | "null"), _) => {}
                _ => return None,
            }
            out.push((Kind::ResultId, string("tool_use_id")?));
            out.extend(is_error.map(|stated| (Kind::IsError, stated.to_owned())));
            match content {
                Some(content) => result(content, level, out),
                None => out.push((Kind::ResultText, String::new())),
            }
        }
        "image" | "document" => {
            let media = block.get("source").unwrap_or(block);
            let tag = media.get("type")?.text()?;
            ["image", "base64", "url"]
                .contains(&tag.as_str())
                .then_some(())?;
            let data = media.get("data").or_else(|| media.get("url"))?.text()?;
            out.push((Kind::Media, data));
        }
        _ => return None,
    }
    Some(())
}

fn result(content: &Json<'_>, level: usize, out: &mut Vec<(Kind, String)>) {
    match content {
        Json::Array(_, items) => {
            for item in items {
                if claude_block(item, level + 1, out).is_none() {
                    out.push((Kind::Raw, item.raw().to_owned()));
                }
            }
        }
        _ => push(content, Kind::ResultText, out),
    }
}

fn pi_message(message: &Json<'_>, role: &str, out: &mut Vec<(Kind, String)>) -> Option<()> {
    let string = |key: &str| message.get(key).and_then(Json::text);
    match role {
        "user" | "assistant" | "custom" => claude_content(message.get("content")?, out),
        "toolResult" => {
            out.push((Kind::ResultId, string("toolCallId")?));
            let is_error = message.get("isError");
            out.extend(is_error.map(|stated| (Kind::IsError, stated.raw().to_owned())));
            result(message.get("content")?, 1, out);
        }
        "bashExecution" if message.get("excludeFromContext").map(Json::raw) == Some("true") => {
            return None;
        }
        "bashExecution" => {
            let (command, _) = message.get("command")?.decoded()?;
            let (output, whole) = message.get("output")?.decoded()?;
            out.push((Kind::Text, [command, output].join("\n")));
            if !whole {
                out.push((Kind::Raw, message.get("output")?.raw().to_owned()));
            }
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export(id: &str, text: &str) -> String {
        format!(
            r#"{{"kind":"message","external_id":"{id}","parts":[{{"type":"text","text":"{text}"}}]}}"#
        )
    }

    #[test]
    fn loss_doubling_and_disorder_are_seen() {
        let line = |id: &str| {
            format!(r#"{{"type":"user","uuid":"{id}","message":{{"content":"text {id}"}}}}"#)
        };
        let source = Source::parse([line("a"), line("b")].join("\n").as_bytes());
        assert_eq!(source.expected().len(), 2);
        let (a, b) = (export("a", "text a"), export("b", "text b"));
        let run = |lines: &[&String]| {
            let lines: Vec<&str> = lines.iter().map(|line| line.as_str()).collect();
            check(&source, &[lines.join("\n")])
        };
        assert_eq!(run(&[&a, &b]).unwrap().messages, 2);
        assert_eq!(run(&[&a]).unwrap_err(), "line 2: not found");
        assert_eq!(run(&[&b, &a]).unwrap_err(), "line 1: out of order");
        assert!(run(&[&a, &a, &b]).is_err());
        let fork = format!("{a}\n{b}");
        assert_eq!(check(&source, &[a.clone(), fork]).unwrap().messages, 2);
        assert!(run(&[&a, &export("b", "text b ")]).is_err());
        assert!(run(&[&a, &export("c", "text b")]).is_err());
    }
}
