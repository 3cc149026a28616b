//! Claude Code's session files.

mod attachment;
mod queue;

use std::collections::HashMap;

use memory_model::{EntryKind, Message, Part, Role, SessionKey};

use crate::blocks::{Blocks, Dialect, only_results, set_meta};
use crate::detect::{self, Kind};
use crate::json_lines::{self, Line, LineReader};
use crate::raw::{MetaBuilder, RawObject, Reading, list, string};
use crate::session::{SessionBuilder, note, short_hash, unknown};
use crate::{
    Confidence, EarlierReading, Error, Format, Head, Input, Origin, ReadOptions, Report,
    SessionLog, Sink,
};
use queue::{Queue, Queued};

/// The type of the lines that say what became of words which a user typed while the program was busy.
const QUEUE: &str = "queue-operation";

/// Line types that are no part of a conversation.
const NOISE: [&str; 3] = ["progress", "file-history-snapshot", QUEUE];

/// Tools that start a sub-agent.
const SPAWNERS: [&str; 2] = ["Task", "Agent"];

/// Keys of a line that its message carries otherwise.
const CARRIED: [&str; 4] = ["type", "message", "uuid", "timestamp"];

/// The tool's result once more, in the program's own shape: often the only full copy. The meta keeps
/// it, unless it is the very content of the line's one result.
const RESULT_COPY: &str = "toolUseResult";

/// Claude Code's session files.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct ClaudeCode {}

impl ClaudeCode {
    /// Creates the format.
    pub fn new() -> Self {
        Self {}
    }
}

impl Format for ClaudeCode {
    fn name(&self) -> &str {
        "claude-code"
    }

    fn sniff(&self, head: &Head<'_>) -> Confidence {
        detect::sniff(head, Kind::ClaudeCode)
    }

    fn read(
        &self,
        input: Input<'_>,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<Report, Error> {
        let mut reader = Reader::default();
        let mut report = json_lines::read(input, options, &mut reader)?;
        for session in reader.finish(&mut report) {
            sink.session(session)?;
        }
        Ok(report)
    }
}

/// A call that may start a sub-agent.
#[derive(Debug)]
struct SpawnCall {
    /// The conversation that the call is in, as an index.
    session: usize,
    id: String,
    /// External id of the line that holds the call.
    line: String,
    prompt: Option<String>,
    answered: bool,
    taken: bool,
}

/// Reads a file's lines in file order. `parentUuid` only tells side chains apart.
#[derive(Debug, Default)]
struct Reader {
    /// The session that the first conversational line names.
    key: Option<String>,
    /// The root conversation, then side chains in file order.
    sessions: Vec<Chain>,
    /// The side chain of each line of one, by the line's uuid.
    chain_of: HashMap<String, usize>,
    /// The side chain of each agent.
    agents: HashMap<String, usize>,
    calls: Vec<SpawnCall>,
    /// Words that were typed while the program was busy.
    queue: Queue,
}

#[derive(Debug)]
struct Chain {
    log: SessionBuilder,
    /// What follows the session in a side chain's key; `None` for the root.
    name: Option<String>,
    /// The side chain's parent, as an index, and the call that started it.
    parent: usize,
    call: Option<usize>,
}

impl Chain {
    fn root() -> Self {
        Self {
            log: SessionBuilder::new(Origin::Root),
            name: None,
            parent: 0,
            call: None,
        }
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &Line<'_>, report: &mut Report) {
        if self.sessions.is_empty() {
            self.sessions.push(Chain::root());
        }
        let object = &line.object;
        let tag = object.string("type").unwrap_or_default();
        let uuid = object.id("uuid");
        let conversational = ["user", "assistant", "system"].contains(&tag.as_str());
        if conversational && self.key.is_none() {
            let session = object.id("sessionId");
            self.key = Some(session.unwrap_or_else(|| format!("claude-{}", short_hash(line.text))));
        }
        let session = if object.is_true("isSidechain") {
            let noise = NOISE.contains(&tag.as_str());
            self.chain(line, uuid.as_deref(), noise)
        } else {
            0
        };
        if NOISE.contains(&tag.as_str()) {
            if tag == QUEUE {
                if self.queue.operation(line) {
                    self.push_passed_over(whole(line, &tag), line.text);
                }
                self.push_queued(false);
            } else {
                report.skip(&tag);
            }
            return;
        }
        let only_trace = object.is_true("isCompactSummary") && self.is_only_trace(session);
        let (mut message, mut revised) = read(line, &tag, only_trace, Reading::Now);
        if session == 0 {
            if self.repeats_queued(&tag, object, &message) {
                message = whole(line, &tag);
                revised = true;
            }
            self.push_queued(true);
            if tag == "assistant" {
                self.queue.replied();
            }
        }
        let at = |reading| object.time("timestamp", reading).unwrap_or_default();
        message.created_at = at(Reading::Now);
        let earlier = (revised || object.time_is_revised("timestamp")).then(|| {
            let (mut first, _) = read(line, &tag, false, Reading::First);
            first.created_at = at(Reading::First);
            EarlierReading::Entry(Box::new(first))
        });
        self.push(session, message, uuid, line.text, earlier);
    }
}

impl Reader {
    fn finish(self, report: &mut Report) -> Vec<SessionLog> {
        self.queue.finish(report);
        let Some(key) = self.key else {
            for chain in &self.sessions {
                for _ in &chain.log.messages {
                    report.lose("no_session");
                }
            }
            return Vec::new();
        };
        let keys: Vec<SessionKey> = self
            .sessions
            .iter()
            .map(|chain| match &chain.name {
                Some(name) => SessionKey::new(format!("{key}/{name}")),
                None => SessionKey::new(key.as_str()),
            })
            .collect();
        let mut logs = Vec::with_capacity(keys.len());
        for (mut chain, own) in self.sessions.into_iter().zip(&keys) {
            if chain.name.is_some() {
                let call = chain.call.and_then(|call| self.calls.get(call));
                chain.log.origin = Origin::Spawn {
                    parent: keys.get(chain.parent).unwrap_or(own).clone(),
                    call: call.map(|call| call.id.clone()),
                    after: call.map(|call| call.line.clone()),
                };
            }
            if !chain.log.messages.is_empty() {
                logs.push(chain.log.finish(own.clone()));
            }
        }
        logs
    }

    /// Whether nothing was said in a conversation yet, so that a summary is the only trace of what came before.
    fn is_only_trace(&self, session: usize) -> bool {
        let is_note = |message: &Message| message.kind == EntryKind::Note;
        self.sessions
            .get(session)
            .is_some_and(|chain| chain.log.messages.iter().all(is_note))
    }

    /// Whether a line says once more what the user said from the queue.
    fn repeats_queued(&mut self, tag: &str, object: &RawObject<'_>, message: &Message) -> bool {
        match tag {
            "attachment" if attachment::is_queued_command(object) => {
                message.kind == EntryKind::Message && self.queue.attached(&message.text())
            }
            "user" if message.role == Role::User && message.kind == EntryKind::Message => {
                self.queue.typed(&message.text())
            }
            _ => false,
        }
    }

    /// Adds what the user said from the queue; `next` says whether another record follows.
    fn push_queued(&mut self, next: bool) {
        for Queued { message, line, .. } in self.queue.due(next) {
            self.push_passed_over(message, &line);
        }
    }

    /// Adds what a record of the queue holds, which the first reading passed over.
    fn push_passed_over(&mut self, mut message: Message, line: &str) {
        // The same record once more, as where a file repeats its history, is no second message.
        let id = format!("queued-{}", short_hash(line));
        if !message.created_at.is_known()
            && let Some(line) = RawObject::parse(line)
        {
            let time = line.time("timestamp", Reading::Now);
            message.created_at = time.unwrap_or_default();
        }
        let passed_over = Some(EarlierReading::PassedOver);
        self.push(0, message, Some(id), line, passed_over);
    }

    fn push(
        &mut self,
        session: usize,
        message: Message,
        uuid: Option<String>,
        text: &str,
        earlier: Option<EarlierReading>,
    ) {
        let Some(chain) = self.sessions.get_mut(session) else {
            return;
        };
        let Some(line) = chain.log.push_revised(message, uuid, text, earlier) else {
            return;
        };
        for part in chain.log.messages.last().map_or(&[][..], |m| &m.parts) {
            match part {
                Part::ToolCall {
                    id,
                    name,
                    arguments,
                } if SPAWNERS.contains(&name.as_str()) => self.calls.push(SpawnCall {
                    session,
                    id: id.clone(),
                    line: line.clone(),
                    prompt: RawObject::parse(arguments.as_str())
                        .and_then(|input| input.string("prompt")),
                    answered: false,
                    taken: false,
                }),
                Part::ToolResult { call_id, .. } => {
                    let calls = self.calls.iter_mut().filter(|call| call.id == *call_id);
                    calls.for_each(|call| call.answered = true);
                }
                _ => {}
            }
        }
    }

    /// The side chain that a line belongs to: that of its agent, or of the line before it in the
    /// tree, or a new one.
    fn chain(&mut self, line: &Line<'_>, uuid: Option<&str>, noise: bool) -> usize {
        let object = &line.object;
        let agent = object.id("agentId");
        let known = match (&agent, object.string("parentUuid")) {
            (Some(agent), _) => self.agents.get(agent).copied(),
            (None, Some(parent)) => self.chain_of.get(&parent).copied(),
            (None, None) => None,
        };
        let chain = match known {
            Some(chain) => chain,
            // Noise starts no conversation.
            None if noise => return 0,
            None => self.start_chain(line, agent.as_deref().or(uuid)),
        };
        if let Some(uuid) = uuid {
            self.chain_of.insert(uuid.to_owned(), chain);
        }
        if let Some(agent) = agent {
            self.agents.insert(agent, chain);
        }
        chain
    }

    fn start_chain(&mut self, line: &Line<'_>, name: Option<&str>) -> usize {
        let name = name.map_or_else(|| format!("h-{}", short_hash(line.text)), str::to_owned);
        let same = |chain: &Chain| chain.name.as_deref() == Some(name.as_str());
        if let Some(known) = self.sessions.iter().position(same) {
            return known;
        }
        let call = self.spawning_call(prompt(&line.object).as_deref());
        if let Some(call) = call.and_then(|call| self.calls.get_mut(call)) {
            call.taken = true;
        }
        let parent = call
            .and_then(|call| self.calls.get(call))
            .map_or(0, |call| call.session);
        self.sessions.push(Chain {
            log: SessionBuilder::new(Origin::Root),
            name: Some(name),
            parent,
            call,
        });
        self.sessions.len() - 1
    }

    /// The call that started a side chain: the one with its prompt, else the nearest open one.
    fn spawning_call(&self, prompt: Option<&str>) -> Option<usize> {
        let free = || {
            self.calls
                .iter()
                .enumerate()
                .filter(|(_, call)| !call.taken)
        };
        free()
            .find(|(_, call)| prompt.is_some() && call.prompt.as_deref() == prompt)
            .or_else(|| free().rfind(|(_, call)| !call.answered))
            .map(|(at, _)| at)
    }
}

/// The text of a line whose content is one text.
fn prompt(line: &RawObject<'_>) -> Option<String> {
    let value = line.object("message")?.get("content")?;
    string(value).or_else(|| {
        let blocks = Blocks::new(Dialect::Claude, Reading::Now);
        let parts = blocks.content(value, &mut MetaBuilder::default());
        match parts.as_slice() {
            [Part::Text { text }] => Some(text.clone()),
            _ => None,
        }
    })
}

/// What a line is, without its time, and whether the first reading may have read it otherwise. `only_trace`: nothing was said
/// before it.
fn read(line: &Line<'_>, tag: &str, only_trace: bool, reading: Reading) -> (Message, bool) {
    let object = &line.object;
    let is_summary = object.is_true("isCompactSummary");
    let now = reading == Reading::Now;
    match tag {
        // The client's own errors are not the assistant's words.
        "assistant" if now && object.is_true("isApiErrorMessage") => (whole(line, tag), true),
        "user" if now && is_summary && only_trace => (message(line, tag, reading).0, true),
        "user" | "assistant" if !is_summary => message(line, tag, reading),
        "attachment" if now => match attachment::message(object) {
            Some(message) => (message, true),
            None => (whole(line, tag), false),
        },
        _ => (whole(line, tag), false),
    }
}

/// A line kept whole as a note.
fn whole(line: &Line<'_>, tag: &str) -> Message {
    let role = match tag {
        "user" => Role::User,
        "assistant" if !line.object.is_true("isCompactSummary") => Role::Assistant,
        _ => Role::System,
    };
    note(role, line.text)
}

/// A `user` or `assistant` line.
fn message(line: &Line<'_>, tag: &str, reading: Reading) -> (Message, bool) {
    let role = if tag == "assistant" {
        Role::Assistant
    } else {
        Role::User
    };
    let object = &line.object;
    let ambiguous = object.repeats_any(&["type", "message", "uuid", "isSidechain"]);
    let Some(inner) = object.object("message").filter(|_| !ambiguous) else {
        // No message to be read in it, or two: it stays in its place, whole.
        return (Message::new(role, vec![unknown(line.text)]), false);
    };
    let mut blocks = MetaBuilder::default();
    let parts = match inner.get("content") {
        Some(value) if !inner.repeats_any(&["role", "content", "id"]) => {
            Blocks::new(Dialect::Claude, reading).content(value, &mut blocks)
        }
        _ => vec![unknown(line.text)],
    };
    let mut message = Message::new(role, parts);
    if role == Role::User && only_results(&message.parts) {
        message.role = Role::Tool;
    }
    if role == Role::Assistant {
        message.response = inner.id("id");
    }
    let mut outer = MetaBuilder::default();
    let copied = repeats_content(object, &inner);
    let others = object.others(&CARRIED);
    outer.extend(others.filter(|member| !(copied && member.name == RESULT_COPY)));
    outer.extend(object.inexact_time("timestamp", reading));
    let mut rest = MetaBuilder::default();
    let carried: &[&str] = match message.response {
        Some(_) => &["role", "content", "id", "type"],
        None => &["role", "content"],
    };
    rest.extend(inner.others(carried));
    let revised = blocks.revised;
    set_meta(&mut message, outer, rest, blocks);
    (message, revised)
}

/// Whether the line's copy of the result is, byte for byte, the content of its only block, a result.
fn repeats_content(line: &RawObject<'_>, message: &RawObject<'_>) -> bool {
    let Some(copy) = line.get(RESULT_COPY) else {
        return false;
    };
    // An object is never the content of a result.
    if !copy.get().starts_with(['"', '[']) || line.repeats_any(&[RESULT_COPY]) {
        return false;
    }
    let blocks = message.get("content").and_then(list);
    let [block] = blocks.as_deref().unwrap_or_default() else {
        return false;
    };
    RawObject::parse(block.get()).is_some_and(|block| {
        block.string("type").as_deref() == Some("tool_result")
            && block
                .get("content")
                .is_some_and(|content| content.get() == copy.get())
    })
}
