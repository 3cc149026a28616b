//! Plain JSON lines: the export format, and as little as `{"role":"user","content":"…"}`.

use memory_model::{
    EntryKind, Message, Part, RawJson, ResultContent, Role, SessionKey, TurnId,
    inner_part_from_raw, part_from_raw,
};
use serde_json::value::RawValue;

use crate::detect::{self, Kind};
use crate::json_lines::{self, Line, LineReader};
use crate::raw::{MetaBuilder, RawObject, list, string};
use crate::session::{SessionBuilder, note, short_hash, unknown};
use crate::{Confidence, Error, Format, Head, Input, Origin, ReadOptions, Report, Sink};

/// Keys that a message carries otherwise. A store numbers and counts anew.
const CARRIED: [&str; 11] = [
    "seq",
    "kind",
    "external_id",
    "response",
    "role",
    "name",
    "turn",
    "created_at",
    "tokens",
    "meta",
    "session",
];

/// Keys of a part that may be missing.
const OPTIONAL: [&str; 4] = ["is_error", "signature", "data", "url"];

/// Plain JSON lines: the export format, or as little as `{"role":"user","content":"…"}`.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct PlainLines {}

impl PlainLines {
    /// Creates the format.
    pub fn new() -> Self {
        Self {}
    }
}

impl Format for PlainLines {
    fn name(&self) -> &str {
        "jsonl"
    }

    fn sniff(&self, head: &Head<'_>) -> Confidence {
        detect::sniff(head, Kind::Plain)
    }

    fn read(
        &self,
        input: Input<'_>,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<Report, Error> {
        let mut reader = Reader {
            session: options.session.clone(),
            made: None,
            sessions: Vec::new(),
        };
        let report = json_lines::read(input, options, &mut reader)?;
        for ((key, named), log) in reader.sessions {
            let mut log = log.finish(SessionKey::new(key));
            log.named = named;
            sink.session(log)?;
        }
        Ok(report)
    }
}

/// Reads lines in file order, each into the session it names.
#[derive(Debug)]
struct Reader {
    /// The session of lines that name none, if the caller gave it.
    session: Option<String>,
    /// The key that is made from the first line, for lines that name no session when none was given.
    made: Option<String>,
    /// The sessions by key, and whether somebody named them so.
    sessions: Vec<((String, bool), SessionBuilder)>,
}

impl Reader {
    fn session(&mut self, key: (String, bool)) -> Option<&mut SessionBuilder> {
        let at = match self.sessions.iter().position(|(known, _)| *known == key) {
            Some(at) => at,
            None => {
                let log = SessionBuilder::new(Origin::Root);
                self.sessions.push((key, log));
                self.sessions.len() - 1
            }
        };
        self.sessions.get_mut(at).map(|(_, log)| log)
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &Line<'_>, report: &mut Report) {
        let made = self
            .made
            .get_or_insert_with(|| format!("jsonl-{}", short_hash(line.text)));
        let named = line.object.id("session").or_else(|| self.session.clone());
        let key = named.map_or_else(|| (made.clone(), false), |key| (key, true));
        let message = message(line).unwrap_or_else(|| whole(line, report));
        let id = line.object.id("external_id");
        if let Some(log) = self.session(key) {
            log.push(message, id, line.text);
        }
    }
}

/// A line that no message can hold exactly: in its place and whole, as a message where it says
/// whose, else as a note, which is reported unless the line calls itself one.
fn whole(line: &Line<'_>, report: &mut Report) -> Message {
    let role = line.object.string("role");
    let role = role.as_deref().and_then(role_of);
    let kind = line.object.string("kind");
    let note_kind = kind.as_deref() == Some(EntryKind::Note.as_str());
    if role.is_none() && !note_kind {
        report.warn("unknown_role", line.number);
    }
    match (role, kind.as_deref()) {
        (Some(role), None | Some("message")) => Message::new(role, vec![unknown(line.text)]),
        (role, _) => note(role.unwrap_or(Role::System), line.text),
    }
}

/// The role that a name stands for.
fn role_of(name: &str) -> Option<Role> {
    match name {
        "developer" => Some(Role::System),
        other => Role::parse(other),
    }
}

/// The message of a line; `None` when it has no role that is known, or a key twice.
fn message(line: &Line<'_>) -> Option<Message> {
    let object = &line.object;
    if object.repeats() {
        return None;
    }
    let name = object.string("role")?;
    let role = role_of(&name)?;
    let mut extra = MetaBuilder::default();
    let mut blocks = MetaBuilder::default();
    let mut carried = CARRIED.to_vec();
    let parts = if object.get("parts").is_some() {
        carried.push("parts");
        parts(object.get("parts")?, &mut blocks)?
    } else {
        chat_parts(object, role, &mut carried, &mut blocks)?
    };
    let mut message = Message::new(role, parts);
    if let Some(kind) = object.present("kind") {
        message.kind = EntryKind::parse(&string(kind)?)?;
    }
    message.response = optional(object, "response")?;
    message.name = optional(object, "name")?;
    if let Some(turn) = object.present("turn") {
        message.turn = Some(serde_json::from_str::<TurnId>(turn.get()).ok()?);
    }
    message.created_at = object.time("created_at").unwrap_or_default();
    extra.extend(object.inexact_time("created_at"));
    if name == "developer" {
        extra.add("\"role\"", "\"developer\"");
    }
    extra.extend(object.others(&carried));
    extra.nest("\"blocks\"", blocks);
    message.meta = merge(object.present("meta"), extra.finish());
    Some(message)
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

/// Content: a string, or a list of parts and strings. What a part has no place for goes to
/// `extras`, under the part's index.
fn parts(value: &RawValue, extras: &mut MetaBuilder) -> Option<Vec<Part>> {
    content(value, |at, item| {
        let mut extra = MetaBuilder::default();
        let part = part(item, &mut extra);
        extras.nest(&format!("\"{at}\""), extra);
        part
    })
}

/// Content, its objects read by `part`, which gets their index in the list.
fn content(value: &RawValue, mut part: impl FnMut(usize, &RawValue) -> Part) -> Option<Vec<Part>> {
    Some(match value.get().as_bytes().first() {
        Some(b'"') => vec![string(value).map_or_else(|| unknown(value.get()), Part::text)],
        Some(b'[') => list(value)?
            .into_iter()
            .enumerate()
            .map(|(at, item)| match item.get().as_bytes().first() {
                Some(b'{') => part(at, item),
                _ => string(item).map_or_else(|| unknown(item.get()), Part::text),
            })
            .collect(),
        _ if value.get() == "null" => Vec::new(),
        _ => vec![unknown(value.get())],
    })
}

/// A part. Members that may be missing and are `null` go to `extra`: with them it would be an
/// unknown part, and a result without its call.
fn part(item: &RawValue, extra: &mut MetaBuilder) -> Part {
    let read = part_from_raw(item);
    if !matches!(read, Part::Unknown { .. }) || !item.get().contains("null") {
        return read;
    }
    let Some(object) = RawObject::parse(item.get()).filter(|object| !object.repeats()) else {
        return read;
    };
    let (nulls, others): (Vec<_>, Vec<_>) = object.members.iter().partition(|member| {
        OPTIONAL.contains(&member.name.as_ref()) && member.value.get() == "null"
    });
    let mut rest = MetaBuilder::default();
    rest.extend(others.into_iter());
    let rest = rest.finish().filter(|_| !nulls.is_empty());
    let rest = rest.and_then(|rest| serde_json::from_str::<Part>(rest.as_str()).ok());
    match rest {
        None | Some(Part::Unknown { .. }) => read,
        Some(part) => {
            extra.extend(nulls.into_iter());
            part
        }
    }
}

/// The parts of a line in the chat format that most providers share: `content`, an assistant's
/// `tool_calls`, and a tool's answer to `tool_call_id`.
fn chat_parts(
    object: &RawObject<'_>,
    role: Role,
    carried: &mut Vec<&str>,
    blocks: &mut MetaBuilder,
) -> Option<Vec<Part>> {
    carried.push("content");
    let value = object.get("content");
    if let (Role::Tool, Some(call_id)) = (role, object.string("tool_call_id")) {
        carried.push("tool_call_id");
        let content = match value {
            None => ResultContent::Text(String::new()),
            Some(value) => match content(value, |_, item| inner_part_from_raw(item))?.as_slice() {
                [Part::Text { text }] if value.get().starts_with('"') => {
                    ResultContent::Text(text.clone())
                }
                parts => ResultContent::Parts(parts.to_vec()),
            },
        };
        return Some(vec![Part::ToolResult {
            call_id,
            content,
            is_error: None,
        }]);
    }
    let mut out = value.map_or(Some(Vec::new()), |value| parts(value, blocks))?;
    let calls = object.present("tool_calls");
    if let Some(calls) = calls.filter(|_| role == Role::Assistant) {
        carried.push("tool_calls");
        let calls = list(calls)?;
        out.extend(calls.iter().map(|call| chat_call(call.get())));
    }
    Some(out)
}

/// A call as `{"id","type":"function","function":{"name","arguments"}}`; the arguments stay what
/// they are, most often a JSON string that holds JSON.
fn chat_call(json: &str) -> Part {
    let read = || {
        let call = RawObject::parse(json).filter(|call| !call.repeats())?;
        let function = call.object("function").filter(|f| !f.repeats())?;
        let exact = call.others(&["id", "type", "function"]).next().is_none()
            && function.others(&["name", "arguments"]).next().is_none();
        Some(Part::ToolCall {
            id: call.string("id").filter(|_| exact)?,
            name: function.string("name")?,
            arguments: RawJson::from_raw(function.get("arguments")?),
        })
    };
    read().unwrap_or_else(|| unknown(json))
}
