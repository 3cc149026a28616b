//! Reads messages in the shapes of the providers' interfaces and of the export format. Each message is one JSON object.

mod calls;
mod content;

use memory_model::{EntryKind, Message, Part, RawJson, Role, Timestamp, TurnId};
use serde_json::value::RawValue;

pub(crate) use self::calls::Calls;
use self::content::{Parts, pictures};
pub(crate) use self::content::{attach, linked_media, parts, result};
use crate::Report;
use crate::blocks::only_results;
use crate::json_lines::Line;
use crate::raw::{MetaBuilder, RawObject, list, readable, string};
use crate::session::{SessionBuilder, note, unknown};

/// Keys of the export format that have fields in a message, or that a store computes again.
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
/// Number of these keys that messages of other programs can have too.
const CARRIED_OF_OTHERS: usize = 3;

/// Role of a result in the older chat format without call ids.
const FUNCTION: &str = "function";
const DEVELOPER: &str = "developer";
/// Role of the model in Gemini's shape.
const MODEL: &str = "model";

/// Keys of a line that hold its time. The export format's key is the first.
const TIMES: [&str; 3] = ["created_at", "timestamp", "ts"];

/// Keys of a message that hold a model's reasoning. The first one in the message is read.
const REASONING: [&str; 3] = ["reasoning_content", "reasoning", "thinking"];

/// Program that wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    /// This program or a person. Keys can have the meaning of the export format.
    Export,
    /// Another program.
    Other,
}

/// Adds a message of another program from a list. Its external id is the message's id.
pub(crate) fn push(
    line: &Line<'_>,
    calls: &mut Calls,
    log: &mut SessionBuilder,
    report: &mut Report,
) -> Option<String> {
    report.lines += 1;
    let found = message(line, calls, Writer::Other);
    let message = found.unwrap_or_else(|| kept(line, report));
    log.push(message, line.object.id("id"), line.text)
}

/// Returns the note of a line without a message, and counts the line by its type. A call of the model becomes a
/// message.
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

/// Returns whether a line has neither a known role nor the kind of a note.
pub(crate) fn has_no_role(line: &Line<'_>) -> bool {
    let role = line.object.string("role");
    let kind = line.object.string("kind");
    role.is_none_or(|role| role_of(&role).is_none())
        && kind.as_deref() != Some(EntryKind::Note.as_str())
}

/// Keeps a line that no message can hold exactly, whole and in its place. It becomes a message if it names a role and
/// no other kind, and otherwise a note.
pub(crate) fn whole(line: &Line<'_>) -> Message {
    let role = line.object.string("role");
    let role = role.and_then(|role| role_of(&role));
    let kind = line.object.string("kind");
    match (role, kind.as_deref()) {
        (Some(role), None | Some("message")) => Message::new(role, vec![unknown(line.text)]),
        (role, _) => note(role.unwrap_or(Role::System), line.text),
    }
}

/// Returns the role with a name.
fn role_of(name: &str) -> Option<Role> {
    match name {
        DEVELOPER => Some(Role::System),
        MODEL => Some(Role::Assistant),
        other => Role::parse(other),
    }
}

/// Reads the message of a line. Returns `None` if the line has no known role or has a key twice.
pub(crate) fn message(line: &Line<'_>, calls: &mut Calls, writer: Writer) -> Option<Message> {
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
    let mut reader = Parts::new(calls);
    let name = object.string("role");
    let is_function = name.as_deref() == Some(FUNCTION);
    let mut role = match &name {
        Some(_) if is_function => Role::Tool,
        Some(name) => role_of(name)?,
        None => {
            let (role, part) = reader.item(line, &mut carried, &mut blocks)?;
            parts.push(part);
            role
        }
    };
    if name.is_some() {
        let fields = (&mut carried, &mut blocks);
        reader.fields(object, (role, is_function), &mut parts, fields)?;
    }
    let answers = role == Role::User && reader.is_of_others && only_results(&parts);
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
    message.created_at = time(object, writer);
    // The export format writes `null` for an entry without a time.
    let is_null = object
        .get(TIMES[0])
        .is_some_and(|time| time.get() == "null");
    if !is_null {
        extra.extend(object.inexact_time(TIMES[0]));
    }
    let is_renamed = |name: &str| is_function || answers || [DEVELOPER, MODEL].contains(&name);
    if let Some(name) = name.as_deref().filter(|name| is_renamed(name)) {
        extra.add("\"role\"", &format!("\"{name}\""));
    }
    extra.extend(object.others(&carried));
    extra.nest("\"blocks\"", blocks);
    let meta = object.present("meta").filter(|_| is_export);
    message.meta = merge(meta, extra.finish());
    Some(message)
}

/// Returns the time of a line, under the first key with one. The meta keeps the others.
fn time(object: &RawObject<'_>, writer: Writer) -> Timestamp {
    let keys = match writer {
        Writer::Export => &TIMES[..2],
        Writer::Other => &TIMES[..],
    };
    let mut times = keys.iter().filter_map(|name| object.time(name));
    times.find(|time| time.is_known()).unwrap_or_default()
}

/// Returns the reasoning of an assistant's message, and its key.
pub(crate) fn reasoning(object: &RawObject<'_>) -> Option<(&'static str, Part)> {
    let mut found = REASONING.iter().filter_map(|key| {
        let text = object.string(key).filter(|text| !text.is_empty())?;
        let signature = None;
        Some((*key, Part::Reasoning { text, signature }))
    });
    found.next()
}

/// Reads a string that can be missing or `null`. The outer `None` means any other value.
fn optional(object: &RawObject<'_>, name: &str) -> Option<Option<String>> {
    object
        .present(name)
        .map(string)
        .map_or(Some(None), |text| text.map(Some))
}

/// Merges the line's meta with the line's other members.
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

impl Parts<'_> {
    /// Reads the fields of a message: `parts`, or the fields of the common chat format. These are `content`, the
    /// reasoning and calls of an assistant, and the call that a tool's message answers.
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
        let value = object.get("content");
        let stated = object.string("tool_call_id").filter(|_| role == Role::Tool);
        let answers = match stated {
            Some(id) => {
                carried.push("tool_call_id");
                self.calls.close(&id);
                Some(id)
            }
            None if is_function => {
                let name = object.string("name").unwrap_or_default();
                Some(self.calls.answer(None, &name))
            }
            None if role == Role::Tool => self.answered(object, carried),
            None => None,
        };
        if let Some(call_id) = answers {
            out.push(result(call_id, value, blocks)?);
            return Some(());
        }
        if role == Role::Assistant
            && let Some((key, part)) = reasoning(object)
        {
            carried.push(key);
            out.push(part);
        }
        if let Some(value) = value {
            self.content(value, out, blocks)?;
        }
        if let Some(images) = pictures(object) {
            carried.push("images");
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
        out.extend(self.function_call(object, carried));
        Some(())
    }

    /// Returns the id of the call that a tool's message answers without a `tool_call_id`. It is the only id of a list,
    /// or the id of the oldest open call of the tool.
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

    /// Reads a call of the form `{"id","type":"function","function":{"name","arguments"}}`, or a `custom` one with an
    /// `input`. The arguments stay as they came, most often as a JSON string with JSON inside. Further keys are added
    /// to `extra`.
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
        extra.take(found);
        let id = id.filter(|id| is_exact || !id.is_empty());
        Some(Part::ToolCall {
            id: self.calls.call(id, &name),
            name,
            arguments: arguments.map_or_else(|| RawJson::parse("{}"), Ok).ok()?,
        })
    }

    /// Reads the call of a line in the older chat format without call ids.
    fn function_call(&mut self, object: &RawObject<'_>, carried: &mut Vec<&str>) -> Option<Part> {
        let call = object
            .object("function_call")
            .filter(|call| !call.repeats())?;
        let name = call.string("name")?;
        let arguments = RawJson::from_raw(call.get("arguments")?);
        if call.others(&["name", "arguments"]).next().is_some() {
            return None;
        }
        carried.push("function_call");
        Some(Part::ToolCall {
            id: self.calls.call(None, &name),
            name,
            arguments,
        })
    }

    /// Reads an item of the responses interface that is no message.
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
                let arguments = RawJson::from_raw(object.get(input)?);
                let (id, name) = (object.id("call_id")?, object.string("name")?);
                Part::ToolCall {
                    id: self.calls.call(Some(id), &name),
                    name,
                    arguments,
                }
            }
            "function_call_output" | "custom_tool_call_output" => {
                carried.extend(["call_id", "output"]);
                let call_id = object.id("call_id")?;
                self.calls.close(&call_id);
                let part = result(call_id, object.get("output"), blocks)?;
                return Some((Role::Tool, part));
            }
            "reasoning" => {
                carried.extend(["summary", "encrypted_content", "content"]);
                let lists = ["summary", "content"].into_iter();
                let items = lists.filter_map(|key| list(object.get(key)?)).flatten();
                let texts = items.filter_map(|item| {
                    let value = RawObject::parse(item.get())?.get("text")?;
                    Some(readable(value)?.0)
                });
                let texts: Vec<String> = texts.collect();
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
