//! pi's session files. Version 1 is a list, and version 3 a tree.

use memory_model::{Message, Part, RawJson, Role};

use crate::blocks::{Dialect, is_error, set_meta};
use crate::branches::Branches;
use crate::detect::{self, Kind};
use crate::json_lines::{self, Line, LineReader, Sessions};
use crate::raw::{MetaBuilder, RawObject, readable, text};
use crate::session::{note, unknown};
use crate::{
    AgentHome, Confidence, Error, Format, Head, Input, ReadOptions, Report, Sink, SourceScope,
    SourceSummary,
};

/// Keys of an entry that have fields in its message.
const CARRIED: [&str; 4] = ["type", "message", "id", "timestamp"];

/// pi's session files, linear (version 1) or a tree (version 3).
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Pi {}

impl Pi {
    /// Creates the format.
    pub fn new() -> Self {
        Self {}
    }
}

impl Format for Pi {
    fn name(&self) -> &str {
        "pi"
    }

    fn sniff(&self, head: &Head<'_>) -> Confidence {
        detect::sniff(head, Kind::Pi)
    }

    fn home(&self) -> Option<AgentHome> {
        Some(AgentHome::new(".pi", &["agent/sessions"]))
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

/// A file. Each session in it begins with a header.
#[derive(Debug)]
struct File<'a> {
    options: &'a ReadOptions,
    sessions: Sessions<Reader>,
}

impl LineReader for File<'_> {
    fn line(&mut self, line: &Line<'_>, report: &mut Report) {
        let is_header = line.string("type").as_deref() == Some("session");
        let id = line.object.id("id").filter(|_| is_header);
        let new = || Reader::new(self.options);
        if let Some(reader) = self.sessions.of(id, true, new) {
            reader.line(line, report);
        }
    }
}

/// Reads a session's lines in file order. An entry is added to the conversation with its parent as the last entry. Any
/// other parent makes a fork.
#[derive(Debug)]
struct Reader {
    branches: Branches,
    /// Places of the entries in file order, for version 1, which names entries by their index: the branch, and the
    /// number of entries up to this one. `None` for a header.
    order: Vec<Option<(u32, u32)>>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &Line<'_>, _report: &mut Report) {
        let object = &line.object;
        let tag = object.string("type").unwrap_or_default();
        let id = object.id("id");
        let header = tag == "session";
        self.branches
            .name(line, || id.clone().filter(|_| header), "pi");
        if header
            && let Some(parent) = object
                .string("parentSession")
                .as_deref()
                .and_then(session_of)
        {
            self.branches.copied_from(parent);
        }
        let entry = id.filter(|_| !header);
        let branch = match &entry {
            Some(id) => self.branches.place(id, object.get("parentId")),
            None => self.branches.current(),
        };
        let summary = self.summary(object, &tag);
        let Some(log) = self.branches.log(branch) else {
            return;
        };
        let mut message = match (tag.as_str(), &summary) {
            ("message", _) => message_of(line),
            ("custom_message", _) => {
                custom_message(line).unwrap_or_else(|| note(Role::System, line.text))
            }
            ("compaction", Some(summary))
                if branch == 0
                    && summary.scope == (SourceScope::Before { kept_from: None })
                    && log.is_without_messages() =>
            {
                let rest = object.rest(&["id", "timestamp", "summary"]);
                let mut message = Message::user(summary.text.as_str());
                message.meta = rest.finish();
                message
            }
            _ => note(Role::System, line.text),
        };
        message.created_at = time(object);
        let external = log.push(message, entry.clone(), line.text);
        let place = (branch as u32, log.len() as u32);
        self.order
            .push(external.as_ref().filter(|_| !header).map(|_| place));
        let Some(external) = external else {
            return;
        };
        if let Some(mut summary) = summary {
            summary.entry.clone_from(&external);
            log.push_summary(summary);
        }
        if let Some(entry) = entry {
            self.branches.placed(&entry, branch);
        }
    }
}

impl Reader {
    fn new(options: &ReadOptions) -> Self {
        Self {
            branches: Branches::new(options),
            order: Vec::new(),
        }
    }

    /// Returns the summary of an entry.
    fn summary(&self, object: &RawObject<'_>, tag: &str) -> Option<SourceSummary> {
        let external = |id: String| self.branches.external(&id);
        let scope = match tag {
            "compaction" => {
                let own = object.id("id");
                let kept_from = match object.string("firstKeptEntryId") {
                    // No entry was kept.
                    Some(id) if id.is_empty() || Some(&id) == own.as_ref() => None,
                    // Without the entry, the range of the summary is unknown.
                    Some(id) => Some(external(id)?),
                    None => {
                        let index = object.get("firstKeptEntryIndex");
                        let index = index.and_then(|index| index.get().parse::<usize>().ok());
                        let place = index.and_then(|index| *self.order.get(index)?);
                        place.and_then(|(branch, count)| {
                            self.branches.id_before(branch as usize, count as usize)
                        })
                    }
                };
                SourceScope::Before { kept_from }
            }
            "branch_summary" => SourceScope::Branch {
                left_at: object.string("fromId").and_then(external),
            },
            _ => return None,
        };
        Some(SourceSummary {
            entry: String::new(),
            text: object.string("summary")?,
            scope,
            details: object.present("details").map(RawJson::from_raw),
        })
    }
}

/// The session of a file, by the name that pi gives its files: a time and the session's id.
fn session_of(path: &str) -> Option<String> {
    let name = path.rsplit(['/', '\\']).next()?;
    let (_, id) = name.strip_suffix(".jsonl")?.rsplit_once('_')?;
    (!id.is_empty()).then(|| id.to_owned())
}

fn time(line: &RawObject<'_>) -> memory_model::Timestamp {
    line.time("timestamp")
        .or_else(|| line.object("message")?.time("timestamp"))
        .unwrap_or_default()
}

/// Reads a message that an extension put before the model, or returns `None` if it cannot be read.
fn custom_message(line: &Line<'_>) -> Option<Message> {
    let object = &line.object;
    if object.repeats_any(&["type", "content", "id"]) {
        return None;
    }
    let mut blocks = MetaBuilder::default();
    let content = object.get("content")?;
    let parts = Dialect::Pi.content(content, &mut blocks);
    let mut message = Message::new(Role::User, parts);
    let outer = object.facts(&["content", "id", "timestamp"]);
    set_meta(&mut message, outer, MetaBuilder::default(), blocks);
    Some(message)
}

/// Reads a `message` entry.
fn message_of(line: &Line<'_>) -> Message {
    let object = &line.object;
    let inner = object
        .object("message")
        .filter(|_| !object.repeats_any(&["type", "message", "id"]))
        .filter(|inner| !inner.repeats_any(&["role", "content", "toolCallId", "isError"]))
        .filter(|inner| !inner.repeats_any(&["command", "output"]));
    let named = object.object("message");
    let role = named.as_ref().and_then(|inner| inner.string("role"));
    let role = role.unwrap_or_default();
    // A command of the user with output that is hidden from the model.
    let hidden =
        role == "bashExecution" && named.is_some_and(|inner| inner.is_true("excludeFromContext"));
    if hidden {
        return note(Role::User, line.text);
    }
    let mut found = Found::default();
    let read = inner.as_ref().and_then(|inner| {
        let (parts, carried) = known(inner, &role, &mut found)?;
        Some((inner, parts, carried))
    });
    let Some((inner, parts, carried)) = read else {
        return match role.as_str() {
            "user" | "bashExecution" => Message::new(Role::User, vec![unknown(line.text)]),
            "assistant" => Message::new(Role::Assistant, vec![unknown(line.text)]),
            "toolResult" => Message::new(Role::Tool, vec![unknown(line.text)]),
            _ => note(Role::System, line.text),
        };
    };
    let role = match role.as_str() {
        "assistant" => Role::Assistant,
        "toolResult" => Role::Tool,
        _ => Role::User,
    };
    let mut message = Message::new(role, parts);
    let outer = object.facts(&CARRIED);
    let mut rest = inner.rest(carried);
    rest.take(found.message);
    set_meta(&mut message, outer, rest, found.blocks);
    message
}

/// Members of a message that its parts cannot hold.
#[derive(Debug, Default)]
struct Found {
    blocks: MetaBuilder,
    message: MetaBuilder,
}

/// Returns the parts of a message of a known role, and the keys that they hold.
fn known(
    inner: &RawObject<'_>,
    role: &str,
    found: &mut Found,
) -> Option<(Vec<Part>, &'static [&'static str])> {
    match role {
        "user" | "assistant" => {
            let parts = Dialect::Pi.content(inner.get("content")?, &mut found.blocks);
            Some((parts, &["role", "content"]))
        }
        // Context that an extension gave to the model.
        "custom" => {
            let parts = Dialect::Pi.content(inner.get("content")?, &mut found.blocks);
            Some((parts, &["content"]))
        }
        "toolResult" => {
            let (is_error, stated) = is_error(inner.get("isError"))?;
            let part = Part::ToolResult {
                call_id: inner.string("toolCallId")?,
                content: Dialect::Pi.result_content(inner.get("content"), 1, &mut found.message),
                is_error,
            };
            let keys: &[&str] = match stated {
                true => &["role", "content", "toolCallId", "isError"],
                false => &["role", "content", "toolCallId"],
            };
            Some((vec![part], keys))
        }
        "bashExecution" => {
            // Only `command`, which the meta keeps, shows the end of the command.
            let (command, _) = readable(inner.get("command")?)?;
            let output = text(inner.get("output")?, "\"output\"", &mut found.message)?;
            let text = format!("{command}\n{output}");
            Some((vec![Part::text(text)], &["role", "output"]))
        }
        _ => None,
    }
}
