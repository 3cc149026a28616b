//! Gemini CLI's chats.
//!
//! A file (`~/.gemini/tmp/PROJECT/chats/session-….jsonl`) is JSON lines: a header with `sessionId` and `projectHash`, then records. Older
//! versions write one JSON document, `session-….json`: the header with a list of the same records under `messages`.
//!
//! - A record of type `user` is a message, and so is one of type `gemini`, with its `thoughts` as reasoning. Other known types (`info`,
//!   `warning`, `error`) are notes: the model does not see them.
//! - A record comes again with more in it. What is new is added: each call of `toolCalls` is a message behind the answer that it is part
//!   of (external id `ID/CALL`), each result one behind the calls (`ID/CALL/result`). So the last state of a record is what is read, and
//!   what a store has of a file that has grown since stays the beginning of it.
//! - The program repeats the results in a user's record. A result that came before is no message again.
//! - `$set` lines are only counted: snapshots of the whole list, with other ids, and times. What stands in them alone, such as the
//!   context before the first prompt, is not read.
//! - `$rewindTo` takes a record back, and all behind it: they stay in their branch, and a fork begins before them.

use std::collections::HashMap;
use std::io::{BufRead, Cursor, Read as _};

use memory_model::{Message, Part, ResultContent, Role, Timestamp};
use serde_json::value::RawValue;

use crate::blocks::{only_results, set_meta};
use crate::branches::Branches;
use crate::detect::{self, Kind};
use crate::format::BOM;
use crate::gemini_parts;
use crate::json_lines::{self, Line, LineReader, is_object};
use crate::raw::{Member, MetaBuilder, RawObject, Reading, list, string};
use crate::session::{note, short_hash, unknown};
use crate::{Confidence, Error, Format, Head, Input, Origin, ReadOptions, Report, Sink};

/// Types of records that the model does not see.
const NOTES: [&str; 3] = ["info", "warning", "error"];

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
        match is_document(head.bytes()) {
            true => Confidence::Certain,
            false => detect::sniff(head, Kind::GeminiCli),
        }
    }

    fn read(
        &self,
        mut input: Input<'_>,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<Report, Error> {
        let mut reader = Reader {
            key: None,
            named: false,
            branches: Branches::new(Origin::Root),
            records: HashMap::new(),
            results: HashMap::new(),
        };
        let failed = |error| Error::io(&options.name, error);
        let source = input.reader();
        let limit = u64::try_from(options.max_line_bytes).unwrap_or(u64::MAX);
        let mut start = Vec::new();
        let mut limited = source.take(limit);
        while start.trim_ascii().is_empty()
            && limited.read_until(b'\n', &mut start).map_err(failed)? > 0
        {}
        let first = start.strip_prefix(BOM).unwrap_or(&start);
        let report = if is_object(first) || limited.limit() == 0 {
            let mut whole = Cursor::new(start).chain(source);
            json_lines::read(Input::new(&mut whole), options, &mut reader)?
        } else {
            limited.read_to_end(&mut start).map_err(failed)?;
            let text = std::str::from_utf8(start.strip_prefix(BOM).unwrap_or(&start));
            let line = text.ok().and_then(|text| Line::parse(1, text.trim()));
            let Some(line) = line else {
                let reason = match limited.limit() {
                    0 => "it is longer than the longest line that is read",
                    _ => "it is no JSON: it may still be written; read it again later",
                };
                return Err(Error::invalid(&options.name, reason));
            };
            let mut report = Report::new();
            reader.line(&line, &mut report);
            report
        };
        let key = reader.key.unwrap_or_default();
        for session in reader.branches.finish(&key, reader.named, false) {
            sink.session(session)?;
        }
        Ok(report)
    }
}

/// Whether a source begins as a document: the header's keys before the list of messages, in one object.
fn is_document(head: &[u8]) -> bool {
    let head = head.strip_prefix(BOM).unwrap_or(head);
    let Some(at) = memchr::memmem::find(head, b"\"messages\"") else {
        return false;
    };
    let (before, after) = head.split_at(at);
    let has = |key: &str| memchr::memmem::find(before, key.as_bytes()).is_some();
    let rest = after.get("\"messages\"".len()..).unwrap_or_default();
    let value = rest.trim_ascii_start().strip_prefix(b":");
    before.trim_ascii_start().starts_with(b"{")
        && !before.contains(&b'}')
        && has("\"sessionId\"")
        && has("\"projectHash\"")
        && value.is_some_and(|value| value.trim_ascii_start().starts_with(b"["))
}

#[derive(Debug)]
struct Reader {
    /// The session that the header names, or a key made from the first line.
    key: Option<String>,
    named: bool,
    branches: Branches,
    records: HashMap<String, Record>,
    /// Number of results of each call that came with the call, and in a user's record.
    results: HashMap<String, (u64, u64)>,
}

/// The two places that have a copy of each result.
#[derive(Debug, Clone, Copy)]
enum Copied {
    WithCall,
    InPrompt,
}

/// What was read of a record so far.
#[derive(Debug)]
struct Record {
    /// The place before it.
    before: (usize, Option<String>),
    thoughts: usize,
    /// Its content as it came.
    content: Option<String>,
    /// Whether a message has its facts, such as the model and the tokens.
    told: bool,
    calls: Vec<String>,
    answered: Vec<String>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &Line<'_>, report: &mut Report) {
        let object = &line.object;
        if self.key.is_none() {
            let id = object.id("sessionId");
            self.named = id.is_some();
            self.key = id.or_else(|| Some(format!("gemini-{}", short_hash(line.text))));
        }
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
            self.note(line);
            let record = self.records.get(&id);
            let place = record.map_or((0, None), |record| record.before.clone());
            self.branches.go_back(place);
        } else if object.get("type").is_none() && object.get("projectHash").is_some() {
            report.skip("session");
        } else {
            self.record(line, report);
        }
    }
}

impl Reader {
    fn note(&mut self, line: &Line<'_>) {
        let id = line.object.id("id");
        let time = time(&line.object);
        self.push(note(Role::System, line.text), time, id, line.text);
    }

    fn push(&mut self, mut message: Message, time: Timestamp, id: Option<String>, text: &str) {
        message.created_at = time;
        if let Some(log) = self.branches.in_use() {
            log.push(message, id, text);
        }
    }

    fn record(&mut self, line: &Line<'_>, report: &mut Report) {
        let object = &line.object;
        let tag = object.string("type").unwrap_or_default();
        match (tag.as_str(), object.repeats()) {
            ("gemini", false) => self.answer(line, report),
            ("user", false) => self.prompt(line, report),
            ("user", true) => self.whole(line, Role::User),
            ("gemini", true) => self.whole(line, Role::Assistant),
            _ => {
                if !NOTES.contains(&tag.as_str()) {
                    report.skip(&tag);
                }
                self.note(line);
            }
        }
    }

    /// Keeps a message that cannot be read in its place.
    fn whole(&mut self, line: &Line<'_>, role: Role) {
        let message = Message::new(role, vec![unknown(line.text)]);
        let time = time(&line.object);
        self.push(message, time, line.object.id("id"), line.text);
    }

    fn prompt(&mut self, line: &Line<'_>, report: &mut Report) {
        let object = &line.object;
        let id = object.id("id");
        self.begin(id.as_deref());
        let mut blocks = MetaBuilder::default();
        let Some(content) = object.get("content") else {
            self.whole(line, Role::User);
            return;
        };
        let mut parts = gemini_parts::parts(content, &mut blocks);
        let results = parts.len();
        parts.retain(|part| match part {
            Part::ToolResult { call_id, .. } => self.is_new_result(call_id, Copied::InPrompt),
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
        let mut outer = MetaBuilder::default();
        outer.extend(object.others(&["id", "timestamp", "type", "content"]));
        outer.extend(object.inexact_time("timestamp", Reading::Now));
        set_meta(&mut message, outer, MetaBuilder::default(), blocks);
        self.push(message, time(object), id, line.text);
    }

    /// Counts a result. Returns whether the other place that has a copy of each did not have this one yet.
    fn is_new_result(&mut self, call: &str, place: Copied) -> bool {
        let (with_call, in_prompt) = self.results.entry(call.to_owned()).or_default();
        let (own, other) = match place {
            Copied::WithCall => (with_call, in_prompt),
            Copied::InPrompt => (in_prompt, with_call),
        };
        *own += 1;
        *own > *other
    }

    /// Notes the place before a record that comes for the first time.
    fn begin(&mut self, id: Option<&str>) {
        let Some(id) = id.filter(|id| !self.records.contains_key(*id)) else {
            return;
        };
        let record = Record {
            before: self.branches.end(),
            thoughts: 0,
            content: None,
            told: false,
            calls: Vec::new(),
            answered: Vec::new(),
        };
        self.records.insert(id.to_owned(), record);
    }

    /// Adds what is new in an answer of the model.
    fn answer(&mut self, line: &Line<'_>, report: &mut Report) {
        let object = &line.object;
        let id = object.id("id");
        // Answers without an id do not come again.
        let id = id.unwrap_or_else(|| format!("h-{}", short_hash(line.text)));
        self.begin(Some(&id));
        let Some(record) = self.records.get_mut(&id) else {
            return;
        };
        let mut parts = Vec::new();
        let mut blocks = MetaBuilder::default();
        let mut extras = MetaBuilder::default();
        let thoughts = object
            .present("thoughts")
            .and_then(list)
            .unwrap_or_default();
        for (at, item) in thoughts.iter().enumerate().skip(record.thoughts) {
            let mut extra = MetaBuilder::default();
            parts.push(thought(item, &mut extra));
            extras.nest(&format!("\"{at}\""), extra);
        }
        blocks.nest("\"thoughts\"", extras);
        record.thoughts = record.thoughts.max(thoughts.len());
        let content = object.present("content");
        if let Some(content) =
            content.filter(|content| record.content.as_deref() != Some(content.get()))
        {
            let text = new_text(content, record.content.as_deref());
            match text {
                Some(text) if text.is_empty() => {}
                Some(text) => parts.push(Part::text(text)),
                None => parts.extend(gemini_parts::parts(content, &mut blocks)),
            }
            record.content = Some(content.get().to_owned());
        }
        let mut added = Vec::new();
        if !parts.is_empty() {
            added.push((Message::new(Role::Assistant, parts), id.clone(), blocks));
        }
        let calls = object
            .present("toolCalls")
            .and_then(list)
            .unwrap_or_default();
        let calls: Vec<(String, &RawValue, RawObject<'_>)> = calls
            .into_iter()
            .filter_map(|raw| {
                let call = RawObject::parse(raw.get())?;
                Some((
                    call.id("id").unwrap_or_else(|| short_hash(raw.get())),
                    raw,
                    call,
                ))
            })
            .collect();
        for (call_id, raw, call) in &calls {
            if record.calls.contains(call_id) {
                continue;
            }
            record.calls.push(call_id.clone());
            let mut extra = MetaBuilder::default();
            let part = match call.string("name").filter(|_| !call.repeats()) {
                Some(name) => {
                    extra.extend(call.others(&["id", "name", "args", "result", "resultDisplay"]));
                    Part::ToolCall {
                        id: call_id.clone(),
                        name,
                        arguments: gemini_parts::arguments(call.get("args")),
                    }
                }
                None => unknown(raw.get()),
            };
            let mut blocks = MetaBuilder::default();
            blocks.nest("\"0\"", extra);
            let message = Message::new(Role::Assistant, vec![part]);
            added.push((message, format!("{id}/{call_id}"), blocks));
        }
        let mut results = Vec::new();
        for (call_id, _, call) in &calls {
            if !record.answered.contains(call_id)
                && let Some((message, blocks)) = result(call_id, call)
            {
                record.answered.push(call_id.clone());
                results.push((call_id.clone(), message, blocks));
            }
        }
        let mut outer = MetaBuilder::default();
        if !record.told && !added.is_empty() {
            record.told = true;
            outer.extend(object.others(&[
                "id",
                "timestamp",
                "type",
                "content",
                "thoughts",
                "toolCalls",
            ]));
            outer.extend(object.inexact_time("timestamp", Reading::Now));
        }
        for (call_id, message, blocks) in results {
            if self.is_new_result(&call_id, Copied::WithCall) {
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
            set_meta(
                &mut message,
                std::mem::take(&mut outer),
                MetaBuilder::default(),
                blocks,
            );
            self.push(message, time(object), Some(external), line.text);
        }
    }
}

fn time(record: &RawObject<'_>) -> Timestamp {
    record.time("timestamp", Reading::Now).unwrap_or_default()
}

/// A thought: what it is about, and more of it.
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

/// The text of an answer that was not read before; `None` if the answer is no text, or another one than before.
fn new_text(content: &RawValue, before: Option<&str>) -> Option<String> {
    let text = string(content)?;
    match before {
        None => Some(text),
        Some(before) => {
            let before: String = serde_json::from_str(before).ok()?;
            text.strip_prefix(before.as_str()).map(str::to_owned)
        }
    }
}

/// The result of a call, if it is there.
fn result(call_id: &str, call: &RawObject<'_>) -> Option<(Message, MetaBuilder)> {
    let value = call.present("result")?;
    let mut blocks = MetaBuilder::default();
    let parts = gemini_parts::parts(value, &mut blocks);
    let display = |member: &&Member<'_>| member.name == "resultDisplay";
    blocks.extend(call.members.iter().filter(display));
    let status = call.string("status").map(|status| status != "success");
    let mut own = None;
    let mut rest = Vec::new();
    for part in parts {
        match part {
            Part::ToolResult {
                content, is_error, ..
            } if own.is_none() => own = Some((content, is_error)),
            part => rest.push(part),
        }
    }
    let (mut content, is_error) = own.unwrap_or((ResultContent::Parts(Vec::new()), None));
    for part in rest {
        gemini_parts::attach(&mut content, part);
    }
    let result = Part::ToolResult {
        call_id: call_id.to_owned(),
        content,
        is_error: is_error.or(status),
    };
    Some((Message::new(Role::Tool, vec![result]), blocks))
}
