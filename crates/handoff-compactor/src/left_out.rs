//! Messages that a summary does not mention.

use std::collections::BTreeSet;

use memory_model::{EntryKind, LogEntry, Part, Role, Seq};

/// Minimum share of a message's distinctive words in a text that mentions the message, in per cent.
const TOLD: usize = 70;
/// Minimum number of letters of a distinctive word.
const LETTERS: usize = 4;
/// Maximum length of the quoted beginning of a message, in characters.
const START: usize = 80;

/// A message that the text of a summary leaves out: the text contains neither the message's position nor most of its
/// words.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct LeftOut {
    /// Position of the message.
    pub seq: Seq,
    /// Role of the message's author.
    pub role: Role,
    /// Cost of the message, in tokens.
    pub tokens: u64,
    /// Beginning of the message: its text and the names of the tools that it calls, on one line, at most 80 characters.
    pub start: String,
}

/// Returns the messages that a text does not mention, oldest first. A message without words counts as mentioned. A tool
/// result counts as mentioned if its call is mentioned.
///
/// Positions in the text are recognized in the form that the extractive summarizer and the retrieval tools use: `[12]`,
/// `[12-15]`.
pub fn left_out(text: &str, entries: &[LogEntry]) -> Vec<LeftOut> {
    let named = positions(text);
    let words: BTreeSet<String> = telling(text).collect();
    let mut calls: BTreeSet<&str> = BTreeSet::new();
    let mut out = Vec::new();
    for entry in entries
        .iter()
        .filter(|entry| entry.kind == EntryKind::Message)
    {
        let mut answers = entry.parts.iter().filter_map(|part| match part {
            Part::ToolResult { call_id, .. } => Some(call_id.as_str()),
            _ => None,
        });
        let told = named
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&entry.seq.0))
            || answers.any(|id| calls.contains(id))
            || is_told(entry, &words);
        if told {
            calls.extend(entry.parts.iter().filter_map(|part| match part {
                Part::ToolCall { id, .. } => Some(id.as_str()),
                _ => None,
            }));
            continue;
        }
        out.push(LeftOut {
            seq: entry.seq,
            role: entry.role,
            tokens: entry.tokens,
            start: start(entry),
        });
    }
    out
}

/// Returns the positions in brackets in a text, each as first and last: `[12]` gives (12, 12).
fn positions(text: &str) -> Vec<(u32, u32)> {
    let brackets = text.split('[').skip(1);
    let inside = brackets.filter_map(|rest| rest.split_once(']'));
    let range = |(inside, _): (&str, &str)| {
        let (first, last) = inside.split_once('-').unwrap_or((inside, inside));
        Some((first.parse().ok()?, last.parse().ok()?))
    };
    inside.filter_map(range).collect()
}

fn telling(text: &str) -> impl Iterator<Item = String> + '_ {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let long = words.filter(|word| word.chars().filter(|c| c.is_alphabetic()).count() >= LETTERS);
    long.map(str::to_lowercase)
}

fn is_told(entry: &LogEntry, words: &BTreeSet<String>) -> bool {
    let said: BTreeSet<String> = entry.parts.iter().flat_map(said).collect();
    let kept = said.iter().filter(|word| words.contains(*word)).count();
    kept * 100 >= said.len() * TOLD
}

fn said(part: &Part) -> Vec<String> {
    match part {
        Part::Text { text } => telling(text).collect(),
        Part::ToolCall { arguments, .. } => telling(arguments.as_str()).collect(),
        Part::ToolResult { content, .. } => telling(&content.text()).collect(),
        _ => Vec::new(),
    }
}

fn start(entry: &LogEntry) -> String {
    let texts = entry.parts.iter().map(|part| match part {
        Part::Text { text } => text.clone(),
        Part::ToolCall { name, .. } => format!("{name}(…)"),
        Part::ToolResult { content, .. } => content.text().into_owned(),
        _ => String::new(),
    });
    let all = texts.collect::<Vec<_>>().join(" ");
    let line = all.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(START) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or(&line)),
        None => line,
    }
}
