//! Everything that an extract could say, with a weight for each.

use std::collections::BTreeMap;

use memory_model::{EntryKind, LogEntry, Part, ResultContent, Role, SeqRange};

use super::call::{Call, FileUse, failure, output};
use super::parse;
use super::text::{clip, is_decision, sentences, squeeze, visit_names, window, without_harness};
use crate::Source;

/// A user's message longer than this is a document that was handed over rather than something
/// typed, in bytes.
const TYPED_BYTES: usize = 3_000;

/// Messages longer than this that begin alike are taken for a program's, in bytes.
const TEMPLATE_BYTES: usize = 300;

/// The weight of what a user typed.
pub(super) const TYPED: u32 = 100;
/// The weight of a document that a user's message holds.
pub(super) const PASTED: u32 = 50;

/// What kind of thing a line tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// What the user said.
    User,
    /// What the assistant concluded.
    Reply,
    /// What went wrong.
    Error,
    /// What a tool did.
    Act,
    /// A line of a summary that another wrote.
    Note,
}

/// Something that an extract could say, in a line.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) range: SeqRange,
    pub(super) kind: Kind,
    pub(super) label: String,
    pub(super) sentences: Vec<String>,
    /// How the thing ended: printed after an arrow.
    pub(super) outcome: String,
    /// 0 to about 100.
    pub(super) weight: u32,
}

/// How often a file was changed and read, and when last.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FileStat {
    pub(super) changed: u32,
    pub(super) read: u32,
    pub(super) last: usize,
}

/// How often something was named, and when last.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NameStat {
    pub(super) count: u32,
    pub(super) last: usize,
}

/// All that was found.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) items: Vec<Item>,
    pub(super) files: BTreeMap<String, FileStat>,
    pub(super) names: BTreeMap<String, NameStat>,
    /// Subjects that summaries said are to be had by expanding them.
    pub(super) topics: Vec<String>,
    pub(super) messages: u64,
    pub(super) calls: u64,
    pub(super) images: u64,
    /// Counts pieces; the time of a file's or name's last use.
    now: usize,
}

impl Gathered {
    pub(super) fn push(&mut self, item: Item) {
        if !item.sentences.is_empty() {
            self.items.push(item);
        }
    }

    pub(super) fn name(&mut self, text: &str) {
        let now = self.now;
        let (head, tail) = window(text, 16 * 1024, 4 * 1024);
        for part in [head, tail] {
            visit_names(part, &mut |name| {
                let stat = self.names.entry(name.to_owned()).or_default();
                stat.count += 1;
                stat.last = now;
            });
        }
    }

    pub(super) fn file(&mut self, path: &str, changed: u32, read: u32) {
        let stat = self.files.entry(path.to_owned()).or_default();
        stat.changed += changed;
        stat.read += read;
        stat.last = self.now;
    }
}

pub(super) fn gather(source: &[Source<'_>]) -> Gathered {
    let finals = final_replies(source);
    let mut found = Gathered::default();
    let mut calls: BTreeMap<&str, (usize, Call)> = BTreeMap::new();
    let mut group: Vec<usize> = Vec::new();
    for (piece, last_word) in source.iter().zip(finals) {
        found.now += 1;
        match piece {
            Source::Summary(summary) => {
                end_group(&mut found, &mut group);
                parse::summary(&mut found, summary);
            }
            Source::Message(entry) if entry.kind == EntryKind::Message => {
                found.messages += 1;
                message(&mut found, &mut calls, &mut group, entry, last_word);
            }
            Source::Message(_) => {}
        }
    }
    end_group(&mut found, &mut group);
    demote_templates(&mut found);
    found
}

/// Long messages that begin alike were written by a program, not typed.
fn demote_templates(found: &mut Gathered) {
    let beginning = |item: &Item| {
        let long = item.sentences.iter().map(String::len).sum::<usize>() > TEMPLATE_BYTES;
        let user = item.kind == Kind::User && item.weight == TYPED;
        let first = item.sentences.first();
        first.filter(|_| user && long).map(|first| clip(first, 24))
    };
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for item in &found.items {
        if let Some(begin) = beginning(item) {
            *counts.entry(begin).or_default() += 1;
        }
    }
    for item in &mut found.items {
        if beginning(item).is_some_and(|begin| counts.get(&begin).is_some_and(|n| *n > 1)) {
            item.weight = PASTED;
        }
    }
}

/// The first and the last call of a run of calls tell where it began and where it led.
fn end_group(found: &mut Gathered, group: &mut Vec<usize>) {
    for at in [group.first(), group.last()].into_iter().flatten() {
        if let Some(item) = found.items.get_mut(*at)
            && item.weight > 2
        {
            item.weight += 10;
        }
    }
    group.clear();
}

/// For each piece, whether an assistant's text in it is the last word before the user's turn.
fn final_replies(source: &[Source<'_>]) -> Vec<bool> {
    let mut users_turn = true;
    let mut finals: Vec<bool> = source
        .iter()
        .rev()
        .map(|piece| {
            let Source::Message(entry) = piece else {
                users_turn = true;
                return false;
            };
            let uses_tools = entry
                .parts
                .iter()
                .any(|part| matches!(part, Part::ToolCall { .. } | Part::ToolResult { .. }));
            match entry.role {
                _ if entry.kind == EntryKind::Note => false,
                _ if uses_tools => {
                    users_turn = false;
                    false
                }
                Role::User => {
                    users_turn = true;
                    false
                }
                _ => users_turn,
            }
        })
        .collect();
    finals.reverse();
    finals
}

fn message<'a>(
    found: &mut Gathered,
    calls: &mut BTreeMap<&'a str, (usize, Call)>,
    group: &mut Vec<usize>,
    entry: &'a LogEntry,
    last_word: bool,
) {
    let range = SeqRange::single(entry.seq);
    let mut said = String::new();
    for part in &entry.parts {
        match part {
            Part::Text { text } => {
                if !said.is_empty() {
                    said.push('\n');
                }
                said.push_str(text);
            }
            Part::Reasoning { .. } | Part::Unknown { .. } => {}
            Part::Image(_) | Part::File(_) => {
                found.images += 1;
                if entry.role == Role::User {
                    said.push_str("\n[image or file]");
                }
            }
            Part::ToolCall {
                id,
                name,
                arguments,
            } => {
                found.calls += 1;
                let call = Call::new(name, arguments.as_str());
                for (path, kind) in &call.files {
                    let changed = u32::from(*kind == FileUse::Changed);
                    found.file(path, changed, 1 - changed);
                }
                let weight = match () {
                    () if call.asks => 2,
                    () if call.about.is_empty() => 5,
                    () if call.lasting => 42,
                    () if call.looks => 6,
                    () if !call.files.is_empty() => 12,
                    () if call.command => 24,
                    () => 28,
                };
                found.items.push(Item {
                    range,
                    kind: Kind::Act,
                    label: call.name.clone(),
                    sentences: vec![call.about.clone()],
                    outcome: String::new(),
                    weight,
                });
                let at = found.items.len() - 1;
                group.push(at);
                calls.insert(id, (at, call));
            }
            Part::ToolResult {
                call_id,
                content,
                is_error,
            } => {
                if let ResultContent::Parts(parts) = content {
                    let media = |part: &&Part| matches!(part, Part::Image(_) | Part::File(_));
                    found.images += parts.iter().filter(media).count() as u64;
                }
                let call = calls.get(call_id.as_str());
                result(found, range, call, &content.text(), *is_error);
            }
        }
    }
    if said.trim().is_empty() {
        return;
    }
    end_group(found, group);
    let pasted = entry.role == Role::User && said.len() > TYPED_BYTES;
    if !pasted {
        found.name(&said);
    }
    match entry.role {
        Role::User => {
            let typed = without_harness(&said);
            let label = match &entry.name {
                Some(name) => format!("User {}", squeeze(name)),
                None => "User".to_owned(),
            };
            found.push(Item {
                range,
                kind: Kind::User,
                label,
                sentences: sentences(&typed),
                outcome: String::new(),
                weight: if typed.len() > TYPED_BYTES {
                    PASTED
                } else {
                    TYPED
                },
            });
        }
        Role::Assistant => reply(found, range, &said, last_word),
        Role::System => found.push(Item {
            range,
            kind: Kind::Note,
            label: "System".to_owned(),
            sentences: sentences(&said),
            outcome: String::new(),
            weight: 30,
        }),
        Role::Tool => found.push(Item {
            range,
            kind: Kind::Act,
            label: "Tool".to_owned(),
            sentences: sentences(&said).into_iter().take(3).collect(),
            outcome: String::new(),
            weight: 8,
        }),
    }
}

fn reply(found: &mut Gathered, range: SeqRange, said: &str, last_word: bool) {
    let all = sentences(said);
    let (weight, sentences) = if last_word {
        (75, all)
    } else if all.iter().any(|sentence| is_decision(sentence)) {
        let telling = all.into_iter().filter(|s| is_decision(s)).collect();
        (45, telling)
    } else {
        let first: Vec<String> = all.into_iter().take(1).collect();
        // What ends with a colon announces the call that follows.
        let announces = first.iter().any(|s| s.ends_with([':', '：']));
        (if announces { 3 } else { 10 }, first)
    };
    found.push(Item {
        range,
        kind: Kind::Reply,
        label: "Assistant".to_owned(),
        sentences,
        outcome: String::new(),
        weight,
    });
}

/// How a command ended: all it said when that is short, else its last line.
fn outcome(text: &str) -> String {
    let text = text.trim();
    if text.len() < 160 && text.lines().count() <= 3 {
        let lines: Vec<String> = text
            .lines()
            .map(squeeze)
            .filter(|l| !l.is_empty())
            .collect();
        return lines.join(" | ");
    }
    output(text).last
}

fn result(
    found: &mut Gathered,
    range: SeqRange,
    call: Option<&(usize, Call)>,
    text: &str,
    is_error: Option<bool>,
) {
    let about = call.map_or_else(String::new, |(_, call)| {
        format!("{} {}", call.name, clip(&call.about, 100))
    });
    if let Some((_, call)) = call
        && call.asks
        && is_error != Some(true)
    {
        found.push(Item {
            range,
            kind: Kind::User,
            label: "User".to_owned(),
            sentences: sentences(text),
            outcome: String::new(),
            weight: 90,
        });
        return;
    }
    let failed = is_error == Some(true);
    let errors = match call {
        _ if failed => failure(text),
        Some((_, call)) if call.command => output(text).errors.join(" | "),
        _ => String::new(),
    };
    if !errors.is_empty() || failed {
        // The error names the call; the call need not be told twice.
        if let Some((at, _)) = call
            && let Some(item) = found.items.get_mut(*at)
        {
            item.weight = 0;
        }
        found.push(Item {
            range,
            kind: Kind::Error,
            label: "Error".to_owned(),
            sentences: vec![about.trim().to_owned()],
            outcome: errors,
            weight: if failed { 40 } else { 34 },
        });
    } else if let Some((at, call)) = call
        && call.command
        && let Some(item) = found.items.get_mut(*at)
    {
        // What a look showed is no outcome, unless it is short.
        let shown = text.trim();
        if !call.looks || (shown.len() < 200 && shown.lines().count() <= 2) {
            item.outcome = outcome(text);
        }
        if item.outcome.starts_with("(no output") {
            item.outcome.clear();
        }
    }
}
