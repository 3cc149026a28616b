//! Gemini CLI's chats.
//!
//! A file (`~/.gemini/tmp/PROJECT/chats/session-….jsonl`) is JSON lines: a header with `sessionId` and `projectHash`,
//! then records. Older versions write one JSON document, `session-….json`: the header with a list of the same records
//! under `messages`.
//!
//! - Records of the types `user` and `gemini` are messages. The `thoughts` of a `gemini` record are reasoning. Other
//!   known types (`info`, `warning`, `error`) are notes, because the model does not see them.
//! - A record can be repeated with more content. Only the new content is added: each call of `toolCalls` is a message
//!   behind its answer (external id `ID/CALL`), and each result is a message behind the calls (`ID/CALL/result`). So
//!   the last state of a record is read, and the stored entries of a file that has grown stay its beginning. Late
//!   facts, such as the tokens, are in the meta of the next message of the record, if there is one.
//! - The program repeats the results in a user's record. A result that was read already makes no second message.
//! - `$set` lines are only counted. They have times, and snapshots of the whole list with other ids. Content that only
//!   they have, such as the context before the first prompt, is not read.
//! - `$rewindTo` takes back a record and all records behind it. They stay in their branch, and a fork begins before
//!   them.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, Cursor, Read as _};

use memory_model::{Message, Part, RawJson, ResultContent, Role, short_hash};
use serde_json::value::RawValue;

use crate::blocks::{only_results, set_meta};
use crate::branches::Branches;
use crate::chat::{self, Calls};
use crate::detect::{self, Kind};
use crate::documents::{self, Found};
use crate::json_lines::{self, Line, LineReader, Sessions, has_record};
use crate::lines::BOM;
use crate::outline::Outline;
use crate::raw::{Member, MetaBuilder, RawObject, list, string};
use crate::session::{note, unknown};
use crate::{AgentHome, Confidence, Error, Format, Head, Input, ReadOptions, Report, Sink};

/// Places of a result: with its call, or in a user's record.
const WITH_CALL: i64 = 1;
const IN_PROMPT: i64 = -1;

/// Types of records that the model does not see.
const NOTES: [&str; 3] = ["info", "warning", "error"];

/// Keys of an answer, and of a call, that have fields in messages.
const CARRIED: [&str; 6] = [
    "id",
    "timestamp",
    "type",
    "content",
    "thoughts",
    "toolCalls",
];
const CALL: [&str; 5] = ["id", "name", "args", "result", "resultDisplay"];

/// Gemini CLI's chats, in JSON lines or as one JSON document.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct GeminiCli {}

impl GeminiCli {
    /// Creates the format.
    pub fn new() -> Self {
        Self {}
    }
}

impl Format for GeminiCli {
    fn name(&self) -> &str {
        "gemini-cli"
    }

    fn sniff(&self, head: &Head<'_>) -> Confidence {
        let is_document = |outline: &Outline<'_>| {
            let keys = ["sessionId", "projectHash", "messages"];
            keys.iter().all(|key| outline.has(key))
        };
        match head.outline().is_some_and(is_document) {
            true => Confidence::Certain,
            false => detect::sniff(head, Kind::GeminiCli),
        }
    }

    fn home(&self) -> Option<AgentHome> {
        Some(AgentHome::new(".gemini", &["tmp"]))
    }

    fn read(
        &self,
        mut input: Input<'_>,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<Report, Error> {
        let mut file = File {
            options,
            sessions: Sessions::new(Reader::new(options)),
        };
        let source = input.reader();
        let limit = u64::try_from(options.max_line_bytes).unwrap_or(u64::MAX);
        let mut start = Vec::new();
        let mut limited = source.take(limit);
        loop {
            let read = limited.read_until(b'\n', &mut start);
            let read = read.map_err(|error| Error::io(&options.name, error))?;
            if read == 0 || !start.trim_ascii().is_empty() {
                break;
            }
        }
        let is_lines =
            limited.limit() == 0 || has_record(start.strip_prefix(BOM).unwrap_or(&start));
        let mut whole = Cursor::new(start).chain(source);
        let mut input = Input::new(&mut whole);
        let report = if is_lines {
            json_lines::read(input, options, &mut file)?
        } else {
            let mut buffer = Vec::new();
            let found = documents::next(&mut input, options, &mut buffer)?;
            let text = std::str::from_utf8(&buffer).unwrap_or_default();
            let line = Line::parse(1, text).filter(|_| matches!(found, Found::Document));
            let Some(line) = line else {
                let advice = "it is cut off, too long or no JSON: read it once it is written";
                return Err(Error::invalid(&options.name, advice));
            };
            let mut report = Report::new();
            file.line(&line, &mut report);
            report
        };
        for reader in file.sessions.into_readers() {
            reader.branches.finish(false, sink)?;
        }
        Ok(report)
    }
}

/// A file. Each session in it begins with a header.
#[derive(Debug)]
struct File<'a> {
    options: &'a ReadOptions,
    sessions: Sessions<Reader>,
}

impl LineReader for File<'_> {
    fn line(&mut self, line: &Line<'_>, report: &mut Report) {
        let is_header = line.get("projectHash").is_some() && line.get("type").is_none();
        let id = line.object.id("sessionId").filter(|_| is_header);
        let new = || Reader::new(self.options);
        if let Some(reader) = self.sessions.of(id, true, new) {
            reader.line(line, report);
        }
    }
}

#[derive(Debug)]
struct Reader {
    branches: Branches,
    records: HashMap<String, Record>,
    /// For each call, the number of its results with the call, minus the number of its results in users' records.
    results: HashMap<String, i64>,
    calls: Calls,
}

/// The content of a record that was read so far.
#[derive(Debug, Default)]
struct Record {
    /// The place before the record.
    before: (usize, Option<String>),
    thoughts: usize,
    content: Vec<Part>,
    /// Facts of the record that a message has already, such as the model and the tokens, as they came.
    facts: HashSet<String>,
    calls: HashSet<String>,
    answered: HashSet<String>,
}

impl Record {
    /// Returns the thoughts of an answer that were not read so far.
    fn new_thoughts(&mut self, answer: &RawObject<'_>, blocks: &mut MetaBuilder) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut extras = MetaBuilder::default();
        let thoughts = answer
            .present("thoughts")
            .and_then(list)
            .unwrap_or_default();
        for (at, item) in thoughts.iter().enumerate().skip(self.thoughts) {
            let mut extra = MetaBuilder::default();
            parts.push(thought(item, &mut extra));
            extras.nest(&format!("\"{at}\""), extra);
        }
        blocks.nest("\"thoughts\"", extras);
        self.thoughts = self.thoughts.max(thoughts.len());
        parts
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &Line<'_>, report: &mut Report) {
        let object = &line.object;
        self.branches
            .name(line, || object.id("sessionId"), "gemini");
        if let Some(records) = object.get("messages").and_then(list) {
            report.lines = report.lines.saturating_sub(1);
            for (number, record) in (1..).zip(records) {
                report.lines += 1;
                match Line::parse(number, record.get()) {
                    Some(line) => self.record(&line, report),
                    None => report.warn("not_an_object", number),
                }
            }
        } else if let Some(set) = object.members.iter().find(|member| member.name == "$set") {
            report.skip(&set.name);
        } else if let Some(id) = object.id("$rewindTo") {
            self.keep(line, note(Role::System, line.text));
            let record = self.records.get(&id);
            let place = record.map_or((0, None), |record| record.before.clone());
            self.branches.go_back(place, None);
        } else if object.get("type").is_none() && object.get("projectHash").is_some() {
            report.skip("session");
        } else {
            self.record(line, report);
        }
    }
}

impl Reader {
    fn new(options: &ReadOptions) -> Self {
        Self {
            branches: Branches::new(options),
            records: HashMap::new(),
            results: HashMap::new(),
            calls: Calls::default(),
        }
    }

    /// Adds a message for a whole record, in its place.
    fn keep(&mut self, line: &Line<'_>, message: Message) {
        self.push(message, line, line.object.id("id"));
    }

    fn push(&mut self, mut message: Message, line: &Line<'_>, id: Option<String>) {
        let time = line.object.time("timestamp");
        message.created_at = time.unwrap_or_default();
        if let Some(log) = self.branches.in_use() {
            log.push(message, id, line.text);
        }
    }

    fn record(&mut self, line: &Line<'_>, report: &mut Report) {
        let object = &line.object;
        let tag = object.string("type").unwrap_or_default();
        if let Some(id) = object.id("id") {
            self.known(&id);
        }
        let whole = |role| Message::new(role, vec![unknown(line.text)]);
        match (tag.as_str(), object.repeats(), object.get("content")) {
            ("gemini", false, _) => self.answer(line, report),
            ("gemini", ..) => self.keep(line, whole(Role::Assistant)),
            ("user", false, Some(content)) => self.prompt(line, content, report),
            ("user", ..) => self.keep(line, whole(Role::User)),
            _ => {
                if !NOTES.contains(&tag.as_str()) {
                    report.skip(&tag);
                }
                self.keep(line, note(Role::System, line.text));
            }
        }
    }

    fn prompt(&mut self, line: &Line<'_>, content: &RawValue, report: &mut Report) {
        let object = &line.object;
        let id = object.id("id");
        let mut blocks = MetaBuilder::default();
        let mut parts = parts(content, &mut self.calls, &mut blocks);
        if let Some(id) = &id {
            let record = self.known(id);
            let before = std::mem::replace(&mut record.content, parts.clone());
            parts = new_parts(parts, &before);
            if parts.is_empty() && !before.is_empty() {
                report.skip("unchanged");
                return;
            }
        }
        let results = parts.len();
        parts.retain(|part| match part {
            Part::ToolResult { call_id, .. } => self.is_new_result(call_id, IN_PROMPT),
            _ => true,
        });
        if parts.is_empty() && results > 0 {
            report.skip("repeated_result");
            return;
        }
        let role = match only_results(&parts) {
            true => Role::Tool,
            false => Role::User,
        };
        let mut message = Message::new(role, parts);
        let outer = object.facts(&["id", "timestamp", "type", "content"]);
        set_meta(&mut message, outer, MetaBuilder::default(), blocks);
        self.push(message, line, id);
    }

    /// Counts a result [with its call](WITH_CALL) or in a user's record. Each of the two places has a copy of the
    /// result. Returns whether this copy is the first of the two.
    fn is_new_result(&mut self, call: &str, place: i64) -> bool {
        let count = self.results.entry(call.to_owned()).or_default();
        *count += place;
        *count * place > 0
    }

    /// Returns the content of a record that was read so far.
    fn known(&mut self, id: &str) -> &mut Record {
        let before = self.branches.end();
        let new = || Record {
            before,
            ..Record::default()
        };
        self.records.entry(id.to_owned()).or_insert_with(new)
    }

    /// Adds the new content of the model's answer.
    fn answer(&mut self, line: &Line<'_>, report: &mut Report) {
        let object = &line.object;
        let id = object.id("id");
        // An answer without an id is not repeated.
        let id = id.unwrap_or_else(|| format!("h-{}", short_hash(line.text)));
        let mut inner = MetaBuilder::default();
        let content = object.present("content");
        let content = content.map(|content| parts(content, &mut self.calls, &mut inner));
        let record = self.known(&id);
        let mut blocks = MetaBuilder::default();
        let mut parts = record.new_thoughts(object, &mut blocks);
        if let Some(content) = content {
            let before = std::mem::replace(&mut record.content, content.clone());
            let mut content = new_parts(content, &before);
            content.retain(|part| match part {
                Part::Text { text } => !text.is_empty(),
                Part::ToolCall { id, .. } => record.calls.insert(id.clone()),
                _ => true,
            });
            if !content.is_empty() {
                blocks.nest("\"content\"", inner);
                parts.extend(content);
            }
        }
        let mut added = Vec::new();
        if !parts.is_empty() {
            added.push((Message::new(Role::Assistant, parts), id.clone(), blocks));
        }
        let mut results = Vec::new();
        let calls = object.present("toolCalls").and_then(list);
        for raw in calls.unwrap_or_default() {
            let Some(call) = RawObject::parse(raw.get()) else {
                report.warn("not_an_object", line.number);
                continue;
            };
            let call_id = call.id("id").unwrap_or_else(|| short_hash(raw.get()));
            if record.calls.insert(call_id.clone()) {
                let part = Part::ToolCall {
                    id: call_id.clone(),
                    name: call.string("name").unwrap_or_default(),
                    arguments: RawJson::from_raw(call.get("args").unwrap_or(RawValue::NULL)),
                };
                let mut blocks = MetaBuilder::default();
                blocks.nest("\"0\"", call.rest(&CALL));
                let message = Message::new(Role::Assistant, vec![part]);
                added.push((message, format!("{id}/{call_id}"), blocks));
            }
            if !record.answered.contains(&call_id)
                && let Some((message, blocks)) = result(&call_id, &call)
            {
                record.answered.insert(call_id.clone());
                results.push((call_id, message, blocks));
            }
        }
        let mut outer = MetaBuilder::default();
        if !added.is_empty() {
            let facts = object.others(&CARRIED);
            let facts = facts.chain(object.inexact_time("timestamp"));
            let text = |fact: &Member<'_>| format!("{}:{}", fact.key, fact.value.get());
            outer.extend(facts.filter(|fact| record.facts.insert(text(fact))));
        }
        for (call_id, message, blocks) in results {
            if self.is_new_result(&call_id, WITH_CALL) {
                added.push((message, format!("{id}/{call_id}/result"), blocks));
            }
        }
        if added.is_empty() {
            report.skip("unchanged");
        }
        for (mut message, external, blocks) in added {
            if message.role == Role::Assistant {
                message.response = Some(id.clone());
            }
            let outer = std::mem::take(&mut outer);
            set_meta(&mut message, outer, MetaBuilder::default(), blocks);
            self.push(message, line, Some(external));
        }
    }
}

/// Reads a thought: its subject and its description.
fn thought(item: &RawValue, extra: &mut MetaBuilder) -> Part {
    let object = RawObject::parse(item.get()).filter(|object| !object.repeats());
    let text = object.and_then(|object| {
        let texts = ["subject", "description"].map(|key| object.string(key).unwrap_or_default());
        let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        if texts.is_empty() {
            return None;
        }
        extra.extend(object.others(&["subject", "description"]));
        Some(texts.join("\n"))
    });
    match text.or_else(|| string(item)) {
        Some(text) => Part::Reasoning {
            text,
            signature: None,
        },
        None => unknown(item.get()),
    }
}

/// Reads content: a text, a part, or a list of texts and parts.
fn parts(value: &RawValue, calls: &mut Calls, extras: &mut MetaBuilder) -> Vec<Part> {
    let is_part = value.get().starts_with('{');
    let list = is_part.then(|| RawValue::from_string(format!("[{value}]")).ok());
    let list = list.flatten();
    chat::parts(list.as_deref().unwrap_or(value), calls, extras)
        .unwrap_or_else(|| vec![unknown(value.get())])
}

/// Returns the content that was not there before. For a text that grew, this is its end.
fn new_parts(content: Vec<Part>, before: &[Part]) -> Vec<Part> {
    let mut before = before.iter();
    let new = content.into_iter().map(|part| match (before.next(), part) {
        (Some(old), part) if *old == part => None,
        (Some(Part::Text { text: old }), Part::Text { text }) => {
            let end = text.strip_prefix(old.as_str()).unwrap_or(&text);
            Some(Part::text(end))
        }
        (_, part) => Some(part),
    });
    new.flatten().collect()
}

/// Reads the result of a call, if there is one.
fn result(call_id: &str, call: &RawObject<'_>) -> Option<(Message, MetaBuilder)> {
    let value = call.present("result")?;
    let mut blocks = MetaBuilder::default();
    let parts = parts(value, &mut Calls::default(), &mut blocks);
    let display = |member: &&Member<'_>| member.name == "resultDisplay";
    blocks.extend(call.members.iter().filter(display));
    let is_error = |status: String| match status.as_str() {
        "success" => Some(false),
        "error" | "cancelled" => Some(true),
        _ => None,
    };
    let status = call.string("status").and_then(is_error);
    let mut parts = parts.into_iter().peekable();
    let own = parts.next_if(|part| matches!(part, Part::ToolResult { .. }));
    let (mut content, is_error) = match own {
        Some(Part::ToolResult {
            content, is_error, ..
        }) => (content, is_error),
        _ => (ResultContent::Parts(Vec::new()), None),
    };
    for part in parts {
        chat::attach(&mut content, part);
    }
    let result = Part::ToolResult {
        call_id: call_id.to_owned(),
        content,
        is_error: is_error.or(status),
    };
    Some((Message::new(Role::Tool, vec![result]), blocks))
}
