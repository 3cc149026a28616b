//! Qwen Code's session files.
//!
//! A file (`~/.qwen/projects/…/chats/ID.jsonl`) is JSON lines. Each line has the envelope of Claude Code's lines
//! (`uuid`, `parentUuid`, `sessionId`, `timestamp`, `type`) and a body in the shape of Gemini's interface
//! (`message.parts`).
//!
//! - Each `user`, `assistant` or `tool_result` line is a message. A part with `thought` is reasoning, a `functionCall`
//!   is a call, and a `functionResponse` is its result. The result has failed if it has an `error`, or if
//!   `toolCallResult.status` says so.
//! - A user line with a `provenance` other than `real_user` is the program's. The meta keeps the `provenance`.
//! - `system` lines are notes, except for `ui_telemetry` and `attribution_snapshot`. These two are not part of the
//!   conversation and are only counted. `chat_compression` has a summary. The messages in its `compressedHistory` are
//!   not read again.
//! - A line with a `parentUuid` other than the last line begins a fork at that parent.

use memory_model::{Message, Part, Role};
use serde_json::value::RawValue;

use crate::blocks::{only_results, set_meta};
use crate::branches::Branches;
use crate::chat::{self, Calls};
use crate::detect::{self, Kind};
use crate::json_lines::{self, Line, LineReader, Sessions};
use crate::raw::{MetaBuilder, RawObject, list};
use crate::session::{note, unknown};
use crate::{
    AgentHome, Confidence, Error, Format, Head, Input, ReadOptions, Report, Sink, SourceScope,
    SourceSummary,
};

/// Subtypes of `system` lines that are not part of a conversation.
const NOISE: [&str; 2] = ["ui_telemetry", "attribution_snapshot"];

/// Subtypes of `system` lines that are always notes.
const NOTES: [&str; 2] = [COMPRESSION, "slash_command"];
const COMPRESSION: &str = "chat_compression";

/// Keys of a line that have fields in its message.
const CARRIED: [&str; 4] = ["type", "message", "uuid", "timestamp"];

/// Qwen Code's session files.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct QwenCode {}

impl QwenCode {
    /// Creates the format.
    pub fn new() -> Self {
        Self {}
    }
}

impl Format for QwenCode {
    fn name(&self) -> &str {
        "qwen-code"
    }

    fn sniff(&self, head: &Head<'_>) -> Confidence {
        detect::sniff(head, Kind::QwenCode)
    }

    fn home(&self) -> Option<AgentHome> {
        Some(AgentHome::new(".qwen", &["projects", "tmp"]))
    }

    fn read(
        &self,
        input: Input<'_>,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<Report, Error> {
        let mut file = File {
            options,
            sessions: Sessions::new(Reader::new(options)),
        };
        let report = json_lines::read(input, options, &mut file)?;
        for reader in file.sessions.into_readers() {
            reader.branches.finish(true, sink)?;
        }
        Ok(report)
    }
}

/// A file. A line without a parent begins the session that it names.
#[derive(Debug)]
struct File<'a> {
    options: &'a ReadOptions,
    sessions: Sessions<Reader>,
}

impl LineReader for File<'_> {
    fn line(&mut self, line: &Line<'_>, report: &mut Report) {
        let parent = line.get("parentUuid").map(RawValue::get);
        let new = || Reader::new(self.options);
        let id = line.object.id("sessionId");
        if let Some(reader) = self.sessions.of(id, parent == Some("null"), new) {
            reader.line(line, report);
        }
    }
}

#[derive(Debug)]
struct Reader {
    branches: Branches,
    calls: Calls,
}

impl Reader {
    fn new(options: &ReadOptions) -> Self {
        Self {
            branches: Branches::new(options),
            calls: Calls::default(),
        }
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &Line<'_>, report: &mut Report) {
        let object = &line.object;
        self.branches.name(line, || object.id("sessionId"), "qwen");
        let uuid = object.id("uuid");
        let branch = match &uuid {
            Some(uuid) => self.branches.place(uuid, object.get("parentUuid")),
            None => self.branches.current(),
        };
        let subtype = object.string("subtype").unwrap_or_default();
        let tag = object.string("type").unwrap_or_default();
        if tag == "system" && NOISE.contains(&subtype.as_str()) {
            report.skip(&subtype);
        } else {
            let mut message = match tag.as_str() {
                "user" | "assistant" | "tool_result" => message(line, &tag, &mut self.calls),
                "system" if NOTES.contains(&subtype.as_str()) => note(Role::System, line.text),
                _ => {
                    report.skip(if tag == "system" { &subtype } else { &tag });
                    note(Role::System, line.text)
                }
            };
            message.created_at = object.time("timestamp").unwrap_or_default();
            let Some(log) = self.branches.log(branch) else {
                return;
            };
            let Some(entry) = log.push(message, uuid.clone(), line.text) else {
                return;
            };
            if subtype == COMPRESSION
                && let Some(text) = summary(object)
            {
                log.push_summary(SourceSummary {
                    entry,
                    text,
                    scope: SourceScope::Before { kept_from: None },
                    details: None,
                });
            }
        }
        if let Some(uuid) = uuid {
            self.branches.placed(&uuid, branch);
        }
    }
}

fn message(line: &Line<'_>, tag: &str, calls: &mut Calls) -> Message {
    let object = &line.object;
    let role = match tag {
        "assistant" => Role::Assistant,
        "tool_result" => Role::Tool,
        _ => Role::User,
    };
    let is_clear = !object.repeats_any(&["type", "message", "uuid"]);
    let inner = object.object("message");
    let inner = inner.filter(|inner| is_clear && !inner.repeats());
    let value = inner.as_ref().and_then(|inner| inner.get("parts"));
    let mut blocks = MetaBuilder::default();
    let parts = value.and_then(|value| chat::parts(value, calls, &mut blocks));
    let Some((inner, parts)) = inner.as_ref().zip(parts) else {
        return Message::new(role, vec![unknown(line.text)]);
    };
    let mut message = Message::new(role, parts);
    if role == Role::User && only_results(&message.parts) {
        message.role = Role::Tool;
    }
    let status = object.object("toolCallResult");
    let status = status.and_then(|result| result.string("status"));
    if let [Part::ToolResult { is_error, .. }] = message.parts.as_mut_slice() {
        *is_error = is_error.or(status.map(|status| status != "success"));
    }
    let outer = object.facts(&CARRIED);
    set_meta(&mut message, outer, inner.rest(&["role", "parts"]), blocks);
    message
}

/// Returns the text that the model sees in the place of older messages: the first entry of the compressed history.
fn summary(line: &RawObject<'_>) -> Option<String> {
    let history = line.object("systemPayload")?;
    let history = list(history.get("compressedHistory")?)?;
    let first = RawObject::parse(history.first()?.get())?;
    let mut rest = MetaBuilder::default();
    let parts = chat::parts(first.get("parts")?, &mut Calls::default(), &mut rest)?;
    Some(Message::new(Role::User, parts).text())
}
