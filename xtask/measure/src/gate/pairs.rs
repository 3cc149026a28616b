//! Pairs of a source and an answer: sources, and what somebody wrote as their summary.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use memory_model::{Hash, LogEntry, Message, Part, Role, Seq, SeqRange, Timestamp};
use message_formats::ReadOptions;
use serde::Deserialize;
use summarize_escalation::{Source, SummarySource};
use token_estimate::TokenEstimator;

use crate::mode::root;

/// Beginning of the paths of sources that are in the repository. The others are in the corpus.
const FIXTURES: &str = "fixtures/";

/// A pair. Its source are messages or summaries.
#[derive(Debug, Clone)]
pub(crate) struct Pair {
    /// Pairs of one conversation have the same first word.
    pub(crate) id: String,
    pub(crate) author: String,
    pub(crate) language: String,
    /// Target length of the summary, in tokens.
    pub(crate) target: u64,
    messages: Vec<Message>,
    /// Messages before these that the request has as context.
    before: Vec<Message>,
    /// Positions of the first and the last message.
    range: (u32, u32),
    /// Summaries that the answer merges.
    merged: Vec<Merged>,
    pub(crate) answer: String,
    /// Whether its readers called the answer junk.
    pub(crate) is_junk: bool,
}

/// A pair, as a line of a file has it.
#[derive(Debug, Deserialize)]
struct Line {
    id: String,
    #[serde(default)]
    author: String,
    language: String,
    target: u64,
    #[serde(default)]
    messages: Vec<LineMessage>,
    /// Place of the messages, instead of themselves.
    #[serde(default)]
    place: Option<Place>,
    /// Pairs with the answers that are merged, instead of messages.
    #[serde(default)]
    of: Vec<String>,
    answer: String,
    #[serde(default)]
    junk: bool,
}

#[derive(Debug, Deserialize)]
struct LineMessage {
    role: Role,
    parts: Vec<Part>,
}

/// Some messages of a transcript.
#[derive(Debug, Deserialize)]
struct Place {
    file: String,
    /// Number of the session in its file.
    #[serde(default)]
    session: usize,
    /// Positions of the first and the last message, from 1 on.
    first: u32,
    last: u32,
    /// Positions of the messages that the request has as context.
    #[serde(default)]
    before: Vec<usize>,
}

/// A summary that is merged with others, and the range of its messages.
#[derive(Debug, Clone)]
struct Merged {
    range: (u32, u32),
    text: String,
}

/// The source of a pair, as a log has it.
pub(crate) struct Log<'a> {
    entries: Vec<LogEntry>,
    before: Vec<LogEntry>,
    merged: &'a [Merged],
    estimator: &'a dyn TokenEstimator,
}

/// Returns the pairs in the lines of a text. Transcripts are read below the folder of the corpus, and those in the repository below
/// its root.
pub(crate) fn parse(text: &str, corpus: &Path) -> anyhow::Result<Vec<Pair>> {
    let mut read: BTreeMap<PathBuf, Vec<Vec<Message>>> = BTreeMap::new();
    let lines = text.lines().filter(|line| !line.is_empty());
    let mut pairs: Vec<Pair> = Vec::new();
    for line in lines {
        let line: Line = serde_json::from_str(line)?;
        let (messages, before) = match &line.place {
            Some(place) => {
                let file = match place.file.starts_with(FIXTURES) {
                    true => root().join(&place.file),
                    false => corpus.join(&place.file),
                };
                if !read.contains_key(&file) {
                    let sessions = message_formats::read_file(&file, &ReadOptions::default())
                        .with_context(|| file.display().to_string())?
                        .sessions;
                    let sessions = sessions.into_iter().map(|one| one.messages).collect();
                    read.insert(file.clone(), sessions);
                }
                place
                    .messages(read.get(&file).map(Vec::as_slice).unwrap_or_default())
                    .with_context(|| format!("{}: {place:?} is not there", line.id))?
            }
            None => {
                let messages = line.messages.into_iter();
                let messages = messages.map(|one| Message::new(one.role, one.parts));
                (messages.collect(), Vec::new())
            }
        };
        let merged = line.of.iter().map(|id| {
            let pair = pairs.iter().find(|pair| pair.id == *id);
            let pair = pair.with_context(|| format!("{}: no pair {id} before it", line.id))?;
            let (range, text) = (pair.range, pair.answer.clone());
            anyhow::Ok(Merged { range, text })
        });
        let merged = merged.collect::<Result<_, _>>()?;
        let place = line.place.as_ref();
        pairs.push(Pair {
            id: line.id,
            author: line.author,
            language: line.language,
            target: line.target,
            messages,
            before,
            range: place.map_or((1, 1), |place| (place.first, place.last)),
            merged,
            answer: line.answer,
            is_junk: line.junk,
        });
    }
    Ok(pairs)
}

impl Place {
    /// Returns the messages, and those that are context.
    fn messages(&self, sessions: &[Vec<Message>]) -> Option<(Vec<Message>, Vec<Message>)> {
        let messages = sessions.get(self.session)?;
        let before = self.before.iter().map(|at| messages.get(at - 1).cloned());
        let first = usize::try_from(self.first.checked_sub(1)?).ok()?;
        let own = messages.get(first..usize::try_from(self.last).ok()?)?;
        Some((own.to_vec(), before.collect::<Option<_>>()?))
    }
}

impl Pair {
    pub(crate) fn log<'a>(&'a self, estimator: &'a dyn TokenEstimator) -> Log<'a> {
        let entries = |messages: &[Message]| -> Vec<LogEntry> {
            let messages = messages.iter().zip(1..);
            let entries = messages.map(|(message, seq)| {
                let mut tokens = 0;
                for part in &message.parts {
                    part.visit_texts(&mut |text| tokens += estimator.text(&text));
                }
                LogEntry {
                    seq: Seq(seq),
                    message: message.clone(),
                    tokens,
                    running: 0,
                    hash: Hash::ZERO,
                }
            });
            entries.collect()
        };
        Log {
            entries: entries(&self.messages),
            before: entries(&self.before),
            merged: &self.merged,
            estimator,
        }
    }
}

impl Log<'_> {
    pub(crate) fn before(&self) -> Vec<Source<'_>> {
        self.before.iter().map(Source::from).collect()
    }

    pub(crate) fn source(&self) -> Vec<Source<'_>> {
        let summaries = self.merged.iter().map(|one| {
            let (first, last) = (Seq(one.range.0), Seq(one.range.1));
            Source::Summary(SummarySource {
                id: "",
                range: SeqRange::new(first, last).unwrap_or(SeqRange::single(first)),
                depth: 0,
                text: &one.text,
                ranks: None,
                provisional: false,
                tokens: self.estimator.text(&one.text),
                earliest_at: Timestamp::default(),
                latest_at: Timestamp::default(),
            })
        });
        self.entries
            .iter()
            .map(Source::from)
            .chain(summaries)
            .collect()
    }
}
