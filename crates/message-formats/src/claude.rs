//! Claude Code's session files.

mod appended;
mod attachment;
mod contents;
mod line;
mod outputs;
mod queue;
mod rewriting;
mod tree;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use memory_model::{EntryKind, Message, Part, Role, SessionKey, Timestamp, short_hash};

use crate::detect::{self, Kind};
use crate::json_lines::{self, Line, LineReader, Sessions};
use crate::made_id::{QUEUED, is_made_id};
use crate::raw::RawObject;
use crate::session::{SessionBuilder, is_own, note};
use crate::{
    AgentHome, Confidence, Error, Format, Head, Input, Origin, ReadOptions, Report, SessionLog,
    Sink,
};
use contents::{Contents, whole_hash};
use line::{prompt, read, repeat, session_of, whole};
use outputs::Outputs;
use queue::{QUEUE, Queue, Queued};
use rewriting::Rewriting;
use tree::{LineKind, Lines, Name, Names, Step, TreeLine};

/// Types of lines that are not part of a conversation.
const NOISE: [&str; 3] = ["progress", "file-history-snapshot", QUEUE];

/// Key of a sub-agent's line in an output stream. Its value is the id of the call that started the sub-agent. Other
/// lines have `null` there.
const CALL: &str = "parent_tool_use_id";

/// Tools that start a sub-agent.
const SPAWNERS: [&str; 2] = ["Task", "Agent"];

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

    fn home(&self) -> Option<AgentHome> {
        Some(AgentHome::new(".claude", &["projects"]).with_variable("CLAUDE_CONFIG_DIR"))
    }

    fn is_companion(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_output = path
            .parent()
            .is_some_and(|folder| folder.ends_with("tool-results"));
        is_output || name.starts_with("agent-") && name.ends_with(".meta.json")
    }

    fn continues(&self, records: &[u8], last: &str) -> bool {
        appended::continues(records, last)
    }

    fn read(
        &self,
        input: Input<'_>,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<Report, Error> {
        let path = input.path();
        let mut file = File {
            options,
            path,
            sessions: Sessions::new(Reader::new(options, path)),
        };
        let mut report = json_lines::read(input, options, &mut file)?;
        let readers = file.sessions.into_readers();
        let is_one = readers.len() == 1;
        for reader in readers {
            for mut session in reader.finish(&mut report) {
                // Lines at the end may be another session's.
                session.last = session.last.filter(|_| is_one);
                sink.session(session)?;
            }
        }
        Ok(report)
    }
}

/// A file. A line without a parent begins the session that it names. A session that is named further on, such as by a
/// resume, is the same conversation.
#[derive(Debug)]
struct File<'a> {
    options: &'a ReadOptions,
    path: Option<&'a Path>,
    sessions: Sessions<Reader>,
}

impl LineReader for File<'_> {
    fn line(&mut self, line: &Line<'_>, report: &mut Report) {
        let object = &line.object;
        let tag = object.string("type").unwrap_or_default();
        let parent = object.get("parentUuid").filter(|_| {
            let is_aside = NOISE.contains(&tag.as_str()) || object.is_true("isSidechain");
            !is_aside && object.present("logicalParentUuid").is_none()
        });
        let id = session_of(object);
        let id = id.filter(|id| parent.is_some() || self.sessions.knows(id));
        let is_first = parent.is_some_and(|parent| parent.get() == "null");
        let new = || Reader::new(self.options, self.path);
        if let Some(reader) = self.sessions.of(id, is_first, new) {
            reader.line(line, report);
        }
    }
}

/// Returns the external id of a log's last line.
fn last_line(log: &SessionLog) -> Option<String> {
    let mut ids = log.heads().rev().filter_map(|head| head.id);
    // Other entries were made from the text of a record, or from a file next to the transcript.
    let last = ids.find(|id| !is_made_id(id) && !id.contains('/'));
    last.map(str::to_owned)
}

/// The call that started the sub-agent of a file, by the file `agent-….meta.json` beside it.
fn started_by(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let facts = std::fs::read_to_string(path.with_extension("meta.json")).ok();
    let facts = facts.filter(|_| name.starts_with("agent-"))?;
    RawObject::parse(&facts)?.id("toolUseId")
}

/// A call that can start a sub-agent.
#[derive(Debug)]
struct SpawnCall {
    /// Index of the conversation with the call.
    session: usize,
    id: String,
    /// External id of the line with the call.
    line: String,
    prompt: Option<String>,
    answered: bool,
    taken: bool,
}

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
struct Reader {
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

#[derive(Debug)]
struct Chain {
    log: SessionBuilder,
    /// Suffix of the session's key for a side chain or fork, or `None` for the root.
    name: Option<String>,
    /// Index of the parent of the side chain or fork.
    parent: usize,
    start: Start,
    /// Lines of the root or a fork, one for each message.
    steps: Vec<Step>,
    /// Lines of the tree that were written again, each with the number of lines that the chain showed by then.
    again: Vec<(u32, Step)>,
    /// Contents of the messages in the overflow, for what a compaction writes again.
    contents: Contents,
    /// Time of the newest message.
    newest: Timestamp,
}

/// How a chain begins.
#[derive(Debug, Clone, Copy)]
enum Start {
    /// At the start of the file, or with the call that started a side chain, as an index.
    Alone { call: Option<usize> },
    /// As a fork that shares this number of lines with its parent.
    Fork { shared: usize },
}

impl Chain {
    fn new(log: SessionBuilder, parent: usize, name: Option<String>, start: Start) -> Self {
        Self {
            log,
            name,
            parent,
            start,
            steps: Vec::new(),
            again: Vec::new(),
            contents: Contents::default(),
            newest: Timestamp::default(),
        }
    }

    /// Returns the number of lines that the chain shows.
    fn end(&self) -> usize {
        self.shared() + self.steps.len()
    }

    /// Returns the number of lines that the chain shares with its parent.
    fn shared(&self) -> usize {
        match self.start {
            Start::Alone { .. } => 0,
            Start::Fork { shared } => shared,
        }
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &Line<'_>, report: &mut Report) {
        if let Some(log) = self.empty.take() {
            let start = Start::Alone { call: None };
            self.sessions.push(Chain::new(log, 0, None, start));
        }
        let object = &line.object;
        let tag = object.string("type").unwrap_or_default();
        let uuid = object.id("uuid");
        let conversational = ["user", "assistant", "system"].contains(&tag.as_str());
        let names = session_of(object).filter(|_| conversational);
        if conversational && self.key.is_none() {
            self.named = names.is_some();
            let made = || format!("claude-{}", short_hash(line.text));
            self.key = Some(names.clone().unwrap_or_else(made));
        }
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
            let is_said = |part: &Part| matches!(part, Part::Text { .. }) || said.contains(part);
            message.parts.retain(|part| !is_said(part));
            if message.parts.is_empty() {
                message = whole(line, &tag);
            }
        }
        if let Some(original) = &original {
            message = repeat(line, &tag, original);
        }
        message.created_at = at;
        if !side && original.is_none() {
            let note = self.sessions.get(session).and_then(|chain| {
                let earlier = (&chain.log, &chain.contents);
                self.rewriting.note(line, &tag, &message, earlier)
            });
            if let Some(note) = note {
                message = note.with_created_at(at);
            }
        }
        let output = self.outputs.note(&message);
        let pushed = self.push(session, message, uuid.clone(), line.text);
        let output_id = pushed.as_ref().map(|external| format!("{external}/output"));
        if let Some(external) = pushed.filter(|_| !side) {
            let kind = LineKind::of(object, &tag);
            self.step(session, object, uuid, kind, original.is_some());
            let new = names.filter(|name| self.last_key.as_ref() != Some(name));
            if let Some(name) = new {
                let chain = self.sessions.get_mut(session);
                if let Some(chain) = chain.filter(|_| self.last_key.is_some()) {
                    chain.log.push_key(external, SessionKey::new(name.as_str()));
                }
                self.last_key = Some(name);
            }
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
    fn new(options: &ReadOptions, path: Option<&Path>) -> Self {
        Self {
            empty: Some(SessionBuilder::with_options(Origin::Root, options)),
            started_by: path.and_then(started_by),
            outputs: path.map(Outputs::of).unwrap_or_default(),
            ..Self::default()
        }
    }

    fn finish(self, report: &mut Report) -> Vec<SessionLog> {
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

    /// Returns whether a conversation has no message yet, so that a summary is the only trace of its past.
    fn is_only_trace(&self, session: usize) -> bool {
        self.sessions
            .get(session)
            .is_some_and(|chain| chain.shared() == 0 && chain.log.is_without_messages())
    }

    /// Returns what was said from the queue already of a line with the same words. The queue then forgets the words.
    /// Returns `None` if the words were not said.
    fn said_from_queue(
        &mut self,
        tag: &str,
        object: &RawObject<'_>,
        message: &Message,
    ) -> Option<Vec<Part>> {
        if message.kind != EntryKind::Message {
            return None;
        }
        match tag {
            "attachment" if attachment::is_queued_command(object) => self.queue.attached(message),
            "user" if message.role == Role::User => self.queue.typed(message),
            _ => None,
        }
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

    /// Adds the words that were said from the queue by now. `next` means that another record follows.
    fn push_queued(&mut self, next: bool) {
        for Queued { message, line, .. } in self.queue.due(next) {
            // Words that were sent twice before an answer are the same words.
            let message = match self.has_just_said(&message) {
                true => note(Role::User, &line),
                false => message,
            };
            self.push_record(message, &line);
        }
    }

    /// Returns whether the last message of the branch in use equals a message.
    fn has_just_said(&self, message: &Message) -> bool {
        let Some(log) = self.sessions.get(self.current).map(|chain| &chain.log) else {
            return false;
        };
        let is_message = |at: &usize| {
            log.head(*at)
                .is_some_and(|head| head.kind == EntryKind::Message)
        };
        let last = (0..log.len()).rev().find(is_message);
        last.and_then(|last| log.message(last))
            .is_some_and(|last| last.role == message.role && last.parts == message.parts)
    }

    /// Adds a message of a queue record.
    fn push_record(&mut self, mut message: Message, line: &str) {
        // A repeated record makes no second message.
        let id = format!("{QUEUED}{}", short_hash(line));
        if !message.created_at.is_known()
            && let Some(line) = RawObject::parse(line)
        {
            let time = line.time("timestamp");
            message.created_at = time.unwrap_or_default();
        }
        let branch = *self.queued.entry(id.clone()).or_insert(self.current);
        let pushed = self.push(branch, message, Some(id), line);
        if let Some(chain) = self.sessions.get_mut(branch).filter(|_| pushed.is_some()) {
            chain.steps.push(Step::beside_the_tree());
        }
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

    /// Returns the side chain that a line belongs to: the chain of its agent, the chain of the line above it in the
    /// tree, or a new chain.
    fn chain(&mut self, line: &Line<'_>, uuid: Option<&str>, noise: bool) -> usize {
        let object = &line.object;
        let agent = object.id("agentId").or_else(|| object.id(CALL));
        let known = match (&agent, object.string("parentUuid")) {
            (Some(agent), _) => self.agents.get(agent).copied(),
            (None, Some(parent)) => self.chain_of.get(&self.names.of(&parent)).copied(),
            (None, None) => None,
        };
        let chain = match known {
            Some(chain) => chain,
            // Noise starts no conversation.
            None if noise => return 0,
            None => self.start_chain(line, agent.as_deref().or(uuid)),
        };
        if let Some(uuid) = uuid {
            self.chain_of.insert(self.names.of(uuid), chain);
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
        let named = line.object.id(CALL);
        let call = match named.and_then(|id| self.calls.iter().rposition(|call| call.id == id)) {
            Some(call) => Some(call),
            None => self.spawning_call(prompt(&line.object).as_deref()),
        };
        if let Some(call) = call.and_then(|call| self.calls.get_mut(call)) {
            call.taken = true;
        }
        let parent = call
            .and_then(|call| self.calls.get(call))
            .map_or(0, |call| call.session);
        let Some(log) = self.sessions.first().map(|root| root.log.sibling()) else {
            return 0;
        };
        let start = Start::Alone { call };
        self.sessions
            .push(Chain::new(log, parent, Some(name), start));
        self.sessions.len() - 1
    }

    /// Returns the call that started a side chain: the call with its prompt, or else the nearest open call.
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

impl Reader {
    /// Returns the chain that owns the line at a place of another chain, and that place.
    pub(super) fn owner(&self, mut chain: usize, place: usize) -> (usize, usize) {
        while let Some(at) = self.sessions.get(chain)
            && place < at.shared()
        {
            chain = at.parent;
        }
        (chain, place)
    }

    /// Returns whether a chain shows the line that another chain owns at a place.
    fn shows(&self, chain: usize, (owner, place): (usize, usize)) -> bool {
        self.owner(chain, place).0 == owner
    }

    /// Returns the branch that a line of the root conversation belongs to. It is a new fork if the line begins a turn
    /// in the place of a turn that was taken back. `is_copy` means that the line repeats an earlier one.
    pub(super) fn branch(
        &mut self,
        object: &RawObject<'_>,
        uuid: Option<&str>,
        tag: &str,
        noise: bool,
        is_copy: bool,
    ) -> usize {
        let name = uuid.map(|uuid| self.names.of(uuid));
        if let Some(name) = name
            && let Some(place) = self.lines.get(name).and_then(TreeLine::place)
        {
            // The line is written again, or another line has its uuid.
            let chain = match self.shows(self.current, place) {
                true => self.current,
                false => place.0,
            };
            self.stand_again(chain, name);
            return place.0;
        }
        if is_copy {
            return self.current;
        }
        let Some(stated) = object.get("parentUuid") else {
            return self.current;
        };
        let parent = self.parent(object);
        if parent.is_none() && stated.get() != "null" {
            return self.current;
        }
        if noise {
            if let Some(name) = name {
                let line = TreeLine {
                    parent,
                    place: None,
                    kind: LineKind::Aside,
                    session: None,
                };
                self.lines.insert(name, line);
            }
            return self.current;
        }
        let place = parent.and_then(|parent| self.placed(parent));
        let place = place.and_then(|uuid| self.lines.get(uuid)?.place());
        let branch = match place {
            Some(place) if !self.shows(self.current, place) => place.0,
            _ => self.current,
        };
        let kind = LineKind::of(object, tag);
        let session = session_of(object).map(|session| self.names.of(&session));
        if kind.may_begin_turn()
            && (parent.is_none() || place.is_some())
            && let Some(shared) = self.taken_back(branch, parent, session)
            && let Some(from) = self.sessions.get(branch)
        {
            let name = uuid.map_or_else(|| format!("fork-{}", self.sessions.len()), str::to_owned);
            let mut fork = Chain::new(
                from.log.branch(),
                branch,
                Some(name),
                Start::Fork { shared },
            );
            fork.newest = from.newest;
            self.sessions.push(fork);
            self.current = self.sessions.len() - 1;
            return self.current;
        }
        // A late result does not bring its branch back into use.
        if kind.may_begin_turn() || kind == LineKind::Assistant {
            self.current = branch;
        }
        branch
    }

    /// Returns the uuid of the line above a line.
    fn parent(&mut self, object: &RawObject<'_>) -> Option<Name> {
        let parent = object.string("parentUuid")?;
        Some(self.names.of(&parent))
    }

    /// Returns this line, or the nearest line above it that is not noise.
    fn placed(&self, mut uuid: Name) -> Option<Name> {
        // The parents in a file can form a circle.
        for _ in 0..=self.lines.depth() {
            let line = self.lines.get(uuid)?;
            if line.place.is_some() {
                return Some(uuid);
            }
            uuid = line.parent?;
        }
        None
    }

    /// Records the place of a line that was added to a branch.
    pub(super) fn step(
        &mut self,
        session: usize,
        object: &RawObject<'_>,
        uuid: Option<String>,
        kind: LineKind,
        is_copy: bool,
    ) {
        let parent = self.parent(object);
        let uuid = uuid.map(|uuid| self.names.of(&uuid));
        if kind == LineKind::Boundary {
            self.end_at_boundary(session, object);
        }
        let step = Step {
            uuid,
            above: parent.and_then(|parent| self.placed(parent)),
            is_root: object
                .get("parentUuid")
                .is_some_and(|parent| parent.get() == "null"),
            kind,
            session: session_of(object).map(|session| self.names.of(&session)),
            is_copy,
        };
        let named = step.session;
        let Some(chain) = self.sessions.get_mut(session) else {
            return;
        };
        let place = chain.end();
        chain.steps.push(step);
        if let Some(uuid) = uuid.filter(|uuid| self.lines.get(*uuid).is_none()) {
            let line = TreeLine {
                parent,
                place: Some((session as u32, place as u32)),
                kind,
                session: named,
            };
            self.lines.insert(uuid, line);
            if is_copy {
                self.again.entry(uuid).or_default().push((session, place));
            }
        }
    }

    /// Returns whether a line with a uuid has a place in the tree.
    fn is_placed(&mut self, uuid: &str) -> bool {
        let line = self.lines.get(self.names.of(uuid));
        line.is_some_and(|line| line.place.is_some())
    }

    /// Records that the program wrote a line of the tree again. It is at the end of the chain once more, so that a
    /// line behind it continues there and takes nothing back.
    fn stand_again(&mut self, chain: usize, name: Name) {
        let Some(line) = self.lines.get(name) else {
            return;
        };
        let step = Step {
            uuid: Some(name),
            above: line.parent.and_then(|parent| self.placed(parent)),
            is_root: line.parent.is_none(),
            kind: line.kind,
            session: line.session,
            is_copy: true,
        };
        if let Some(at) = self.sessions.get_mut(chain) {
            let end = at.end();
            at.again.push((end as u32, step));
            self.again.entry(name).or_default().push((chain, end));
        }
    }

    /// Records that a compaction took the conversation as it stood. The line that the boundary names as the last one is
    /// then the end of the conversation, wherever the program had put it in the tree.
    fn end_at_boundary(&mut self, chain: usize, object: &RawObject<'_>) {
        let last = object.string("logicalParentUuid");
        let mut at = last.map(|last| self.names.of(&last));
        for _ in 0..=self.lines.depth() {
            let Some((name, line)) = at.and_then(|name| Some((name, self.lines.get(name)?))) else {
                return;
            };
            let (kind, parent) = (line.kind, line.parent);
            if line.place().is_some_and(|place| self.shows(chain, place)) {
                self.stand_again(chain, name);
            }
            if kind != LineKind::Aside {
                return;
            }
            at = parent;
        }
    }

    /// Returns the number of lines that a branch showed when a line was last written again.
    fn stood_again(&self, branch: usize, name: Name) -> Option<usize> {
        let mut places = self.again.get(&name)?.iter().rev();
        let shown = |(chain, end): &&(usize, usize)| {
            *chain == branch || self.shows(branch, (*chain, end.saturating_sub(1)))
        };
        places.find(shown).map(|(_, end)| *end)
    }

    /// Returns the lines that a chain shows from a place on, each with its place, oldest first. A line that was written
    /// again comes once more, with its first place.
    fn steps_from(&self, chain: usize, place: usize) -> Vec<(usize, &Step)> {
        let mut steps = Vec::new();
        let (mut at, mut end) = (self.sessions.get(chain), usize::MAX);
        while let Some(chain) = at {
            let shared = chain.shared();
            let own = (shared..).zip(&chain.steps);
            let own = own.take(end.saturating_sub(shared));
            let own = own.skip(place.saturating_sub(shared));
            let from = chain
                .again
                .partition_point(|(by, _)| (*by as usize) < place);
            let again = chain.again.get(from..).unwrap_or_default().iter();
            let again = again.map(|(by, step)| (*by as usize, step));
            let mut again = again.take_while(|(by, _)| *by <= end).peekable();
            let first = |(by, step): (usize, &'_ Step)| {
                let line = step.uuid.and_then(|uuid| self.lines.get(uuid));
                line.and_then(TreeLine::place)
                    .map_or(by, |(_, place)| place)
            };
            let mut part = Vec::new();
            for (at, step) in own {
                while let Some(one) = again.next_if(|(by, _)| *by <= at) {
                    part.push((first(one), one.1));
                }
                part.push((at, step));
            }
            part.extend(again.map(|one| (first(one), one.1)));
            steps.extend(part.into_iter().rev());
            end = end.min(shared);
            at = match shared > place {
                true => self.sessions.get(chain.parent),
                false => None,
            };
        }
        steps.reverse();
        steps
    }

    /// Returns the number of lines of a branch before the first line that was taken back, if a line behind `parent`
    /// begins a turn. Returns `None` if no turn is taken back, so that the line continues the branch.
    ///
    /// A turn is taken back if its first line is further down the tree than the line that the new turn continues. Other
    /// lines between the two, such as the result of a parallel call, can be on a side branch, and stay.
    fn taken_back(
        &self,
        branch: usize,
        parent: Option<Name>,
        session: Option<Name>,
    ) -> Option<usize> {
        // Lines further down the tree. Each has the first conversational line on the way to it, and its turn.
        let mut below: HashMap<Name, (Option<usize>, Option<usize>)> = HashMap::new();
        // The user goes back to a message, not to a note of the program before the turn.
        let mut anchor = parent;
        let mut again = 0;
        for _ in 0..=self.lines.depth() {
            let Some((uuid, line)) = anchor.and_then(|uuid| Some((uuid, self.lines.get(uuid)?)))
            else {
                break;
            };
            again = again.max(self.stood_again(branch, uuid).unwrap_or_default());
            if line.kind != LineKind::Aside {
                break;
            }
            below.insert(uuid, (None, None));
            anchor = line.parent;
        }
        let first = match anchor {
            None => 0,
            Some(uuid) => {
                self.lines
                    .get(uuid)?
                    .place()
                    .filter(|place| self.shows(branch, *place))?
                    .1
                    + 1
            }
        };
        let first = first.max(again);
        let mut prompts: Vec<(usize, usize)> = Vec::new();
        let mut answered: HashSet<usize> = HashSet::new();
        let mut linked = anchor.is_some();
        // Lines that are written again follow the conversation as it stands, wherever they were in the tree. They begin
        // no turn there.
        let mut before = Some((None, None));
        let mut moved: HashSet<Name> = HashSet::new();
        for (place, step) in self.steps_from(branch, first) {
            if anchor.is_none() && step.kind == LineKind::Boundary {
                // The lines behind a boundary are a separate tree.
                return None;
            }
            let above = step.above;
            let state = match (above, anchor) {
                (above, Some(anchor)) if above == Some(anchor) => Some((None, None)),
                // A second root of the tree is a resume, unless it names the same session.
                (None, None) if step.is_root && step.session == session => Some((None, None)),
                (above, _) => above.and_then(|above| below.get(&above).copied()),
            };
            let is_moved = above != anchor && above.is_none_or(|above| moved.contains(&above));
            if step.is_copy && (state.is_none() || is_moved) {
                if let Some((uuid, before)) = step.uuid.zip(before) {
                    moved.insert(uuid);
                    below.insert(uuid, before);
                }
                continue;
            }
            let Some(state) = state else {
                // A summary or a result stands between turns, and a new turn needs words.
                if matches!(
                    step.kind,
                    LineKind::Prompt | LineKind::Command | LineKind::Assistant
                ) {
                    before = None;
                }
                continue;
            };
            linked |= above.is_some();
            let (mut said, mut turn) = state;
            if step.kind.is_said() {
                said = said.or(Some(place));
            }
            match (step.kind, said) {
                (LineKind::Prompt | LineKind::Command, Some(said)) => {
                    prompts.push((place, said));
                    if step.kind == LineKind::Prompt {
                        answered.insert(place);
                    }
                    turn = Some(place);
                }
                (LineKind::Assistant, _) => answered.extend(turn),
                _ => {}
            }
            if step.kind.is_said() && !step.is_copy {
                before = Some((said, turn));
            }
            if let Some(uuid) = step.uuid {
                below.insert(uuid, (said, turn));
            }
        }
        let turns = prompts
            .into_iter()
            .filter(|(place, _)| answered.contains(place));
        let left = turns.map(|(_, said)| said).min();
        left.filter(|_| linked)
    }
}
