//! Plain JSON lines: the export format, and as little as `{"role":"user","content":"…"}`.

use memory_model::{
    EntryKind, Media, MediaSource, Message, Part, RawJson, ResultContent, Role, SessionKey,
    Timestamp, TurnId, inner_part_from_raw, part_from_raw,
};
use serde_json::value::RawValue;

use crate::detect::{self, Kind};
use crate::json_lines::{self, Line, LineReader};
use crate::raw::{Member, MetaBuilder, RawObject, Reading, list, readable, string};
use crate::session::{SessionBuilder, note, short_hash, unknown};
use crate::{
    Confidence, EarlierReading, Error, Format, Head, Input, Origin, ReadOptions, Report, Sink,
};

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

/// The role of a result in the chat format before calls had ids.
const FUNCTION: &str = "function";

/// Keys of a line that hold its time, the program's own first.
const TIMES: [&str; 2] = ["created_at", "timestamp"];

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
        for ((key, named), session) in reader.sessions {
            let mut log = session.log.finish(SessionKey::new(key));
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
    sessions: Vec<((String, bool), Session)>,
}

/// A session, and the calls in it that have no id.
#[derive(Debug)]
struct Session {
    log: SessionBuilder,
    functions: Functions,
}

/// Calls of the chat format before calls had ids: a `function_call`, which a line of the role `function` answers by its name.
#[derive(Debug, Default)]
struct Functions {
    calls: u64,
    /// Names and ids of those that have no result, oldest first.
    open: Vec<(String, String)>,
}

impl Functions {
    fn call(&mut self, name: &str) -> String {
        self.calls += 1;
        let id = format!("function-{}", self.calls);
        self.open.push((name.to_owned(), id.clone()));
        id
    }

    /// Returns the id of the oldest open call of this name, and closes the call; an id made from the name if none is
    /// open.
    fn answer(&mut self, name: &str) -> String {
        match self.open.iter().position(|(open, _)| open == name) {
            Some(at) => self.open.remove(at).1,
            None => format!("function-{name}"),
        }
    }
}

impl Reader {
    fn session(&mut self, key: (String, bool)) -> Option<&mut Session> {
        let at = match self.sessions.iter().position(|(known, _)| *known == key) {
            Some(at) => at,
            None => {
                let session = Session {
                    log: SessionBuilder::new(Origin::Root),
                    functions: Functions::default(),
                };
                self.sessions.push((key, session));
                self.sessions.len() - 1
            }
        };
        self.sessions.get_mut(at).map(|(_, session)| session)
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &Line<'_>, report: &mut Report) {
        let made = self
            .made
            .get_or_insert_with(|| format!("jsonl-{}", short_hash(line.text)));
        let named = line.object.id("session").or_else(|| self.session.clone());
        let key = named.map_or_else(|| (made.clone(), false), |key| (key, true));
        let id = line.object.id("external_id");
        let Some(session) = self.session(key) else {
            return;
        };
        let found = message(line, Reading::Now, &mut session.functions);
        let (message, revised) = found.unwrap_or_else(|| {
            if has_no_role(line) {
                report.warn("unknown_role", line.number);
            }
            (whole(line), false)
        });
        let earlier = revised.then(|| {
            let first = self::message(line, Reading::First, &mut Functions::default());
            let first = first.map_or_else(|| whole(line), |(first, _)| first);
            EarlierReading::Entry(Box::new(first))
        });
        session.log.push_revised(message, id, line.text, earlier);
    }
}

/// Whether a line neither has a known role nor calls itself a note.
fn has_no_role(line: &Line<'_>) -> bool {
    let role = line.object.string("role");
    let kind = line.object.string("kind");
    role.as_deref().and_then(role_of).is_none() && kind.as_deref() != Some(EntryKind::Note.as_str())
}

/// A line that no message can hold exactly: in its place and whole, as a message if it names a role and no other kind,
/// else as a note.
fn whole(line: &Line<'_>) -> Message {
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
        "developer" => Some(Role::System),
        other => Role::parse(other),
    }
}

/// The message of a line, and whether the first reading may have read it otherwise; `None` when it has no role that is known, or a
/// key twice.
fn message(
    line: &Line<'_>,
    reading: Reading,
    functions: &mut Functions,
) -> Option<(Message, bool)> {
    let object = &line.object;
    if object.repeats() {
        return None;
    }
    let name = object.string("role")?;
    let is_function = name == FUNCTION && reading == Reading::Now;
    let role = match is_function {
        true => Role::Tool,
        false => role_of(&name)?,
    };
    let mut extra = MetaBuilder::default();
    let mut blocks = MetaBuilder::default();
    let mut carried = CARRIED.to_vec();
    let parts = if object.get("parts").is_some() {
        carried.push("parts");
        parts(object.get("parts")?, reading, &mut blocks)?
    } else {
        let answers = match is_function && object.string("tool_call_id").is_none() {
            true => Some(functions.answer(&object.string("name").unwrap_or_default())),
            false => None,
        };
        let mut parts = chat_parts(object, role, reading, answers, &mut carried, &mut blocks)?;
        if role == Role::Assistant && reading == Reading::Now {
            parts.extend(function_call(object, functions, &mut carried, &mut blocks));
        }
        parts
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
    message.created_at = time(object, reading);
    // The export format says so of an entry without a time.
    let is_null = object
        .get(TIMES[0])
        .is_some_and(|time| time.get() == "null");
    if !is_null || reading == Reading::First {
        extra.extend(object.inexact_time(TIMES[0], reading));
    }
    if name == "developer" || is_function {
        extra.add("\"role\"", &format!("\"{name}\""));
    }
    extra.extend(object.others(&carried));
    let revised = is_function || blocks.revised || object.time_is_revised(TIMES[0]);
    extra.nest("\"blocks\"", blocks);
    message.meta = merge(object.present("meta"), extra.finish());
    Some((message, revised))
}

/// The time of a line, under the first key that has one. The first reading knew one key; the meta keeps the others.
fn time(object: &RawObject<'_>, reading: Reading) -> Timestamp {
    let keys = match reading {
        Reading::First => &TIMES[..1],
        Reading::Now => &TIMES[..],
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

/// Content: a string, or a list of parts and strings. What a part has no place for goes to
/// `extras`, under the part's index.
pub(crate) fn parts(
    value: &RawValue,
    reading: Reading,
    extras: &mut MetaBuilder,
) -> Option<Vec<Part>> {
    content(value, reading, extras, |item, extra| {
        part(item, reading, extra)
    })
}

/// Content, its objects read by `part`.
fn content(
    value: &RawValue,
    reading: Reading,
    extras: &mut MetaBuilder,
    part: impl Fn(&RawValue, &mut MetaBuilder) -> Part,
) -> Option<Vec<Part>> {
    let mut put = |at: usize, item: &RawValue| {
        let mut extra = MetaBuilder::default();
        let part = match item.get().as_bytes().first() {
            Some(b'{') => part(item, &mut extra),
            _ => text(item, reading, &mut extra).map_or_else(|| unknown(item.get()), Part::text),
        };
        extras.nest(&format!("\"{at}\""), extra);
        part
    };
    Some(match value.get().as_bytes().first() {
        Some(b'"') => vec![put(0, value)],
        Some(b'[') => list(value)?
            .into_iter()
            .enumerate()
            .map(|(at, item)| put(at, item))
            .collect(),
        _ if value.get() == "null" => Vec::new(),
        _ => vec![unknown(value.get())],
    })
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
        .or_else(|| of_others(&object, reading, extra))
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
fn of_others(object: &RawObject<'_>, reading: Reading, extra: &mut MetaBuilder) -> Option<Part> {
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

/// The parts of a line in the chat format that most providers share: `content`, an assistant's
/// `tool_calls`, and a tool's answer to `tool_call_id`.
fn chat_parts(
    object: &RawObject<'_>,
    role: Role,
    reading: Reading,
    answers: Option<String>,
    carried: &mut Vec<&str>,
    blocks: &mut MetaBuilder,
) -> Option<Vec<Part>> {
    carried.push("content");
    let value = object.get("content");
    let stated = object.string("tool_call_id").filter(|_| role == Role::Tool);
    if stated.is_some() {
        carried.push("tool_call_id");
    }
    if let Some(call_id) = stated.or(answers) {
        let mut extras = MetaBuilder::default();
        let content = match value {
            None => ResultContent::Text(String::new()),
            Some(value) => {
                let parts = content(value, reading, &mut extras, |item, extra| {
                    inner_part(item, reading, extra)
                })?;
                match parts.as_slice() {
                    [Part::Text { text }] if value.get().starts_with('"') => {
                        ResultContent::Text(text.clone())
                    }
                    _ => ResultContent::Parts(parts),
                }
            }
        };
        let mut extra = MetaBuilder::default();
        extra.nest("\"content\"", extras);
        blocks.nest("\"0\"", extra);
        return Some(vec![Part::ToolResult {
            call_id,
            content,
            is_error: None,
        }]);
    }
    let mut out = value.map_or(Some(Vec::new()), |value| parts(value, reading, blocks))?;
    let calls = object.present("tool_calls");
    if let Some(calls) = calls.filter(|_| role == Role::Assistant) {
        carried.push("tool_calls");
        let calls = list(calls)?;
        out.extend(calls.iter().map(|call| chat_call(call.get())));
    }
    Some(out)
}

/// The call of a line in the chat format before calls had ids.
fn function_call(
    object: &RawObject<'_>,
    functions: &mut Functions,
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
        id: functions.call(&name),
        name,
        arguments,
    })
}

/// A part of a result.
fn inner_part(item: &RawValue, reading: Reading, extra: &mut MetaBuilder) -> Part {
    let read = inner_part_from_raw(item);
    if !matches!(read, Part::Unknown { .. }) {
        return read;
    }
    RawObject::parse(item.get())
        .filter(|object| !object.repeats())
        .and_then(|object| of_others(&object, reading, extra))
        .unwrap_or(read)
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
