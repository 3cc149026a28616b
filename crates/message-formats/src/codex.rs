//! Codex' rollouts.
//!
//! A file (`$CODEX_HOME/sessions/Y/M/D/rollout-TIME-ID.jsonl`) is JSON lines with a `timestamp`, a `type` and a `payload`.
//!
//! - The conversation is the `response_item` lines: messages, reasoning, calls and their results, one message each. They have
//!   ids in newer versions; others get made ones. Reasoning that is encrypted stays in the meta. A role `developer` is the system.
//! - A user's message says in its `provenance` whether the user or the program wrote it; the meta keeps it.
//! - A result has failed if its text or the event before it says so: an exit code other than 0, a call that was interrupted or refused.
//! - `event_msg` lines repeat the conversation and are only counted, except for interrupts, errors and turns that were taken back,
//!   which are notes. So are `session_meta`, `world_state` and a `turn_context` that differs from the one before.
//!   `token_usage_record` is counted.
//! - `compacted` is a note with a summary: the messages in its `replacement_history` and `guardian_history` are no messages again, and
//!   the answer in which the model wrote the summary is a note. A summary without a message before it is a message of the user.
//! - Turns that were taken back (`thread_rolled_back`) stay in their branch, and a fork begins before them.
//! - A sub-agent has a file of its own. Its session names the parent's as its origin.
//! - A forked session repeats its parent's lines, and is a conversation of its own.

use std::collections::HashSet;

use memory_model::{Message, Part, RawJson, ResultContent, Role, SessionKey};
use serde_json::value::RawValue;

use crate::blocks::set_meta;
use crate::branches::Branches;
use crate::chat;
use crate::detect::{self, Kind};
use crate::json_lines::{self, Line, LineReader};
use crate::raw::{MetaBuilder, RawObject, Reading, list, readable, string};
use crate::session::{note, short_hash, unknown};
use crate::{
    Confidence, Error, Format, Head, Input, Origin, ReadOptions, Report, Sink, SourceScope,
    SourceSummary,
};

/// Types of lines that are no part of a conversation.
const NOISE: [&str; 1] = ["token_usage_record"];

/// Types of lines that are known notes.
const NOTES: [&str; 3] = ["session_meta", "turn_context", "world_state"];

/// Events that no item repeats.
const NOTED_EVENTS: [&str; 4] = ["turn_aborted", "error", "stream_error", ROLLED_BACK];
const ROLLED_BACK: &str = "thread_rolled_back";

/// Items that are no message, and those of the server's own tools.
const NOTED_ITEMS: [&str; 3] = ["ghost_snapshot", "compaction", "context_compaction"];
const SERVER_CALLS: [&str; 2] = ["web_search_call", "image_generation_call"];

/// Beginnings of results of calls that were not run.
const REFUSALS: [&str; 5] = [
    "apply_patch verification failed",
    "exec_command failed",
    "execution error",
    "failed to parse function arguments",
    "unsupported c",
];

/// Keys of a line that its message carries otherwise.
const CARRIED: [&str; 3] = ["type", "payload", "timestamp"];

/// Codex' rollouts.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Codex {}

impl Codex {
    /// Creates the format.
    pub fn new() -> Self {
        Self {}
    }
}

impl Format for Codex {
    fn name(&self) -> &str {
        "codex"
    }

    fn sniff(&self, head: &Head<'_>) -> Confidence {
        detect::sniff(head, Kind::Codex)
    }

    fn read(
        &self,
        input: Input<'_>,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<Report, Error> {
        let mut reader = Reader {
            key: None,
            named: false,
            branches: Branches::new(Origin::Root),
            failed: HashSet::new(),
            turns: Vec::new(),
            context: String::new(),
        };
        let report = json_lines::read(input, options, &mut reader)?;
        let key = reader.key.unwrap_or_default();
        for session in reader.branches.finish(&key, reader.named, false) {
            sink.session(session)?;
        }
        Ok(report)
    }
}

#[derive(Debug)]
struct Reader {
    /// The session that the first line names, or a key made from that line.
    key: Option<String>,
    named: bool,
    branches: Branches,
    /// Ids of calls whose failure an event reports, and whose results did not come yet.
    failed: HashSet<String>,
    /// The places before the user's turns in the branch in use.
    turns: Vec<(usize, Option<String>)>,
    /// Hash of the last turn's context, without the turn's id.
    context: String,
}

impl LineReader for Reader {
    fn line(&mut self, line: &Line<'_>, report: &mut Report) {
        let object = &line.object;
        let tag = object.string("type").unwrap_or_default();
        let payload = object
            .object("payload")
            .filter(|payload| !payload.repeats() && !object.repeats_any(&["type", "payload"]));
        if self.key.is_none() {
            let meta = payload.as_ref().filter(|_| tag == "session_meta");
            let id = meta.and_then(|meta| meta.id("id"));
            self.named = id.is_some();
            if let Some(parent) = meta.and_then(parent) {
                self.branches = Branches::new(Origin::Spawn {
                    parent: SessionKey::new(parent),
                    call: None,
                    after: None,
                });
            }
            self.key = id.or_else(|| Some(format!("codex-{}", short_hash(line.text))));
        }
        let Some(payload) = payload else {
            report.skip(&tag);
            self.push(line, note(Role::System, line.text), None);
            return;
        };
        match tag.as_str() {
            "response_item" => self.item(line, &payload, report),
            "event_msg" => self.event(line, &payload, report),
            "compacted" => self.compacted(line, &payload),
            _ if NOISE.contains(&tag.as_str()) => report.skip(&tag),
            "turn_context" if self.is_same_context(&payload) => report.skip(&tag),
            _ => {
                if !NOTES.contains(&tag.as_str()) {
                    report.skip(&tag);
                }
                self.push(line, note(Role::System, line.text), None);
            }
        }
    }
}

impl Reader {
    fn push(
        &mut self,
        line: &Line<'_>,
        mut message: Message,
        id: Option<String>,
    ) -> Option<String> {
        let time = line.object.time("timestamp", Reading::Now);
        message.created_at = time.unwrap_or_default();
        self.branches.in_use()?.push(message, id, line.text)
    }

    /// Whether a turn's context is that of the turn before.
    fn is_same_context(&mut self, payload: &RawObject<'_>) -> bool {
        let mut context = MetaBuilder::default();
        context.extend(payload.others(&["turn_id", "root_turn_id"]));
        let context = short_hash(&context.into_text().unwrap_or_default());
        std::mem::replace(&mut self.context, context.clone()) == context
    }

    fn item(&mut self, line: &Line<'_>, payload: &RawObject<'_>, report: &mut Report) {
        let tag = payload.string("type").unwrap_or_default();
        let metadata = line.object.object("metadata");
        let is_summary = metadata.is_some_and(|meta| meta.is_true("compaction_output"));
        let message = match is_summary || NOTED_ITEMS.contains(&tag.as_str()) {
            true => note(Role::System, line.text),
            false => item(line, payload, &tag, &mut self.failed).unwrap_or_else(|| {
                report.skip(&tag);
                note(Role::System, line.text)
            }),
        };
        if message.role == Role::User && is_typed(&message) {
            let before = self.branches.end();
            self.turns.push(before);
        }
        self.push(line, message, payload.id("id"));
    }

    fn event(&mut self, line: &Line<'_>, payload: &RawObject<'_>, report: &mut Report) {
        let tag = payload.string("type").unwrap_or_default();
        if !NOTED_EVENTS.contains(&tag.as_str()) {
            let item = payload.object("item");
            let item = item.filter(|item| item.string("status").as_deref() == Some("failed"));
            self.failed.extend(item.and_then(|item| item.id("id")));
            report.skip("event_msg");
            return;
        }
        self.push(line, note(Role::System, line.text), None);
        if tag == ROLLED_BACK {
            let number = payload.get("num_turns").map(RawValue::get);
            let number: usize = number.and_then(|number| number.parse().ok()).unwrap_or(0);
            let left = self.turns.len().saturating_sub(number);
            if let Some(place) = self.turns.drain(left..).next() {
                self.branches.go_back(place);
            }
        }
    }

    fn compacted(&mut self, line: &Line<'_>, payload: &RawObject<'_>) {
        let text = payload.string("message").unwrap_or_default();
        let is_first = self.branches.is_root(self.branches.current())
            && self
                .branches
                .in_use()
                .is_some_and(|log| log.is_without_messages());
        let message = match is_first && !text.trim().is_empty() {
            true => {
                let mut message = Message::user(text.as_str());
                let mut meta = MetaBuilder::default();
                meta.extend(line.object.others(&CARRIED));
                let mut rest = MetaBuilder::default();
                rest.extend(payload.others(&["message"]));
                set_meta(&mut message, meta, rest, MetaBuilder::default());
                message
            }
            false => note(Role::System, line.text),
        };
        let Some(entry) = self.push(line, message, None) else {
            return;
        };
        if let Some(log) = self.branches.in_use() {
            log.push_summary(SourceSummary {
                entry,
                text,
                scope: SourceScope::Before { kept_from: None },
                details: None,
            });
        }
    }
}

/// The session that started a sub-agent.
fn parent(meta: &RawObject<'_>) -> Option<String> {
    meta.id("parent_thread_id").or_else(|| {
        let spawn = meta.object("source")?.object("subagent")?;
        spawn.object("thread_spawn")?.id("parent_thread_id")
    })
}

/// Whether a user's message begins a turn: the user wrote it, or it does not say who did.
fn is_typed(message: &Message) -> bool {
    let meta = message.meta.as_ref().map_or("", RawJson::as_str);
    meta.contains(r#""provenance":{"type":"user""#)
        || !meta.contains(r#""provenance":"#) && !message.text().starts_with(['<', '#'])
}

/// The message of an item; `None` if its type is unknown or it cannot be read.
fn item(
    line: &Line<'_>,
    item: &RawObject<'_>,
    tag: &str,
    failed: &mut HashSet<String>,
) -> Option<Message> {
    let mut blocks = MetaBuilder::default();
    let (role, parts, keys): (Role, Vec<Part>, &[&str]) = match tag {
        "message" => {
            let role = match item.string("role")?.as_str() {
                "developer" => Role::System,
                role => Role::parse(role)?,
            };
            let parts = chat::parts(item.get("content")?, Reading::Now, &mut blocks)?;
            let keys: &[&str] = match role {
                Role::System => &["content"],
                _ => &["role", "content"],
            };
            (role, parts, keys)
        }
        "reasoning" => {
            let mut parts = Vec::new();
            for key in ["summary", "content"] {
                let items = item.present(key).and_then(list);
                parts.extend(items.unwrap_or_default().into_iter().map(reasoning));
            }
            if parts.is_empty() {
                parts.push(Part::Reasoning {
                    text: String::new(),
                    signature: None,
                });
            }
            (Role::Assistant, parts, &["summary", "content"])
        }
        "function_call" | "custom_tool_call" | "local_shell_call" | "tool_search_call" => {
            let (key, fallback) = match tag {
                "custom_tool_call" => ("input", ""),
                "local_shell_call" => ("action", "local_shell"),
                "tool_search_call" => ("arguments", "tool_search"),
                _ => ("arguments", ""),
            };
            let call = Part::ToolCall {
                id: item.id("call_id")?,
                name: match fallback {
                    "" => item.string("name")?,
                    name => name.to_owned(),
                },
                arguments: RawJson::from_raw(item.get(key)?),
            };
            let keys: &[&str] = match tag {
                "custom_tool_call" => &["call_id", "name", "input"],
                "local_shell_call" => &["call_id", "action"],
                _ => &["call_id", "name", "arguments"],
            };
            (Role::Assistant, vec![call], keys)
        }
        "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
            let key = match tag {
                "tool_search_output" => "tools",
                _ => "output",
            };
            let value = item.get(key)?;
            let content = match readable(value, Reading::Now) {
                Some((text, whole)) => {
                    if !whole {
                        blocks.add("\"output\"", value.get());
                    }
                    ResultContent::Text(text)
                }
                None if tag == "tool_search_output" => {
                    ResultContent::Parts(vec![unknown(value.get())])
                }
                None => ResultContent::Parts(chat::parts(value, Reading::Now, &mut blocks)?),
            };
            let call_id = item.id("call_id")?;
            let reported = failed.remove(&call_id).then_some(true);
            let result = Part::ToolResult {
                is_error: reported.or_else(|| is_error(&content.text())),
                content,
                call_id,
            };
            (Role::Tool, vec![result], &["call_id", "output", "tools"])
        }
        _ if SERVER_CALLS.contains(&tag) => {
            let json = line.object.get("payload")?.get();
            return Some(Message::new(Role::Assistant, vec![unknown(json)]));
        }
        _ => return None,
    };
    let mut message = Message::new(role, parts);
    if role == Role::Assistant {
        message.response = response(line, item);
    }
    let mut outer = MetaBuilder::default();
    outer.extend(line.object.others(&CARRIED));
    outer.extend(line.object.inexact_time("timestamp", Reading::Now));
    let carried: Vec<&str> = ["id"].iter().chain(keys).copied().collect();
    let mut rest = MetaBuilder::default();
    let is_plain = [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
    ]
    .contains(&tag);
    let others = item.others(&carried);
    rest.extend(others.filter(|member| !(is_plain && member.name == "type")));
    set_meta(&mut message, outer, rest, blocks);
    Some(message)
}

/// One text of reasoning.
fn reasoning(item: &RawValue) -> Part {
    let read = || {
        let object = RawObject::parse(item.get()).filter(|object| !object.repeats())?;
        let exact = object.others(&["type", "text"]).next().is_none();
        object.string("text").filter(|_| exact)
    };
    match read().or_else(|| string(item)) {
        Some(text) => Part::Reasoning {
            text,
            signature: None,
        },
        None => unknown(item.get()),
    }
}

/// The response that an item is of: its turn, and the number of the last item that the model had read.
fn response(line: &Line<'_>, item: &RawObject<'_>) -> Option<String> {
    let turn = item.object("internal_chat_message_metadata_passthrough")?;
    let read = line.object.object("metadata")?;
    let read = read.get("sampled_through_sequence")?.get();
    Some(format!("{}/{read}", turn.id("turn_id")?))
}

/// Whether a call failed, by the text of its result; `None` if the text does not say.
fn is_error(text: &str) -> Option<bool> {
    if let Some(output) = RawObject::parse(text) {
        let code = output.object("metadata")?.get("exit_code")?;
        return Some(code.get() != "0");
    }
    if REFUSALS.iter().any(|refusal| text.starts_with(refusal)) {
        return Some(true);
    }
    // The program's lines before the output.
    for line in text.lines().take(5).take_while(|line| *line != "Output:") {
        let code = ["Process exited with code ", "Exit code: "];
        if let Some(code) = code.iter().find_map(|words| line.strip_prefix(words)) {
            return Some(code != "0");
        }
        if line == "aborted by user" || line == "aborted" {
            return Some(true);
        }
    }
    None
}
