//! opencode's sessions as `opencode export` writes them: `{"info":{…},"messages":[{"info":{…},"parts":[…]}]}`.
//!
//! - A tool's part is a call in the assistant's message. Its output is a result in a separate message behind it. The
//!   result has the part's id, with `-result` if the call's message has that id. A tool that is pending or running has
//!   no result yet.
//! - The last message is left for the next reading while opencode is writing it, because its parts change. Such a
//!   message is the assistant's and has neither an end nor an error.
//! - Parts are read in the order of their ids, which sort by time. A text that opencode added (`synthetic`) is a
//!   separate message.
//! - A compaction is a note, and its summary is a note and also the session's summary. Parts that the model does not
//!   see are notes too: ignored texts, files that the model sees as texts, patches and retries. The beginning and end
//!   of a step are counted.
//! - The session's facts that never change are a note. Titles, sums of tokens and the changes of files under a user's
//!   message are not kept.
//! - A sub-agent's session is linked to its parent.
//! - Messages that the user took back (`revert`) are a fork, behind the message before them. opencode deletes them once
//!   the user goes on. If a part is the first that was taken back, the parts before it are a message of their own in the
//!   session.
//! - Messages that a database lost with its upgrade (`gone`, which an export does not have) are forks too, each behind
//!   the message that it names.
//! - Messages of opencode 2 have a `type` and their content in themselves. Changes of the agent, model and folder are
//!   notes, and the marks of idle times are counted.
//! - The document is held in memory whole, up to [`ReadOptions::max_line_bytes`](crate::ReadOptions::max_line_bytes).

use std::collections::HashMap;

use memory_model::{Message, Part, RawJson, ResultContent, Role, SessionKey, Timestamp};
use serde_json::value::RawValue;

use crate::chat::linked_media;
use crate::documents::{Documents, Source};
use crate::outline::Outline;
use crate::raw::{MetaBuilder, RawObject, list, readable, text};
use crate::session::{SessionBuilder, note, unknown};
use crate::{Origin, Report, SessionLog, SourceScope, SourceSummary};

mod second;

/// Facts of a session that never change.
const FACTS: [&str; 6] = [
    "id",
    "slug",
    "projectID",
    "directory",
    "parentID",
    "version",
];
/// Keys of a part that name its place.
const PLACE: [&str; 4] = ["id", "sessionID", "messageID", "type"];
/// Media types of files that opencode shows the model as texts.
const TOLD: [&str; 2] = ["text/plain", "application/x-directory"];

/// Sessions that opencode exports.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct OpenCode {}

impl OpenCode {
    /// Creates the format.
    pub fn new() -> Self {
        Self {}
    }
}

impl Documents for OpenCode {
    const NAME: &'static str = "opencode";

    fn is(outline: &Outline<'_>) -> bool {
        let parts = outline.has("messages[].info.id") && outline.has("messages[].parts")
            || outline.begins("info.id", "ses")
                && outline.has("messages[].id")
                && outline.has("messages[].type");
        let empty = outline.begins("info.id", "ses") && outline.begins("messages", "[]");
        outline.has("info.id") && parts || empty
    }

    fn document(document: &RawValue, source: &mut Source<'_>) {
        let document = RawObject::parse(document.get());
        let session = document.as_ref().and_then(|document| {
            Some((document.object("info")?, list(document.get("messages")?)?))
        });
        let Some((info, messages)) = session else {
            return source.lose("no_messages");
        };
        let Some(key) = info.id("id") else {
            return source.lose("no_session");
        };
        let origin = match info.id("parentID") {
            None => Origin::Root,
            Some(parent) => Origin::Spawn {
                parent: SessionKey::new(parent),
                call: None,
                after: None,
            },
        };
        let mut reader = Reader {
            log: SessionBuilder::new(origin),
            report: &mut source.report,
            kept_from: None,
            suffix: String::new(),
            ends: HashMap::new(),
        };
        let mut facts = MetaBuilder::default();
        let known = |name: &str| FACTS.contains(&name);
        facts.extend(info.members.iter().filter(|member| known(&member.name)));
        if let Some(facts) = facts.into_text() {
            let note = note(Role::System, &facts);
            reader.log.push(note, Some(key.clone()), &facts);
        }
        let since = info.object("time").and_then(|time| time.time("updated"));
        let first = reader.log.id_before(reader.log.len());
        let revert = Revert::of(&info);
        let (shown, back) = match &revert {
            None => (messages, Vec::new()),
            Some(revert) => revert.divide(messages),
        };
        reader.messages(&shown, back.is_empty(), None);
        let after = reader.log.id_before(reader.log.len());
        let mut forks: Vec<Fork> = Vec::new();
        if let (Some(revert), false) = (&revert, back.is_empty()) {
            let before = reader.log.branch();
            let part = revert.part.as_deref().filter(|_| revert.is_in(&back));
            if let (Some(part), Some(message)) = (part, back.first()) {
                reader.suffix = format!("-before-{part}");
                reader.messages(std::slice::from_ref(message), false, Some(part));
                reader.suffix.clear();
            }
            let shown = std::mem::replace(&mut reader.log, before);
            reader.messages(&back, true, None);
            let back = std::mem::replace(&mut reader.log, shown);
            forks.push((revert.message.clone(), after, back));
        }
        let gone = document
            .as_ref()
            .and_then(|document| list(document.get("gone")?));
        forks.extend(reader.gone(&gone.unwrap_or_default(), first.as_ref()));
        let key = SessionKey::new(key);
        let mut log = reader.log.finish(key.clone());
        (log.linked, log.in_use, log.since) = (true, true, since);
        log.whole = since.is_some();
        let mut logs = vec![log];
        for (name, after, mut fork) in forks.into_iter().filter(|(_, _, fork)| fork.len() > 0) {
            let has = |log: &&SessionLog| log.heads().any(|head| head.id == after.as_deref());
            let parent = logs.iter().find(has).map_or(&key, |log| &log.key).clone();
            fork.origin = Origin::Fork { parent, after };
            let mut log = fork.finish(SessionKey::new(format!("{key}/{name}")));
            (log.linked, log.since, log.is_separate) = (true, since, true);
            logs.push(log);
        }
        logs.into_iter().for_each(|log| source.add(log));
    }
}

/// The first message that the user took back, and the first part of it if the parts before it stay.
struct Revert {
    message: String,
    part: Option<String>,
}

impl Revert {
    fn of(info: &RawObject<'_>) -> Option<Self> {
        let revert = info.object("revert")?;
        Some(Self {
            message: revert.id("messageID")?,
            part: revert.id("partID"),
        })
    }

    /// Divides messages into those that stay and those that were taken back. opencode compares the ids of its first
    /// version, which sort by time; a message that is gone has a place too. The second version has an order of its own.
    fn divide<'a>(&self, messages: Vec<&'a RawValue>) -> (Vec<&'a RawValue>, Vec<&'a RawValue>) {
        let ids: Vec<Option<String>> = messages.iter().map(|message| id_of(message)).collect();
        let at = ids.iter().position(|id| id.as_ref() == Some(&self.message));
        let later = || {
            let is_later = |id: &String| *id >= self.message;
            ids.iter().position(|id| id.as_ref().is_some_and(is_later))
        };
        let at = at.or_else(later).unwrap_or(messages.len());
        let mut shown = messages;
        let back = shown.split_off(at);
        (shown, back)
    }

    /// Returns whether the first message is the one that is named.
    fn is_in(&self, back: &[&RawValue]) -> bool {
        let first = back.first().and_then(|message| id_of(message));
        first.as_ref() == Some(&self.message)
    }
}

/// A fork: its name, the entry before it, and its log.
type Fork = (String, Option<String>, SessionBuilder);

/// Returns whether a part has a type.
fn is(part: &RawObject<'_>, tag: &str) -> bool {
    part.string("type").as_deref() == Some(tag)
}

/// Returns the id of a message of either version.
fn id_of(message: &RawValue) -> Option<String> {
    let object = RawObject::parse(message.get())?;
    match object.object("info") {
        Some(info) => info.id("id"),
        None => object.id("id"),
    }
}

struct Reader<'r> {
    log: SessionBuilder,
    report: &'r mut Report,
    /// Id of the first message that the last compaction keeps.
    kept_from: Option<String>,
    /// End of the ids of a message of which only the first parts are read.
    suffix: String,
    /// Ids of the last entries of messages, by the messages' ids.
    ends: HashMap<String, String>,
}

/// A message that is being read: the parts up to the next step, or up to a text of the other origin.
#[derive(Default)]
struct Open {
    parts: Vec<Part>,
    blocks: MetaBuilder,
    is_synthetic: bool,
    /// Id and text of the first part.
    first: Option<(Option<String>, String)>,
    /// Results, each with the id and the text of its part.
    results: Vec<(Message, Option<String>, String)>,
}

/// The head of a message.
struct Envelope<'a> {
    info: RawObject<'a>,
    text: &'a str,
    id: Option<String>,
    role: Role,
    created_at: Timestamp,
    /// Whether an entry has the message's id.
    is_told: bool,
}

impl Reader<'_> {
    /// Reads messages. `is_end` is whether opencode may be writing the last one. Of a message, the parts before
    /// `until` are read.
    fn messages(&mut self, messages: &[&RawValue], is_end: bool, until: Option<&str>) {
        let mut messages = messages.iter().peekable();
        while let Some(message) = messages.next() {
            self.report.lines += 1;
            let is_last = is_end && messages.peek().is_none();
            if self.message(message, is_last, until).is_none() {
                let number = self.report.lines;
                self.report.warn("unknown_role", number);
                let text = message.get();
                self.log.push(note(Role::System, text), None, text);
            }
            let end = self.log.id_before(self.log.len());
            self.ends.extend(id_of(message).zip(end));
        }
    }

    /// Reads the messages that a database lost, each run of them as a fork. A run that does not name the message before
    /// it comes behind the entry `first`.
    fn gone(&mut self, runs: &[&RawValue], first: Option<&String>) -> Vec<Fork> {
        let mut forks = Vec::new();
        for run in runs {
            let Some(run) = RawObject::parse(run.get()) else {
                continue;
            };
            let messages = run.get("messages").and_then(list).unwrap_or_default();
            let Some(name) = messages.first().and_then(|message| id_of(message)) else {
                continue;
            };
            let after = run
                .id("after")
                .and_then(|after| self.ends.get(&after).cloned());
            let branch = self.log.branch();
            let log = std::mem::replace(&mut self.log, branch);
            self.messages(&messages, false, None);
            let run = std::mem::replace(&mut self.log, log);
            forks.push((name, after.or_else(|| first.cloned()), run));
        }
        forks
    }

    /// Adds an entry, and returns its external id.
    fn push(&mut self, message: Message, id: Option<String>, text: &str) -> Option<String> {
        let id = id.map(|id| id + &self.suffix);
        self.log.push(message, id, text)
    }

    /// Reads a message, or returns `None` if it has no known role.
    fn message(&mut self, message: &RawValue, is_last: bool, until: Option<&str>) -> Option<()> {
        let object = RawObject::parse(message.get())?;
        let Some(info) = object.object("info") else {
            return self.second(&object, message.get(), is_last);
        };
        let role = match info.string("role")?.as_str() {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            _ => return None,
        };
        let time = info.object("time");
        let has_ended = time
            .as_ref()
            .is_some_and(|time| time.present("completed").is_some());
        let is_open = role == Role::Assistant && !has_ended && info.present("error").is_none();
        if is_last && is_open {
            let number = self.report.lines;
            self.report.warn("incomplete", number);
            return Some(());
        }
        let parts = object.get("parts").and_then(list).unwrap_or_default();
        let mut parts: Vec<(RawObject<'_>, &RawValue)> = parts
            .into_iter()
            .filter_map(|part| Some((RawObject::parse(part.get())?, part)))
            .collect();
        parts.sort_by_key(|(part, _)| part.id("id"));
        parts.retain(|(part, _)| until.is_none_or(|until| part.id("id").as_deref() < Some(until)));
        if parts.is_empty() && until.is_some() {
            return Some(());
        }
        let created_at = time.and_then(|time| time.time("created"));
        let mut envelope = Envelope {
            id: info.id("id"),
            text: message.get(),
            role,
            created_at: created_at.unwrap_or_default(),
            is_told: false,
            info,
        };
        let compaction = parts.iter().find(|(part, _)| is(part, "compaction"));
        let mut others = parts.iter().filter(|(part, _)| !is(part, "compaction"));
        if let (Some((compaction, _)), None, Role::User) = (compaction, others.next(), role) {
            self.kept_from = compaction.id("tail_start_id");
            self.note(&mut envelope);
            return Some(());
        }
        if envelope.info.is_true("summary") {
            self.summary(&mut envelope, &parts);
            return Some(());
        }
        let mut open = Open::default();
        let mut notes = Vec::new();
        for (part, raw) in &parts {
            if !self.part(&mut envelope, &mut open, part, raw) {
                notes.push((part.id("id"), raw.get()));
            }
        }
        self.close(&mut envelope, open);
        for (id, text) in notes {
            let mut note = note(role, text);
            note.created_at = envelope.created_at;
            self.push(note, id, text);
        }
        if !envelope.is_told {
            self.note(&mut envelope);
        }
        Some(())
    }

    /// Keeps the summary of a compaction as a note, and its texts as the session's summary.
    fn summary(&mut self, envelope: &mut Envelope<'_>, parts: &[(RawObject<'_>, &RawValue)]) {
        let texts = parts.iter().filter(|(part, _)| is(part, "text"));
        let texts = texts.filter_map(|(part, _)| readable(part.get("text")?));
        let texts: Vec<String> = texts.map(|(text, _)| text).collect();
        let entry = self.note(envelope);
        let kept_from = self.kept_from.take();
        if let Some(entry) = entry.filter(|_| envelope.info.present("error").is_none()) {
            self.log.push_summary(SourceSummary {
                entry,
                text: texts.join("\n"),
                scope: SourceScope::Before { kept_from },
                details: None,
            });
        }
    }

    /// Keeps a message whole as a note. Returns its external id.
    fn note(&mut self, envelope: &mut Envelope<'_>) -> Option<String> {
        envelope.is_told = true;
        let mut note = note(envelope.role, envelope.text);
        note.created_at = envelope.created_at;
        self.push(note, envelope.id.clone(), envelope.text)
    }

    /// Reads a part, or returns `false` if the model does not see it.
    fn part(
        &mut self,
        envelope: &mut Envelope<'_>,
        open: &mut Open,
        part: &RawObject<'_>,
        raw: &RawValue,
    ) -> bool {
        let tag = part.string("type").unwrap_or_default();
        let mut extra = MetaBuilder::default();
        let mut told = |name| text(part.get(name)?, &format!("\"{name}\""), &mut extra);
        let mut result = None;
        let mut known: Vec<&str> = PLACE.to_vec();
        let read = match tag.as_str() {
            "step-start" => {
                self.report.skip(&tag);
                if !open.results.is_empty() {
                    self.close(envelope, std::mem::take(open));
                }
                return true;
            }
            "step-finish" => {
                self.report.skip(&tag);
                return true;
            }
            "text" if part.is_true("ignored") => return false,
            "text" => {
                known.extend(["text", "synthetic"]);
                told("text").map(|text| Part::Text { text })
            }
            "reasoning" => {
                known.push("text");
                let facts = part.object("metadata");
                let signed = facts.and_then(|facts| facts.object("anthropic")?.string("signature"));
                told("text").map(|text| Part::Reasoning {
                    text,
                    signature: signed,
                })
            }
            "file" => {
                let media_type = part.string("mime").unwrap_or_default();
                if TOLD.contains(&media_type.as_str()) {
                    return false;
                }
                known.extend(["mime", "url"]);
                let url = part.string("url");
                url.map(|url| linked_media(Some(&media_type), &url))
            }
            "tool" => {
                known.extend(["tool", "callID", "state"]);
                tool(part, envelope, &mut result)
            }
            "agent" | "compaction" | "patch" | "retry" | "snapshot" | "subtask" => return false,
            _ => None,
        };
        let read = read.unwrap_or_else(|| {
            known = part
                .members
                .iter()
                .map(|member| member.name.as_ref())
                .collect();
            self.report.lose(&tag);
            unknown(raw.get())
        });
        let is_synthetic = part.is_true("synthetic");
        if is_synthetic != open.is_synthetic && !open.parts.is_empty() {
            self.close(envelope, std::mem::take(open));
        }
        open.is_synthetic = is_synthetic;
        extra.extend(part.others(&known));
        open.blocks
            .nest(&format!("\"{}\"", open.parts.len()), extra);
        open.first
            .get_or_insert_with(|| (part.id("id"), raw.get().to_owned()));
        open.parts.push(read);
        let result = result.map(|result| (result, part.id("id"), raw.get().to_owned()));
        open.results.extend(result);
        true
    }

    /// Adds the message that was read, and the results of its calls.
    fn close(&mut self, envelope: &mut Envelope<'_>, open: Open) {
        let Some((part, text)) = open.first else {
            return;
        };
        let mut message = Message::new(envelope.role, open.parts);
        message.created_at = envelope.created_at;
        let mut meta = MetaBuilder::default();
        let changes = match envelope.role {
            Role::Assistant => "sessionID",
            _ => "summary",
        };
        let known = ["id", "sessionID", "role", "time", changes];
        meta.extend(envelope.info.others(&known));
        if let Some(time) = envelope.info.object("time") {
            let mut times = MetaBuilder::default();
            times.extend(time.others(&["created"]));
            meta.nest("\"time\"", times);
        }
        if open.is_synthetic {
            meta.add("\"synthetic\"", "true");
        }
        meta.nest("\"blocks\"", open.blocks);
        message.meta = meta.finish();
        if envelope.role == Role::Assistant {
            message.response = envelope.id.clone();
        }
        let entry = match envelope.is_told {
            true => self.push(message, part, &text),
            false => self.push(message, envelope.id.clone(), envelope.text),
        };
        envelope.is_told = true;
        for (result, id, text) in open.results {
            let id = id.map(|id| id + &self.suffix);
            let is_taken = id.is_some() && id == entry;
            let id = id.map(|id| if is_taken { format!("{id}-result") } else { id });
            self.log.push(result, id, &text);
        }
    }
}

/// Reads a tool's part: the call, and the message of its result if there is one.
fn tool(
    part: &RawObject<'_>,
    envelope: &Envelope<'_>,
    answer: &mut Option<Message>,
) -> Option<Part> {
    let state = part.object("state")?;
    let (id, name) = (part.id("callID")?, part.string("tool")?);
    let (key, is_error) = match state.string("status").as_deref() {
        Some("completed") => ("output", None),
        Some("error") => ("error", Some(true)),
        _ => ("", None),
    };
    if let Some(output) = state.get(key) {
        let mut meta = MetaBuilder::default();
        let text = text(output, &format!("\"{key}\""), &mut meta);
        let text = text.map_or_else(|| unknown(output.get()), Part::text);
        let mut parts = vec![text];
        for file in state.get("attachments").and_then(list).unwrap_or_default() {
            let read = RawObject::parse(file.get());
            let url = read.as_ref().and_then(|file| file.string("url"));
            let media_type = read.as_ref().and_then(|file| file.string("mime"));
            parts.push(match url {
                Some(url) => linked_media(media_type.as_deref(), &url),
                None => unknown(file.get()),
            });
        }
        let content = match parts.as_slice() {
            [Part::Text { text }] => ResultContent::Text(text.clone()),
            _ => ResultContent::Parts(parts),
        };
        let result = Part::ToolResult {
            call_id: id.clone(),
            content,
            is_error,
        };
        let mut message = Message::new(Role::Tool, vec![result]);
        let time = state.object("time");
        let end = time.as_ref().and_then(|time| time.time("end"));
        message.created_at = end.unwrap_or(envelope.created_at);
        let known = ["status", "input", "output", "error", "attachments", "time"];
        meta.extend(state.others(&known));
        if let Some(time) = time {
            let mut times = MetaBuilder::default();
            // opencode sets this time if the model does not see the output any more.
            times.extend(time.others(&["compacted"]));
            meta.nest("\"time\"", times);
        }
        message.meta = meta.finish();
        *answer = Some(message);
    }
    let arguments = state.get("input").map(RawJson::from_raw);
    Some(Part::ToolCall {
        id,
        name,
        arguments: arguments.map_or_else(|| RawJson::parse("{}"), Ok).ok()?,
    })
}
