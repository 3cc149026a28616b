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

use memory_model::{EntryKind, Message, Part, Role, SessionKey};

use crate::detect::{self, Kind};
use crate::json_lines::{self, Line, LineReader};
use crate::raw::{RawObject, Reading};
use crate::session::{QUEUED, SessionBuilder, is_made_id, note, short_hash};
use crate::{
    AgentHome, Confidence, EarlierReading, Error, Format, Head, Input, Origin, ReadOptions, Report,
    SessionLog, Sink,
};
use contents::Contents;
use line::{prompt, read, session_of, whole};
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
        let mut reader = Reader {
            empty: Some(SessionBuilder::with_options(Origin::Root, options)),
            started_by: input.path().and_then(started_by),
            outputs: input.path().map(Outputs::of).unwrap_or_default(),
            ..Reader::default()
        };
        let mut report = json_lines::read(input, options, &mut reader)?;
        for session in reader.finish(&mut report) {
            sink.session(session)?;
        }
        Ok(report)
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

/// Reads a file's lines in file order.
///
/// `parentUuid` distinguishes side chains. It also shows a turn that was taken back: the user went back to a message
/// before the turn. A fork begins there. Any other line continues its branch in file order, because results of parallel
/// calls and notes of the program are branches of the tree too.
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
    /// Contents of the messages in the overflow, for what a compaction writes again.
    contents: Contents,
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
            contents: Contents::default(),
        }
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
        let mut found = (!noise).then(|| read(line, &tag, false, Reading::Now));
        let mut repeats = false;
        if let Some((message, _)) = found.as_ref().filter(|_| !side) {
            repeats = self.repeats_queued(&tag, object, message);
            self.push_queued(true);
            if tag == "assistant" {
                self.queue.replied();
            }
        }
        let session = match side {
            true => self.chain(line, uuid.as_deref(), noise),
            false => self.branch(object, uuid.as_deref(), &tag, noise),
        };
        let Some((mut message, mut revised)) = found.take() else {
            if tag == QUEUE {
                if self.queue.operation(line) {
                    self.push_passed_over(whole(line, &tag), line.text);
                }
                self.push_queued(false);
            } else {
                report.skip(&tag);
            }
            return;
        };
        if object.is_true("isCompactSummary") && self.is_only_trace(session) {
            (message, revised) = read(line, &tag, true, Reading::Now);
        }
        if repeats {
            message = whole(line, &tag);
            revised = true;
        }
        let at = |reading| object.time("timestamp", reading).unwrap_or_default();
        message.created_at = at(Reading::Now);
        if !side {
            let note = self.sessions.get(session).and_then(|chain| {
                let earlier = (&chain.log, &chain.contents);
                self.rewriting.note(line, &tag, &message, earlier)
            });
            if let Some(note) = note {
                message = note;
                message.created_at = at(Reading::Now);
                revised = true;
            }
        }
        let revised = revised || object.time_is_revised("timestamp") || side && !is_own;
        let earlier = revised.then(|| {
            let (mut first, _) = read(line, &tag, false, Reading::First);
            first.created_at = at(Reading::First);
            match side && !is_own {
                // The first reading assigned the line to the conversation that started the sub-agent.
                true => EarlierReading::PassedOver,
                false => EarlierReading::Entry(Box::new(first)),
            }
        });
        let output = self.outputs.note(&message);
        let pushed = self.push(session, message, uuid.clone(), line.text, earlier);
        let output_id = pushed.as_ref().map(|external| format!("{external}/output"));
        if let Some(external) = pushed.filter(|_| !side) {
            self.step(session, object, uuid, LineKind::of(object, &tag));
            let new = names.filter(|name| self.last_key.as_ref() != Some(name));
            if let Some(name) = new {
                let chain = self.sessions.get_mut(session);
                if let Some(chain) = chain.filter(|_| self.last_key.is_some()) {
                    chain.log.push_key(external, SessionKey::new(name.as_str()));
                }
                self.last_key = Some(name);
            }
        }
        if let (Some(mut note), Some(id)) = (output, output_id) {
            note.created_at = at(Reading::Now);
            let passed_over = Some(EarlierReading::PassedOver);
            self.push(session, note, Some(id), line.text, passed_over);
            if let Some(chain) = self.sessions.get_mut(session).filter(|_| !side) {
                chain.steps.push(Step::beside_the_tree());
            }
        }
    }
}

impl Reader {
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

    /// Returns whether a line repeats words that were said from the queue. The queue then forgets the words.
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

    /// Adds the words that were said from the queue by now. `next` means that another record follows.
    fn push_queued(&mut self, next: bool) {
        for Queued { message, line, .. } in self.queue.due(next) {
            // Words that were sent twice before an answer are the same words.
            let message = match self.has_just_said(&message) {
                true => note(Role::User, &line),
                false => message,
            };
            self.push_passed_over(message, &line);
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

    /// Adds a message of a queue record, which the first reading passed over.
    fn push_passed_over(&mut self, mut message: Message, line: &str) {
        // A repeated record makes no second message.
        let id = format!("{QUEUED}{}", short_hash(line));
        if !message.created_at.is_known()
            && let Some(line) = RawObject::parse(line)
        {
            let time = line.time("timestamp", Reading::Now);
            message.created_at = time.unwrap_or_default();
        }
        let passed_over = Some(EarlierReading::PassedOver);
        let branch = *self.queued.entry(id.clone()).or_insert(self.current);
        let pushed = self.push(branch, message, Some(id), line, passed_over);
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
        earlier: Option<EarlierReading>,
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
        chain.log.add(message, earlier, line.clone(), keeps);
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
    /// in the place of a turn that was taken back.
    pub(super) fn branch(
        &mut self,
        object: &RawObject<'_>,
        uuid: Option<&str>,
        tag: &str,
        noise: bool,
    ) -> usize {
        let name = uuid.map(|uuid| self.names.of(uuid));
        if let Some(known) = name.and_then(|name| self.lines.get(name))
            && let Some((chain, _)) = known.place()
        {
            // The line is repeated, or another line has its uuid.
            return chain;
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
            let fork = Chain::new(
                from.log.branch(),
                branch,
                Some(name),
                Start::Fork { shared },
            );
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
    ) {
        let parent = self.parent(object);
        let uuid = uuid.map(|uuid| self.names.of(&uuid));
        let step = Step {
            uuid,
            above: parent.and_then(|parent| self.placed(parent)),
            is_root: object
                .get("parentUuid")
                .is_some_and(|parent| parent.get() == "null"),
            kind,
            session: session_of(object).map(|session| self.names.of(&session)),
        };
        let Some(chain) = self.sessions.get_mut(session) else {
            return;
        };
        let place = chain.shared() + chain.steps.len();
        chain.steps.push(step);
        if let Some(uuid) = uuid.filter(|uuid| self.lines.get(*uuid).is_none()) {
            let line = TreeLine {
                parent,
                place: Some((session as u32, place as u32)),
                kind,
            };
            self.lines.insert(uuid, line);
        }
    }

    /// Returns the lines that a chain shows from a place on, oldest first.
    fn steps_from(&self, chain: usize, place: usize) -> Vec<&Step> {
        let mut steps = Vec::new();
        let (mut at, mut end) = (self.sessions.get(chain), usize::MAX);
        while let Some(chain) = at {
            let shared = chain.shared();
            let own = chain.steps.iter().take(end.saturating_sub(shared));
            steps.extend(own.skip(place.saturating_sub(shared)).rev());
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
        // The user goes back to a message, not to a note of the program before the turn.
        let mut anchor = parent;
        for _ in 0..=self.lines.depth() {
            match anchor.and_then(|uuid| self.lines.get(uuid)) {
                Some(line) if line.kind == LineKind::Aside => anchor = line.parent,
                _ => break,
            }
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
        // Lines further down the tree. Each has the first conversational line on the way to it, and its turn.
        let mut below: HashMap<Name, (Option<usize>, Option<usize>)> = HashMap::new();
        let mut prompts: Vec<(usize, usize)> = Vec::new();
        let mut answered: HashSet<usize> = HashSet::new();
        let mut linked = anchor.is_some();
        for (place, step) in (first..).zip(self.steps_from(branch, first)) {
            if anchor.is_none() && step.kind == LineKind::Boundary {
                // The lines behind a boundary are a separate tree.
                return None;
            }
            let above = step.above;
            let state = match (above, anchor) {
                (above, Some(anchor)) if above == Some(anchor) => (None, None),
                // A second root of the tree is a resume, unless it names the same session.
                (None, None) if step.is_root && step.session == session => (None, None),
                (Some(above), _) => match below.get(&above) {
                    Some(state) => *state,
                    None => continue,
                },
                _ => continue,
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
