//! Messages in the shapes of the providers' interfaces and of the export format, one JSON object each.

use memory_model::{
    EntryKind, Media, MediaSource, Message, Part, RawJson, ResultContent, Role, Timestamp, TurnId,
    inner_part_from_raw, part_from_raw,
};
use serde_json::value::RawValue;

use crate::Report;
use crate::blocks::{Blocks, Dialect, only_results};
use crate::json_lines::Line;
use crate::raw::{Member, MetaBuilder, RawObject, Reading, list, readable, string};
use crate::session::{SessionBuilder, note, unknown};

/// Keys of the export format that a message carries otherwise. A store numbers and counts anew.
const CARRIED: [&str; 11] = [
    "role",
    "name",
    "created_at",
    "seq",
    "kind",
    "external_id",
    "response",
    "turn",
    "tokens",
    "meta",
    "session",
];
/// Number of the keys that a message of other programs has too.
const CARRIED_OF_OTHERS: usize = 3;

/// The role of a result in the chat format before calls had ids.
const FUNCTION: &str = "function";
const DEVELOPER: &str = "developer";
/// The role of the model in Gemini's shape.
const MODEL: &str = "model";

/// Keys of a line that hold its time, the program's own first.
const TIMES: [&str; 3] = ["created_at", "timestamp", "ts"];

/// Keys of a part that may be missing.
const OPTIONAL: [&str; 4] = ["is_error", "signature", "data", "url"];

/// Keys beside the content that hold a model's reasoning; the first that is there is read.
const REASONING: [&str; 3] = ["reasoning_content", "reasoning", "thinking"];

/// Start of a signature that Gemini gave, and the signature of a call that another model wrote.
const GEMINI_SIGNED: &str = "gemini:";
const GEMINI_UNSIGNED: &str = "skip_thought_signature_validator";

/// Calls that have no id; a result answers them by their name.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    count: u64,
    /// Names and ids of those that have no result, oldest first.
    open: Vec<(String, String)>,
}

impl Calls {
    fn call(&mut self, name: &str) -> String {
        self.count += 1;
        let id = format!("function-{}", self.count);
        self.open.push((name.to_owned(), id.clone()));
        id
    }

    /// Returns the id of the oldest open call of this name, and closes the call.
    fn answer_open(&mut self, name: &str) -> Option<String> {
        let at = self.open.iter().position(|(open, _)| open == name)?;
        Some(self.open.remove(at).1)
    }

    /// Returns the id as [`answer_open`](Self::answer_open) does; an id made from the name if no call is open.
    fn answer(&mut self, name: &str) -> String {
        self.answer_open(name)
            .unwrap_or_else(|| format!("function-{name}"))
    }
}

/// The program that wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    /// This one, or a person: keys may have the meaning of the export format.
    Export,
    /// Another one.
    Other,
}

/// Adds the message of a list that another program wrote. Its id is the message's own.
pub(crate) fn push(
    line: &Line<'_>,
    calls: &mut Calls,
    log: &mut SessionBuilder,
    report: &mut Report,
) -> Option<String> {
    report.lines += 1;
    let found = message(line, Reading::Now, calls, Writer::Other);
    let message = found.map_or_else(|| kept(line, report), |(message, _)| message);
    log.push(message, line.object.id("id"), line.text)
}

/// The note of a line that is no message, counted by its type. An item of the model is a message.
fn kept(line: &Line<'_>, report: &mut Report) -> Message {
    let kind = line.object.string("type").unwrap_or_default();
    let is_call = kind.ends_with("_call") && line.object.get("role").is_none();
    match kind.as_str() {
        "" | "message" if !has_no_role(line) => {}
        "" | "message" => report.warn("unknown_role", line.number),
        kind => report.warn(kind, line.number),
    }
    match is_call {
        true => Message::new(Role::Assistant, vec![unknown(line.text)]),
        false => whole(line),
    }
}

/// Whether a line neither has a known role nor calls itself a note.
pub(crate) fn has_no_role(line: &Line<'_>) -> bool {
    let role = line.object.string("role");
    let kind = line.object.string("kind");
    role.as_deref().and_then(role_of).is_none() && kind.as_deref() != Some(EntryKind::Note.as_str())
}

/// A line that no message can hold exactly: in its place and whole, as a message if it names a role and no other kind,
/// else as a note.
pub(crate) fn whole(line: &Line<'_>) -> Message {
    let role = line.object.string("role");
    let role = role.as_deref().and_then(role_of);
    let kind = line.object.string("kind");
    match (role, kind.as_deref()) {
        (Some(role), None | Some("message")) => Message::new(role, vec![unknown(line.text)]),
        (role, _) => note(role.unwrap_or(Role::System), line.text),
    }
}

/// The role that a name stands for.
fn role_of(name: &str) -> Option<Role> {
    match name {
        DEVELOPER => Some(Role::System),
        MODEL => Some(Role::Assistant),
        other => Role::parse(other),
    }
}

/// The message of a line, and whether the first reading may have read it otherwise; `None` when it has no role that is known, or a
/// key twice.
pub(crate) fn message(
    line: &Line<'_>,
    reading: Reading,
    calls: &mut Calls,
    writer: Writer,
) -> Option<(Message, bool)> {
    let object = &line.object;
    if object.repeats() {
        return None;
    }
    let is_export = writer == Writer::Export;
    let mut carried = match is_export {
        true => CARRIED.to_vec(),
        false => CARRIED[..CARRIED_OF_OTHERS].to_vec(),
    };
    if !is_export && object.id("id").is_some() {
        carried.push("id");
    }
    let mut extra = MetaBuilder::default();
    let mut blocks = MetaBuilder::default();
    let mut parts = Vec::new();
    let mut reader = Parts { reading, calls };
    let name = object.string("role");
    let is_now = reading == Reading::Now;
    let is_function = name.as_deref() == Some(FUNCTION) && is_now;
    let mut role = match &name {
        Some(_) if is_function => Role::Tool,
        Some(name) if name != MODEL || is_now => role_of(name)?,
        _ if is_now => {
            let (role, part) = reader.item(line, &mut carried, &mut blocks)?;
            parts.push(part);
            role
        }
        _ => return None,
    };
    if name.is_some() {
        let fields = (&mut carried, &mut blocks);
        reader.fields(object, (role, is_function), &mut parts, fields)?;
    }
    let answers = role == Role::User && blocks.revised && only_results(&parts);
    if answers {
        role = Role::Tool;
    }
    let mut message = Message::new(role, parts);
    if is_export {
        if let Some(kind) = object.present("kind") {
            message.kind = EntryKind::parse(&string(kind)?)?;
        }
        message.response = optional(object, "response")?;
        if let Some(turn) = object.present("turn") {
            message.turn = Some(serde_json::from_str::<TurnId>(turn.get()).ok()?);
        }
    }
    message.name = optional(object, "name")?;
    message.created_at = time(object, reading, writer);
    // The export format says so of an entry without a time.
    let is_null = object
        .get(TIMES[0])
        .is_some_and(|time| time.get() == "null");
    if !is_null || !is_now {
        extra.extend(object.inexact_time(TIMES[0], reading));
    }
    let is_renamed = |name: &str| is_function || answers || [DEVELOPER, MODEL].contains(&name);
    if let Some(name) = name.as_deref().filter(|name| is_renamed(name)) {
        extra.add("\"role\"", &format!("\"{name}\""));
    }
    extra.extend(object.others(&carried));
    let is_new = is_function || name.as_deref().is_none_or(|name| name == MODEL);
    let revised = is_new || blocks.revised || object.time_is_revised(TIMES[0]);
    extra.nest("\"blocks\"", blocks);
    let meta = object.present("meta").filter(|_| is_export);
    message.meta = merge(meta, extra.finish());
    Some((message, revised))
}

/// The time of a line, under the first key that has one. The first reading knew one key; the meta keeps the others.
fn time(object: &RawObject<'_>, reading: Reading, writer: Writer) -> Timestamp {
    let keys = match (reading, writer) {
        (Reading::First, _) => &TIMES[..1],
        (Reading::Now, Writer::Export) => &TIMES[..2],
        (Reading::Now, Writer::Other) => &TIMES[..],
    };
    let known = |name: &&str| object.time(name, reading);
    let mut times = keys.iter().filter_map(known);
    match reading {
        Reading::First => times.next().unwrap_or_default(),
        Reading::Now => times.find(|time| time.is_known()).unwrap_or_default(),
    }
}

/// A string that may be missing or `null`; `None` outside when it is anything else.
fn optional(object: &RawObject<'_>, name: &str) -> Option<Option<String>> {
    object
        .present(name)
        .map(string)
        .map_or(Some(None), |text| text.map(Some))
}

/// The line's own meta, with what else the line held beside it.
fn merge(meta: Option<&RawValue>, extra: Option<RawJson>) -> Option<RawJson> {
    match (meta, extra) {
        (Some(meta), None) => Some(RawJson::from_raw(meta)),
        (None, extra) => extra,
        (Some(meta), Some(extra)) => {
            let mut all = MetaBuilder::default();
            match RawObject::parse(meta.get()) {
                Some(object) => all.extend(object.members.iter()),
                None => all.add("\"meta\"", meta.get()),
            }
            if let Some(extra) = RawObject::parse(extra.as_str()) {
                all.extend(extra.members.iter());
            }
            all.finish()
        }
    }
}

/// Reads content in the shape of any provider. What a part has no place for goes to `extras`, under the part's index. A picture or file
/// behind a result belongs to it.
pub(crate) fn parts(
    value: &RawValue,
    calls: &mut Calls,
    extras: &mut MetaBuilder,
) -> Option<Vec<Part>> {
    let mut found = Vec::new();
    let reading = Reading::Now;
    Parts { reading, calls }.content(value, &mut found, extras)?;
    let mut out: Vec<Part> = Vec::with_capacity(found.len());
    for part in found {
        match (out.last_mut(), part) {
            (Some(Part::ToolResult { content, .. }), part @ (Part::Image(_) | Part::File(_))) => {
                attach(content, part);
            }
            (_, part) => out.push(part),
        }
    }
    Some(out)
}

/// Adds a part to a result.
pub(crate) fn attach(content: &mut ResultContent, part: Part) {
    let mut parts = match std::mem::replace(content, ResultContent::Parts(Vec::new())) {
        ResultContent::Text(text) => vec![Part::text(text)],
        ResultContent::Parts(parts) => parts,
    };
    parts.push(part);
    *content = ResultContent::Parts(parts);
}

/// Reads parts with one version of the reading.
struct Parts<'a> {
    reading: Reading,
    calls: &'a mut Calls,
}

impl Parts<'_> {
    /// Content: a string, or a list of parts and strings. What a part has no place for goes to
    /// `extras`, under the part's index.
    fn content(
        &mut self,
        value: &RawValue,
        out: &mut Vec<Part>,
        extras: &mut MetaBuilder,
    ) -> Option<()> {
        let reading = self.reading;
        content(value, reading, out, extras, |item, out, extra| {
            let found = match reading {
                Reading::First => None,
                Reading::Now => self.gemini(item, out, extra),
            };
            out.push(found.unwrap_or_else(|| part(item, reading, extra)));
        })
    }

    /// The fields of a message: `parts`, or those of the chat format that most providers share: `content`, an
    /// assistant's reasoning and calls, and a tool's answer.
    fn fields(
        &mut self,
        object: &RawObject<'_>,
        (role, is_function): (Role, bool),
        out: &mut Vec<Part>,
        (carried, blocks): (&mut Vec<&str>, &mut MetaBuilder),
    ) -> Option<()> {
        if let Some(value) = object.get("parts") {
            carried.push("parts");
            return self.content(value, out, blocks);
        }
        carried.push("content");
        let is_now = self.reading == Reading::Now;
        let value = object.get("content");
        let stated = object.string("tool_call_id").filter(|_| role == Role::Tool);
        let answers = match stated {
            Some(_) => {
                carried.push("tool_call_id");
                stated
            }
            None if is_function => {
                let name = object.string("name").unwrap_or_default();
                Some(self.calls.answer(&name))
            }
            None if is_now && role == Role::Tool => {
                let found = self.answered(object, carried);
                blocks.revised |= found.is_some();
                found
            }
            None => None,
        };
        if let Some(call_id) = answers {
            out.push(result(call_id, value, self.reading, blocks)?);
            return Some(());
        }
        if is_now && role == Role::Assistant {
            let mut texts = REASONING.iter().filter_map(|key| {
                let text = object.string(key).filter(|text| !text.is_empty())?;
                Some((*key, text))
            });
            if let Some((key, text)) = texts.next() {
                carried.push(key);
                blocks.revised = true;
                let signature = None;
                out.push(Part::Reasoning { text, signature });
            }
        }
        if let Some(value) = value {
            self.content(value, out, blocks)?;
        }
        if is_now && let Some(images) = pictures(object) {
            carried.push("images");
            blocks.revised = true;
            out.extend(images);
        }
        if role != Role::Assistant {
            return Some(());
        }
        if let Some(calls) = object.present("tool_calls") {
            carried.push("tool_calls");
            for call in list(calls)? {
                let mut extra = MetaBuilder::default();
                let part = self.call(call, &mut extra);
                let part = part.unwrap_or_else(|| unknown(call.get()));
                blocks.nest(&format!("\"{}\"", out.len()), extra);
                out.push(part);
            }
        }
        if is_now {
            out.extend(self.function_call(object, carried, blocks));
        }
        Some(())
    }

    /// The id of the call that a tool's message answers without a `tool_call_id`: it is the only one of a list, or of
    /// the oldest open call of the tool.
    fn answered(&mut self, object: &RawObject<'_>, carried: &mut Vec<&str>) -> Option<String> {
        if let Some(ids) = object.get("tool_call_ids") {
            let ids: Vec<String> = serde_json::from_str(ids.get()).ok()?;
            let [id] = ids.as_slice() else { return None };
            carried.push("tool_call_ids");
            return Some(id.clone());
        }
        let name = object
            .string("tool_name")
            .or_else(|| object.string("name"))?;
        self.calls.answer_open(&name)
    }

    /// A call as `{"id","type":"function","function":{"name","arguments"}}`, or as `custom` with an `input`. The arguments
    /// stay what they are, most often a JSON string that holds JSON. Further keys go to `extra`.
    fn call(&mut self, json: &RawValue, extra: &mut MetaBuilder) -> Option<Part> {
        let call = RawObject::parse(json.get()).filter(|call| !call.repeats())?;
        let inner = |key| call.object(key).filter(|inner| !inner.repeats());
        let (key, inner, input) = match inner("function") {
            Some(function) => ("function", function, "arguments"),
            None => ("custom", inner("custom")?, "input"),
        };
        let name = inner.string("name")?;
        let mut found = MetaBuilder::default();
        let known = match key {
            "function" => &["id", key, "type"][..],
            _ => &["id", key],
        };
        found.extend(call.others(known));
        let mut rest = MetaBuilder::default();
        rest.extend(inner.others(&["name", input]));
        found.nest(&format!("\"{key}\""), rest);
        let (id, arguments) = (call.string("id"), inner.get(input).map(RawJson::from_raw));
        let is_exact = found.is_empty() && id.is_some() && arguments.is_some();
        if self.reading == Reading::First && !is_exact {
            return None;
        }
        found.revised = !is_exact;
        extra.take(found);
        Some(Part::ToolCall {
            id: match id {
                Some(id) if is_exact || !id.is_empty() => id,
                _ => self.calls.call(&name),
            },
            name,
            arguments: arguments.map_or_else(|| RawJson::parse("{}"), Ok).ok()?,
        })
    }

    /// The call of a line in the chat format before calls had ids.
    fn function_call(
        &mut self,
        object: &RawObject<'_>,
        carried: &mut Vec<&str>,
        blocks: &mut MetaBuilder,
    ) -> Option<Part> {
        let call = object
            .object("function_call")
            .filter(|call| !call.repeats())?;
        let name = call.string("name")?;
        let arguments = RawJson::from_raw(call.get("arguments")?);
        if call.others(&["name", "arguments"]).next().is_some() {
            return None;
        }
        carried.push("function_call");
        blocks.revised = true;
        Some(Part::ToolCall {
            id: self.calls.call(&name),
            name,
            arguments,
        })
    }

    /// A part in Gemini's shape, which has no `type`. A signature becomes reasoning before its part.
    fn gemini(
        &mut self,
        item: &RawValue,
        out: &mut Vec<Part>,
        extra: &mut MetaBuilder,
    ) -> Option<Part> {
        let object = RawObject::parse(item.get()).filter(|object| !object.repeats())?;
        if object.get("type").is_some() {
            return None;
        }
        let inner = |names: [&'static str; 2]| {
            let mut found = names
                .into_iter()
                .filter_map(|name| Some((name, object.object(name)?)));
            found.next().filter(|(_, inner)| !inner.repeats())
        };
        let signed = object.string("thoughtSignature");
        let signed = signed.filter(|signature| signature != GEMINI_UNSIGNED);
        let mut signature = signed.map(|signature| format!("{GEMINI_SIGNED}{signature}"));
        let (mut found, mut rest) = (MetaBuilder::default(), MetaBuilder::default());
        let mut known = vec!["thoughtSignature"];
        let part = if let Some(value) = object.get("text") {
            known.push("text");
            let text = text(value, self.reading, &mut found)?;
            match object.is_true("thought") {
                true => {
                    known.push("thought");
                    let signature = signature.take();
                    Part::Reasoning { text, signature }
                }
                false => Part::Text { text },
            }
        } else if let Some((key, call)) = inner(["functionCall", "function_call"]) {
            known.push(key);
            rest.extend(call.others(&["id", "name", "args"]));
            let arguments = call.present("args").map(RawJson::from_raw);
            let name = call.string("name")?;
            Part::ToolCall {
                id: call.id("id").unwrap_or_else(|| self.calls.call(&name)),
                name,
                arguments: arguments.map_or_else(|| RawJson::parse("{}"), Ok).ok()?,
            }
        } else if let Some((key, answer)) = inner(["functionResponse", "function_response"]) {
            known.push(key);
            rest.extend(answer.others(&["id", "response"]));
            let name = answer.string("name")?;
            let (content, is_error) = response(answer.get("response"));
            Part::ToolResult {
                call_id: answer.id("id").unwrap_or_else(|| self.calls.answer(&name)),
                content,
                is_error,
            }
        } else {
            let (key, data) = inner(["inlineData", "inline_data"])
                .or_else(|| inner(["fileData", "file_data"]))?;
            known.push(key);
            let field = |one: &str, other: &str| data.string(one).or_else(|| data.string(other));
            let source = match key.starts_with("inline") {
                true => MediaSource::Data(data.string("data")?),
                false => MediaSource::Url(field("fileUri", "file_uri")?),
            };
            rest.extend(data.others(&["mimeType", "mime_type", "data", "fileUri", "file_uri"]));
            media(field("mimeType", "mime_type").as_deref(), source)
        };
        if let (Some(key), false) = (known.last(), rest.is_empty()) {
            found.nest(&format!("\"{key}\""), rest);
        }
        found.extend(object.others(&known));
        if signature.is_some() {
            let text = String::new();
            out.push(Part::Reasoning { text, signature });
        }
        extra.take(found);
        extra.revised = true;
        Some(part)
    }

    /// An item of the responses interface that is no message.
    fn item(
        &mut self,
        line: &Line<'_>,
        carried: &mut Vec<&str>,
        blocks: &mut MetaBuilder,
    ) -> Option<(Role, Part)> {
        let object = &line.object;
        let tag = object.string("type")?;
        let part = match tag.as_str() {
            "function_call" | "custom_tool_call" => {
                let input = match tag.as_str() {
                    "function_call" => "arguments",
                    _ => "input",
                };
                carried.extend(["call_id", input, "name"]);
                Part::ToolCall {
                    id: object.id("call_id")?,
                    name: object.string("name")?,
                    arguments: RawJson::from_raw(object.get(input)?),
                }
            }
            "function_call_output" | "custom_tool_call_output" => {
                carried.extend(["call_id", "output"]);
                let call_id = object.id("call_id")?;
                let part = result(call_id, object.get("output"), self.reading, blocks)?;
                return Some((Role::Tool, part));
            }
            "reasoning" => {
                carried.extend(["summary", "encrypted_content", "content"]);
                let summary = object.get("summary").and_then(list).unwrap_or_default();
                let texts = summary
                    .iter()
                    .filter_map(|item| RawObject::parse(item.get()));
                let texts: Vec<String> = texts.filter_map(|item| item.string("text")).collect();
                Part::Reasoning {
                    text: texts.join("\n\n"),
                    signature: Some(line.text.to_owned()),
                }
            }
            _ => return None,
        };
        Some((Role::Assistant, part))
    }
}

/// The result of a call. Keys that no part models go to `blocks`.
pub(crate) fn result(
    call_id: String,
    value: Option<&RawValue>,
    reading: Reading,
    blocks: &mut MetaBuilder,
) -> Option<Part> {
    let mut extras = MetaBuilder::default();
    let mut parts = Vec::new();
    if let Some(value) = value {
        content(
            value,
            reading,
            &mut parts,
            &mut extras,
            |item, out, extra| {
                out.push(inner_part(item, reading, extra));
            },
        )?;
    }
    let content = match parts.as_slice() {
        [] if value.is_none() => ResultContent::Text(String::new()),
        [Part::Text { text }] if value.is_some_and(|value| value.get().starts_with('"')) => {
            ResultContent::Text(text.clone())
        }
        _ => ResultContent::Parts(parts),
    };
    let mut extra = MetaBuilder::default();
    extra.nest("\"content\"", extras);
    blocks.nest("\"0\"", extra);
    Some(Part::ToolResult {
        call_id,
        content,
        is_error: None,
    })
}

/// What a Gemini tool returned, and whether it failed.
fn response(value: Option<&RawValue>) -> (ResultContent, Option<bool>) {
    let Some(value) = value else {
        return (ResultContent::Text(String::new()), None);
    };
    let only = RawObject::parse(value.get()).filter(|object| object.members.len() == 1);
    let text = |key| only.as_ref().and_then(|object| object.string(key));
    match (text("output").or_else(|| text("result")), text("error")) {
        (Some(text), _) => (ResultContent::Text(text), None),
        (None, Some(error)) => (ResultContent::Text(error), Some(true)),
        (None, None) => (ResultContent::Text(value.get().to_owned()), None),
    }
}

/// The pictures of a message in Ollama's shape.
fn pictures(object: &RawObject<'_>) -> Option<Vec<Part>> {
    let images: Vec<String> = serde_json::from_str(object.get("images")?.get()).ok()?;
    let picture = |data| media(Some("image/*"), MediaSource::Data(data));
    Some(images.into_iter().map(picture).collect())
}

/// An image, or another file.
fn media(media_type: Option<&str>, source: MediaSource) -> Part {
    let media_type = media_type.unwrap_or("application/octet-stream").to_owned();
    let media = Media { media_type, source };
    match media.media_type.starts_with("image/") {
        true => Part::Image(media),
        false => Part::File(media),
    }
}

/// The image or file that a URL points to, or that a data URL holds.
pub(crate) fn linked_media(media_type: Option<&str>, url: &str) -> Part {
    let found = url_media(url, media_type.unwrap_or("application/octet-stream"));
    media(Some(&found.media_type), found.source)
}

/// Content, its objects read by `put`, which adds at least one part. What the last of these parts has no place for goes to
/// `extras`, under its index.
fn content(
    value: &RawValue,
    reading: Reading,
    out: &mut Vec<Part>,
    extras: &mut MetaBuilder,
    mut put: impl FnMut(&RawValue, &mut Vec<Part>, &mut MetaBuilder),
) -> Option<()> {
    let mut add = |item: &RawValue| {
        let mut extra = MetaBuilder::default();
        match item.get().as_bytes().first() {
            Some(b'{') => put(item, out, &mut extra),
            _ => {
                let text = text(item, reading, &mut extra);
                out.push(text.map_or_else(|| unknown(item.get()), Part::text));
            }
        }
        extras.nest(&format!("\"{}\"", out.len().saturating_sub(1)), extra);
    };
    match value.get().as_bytes().first() {
        Some(b'"') => add(value),
        Some(b'[') => list(value)?.into_iter().for_each(add),
        _ if value.get() == "null" => {}
        _ => out.push(unknown(value.get())),
    }
    Some(())
}

/// The text of a string; one that is not all of it is kept in `extra`.
fn text(value: &RawValue, reading: Reading, extra: &mut MetaBuilder) -> Option<String> {
    let (text, whole) = readable(value, reading)?;
    if !whole {
        extra.add("\"text\"", value.get());
        extra.revised = true;
    }
    Some(text)
}

/// A part. Members that may be missing and are `null` go to `extra`: with them it would be an
/// unknown part, and a result without its call. So do those that other programs write.
fn part(item: &RawValue, reading: Reading, extra: &mut MetaBuilder) -> Part {
    let read = part_from_raw(item);
    if !matches!(read, Part::Unknown { .. }) {
        return read;
    }
    let Some(object) = RawObject::parse(item.get()).filter(|object| !object.repeats()) else {
        return read;
    };
    without_nulls(item, &object, extra)
        .or_else(|| of_others(&object, 1, reading, extra))
        .unwrap_or(read)
}

/// Reads a part without its optional members that are `null`; they go to `extra`.
fn without_nulls(item: &RawValue, object: &RawObject<'_>, extra: &mut MetaBuilder) -> Option<Part> {
    if !item.get().contains("null") {
        return None;
    }
    let (nulls, others): (Vec<_>, Vec<_>) = object.members.iter().partition(|member| {
        OPTIONAL.contains(&member.name.as_ref()) && member.value.get() == "null"
    });
    let mut rest = MetaBuilder::default();
    rest.extend(others.into_iter());
    let rest = rest.finish().filter(|_| !nulls.is_empty())?;
    match serde_json::from_str::<Part>(rest.as_str()).ok()? {
        Part::Unknown { .. } => None,
        part => {
            extra.extend(nulls.into_iter());
            Some(part)
        }
    }
}

/// Reads a text, a picture or a file in the shape of a provider's interface. Members that the part cannot hold go to
/// `extra`.
fn of_others(
    object: &RawObject<'_>,
    level: usize,
    reading: Reading,
    extra: &mut MetaBuilder,
) -> Option<Part> {
    if reading == Reading::First {
        return None;
    }
    let tag = object.string("type")?;
    let mut found = MetaBuilder::default();
    let part = match tag.as_str() {
        "text" | "input_text" | "output_text" => {
            let text = text(object.get("text")?, reading, &mut found)?;
            if tag != "text" {
                found.extend(object.members.iter().filter(|member| member.name == "type"));
            }
            found.extend(object.others(&["type", "text"]));
            Part::Text { text }
        }
        "image_url" | "input_image" => {
            let url = media_url(object, "image_url", "url", &mut found)?;
            Part::Image(url_media(&url, "image/*"))
        }
        "file" | "input_file" => {
            let url = match object.get("file") {
                Some(_) => media_url(object, "file", "file_data", &mut found)?,
                None => media_url(object, "file_data", "", &mut found)?,
            };
            Part::File(url_media(&url, "application/octet-stream"))
        }
        "image" | "document" => {
            let source = object.object("source").filter(|source| !source.repeats())?;
            let (media_type, key) = match source.string("type")?.as_str() {
                "base64" => (source.string("media_type")?, "data"),
                "url" => ("image/*".to_owned(), "url"),
                _ => return None,
            };
            let data = source.string(key)?;
            found.extend(object.members.iter().filter(|member| member.name == "type"));
            let mut rest = MetaBuilder::default();
            rest.extend(source.others(&[key]));
            found.nest("\"source\"", rest);
            found.extend(object.others(&["type", "source"]));
            let source = match key {
                "data" => MediaSource::Data(data),
                _ => MediaSource::Url(data),
            };
            let media = Media { media_type, source };
            match tag.as_str() {
                "image" => Part::Image(media),
                _ => Part::File(media),
            }
        }
        "tool_use" | "tool_result" | "thinking" => {
            Blocks::new(Dialect::Claude, reading).known(object, level, &mut found)?
        }
        _ => return None,
    };
    extra.take(found);
    extra.revised = true;
    Some(part)
}

/// Returns the URL of a medium under `key`, or under `inner` of the object there. All other members go to `extra`, and
/// so does the head of a data URL.
fn media_url(
    object: &RawObject<'_>,
    key: &str,
    inner: &str,
    extra: &mut MetaBuilder,
) -> Option<String> {
    let value = object.get(key)?;
    let found = RawObject::parse(value.get()).filter(|found| !found.repeats());
    let url = match &found {
        Some(found) => found.string(inner)?,
        None => string(value)?,
    };
    let head = data_url(&url).map(|(head, ..)| serde_json::Value::from(head).to_string());
    let put = |into: &mut MetaBuilder, member: &Member<'_>, is_url: bool| match (is_url, &head) {
        (false, _) => into.add(member.key, member.value.get()),
        (true, Some(head)) => into.add(member.key, head),
        (true, None) => {}
    };
    for member in &object.members {
        match &found {
            Some(found) if member.name == key => {
                let mut rest = MetaBuilder::default();
                for member in &found.members {
                    put(&mut rest, member, member.name == inner);
                }
                extra.nest(member.key, rest);
            }
            _ => put(extra, member, member.name == key),
        }
    }
    Some(url)
}

/// A data URL in base64: its head, its media type and its data.
fn data_url(url: &str) -> Option<(&str, &str, &str)> {
    let comma = url.find(',')?;
    let (head, data) = url.split_at_checked(comma + 1)?;
    let described = head.strip_prefix("data:")?.strip_suffix(";base64,")?;
    let media_type = described.split(';').next().unwrap_or_default();
    Some((head, media_type, data))
}

/// Returns the medium that a URL points to, or that a data URL holds.
fn url_media(url: &str, fallback: &str) -> Media {
    match data_url(url) {
        Some((_, media_type, data)) => Media {
            media_type: match media_type {
                "" => fallback.to_owned(),
                stated => stated.to_owned(),
            },
            source: MediaSource::Data(data.to_owned()),
        },
        None => Media {
            media_type: fallback.to_owned(),
            source: MediaSource::Url(url.to_owned()),
        },
    }
}

/// A part of a result.
fn inner_part(item: &RawValue, reading: Reading, extra: &mut MetaBuilder) -> Part {
    let read = inner_part_from_raw(item);
    if !matches!(read, Part::Unknown { .. }) {
        return read;
    }
    RawObject::parse(item.get())
        .filter(|object| !object.repeats())
        .and_then(|object| of_others(&object, 2, reading, extra))
        .unwrap_or(read)
}
