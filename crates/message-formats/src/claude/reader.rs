//! Reads a session's lines in file order, each into its conversation.

mod branches;
mod chain;
mod queue_records;
mod rewinds;
mod side_chains;
mod spawn_call;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use memory_model::{EntryKind, Message, Part, SessionKey, short_hash};

use super::contents::whole_hash;
use super::line::{NOISE, read, repeat, session_of, whole, without_said};
use super::outputs::Outputs;
use super::queue::{QUEUE, Queue};
use super::rewriting::Rewriting;
use super::tree::{LineKind, Lines, Name, Names, Step};
use crate::json_lines::{Line, LineReader};
use crate::made_id::is_made_id;
use crate::raw::RawObject;
use crate::session::{SessionBuilder, is_own};
use crate::{Origin, ReadOptions, Report, SessionLog};
use chain::{Chain, Start};
use spawn_call::{CALL, SPAWNERS, SpawnCall, started_by};

/// Reads a session's lines in file order.
///
/// `parentUuid` distinguishes side chains. It also shows a turn that was taken back: the user went back to a message
/// before the turn. A fork begins there. Any other line continues its branch in file order, because results of parallel
/// calls and notes of the program are branches of the tree too.
///
/// A compaction takes nothing back. But the program may write older lines again because of it, and put the next line
/// behind the last one of these. So a line of the tree also stands where it was last written, and where a boundary named
/// it as the last line.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// Session that the first conversational line names, or a key made from that line.
    key: Option<String>,
    /// Whether that line names the session.
    named: bool,
    /// Whether lines name the line that they follow. Lines of an output stream do not.
    linked: bool,
    /// Session that the last conversational line named.
    last_key: Option<String>,
    /// The log of the root conversation until its first line.
    empty: Option<SessionBuilder>,
    /// The root conversation, then its forks and side chains in file order.
    sessions: Vec<Chain>,
    /// Index of the branch of the root conversation that was written to last.
    current: usize,
    names: Names,
    /// Lines of the root conversation and its forks, by uuid.
    lines: Lines,
    /// Places at which a line of the tree was written again: the chain, and the number of lines that it showed by then.
    again: HashMap<Name, Vec<(usize, usize)>>,
    /// The last message with each content and time, by their hash: its chain, and its index there.
    contents: HashMap<u64, (usize, usize)>,
    /// Index of a side chain, by the uuid of each of its lines.
    chain_of: HashMap<Name, usize>,
    /// Index of a side chain, by its agent.
    agents: HashMap<String, usize>,
    calls: Vec<SpawnCall>,
    /// Id of the call that started the sub-agent of a file of its own.
    started_by: Option<String>,
    outputs: Outputs,
    rewriting: Rewriting,
    /// Words that were typed while the program was busy.
    queue: Queue,
    /// Index of the branch with a record of the queue, by external id.
    queued: HashMap<String, usize>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &Line<'_>, report: &mut Report) {
        let object = &line.object;
        let tag = object.string("type").unwrap_or_default();
        let uuid = object.id("uuid");
        let conversational = ["user", "assistant", "system"].contains(&tag.as_str());
        let names = session_of(object).filter(|_| conversational);
        self.begin(line, names.as_deref(), conversational);
        let noise = NOISE.contains(&tag.as_str());
        let agent = object.id("agentId");
        let is_own = object.is_true("isSidechain") || object.id(CALL).is_some();
        let side = is_own || agent.is_some_and(|agent| self.agents.contains_key(&agent));
        self.linked |= !side && object.get("parentUuid").is_some();
        let at = object.time("timestamp").unwrap_or_default();
        let found = (!noise).then(|| read(line, &tag, false).with_created_at(at));
        let again = !side && uuid.as_deref().is_some_and(|uuid| self.is_placed(uuid));
        let mut said = None;
        if let Some(message) = found.as_ref().filter(|_| !side) {
            said = self.said_from_queue(&tag, object, message);
            self.push_queued(true);
            if tag == "assistant" {
                self.queue.replied();
            }
        }
        let mut original = None;
        let session = match side {
            true => self.chain(line, uuid.as_deref(), noise),
            false => {
                original = found
                    .as_ref()
                    .and_then(|one| self.original(self.current, one, again));
                self.branch(object, uuid.as_deref(), &tag, noise, original.is_some())
            }
        };
        if side && let Some(message) = &found {
            original = self.original(session, message, false);
        }
        let Some(mut message) = found else {
            if tag == QUEUE {
                if self.queue.operation(line) {
                    self.push_record(whole(line, &tag), line.text);
                }
                self.push_queued(false);
            } else {
                report.skip(&tag);
            }
            return;
        };
        if object.is_true("isCompactSummary") && self.is_only_trace(session) {
            message = read(line, &tag, true);
        }
        if let Some(said) = said {
            message = without_said(message, &said, line, &tag);
        }
        if let Some(original) = &original {
            message = repeat(line, &tag, original);
        }
        message.created_at = at;
        if !side
            && original.is_none()
            && let Some(note) = self.rewritten(session, line, &tag, &message)
        {
            message = note.with_created_at(at);
        }
        let output = self.outputs.note(&message);
        let pushed = self.push(session, message, uuid.clone(), line.text);
        let output_id = pushed.as_ref().map(|external| format!("{external}/output"));
        if let Some(external) = pushed.filter(|_| !side) {
            let kind = LineKind::of(object, &tag);
            self.step(session, object, uuid, kind, original.is_some());
            self.name_session(session, external, names);
        }
        if let (Some(note), Some(id)) = (output, output_id) {
            self.push(session, note.with_created_at(at), Some(id), line.text);
            if let Some(chain) = self.sessions.get_mut(session).filter(|_| !side) {
                chain.steps.push(Step::beside_the_tree());
            }
        }
    }
}

impl Reader {
    pub(super) fn new(options: &ReadOptions, path: Option<&Path>) -> Self {
        Self {
            empty: Some(SessionBuilder::with_options(Origin::Root, options)),
            started_by: path.and_then(started_by),
            outputs: path.map(Outputs::of).unwrap_or_default(),
            ..Self::default()
        }
    }

    pub(super) fn finish(self, report: &mut Report) -> Vec<SessionLog> {
        self.queue.finish(report);
        let Some(key) = self.key.clone() else {
            for chain in &self.sessions {
                for _ in 0..chain.log.len() {
                    report.lose("no_session");
                }
            }
            return Vec::new();
        };
        // A line that is repeated in another branch can begin two branches. The name of the later one then gets a
        // number.
        let mut names = HashSet::new();
        let keys: Vec<SessionKey> = self
            .sessions
            .iter()
            .map(|chain| {
                let Some(name) = &chain.name else {
                    return SessionKey::new(key.as_str());
                };
                let numbered = (2..).map(|n| format!("{name}~{n}"));
                let mut free = std::iter::once(name.clone()).chain(numbered);
                let free = free.find(|name| names.insert(name.clone()));
                SessionKey::new(format!("{key}/{}", free.as_ref().unwrap_or(name)))
            })
            .collect();
        let origins: Vec<Origin> = (0..keys.len())
            .map(|index| self.origin(index, &keys))
            .collect();
        let mut logs = Vec::with_capacity(keys.len());
        let chains = self.sessions.into_iter().zip(origins).zip(keys);
        for (index, ((mut chain, origin), key)) in chains.enumerate() {
            if chain.log.len() == 0 {
                continue;
            }
            chain.log.origin = origin;
            let mut log = chain.log.finish(key);
            log.named = self.named;
            log.linked = self.linked && !matches!(log.origin, Origin::Spawn { .. });
            log.in_use = index == self.current;
            let is_plain = log.in_use && log.linked && !self.rewriting.0 && self.queue.is_idle();
            log.last = last_line(&log).filter(|_| is_plain);
            logs.push(log);
        }
        logs
    }

    /// Begins the root conversation with the first line, and the session with the first conversational line.
    fn begin(&mut self, line: &Line<'_>, names: Option<&str>, conversational: bool) {
        if let Some(log) = self.empty.take() {
            let start = Start::Alone { call: None };
            self.sessions.push(Chain::new(log, 0, None, start));
        }
        if conversational && self.key.is_none() {
            self.named = names.is_some();
            let made = || format!("claude-{}", short_hash(line.text));
            self.key = Some(names.map_or_else(made, str::to_owned));
        }
    }

    /// Records the session that a line names, if it is not the one that the lines before it named.
    fn name_session(&mut self, session: usize, external: String, names: Option<String>) {
        let new = names.filter(|name| self.last_key.as_ref() != Some(name));
        if let Some(name) = new {
            let chain = self.sessions.get_mut(session);
            if let Some(chain) = chain.filter(|_| self.last_key.is_some()) {
                chain.log.push_key(external, SessionKey::new(name.as_str()));
            }
            self.last_key = Some(name);
        }
    }

    /// Returns the note in place of a message that a compaction wrote.
    fn rewritten(
        &mut self,
        session: usize,
        line: &Line<'_>,
        tag: &str,
        message: &Message,
    ) -> Option<Message> {
        let chain = self.sessions.get(session)?;
        let earlier = (&chain.log, &chain.contents);
        self.rewriting.note(line, tag, message, earlier)
    }

    /// Returns whether a conversation has no message yet, so that a summary is the only trace of its past.
    fn is_only_trace(&self, session: usize) -> bool {
        self.sessions
            .get(session)
            .is_some_and(|chain| chain.shared() == 0 && chain.log.is_without_messages())
    }

    /// Returns the entry that a message repeats: a message of the chain with the same content and time.
    ///
    /// A compaction can write older messages again. Such a line has an id that came before, or it is older than a line
    /// before it.
    fn original(&self, chain: usize, message: &Message, again: bool) -> Option<String> {
        let newest = self.sessions.get(chain)?.newest;
        let is_late = again || message.created_at < newest;
        if !is_late || !message.created_at.is_known() || message.kind == EntryKind::Note {
            return None;
        }
        let (owner, at) = *self.contents.get(&whole_hash(message))?;
        let from = self.sessions.get(owner)?;
        if !again && !self.shows(chain, (owner, from.shared() + at)) {
            return None;
        }
        let one = from.log.message(at)?;
        let is_same = one.kind == message.kind
            && one.role == message.role
            && one.response == message.response
            && one.created_at == message.created_at
            && one.parts == message.parts;
        one.external_id.clone().filter(|_| is_same)
    }

    fn origin(&self, index: usize, keys: &[SessionKey]) -> Origin {
        let Some(chain) = self
            .sessions
            .get(index)
            .filter(|chain| chain.name.is_some())
        else {
            return Origin::Root;
        };
        let key = |index: usize| {
            keys.get(index)
                .cloned()
                .unwrap_or_else(|| SessionKey::new(""))
        };
        match chain.start {
            Start::Alone { call } => {
                let call = call.and_then(|call| self.calls.get(call));
                Origin::Spawn {
                    parent: key(chain.parent),
                    call: call
                        .map(|call| call.id.clone())
                        .or_else(|| self.started_by.clone()),
                    after: call.map(|call| call.line.clone()),
                }
            }
            Start::Fork { shared } => {
                // The owner of the last shared line.
                let last = shared
                    .checked_sub(1)
                    .map(|last| self.owner(chain.parent, last));
                let after = last.and_then(|(owner, at)| {
                    let chain = self.sessions.get(owner)?;
                    chain.log.id_before(at + 1 - chain.shared())
                });
                Origin::Fork {
                    parent: key(last.map_or(0, |(owner, _)| owner)),
                    after,
                }
            }
        }
    }

    /// Adds a message to a chain. Returns its external id, or `None` if an equal line came before.
    fn push(
        &mut self,
        session: usize,
        message: Message,
        uuid: Option<String>,
        text: &str,
    ) -> Option<String> {
        let chain = self.sessions.get_mut(session)?;
        let line = chain.log.new_id(uuid, text)?;
        for part in &message.parts {
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
        let keeps = chain.log.keeps(text);
        if !keeps {
            chain.contents.push(&message);
        }
        if message.kind == EntryKind::Message && !is_own(&message) {
            chain.newest = chain.newest.max(message.created_at);
            let place = (session, chain.log.len());
            self.contents.insert(whole_hash(&message), place);
        }
        chain.log.add(message, line.clone(), keeps);
        Some(line)
    }
}

/// Returns the external id of a log's last line.
fn last_line(log: &SessionLog) -> Option<String> {
    let mut ids = log.heads().rev().filter_map(|head| head.id);
    // Other entries were made from the text of a record, or from a file next to the transcript.
    let last = ids.find(|id| !is_made_id(id) && !id.contains('/'));
    last.map(str::to_owned)
}
