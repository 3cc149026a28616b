//! Codex' rollouts.
//!
//! A file (`$CODEX_HOME/sessions/Y/M/D/rollout-TIME-ID.jsonl`) is JSON lines with a `timestamp`, a `type` and a
//! `payload`.
//!
//! - The conversation is in the `response_item` lines: messages, reasoning, calls and their results. Each is one
//!   message. Newer versions give them ids. Items of older versions get made ids. Encrypted reasoning has the whole
//!   item as its signature. The role `developer` is read as the system.
//! - The `provenance` of a user's message says whether the user or the program wrote it. The meta keeps it.
//! - A result has failed if the event before it says so. It has also failed if the lines that the program wrote before
//!   the output have an exit code other than 0, or say that the call was interrupted or refused.
//! - `event_msg` lines repeat the conversation and are only counted. Interrupts, errors and turns that were taken back
//!   are notes instead. `session_meta`, `world_state` and a `turn_context` that differs from the one before are notes
//!   too. `token_usage_record` is counted.
//! - `compacted` is a note with a summary. The messages in its `replacement_history` and `guardian_history` are not
//!   read again, and the answer in which the model wrote the summary is a note. A summary without a message before it
//!   is a message of the user.
//! - Turns that were taken back (`thread_rolled_back`) stay in their branch, and a fork begins before them.
//! - An edited message and a fork begin a new file. Its `history_base` names the rollout that it continues. That
//!   one is read too, from the same folder or Codex' home, up to any number of rollouts. The session of an edit is
//!   `THREAD/ROLLOUT`, a fork of the thread's that stands for it from then on. A fork has its own thread's name. Without
//!   the other file, a rollout is read alone, and the report has the warning `missing_base`.
//! - A sub-agent has a separate file. Its session names the parent's session as its origin.
//! - A fork of older versions repeats its parent's lines and is a separate conversation.

mod history;

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::rc::Rc;

use agent_conventions::{is_aborted, output_of_command};
use memory_model::conventions::AgentConventions;
use memory_model::{Message, Part, RawJson, Role, SessionKey, short_hash};
use serde_json::value::RawValue;

use crate::blocks::set_meta;
use crate::branches::{Branches, Place};
use crate::chat::{self, Calls};
use crate::detect::{self, Kind};
use crate::json_lines::{self, Line, LineReader};
use crate::raw::{MetaBuilder, RawObject, list, string};
use crate::session::{note, unknown};
use crate::unpack::Unpacked;
use crate::{
    AgentHome, Confidence, Error, Format, Head, Input, KnownAgents, ReadOptions, Report, Sink,
    SourceScope, SourceSummary,
};
use history::{Base, Counted};

/// Types of lines that are not part of a conversation.
const NOISE: [&str; 1] = ["token_usage_record"];

/// Types of lines that are always notes.
const NOTES: [&str; 3] = ["session_meta", "turn_context", "world_state"];

/// Events that no item repeats.
const NOTED_EVENTS: [&str; 4] = ["turn_aborted", "error", "stream_error", ROLLED_BACK];
const ROLLED_BACK: &str = "thread_rolled_back";

/// Items without a message, and calls of the server's tools.
const NOTED_ITEMS: [&str; 3] = ["ghost_snapshot", "compaction", "context_compaction"];
const SERVER_CALLS: [&str; 2] = ["web_search_call", "image_generation_call"];

/// Text before the exit code of a command.
const EXIT_CODES: [&str; 2] = ["Process exited with code ", "Exit code: "];

/// Beginnings of the results of calls that did not run.
const NOT_RUN: [&str; 9] = [
    "apply_patch verification failed",
    "exec command rejected by user",
    "exec_command failed",
    "execution error",
    "failed to parse function arguments",
    "patch rejected by user",
    "unsupported c",
    "user cancelled MCP tool call",
    "user rejected MCP tool call",
];

/// Keys of a line that have fields in its message.
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

    fn home(&self) -> Option<AgentHome> {
        Some(AgentHome::new(".codex", &history::FOLDERS).with_variable("CODEX_HOME"))
    }

    fn read(
        &self,
        input: Input<'_>,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<Report, Error> {
        let mut reader = Reader {
            branches: Branches::new(options).with_stand_ins(),
            failed: HashSet::new(),
            turns: Vec::new(),
            context: String::new(),
            rollout: None,
            is_cut_off: false,
            children: Vec::new(),
            taken: Rc::default(),
            cuts: HashMap::new(),
            begins: None,
        };
        let path = input.path().map(Path::to_path_buf);
        let family = path.as_deref().map(|path| history::family(path, options));
        let family = family.unwrap_or_default();
        for (at, rollout) in family.iter().enumerate() {
            reader.begins = reader.cuts.remove(&at);
            if at + 1 < family.len() {
                let later = family.iter().enumerate().skip(at + 1);
                let children = later.filter_map(|(child, one)| match &one.parent {
                    Some((parent, base)) if *parent == at => Some((child, base.clone())),
                    _ => None,
                });
                reader.inherit(&rollout.path, children.collect(), options)?;
            }
        }
        reader.rollout = path.as_deref().and_then(history::rollout_of);
        let mut report = json_lines::read(input, options, &mut reader)?;
        if reader.is_cut_off {
            report.warn("missing_base", 1);
        }
        reader.branches.finish(false, sink)?;
        Ok(report)
    }
}

#[derive(Debug)]
struct Reader {
    branches: Branches,
    /// Ids of calls with a failure in an event and no result yet.
    failed: HashSet<String>,
    /// Places before the user's turns in the branch in use.
    turns: Vec<Place>,
    /// Hash of the last turn's context, without the turn's ids.
    context: String,
    /// Id of the rollout that is being read, if its file names it.
    rollout: Option<String>,
    /// Whether the oldest rollout continues one that was not found.
    is_cut_off: bool,
    /// Indices of the rollouts that continue the one that is being read, with the parts that they share.
    children: Vec<(usize, Base)>,
    /// Number of bytes of it that were read.
    taken: Rc<Cell<u64>>,
    /// Ends of these parts, by the indices.
    cuts: HashMap<usize, Cut>,
    /// Where the next line begins another rollout.
    begins: Option<Cut>,
}

/// State of reading at the end of the part that two rollouts share.
#[derive(Debug)]
struct Cut {
    place: Place,
    turns: Vec<Place>,
    context: String,
}

impl LineReader for Reader {
    fn line(&mut self, line: &Line<'_>, report: &mut Report) {
        let object = &line.object;
        let tag = object.string("type").unwrap_or_default();
        let payload = object
            .object("payload")
            .filter(|payload| !payload.repeats() && !object.repeats_any(&["type", "payload"]));
        self.look_for_cuts(line);
        let meta = payload.as_ref().filter(|_| tag == "session_meta");
        let base = meta.and_then(Base::of);
        let key = meta.and_then(|meta| self.key(meta, base.as_ref()));
        if let Some(cut) = self.begins.take() {
            self.begin(cut, line, meta, key);
        } else if self.branches.name(line, || key, "codex") {
            if let Some(parent) = meta.and_then(started_by) {
                self.branches.spawned_by(parent);
            }
            self.is_cut_off = base.is_some();
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
    /// Reads a rollout that others continue: those with these indices, from the ends of these parts.
    fn inherit(
        &mut self,
        path: &Path,
        children: Vec<(usize, Base)>,
        options: &ReadOptions,
    ) -> Result<(), Error> {
        let options = options.clone().with_name(path.display().to_string());
        let Some(source) = history::open(path, &options) else {
            return Ok(());
        };
        let problem = source.problem();
        self.taken = Rc::default();
        let mut reader = Counted {
            reader: source.reader,
            taken: self.taken.clone(),
        };
        self.rollout = history::rollout_of(path);
        self.children = children;
        let read = json_lines::read(Input::new(&mut reader), &options, self);
        if let Some(error) = Unpacked::error(&problem, &options) {
            return Err(error);
        }
        read?;
        for (child, _) in std::mem::take(&mut self.children) {
            let end = self.end();
            self.cuts.insert(child, end);
        }
        Ok(())
    }

    fn end(&self) -> Cut {
        Cut {
            place: self.branches.end(),
            turns: self.turns.clone(),
            context: self.context.clone(),
        }
    }

    /// Notes the ends of shared parts at the first line behind them.
    fn look_for_cuts(&mut self, line: &Line<'_>) {
        let taken = self.taken.get();
        let is_behind = |(_, base): &mut (usize, Base)| !base.has(&line.object, taken);
        let behind: Vec<(usize, Base)> = self.children.extract_if(.., is_behind).collect();
        for (child, _) in behind {
            let end = self.end();
            self.cuts.insert(child, end);
        }
    }

    /// Returns the key of a rollout's session.
    fn key(&self, meta: &RawObject<'_>, base: Option<&Base>) -> Option<String> {
        let thread = meta.id("id")?;
        let Some(base) = base else {
            return Some(thread);
        };
        let rollout = self.rollout.clone().unwrap_or_else(|| base.name());
        Some(match rollout == thread {
            true => thread,
            false => format!("{thread}/{rollout}"),
        })
    }

    /// Begins the session of a rollout that continues another.
    fn begin(
        &mut self,
        cut: Cut,
        line: &Line<'_>,
        meta: Option<&RawObject<'_>>,
        key: Option<String>,
    ) {
        (self.turns, self.context) = (cut.turns, cut.context);
        self.failed.clear();
        let since = line.object.time("timestamp");
        self.branches.go_back(cut.place, since);
        let thread = meta.and_then(|meta| meta.id("id"));
        if let (Some(key), Some(thread)) = (key, thread) {
            let replaced = (key != thread).then(|| SessionKey::new(thread));
            self.branches.names_next(SessionKey::new(key), replaced);
        }
    }

    fn push(
        &mut self,
        line: &Line<'_>,
        mut message: Message,
        id: Option<String>,
    ) -> Option<String> {
        let time = line.object.time("timestamp");
        message.created_at = time.unwrap_or_default();
        self.branches.in_use()?.push(message, id, line.text)
    }

    /// Returns whether a turn's context equals the context of the turn before.
    fn is_same_context(&mut self, payload: &RawObject<'_>) -> bool {
        let context = payload.rest(&["turn_id", "root_turn_id"]);
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
        if message.role == Role::User && begins_turn(&message) {
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
        // The note is behind the turns that stay.
        if tag == ROLLED_BACK {
            let number = payload.get("num_turns").map(RawValue::get);
            let number: usize = number.and_then(|number| number.parse().ok()).unwrap_or(0);
            let left = self.turns.len().saturating_sub(number);
            if let Some(place) = self.turns.drain(left..).next() {
                let since = line.object.time("timestamp");
                self.branches.go_back(place, since);
            }
        }
        self.push(line, note(Role::System, line.text), None);
    }

    fn compacted(&mut self, line: &Line<'_>, payload: &RawObject<'_>) {
        let text = payload.string("message").unwrap_or_default();
        let mut message = note(Role::System, line.text);
        if self.branches.is_without_messages() && !text.trim().is_empty() {
            message = Message::user(text.as_str());
            message.meta = line.object.rest(&["timestamp"]).finish();
        }
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

/// Returns the session that started a sub-agent.
fn started_by(meta: &RawObject<'_>) -> Option<String> {
    meta.id("parent_thread_id").or_else(|| {
        let spawn = meta.object("source")?.object("subagent")?;
        spawn.object("thread_spawn")?.id("parent_thread_id")
    })
}

/// Returns whether a user's message begins a turn: the program did not write all of it.
fn begins_turn(message: &Message) -> bool {
    let text = message.text();
    let text = KnownAgents.user_text(&text, message.meta.as_ref());
    text.injected.is_empty() || !text.typed.trim().is_empty()
}

/// Reads the message of an item, or returns `None` if its type is unknown or it cannot be read.
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
            let parts = chat::parts(item.get("content")?, &mut Calls::default(), &mut blocks)?;
            let keys: &[&str] = match role {
                Role::System => &["type", "id", "content"],
                _ => &["type", "id", "role", "content"],
            };
            (role, parts, keys)
        }
        "reasoning" => {
            let (parts, keys) = thoughts(line, item);
            (Role::Assistant, parts, keys)
        }
        "function_call" | "custom_tool_call" | "local_shell_call" | "tool_search_call" => {
            let (key, name) = match tag {
                "custom_tool_call" => ("input", item.string("name")),
                "local_shell_call" => ("action", Some("local_shell".to_owned())),
                "tool_search_call" => ("arguments", Some("tool_search".to_owned())),
                _ => ("arguments", item.string("name")),
            };
            let call = Part::ToolCall {
                id: item.id("call_id")?,
                name: name?,
                arguments: RawJson::from_raw(item.get(key)?),
            };
            let keys = &["id", "call_id", "name", "arguments", "input", "action"];
            (Role::Assistant, vec![call], keys)
        }
        "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
            let value = item.get("output").or_else(|| item.get("tools"));
            let call_id = item.id("call_id")?;
            let reported = failed.remove(&call_id).then_some(true);
            let mut result = chat::result(call_id, value, &mut blocks)?;
            if let Part::ToolResult {
                content, is_error, ..
            } = &mut result
            {
                *is_error = reported.or_else(|| failure(&content.text()));
            }
            let keys = &["id", "call_id", "output", "tools"];
            (Role::Tool, vec![result], keys)
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
    let outer = line.object.facts(&CARRIED);
    set_meta(&mut message, outer, item.rest(keys), blocks);
    Some(message)
}

/// Reads the texts of an item of reasoning. Also returns the keys that the parts have.
fn thoughts(line: &Line<'_>, item: &RawObject<'_>) -> (Vec<Part>, &'static [&'static str]) {
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
    let encrypted = item.present("encrypted_content");
    let whole = encrypted.and_then(|_| line.object.get("payload"));
    let keys: &'static [&'static str] = match (parts.last_mut(), whole) {
        (Some(Part::Reasoning { signature, .. }), Some(whole)) => {
            *signature = Some(whole.get().to_owned());
            &["type", "id", "summary", "content", "encrypted_content"]
        }
        _ => &["type", "id", "summary", "content"],
    };
    (parts, keys)
}

/// Reads one text of reasoning.
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

/// Returns the response that an item belongs to. Its name has the turn and the number of the last item that the model
/// had read.
fn response(line: &Line<'_>, item: &RawObject<'_>) -> Option<String> {
    let turn = item.object("internal_chat_message_metadata_passthrough")?;
    let read = line.object.object("metadata")?;
    let read = read.get("sampled_through_sequence")?.get();
    Some(format!("{}/{read}", turn.id("turn_id")?))
}

/// Returns whether a call failed, by the text of its result, or `None` if the text does not say.
fn failure(text: &str) -> Option<bool> {
    if let Some(output) = RawObject::parse(text) {
        let code = output.object("metadata")?.get("exit_code")?;
        return Some(code.get() != "0");
    }
    if NOT_RUN.iter().any(|words| text.starts_with(words)) || is_aborted(text) {
        return Some(true);
    }
    let (head, _) = output_of_command(text)?;
    let code = |line: &str| {
        EXIT_CODES
            .iter()
            .find_map(|words| Some(line.strip_prefix(words)? != "0"))
    };
    head.lines().find_map(code)
}
