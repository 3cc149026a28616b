//! The compactions that an agent made of its own conversation, as its transcript records them.
//!
//! Readers keep the records of compactions as notes, and add no message of them. This module reads these notes again,
//! so that the agent's context after a compaction is known.

use std::collections::HashMap;

use memory_model::conventions::AgentConventions as _;
use memory_model::{EntryKind, Message, Part, Role};
use serde::Serialize;
use serde_json::Value;

use crate::names::strings;
use crate::{KnownAgents, SourceScope, SourceSummary};

/// Claude Code's record of the command for a compaction, which it writes after the summary.
const COMMAND: &str = "<command-name>/compact</command-name>";

/// A compaction that an agent made of its own conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnCompaction {
    /// Index of the entry that records the compaction.
    pub at: usize,
    /// Index of the first entry after the compaction and the additions of the agent's program.
    pub end: usize,
    /// Cause of the compaction in the agent's own word, such as `auto`; `None` if the transcript does not say it.
    pub trigger: Option<String>,
    /// Size of the agent's context before the compaction by its own count, in tokens.
    pub tokens_before: Option<u64>,
    /// Content of the agent's context after the compaction, in order.
    pub shows: Vec<Shown>,
}

/// A part of an agent's context after a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// Text that the compaction wrote: the summary.
    Text(String),
    /// Index of an entry that the context has word for word.
    Entry(usize),
}

/// Returns the compactions in the entries of a conversation, in order. `summaries` are those of the transcript.
///
/// Claude Code, Codex, opencode, pi and Qwen Code record compactions. A compaction without a message before it is not
/// returned: its conversation begins with the summary.
pub fn own_compactions(messages: &[Message], summaries: &[SourceSummary]) -> Vec<OwnCompaction> {
    let reader = Reader {
        messages,
        index: messages
            .iter()
            .enumerate()
            .filter_map(|(at, message)| Some((message.external_id.as_deref()?, at)))
            .collect(),
        summaries: summaries
            .iter()
            .map(|summary| (summary.entry.as_str(), summary))
            .collect(),
    };
    let mut out: Vec<OwnCompaction> = Vec::new();
    for at in 0..messages.len() {
        if out.last().is_none_or(|last| last.end <= at) {
            out.extend(reader.compaction(at));
        }
    }
    out
}

/// Input tokens of a request, as a provider counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CountedInput {
    /// Tokens that were read from the prompt cache.
    pub cached: u64,
    /// Other tokens: new ones, and those that were written to the cache.
    pub new: u64,
}

impl CountedInput {
    /// Returns the count that Claude Code and pi keep with an assistant's message; `None` if there is none.
    pub fn of(message: &Message) -> Option<Self> {
        let meta = message
            .meta
            .as_ref()
            .filter(|_| message.role == Role::Assistant)?;
        let meta: Value = serde_json::from_str(meta.as_str()).ok()?;
        let usage = &meta["message"]["usage"];
        let sum = |keys: &[&str]| {
            keys.iter()
                .filter_map(|key| usage[*key].as_u64())
                .sum::<u64>()
        };
        let counted = Self {
            cached: sum(&["cache_read_input_tokens", "cacheRead"]),
            new: sum(&[
                "input_tokens",
                "cache_creation_input_tokens",
                "input",
                "cacheWrite",
            ]),
        };
        (counted.cached + counted.new > 0).then_some(counted)
    }
}

struct Reader<'a> {
    messages: &'a [Message],
    /// Index of each entry, by its external id.
    index: HashMap<&'a str, usize>,
    summaries: HashMap<&'a str, &'a SourceSummary>,
}

impl Reader<'_> {
    fn compaction(&self, at: usize) -> Option<OwnCompaction> {
        let entry = self.messages.get(at)?;
        let before = self.messages.get(..at)?;
        if entry.kind != EntryKind::Note
            || !before
                .iter()
                .any(|message| message.kind == EntryKind::Message)
        {
            return None;
        }
        let text = raw(entry)?;
        let summary = entry
            .external_id
            .as_deref()
            .and_then(|id| self.summaries.get(id));
        let marks = [
            "\"compact_boundary\"",
            "\"isCompactSummary\"",
            "\"compacted\"",
        ];
        if summary.is_none() && !marks.iter().any(|mark| text.contains(mark)) {
            return None;
        }
        let record: Value = serde_json::from_str(text).ok()?;
        let end = self.end(at + 1);
        let mut found = OwnCompaction {
            at,
            end,
            trigger: None,
            tokens_before: None,
            shows: Vec::new(),
        };
        match summary {
            _ if record["subtype"] == "compact_boundary" || record["isCompactSummary"] == true => {
                let facts = &record["compactMetadata"];
                found.trigger = string(&facts["trigger"]);
                found.tokens_before = facts["preTokens"].as_u64();
                found.shows = self.rewritten(at, end);
                let repeats = found.shows.iter().any(|one| matches!(one, Shown::Entry(_)));
                if !repeats {
                    found.shows.extend(self.preserved(facts));
                }
            }
            _ if record["type"] == "compacted" => {
                let history = &record["payload"]["replacement_history"];
                let text = string(&record["payload"]["message"]).unwrap_or_default();
                found.shows = self.history(history, "content", &text, at);
            }
            Some(summary) => {
                let SourceScope::Before { kept_from } = &summary.scope else {
                    return None;
                };
                let payload = &record["systemPayload"];
                if payload.is_object() {
                    found.trigger = string(&payload["info"]["triggerReason"]);
                    found.tokens_before = payload["info"]["originalTokenCount"].as_u64();
                    found.shows =
                        self.history(&payload["compressedHistory"], "parts", &summary.text, at);
                } else {
                    found.trigger = self.asked(at);
                    found.tokens_before = record["tokensBefore"].as_u64();
                    found.shows = vec![Shown::Text(summary.text.clone())];
                    let kept = kept_from.as_deref().and_then(|id| self.index.get(id));
                    found
                        .shows
                        .extend(self.entries(kept.copied().unwrap_or(at), at));
                }
            }
            None => return None,
        }
        found.shows.extend(self.entries(at + 1, end));
        Some(found)
    }

    /// Returns the messages of a range of entries.
    fn entries(&self, from: usize, to: usize) -> impl Iterator<Item = Shown> {
        let is_message = |at: &usize| {
            self.messages
                .get(*at)
                .is_some_and(|one| one.kind == EntryKind::Message)
        };
        (from..to).filter(is_message).map(Shown::Entry)
    }

    /// Returns the index of the first message from `from` on that the user or the model wrote.
    fn end(&self, from: usize) -> usize {
        let rest = self.messages.get(from..).unwrap_or_default();
        let behind = rest
            .iter()
            .position(|one| one.kind == EntryKind::Message && !is_by_program(one));
        behind.map_or(self.messages.len(), |behind| from + behind)
    }

    /// Returns the content of Claude Code's lines after a boundary: the summary, and messages that are written again.
    fn rewritten(&self, at: usize, end: usize) -> Vec<Shown> {
        let notes = self.messages.get(at..end).unwrap_or_default().iter();
        let notes = notes
            .filter(|one| one.kind == EntryKind::Note)
            .filter_map(raw);
        let shown = notes.filter_map(|note| {
            let line: Value = serde_json::from_str(note).ok()?;
            if let Some(entry) = line["repeats"].as_str() {
                return self.index.get(entry).copied().map(Shown::Entry);
            }
            let is_made = line["isCompactSummary"] == true
                || line["rowSource"] == "hook"
                || line["message"]["model"] == "<synthetic>";
            let text = is_made.then(|| text_of(&line["message"]["content"]))?;
            (!text.trim().is_empty()).then_some(Shown::Text(text))
        });
        shown.collect()
    }

    /// Returns the messages that a boundary of Claude Code names as kept.
    fn preserved(&self, facts: &Value) -> Vec<Shown> {
        let place = |id: &Value| self.index.get(id.as_str()?).copied();
        if let Some(ids) = facts["preservedMessages"]["uuids"].as_array() {
            let kept = ids.iter().filter_map(place);
            return kept.flat_map(|at| self.entries(at, at + 1)).collect();
        }
        let segment = &facts["preservedSegment"];
        let ends = place(&segment["headUuid"]).zip(place(&segment["tailUuid"]));
        ends.into_iter()
            .flat_map(|(head, tail)| self.entries(head, tail + 1))
            .collect()
    }

    /// Returns the messages of a list that replaces the conversation. One with the text of an earlier message is that
    /// message. `key` is the key of a message's content.
    fn history(&self, list: &Value, key: &str, summary: &str, at: usize) -> Vec<Shown> {
        let mut known: HashMap<(Role, String), Vec<usize>> = HashMap::new();
        let before = self.messages.iter().enumerate().take(at);
        for (at, message) in before.filter(|(_, one)| one.kind == EntryKind::Message) {
            known
                .entry((message.role, message.text()))
                .or_default()
                .push(at);
        }
        let mut shows = Vec::new();
        for one in list.as_array().into_iter().flatten() {
            let text = text_of(&one[key]);
            let role = match one["role"].as_str() {
                Some("assistant" | "model") => Role::Assistant,
                Some("developer" | "system") => Role::System,
                _ => Role::User,
            };
            match known.get_mut(&(role, text.clone())).and_then(Vec::pop) {
                Some(at) => shows.push(Shown::Entry(at)),
                None if text.trim().is_empty() => {}
                None => shows.push(Shown::Text(text)),
            }
        }
        let is_told = |one: &Shown| matches!(one, Shown::Text(text) if text.contains(summary));
        if !shows.iter().any(is_told) && !summary.trim().is_empty() {
            shows.push(Shown::Text(summary.to_owned()));
        }
        shows
    }

    /// Returns the cause of a compaction of opencode, whose user asks for it in the message before.
    fn asked(&self, at: usize) -> Option<String> {
        let before = self.messages.get(..at)?.iter().rev().take(4);
        let records =
            before.filter_map(|message| serde_json::from_str::<Value>(raw(message)?).ok());
        let mut asked = records.filter_map(|record| {
            let mut parts = record["parts"].as_array()?.iter();
            parts.find(|part| part["type"] == "compaction").cloned()
        });
        let is_auto = asked.next()?["auto"].as_bool()?;
        Some(if is_auto { "auto" } else { "manual" }.to_owned())
    }
}

/// Returns the JSON text of a note.
fn raw(message: &Message) -> Option<&str> {
    match message.parts.as_slice() {
        [Part::Unknown { raw }] => Some(raw.as_str()),
        _ => None,
    }
}

fn string(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Keys of a block with text for the model.
const TEXTS: [&str; 7] = [
    "text",
    "input",
    "arguments",
    "args",
    "content",
    "response",
    "output",
];

/// Returns the text of a message's content, with the arguments and results of tools.
fn text_of(content: &Value) -> String {
    let mut all = Vec::new();
    match content {
        Value::Array(blocks) => {
            for block in blocks {
                let block = ["functionCall", "functionResponse"]
                    .iter()
                    .find_map(|key| block.get(key))
                    .unwrap_or(block);
                for value in TEXTS.iter().filter_map(|key| block.get(key)) {
                    match value {
                        Value::Array(_) => all.push(text_of(value)),
                        _ => all.extend(string_list(value)),
                    }
                }
            }
        }
        _ => all.extend(string_list(content)),
    }
    all.join("\n")
}

fn string_list(value: &Value) -> Vec<String> {
    let mut all = Vec::new();
    strings(value, &mut all);
    all.into_iter().map(str::to_owned).collect()
}

/// Returns whether the agent's program wrote a message, and neither its user, a model nor a tool.
fn is_by_program(message: &Message) -> bool {
    let is_added = |part: &Part| match part {
        Part::Text { text } => {
            let typed = KnownAgents.user_text(text, message.meta.as_ref()).typed;
            typed.trim().is_empty() || text.contains(COMMAND)
        }
        _ => false,
    };
    match message.role {
        Role::System => true,
        Role::User => message.parts.iter().all(is_added),
        // A file or a hook's context that the program attached.
        Role::Tool => !message
            .parts
            .iter()
            .any(|part| matches!(part, Part::ToolResult { .. })),
        Role::Assistant => false,
    }
}
