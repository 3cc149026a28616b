//! Pairs of a source and an answer: sources, and what somebody wrote as their summary.

use std::path::Path;

use anyhow::Context as _;
use memory_model::{Hash, LogEntry, Message, Part, Role, Seq, SeqRange, Timestamp};
use serde::Deserialize;
use summarize_escalation::{Source, SummarySource};
use token_estimate::TokenEstimator;

/// A pair, as a line of a file has it. Its source are messages or summaries.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Pair {
    pub(crate) id: String,
    pub(crate) language: String,
    /// Target length of the summary, in tokens.
    pub(crate) target: u64,
    #[serde(default)]
    messages: Vec<PairMessage>,
    #[serde(default)]
    summaries: Vec<PairSummary>,
    pub(crate) answer: String,
}

#[derive(Debug, Clone, Deserialize)]
struct PairMessage {
    role: Role,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Deserialize)]
struct PairSummary {
    first: u32,
    last: u32,
    text: String,
}

/// The source of a pair, as a log has it.
pub(crate) struct Log<'a> {
    entries: Vec<LogEntry>,
    summaries: &'a [PairSummary],
    estimator: &'a dyn TokenEstimator,
}

/// The pairs in a file, one a line.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<Pair>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    parse(&text).with_context(|| path.display().to_string())
}

/// The pairs in the lines of a text.
pub(crate) fn parse(text: &str) -> anyhow::Result<Vec<Pair>> {
    let lines = text.lines().filter(|line| !line.is_empty());
    let pairs = lines.map(serde_json::from_str::<Pair>);
    Ok(pairs.collect::<Result<_, _>>()?)
}

impl Pair {
    pub(crate) fn log<'a>(&'a self, estimator: &'a dyn TokenEstimator) -> Log<'a> {
        let messages = self.messages.iter().zip(1..);
        let entries = messages.map(|(message, seq)| {
            let message = Message::new(message.role, message.parts.clone());
            let mut tokens = 0;
            for part in &message.parts {
                part.visit_texts(&mut |text| tokens += estimator.text(&text));
            }
            LogEntry {
                seq: Seq(seq),
                message,
                tokens,
                running: 0,
                hash: Hash::ZERO,
            }
        });
        Log {
            entries: entries.collect(),
            summaries: &self.summaries,
            estimator,
        }
    }
}

impl Log<'_> {
    pub(crate) fn source(&self) -> Vec<Source<'_>> {
        let summaries = self.summaries.iter().map(|summary| {
            Source::Summary(SummarySource {
                id: "",
                range: SeqRange::new(Seq(summary.first), Seq(summary.last))
                    .unwrap_or(SeqRange::single(Seq(summary.first))),
                depth: 0,
                text: &summary.text,
                ranks: None,
                provisional: false,
                tokens: self.estimator.text(&summary.text),
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
