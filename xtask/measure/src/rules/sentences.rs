//! Sentences of users, which readers called rules or not.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, ensure};
use extractive_summarizer::ConversationState;
use memory_model::{Hash, LogEntry, Message, Seq, short_hash};
use message_formats::KnownAgents;
use serde_json::Value;

const SENTENCES: &str = include_str!("sentences.tsv");
/// Sources on which nothing is ever fitted.
pub(super) const SET_APART: [&str; 5] = [
    "beam/100K-3-chat.json",
    "beam/100K-4-chat.json",
    "claude-code/repiq-ja-f5-0445a6555d.jsonl",
    "claude-code/ujuc-ko-22-81c24bf2ba-1.jsonl",
    "memorycode/dialogue_205.json",
];
/// Sources in whose texts lines begin with the name of a speaker.
const DIALOGUES: &str = "memorycode/";
/// Limit of the rules of one message, in tokens: none is left out.
const ROOM: u64 = 100_000;

/// A sentence of a user's message.
pub(super) struct Sentence {
    /// File in the corpus.
    pub(super) source: &'static str,
    pub(super) is_rule: bool,
    pub(super) text: String,
    message: String,
}

/// Rules among sentences: those that are rules, those that are told as rules, and those that are both.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Told {
    pub(super) all: usize,
    pub(super) rules: usize,
    pub(super) told: usize,
    pub(super) both: usize,
}

impl Sentence {
    /// Returns whether the state of a conversation that consists of the message tells the sentence as a rule.
    pub(super) fn is_told(&self) -> bool {
        let entry = LogEntry {
            seq: Seq::FIRST,
            message: Message::user(&self.message),
            tokens: 0,
            running: 0,
            hash: Hash::ZERO,
        };
        let state = ConversationState::of(&[&entry], &KnownAgents);
        let estimator = token_estimate::default_estimator();
        let rules = state.rules_text(ROOM, &*estimator).unwrap_or_default();
        squeezed(&rules).contains(squeezed(&self.text).trim_end_matches(['.', '。']))
    }
}

impl Told {
    pub(super) fn of<'s>(sentences: impl Iterator<Item = &'s Sentence>, each: bool) -> Self {
        let mut out = Self::default();
        for one in sentences {
            let told = one.is_told();
            if each && told != one.is_rule {
                let what = if told {
                    "no rule, but told"
                } else {
                    "rule, not told"
                };
                println!("{what}: {} ({})", one.text, one.source);
            }
            out.all += 1;
            out.rules += usize::from(one.is_rule);
            out.told += usize::from(told);
            out.both += usize::from(told && one.is_rule);
        }
        out
    }
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Files of the corpus, each read once: the JSON of each line, or the whole JSON.
pub(super) struct Corpus<'c> {
    folder: &'c Path,
    files: BTreeMap<&'static str, Vec<Value>>,
}

impl<'c> Corpus<'c> {
    pub(super) fn new(folder: &'c Path) -> Self {
        let files = BTreeMap::new();
        Self { folder, files }
    }

    /// Returns the text at a line of a file, and at a place in the JSON there.
    ///
    /// # Errors
    /// When the file or the text is not there.
    pub(super) fn text(
        &mut self,
        source: &'static str,
        line: &str,
        pointer: &str,
    ) -> anyhow::Result<String> {
        if !self.files.contains_key(source) {
            let path = self.folder.join(source);
            let text =
                std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let values = if source.ends_with(".jsonl") {
                // A line that is no JSON has no text.
                let lines = text.lines().map(serde_json::from_str);
                lines.map(Result::unwrap_or_default).collect()
            } else {
                vec![serde_json::from_str(&text).with_context(|| source.to_owned())?]
            };
            self.files.insert(source, values);
        }
        let line_at: usize = line.parse()?;
        let values = self.files.get(source).map_or(&[][..], Vec::as_slice);
        let json = line_at.checked_sub(1).and_then(|at| values.get(at));
        let json = json.with_context(|| format!("{source} has no line {line}"))?;
        let text = json.pointer(pointer).and_then(Value::as_str);
        text.map(str::to_owned)
            .with_context(|| format!("{source}:{line} has no text at {pointer}"))
    }
}

/// Returns the sentences, as the corpus has them.
///
/// # Errors
/// When a file is not there, or has other text.
pub(super) fn sentences(corpus: &Path) -> anyhow::Result<Vec<Sentence>> {
    let mut corpus = Corpus::new(corpus);
    let mut out = Vec::new();
    for line in SENTENCES.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&'static str> = line.split('\t').collect();
        let [source, at, pointer, first, end, hash, label] = columns[..] else {
            anyhow::bail!("not seven columns: {line}");
        };
        let text = corpus.text(source, at, pointer)?;
        let (first, end): (usize, usize) = (first.parse()?, end.parse()?);
        let sentence: String = text.chars().skip(first).take(end - first).collect();
        ensure!(
            short_hash(&sentence) == hash,
            "{source}:{at}: another sentence is there: {sentence}"
        );
        let message = match source.starts_with(DIALOGUES) {
            true => {
                let line = text.lines().find(|line| line.contains(&sentence));
                let line = line.unwrap_or_default();
                line.split_once(": ")
                    .map_or(line, |(_, said)| said)
                    .to_owned()
            }
            false => text.clone(),
        };
        // The name of the speaker is no part of the sentence.
        let sentence = match message.contains(&sentence) {
            true => sentence,
            false => sentence
                .split_once(": ")
                .map_or(sentence.clone(), |(_, said)| said.to_owned()),
        };
        out.push(Sentence {
            source,
            is_rule: label == "rule",
            text: sentence,
            message,
        });
    }
    Ok(out)
}
