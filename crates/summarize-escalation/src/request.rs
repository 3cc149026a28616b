use std::fmt;

use memory_model::{JobKind, LogEntry, Seq, SeqRange, Summary, Timestamp};
use serde::{Deserialize, Serialize};
use token_estimate::TokenEstimator;

/// One piece of what is to be summarised, in the order of the log.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// A message.
    Message(&'a LogEntry),
    /// An earlier summary that stands for its messages.
    Summary(SummarySource<'a>),
}

/// An earlier summary, as a source of a new one.
#[derive(Debug, Clone, Copy)]
pub struct SummarySource<'a> {
    /// How a reader names it when it wants to expand it.
    pub id: &'a str,
    /// The messages it stands for.
    pub range: SeqRange,
    /// 0 for a summary of messages.
    pub depth: u32,
    /// What it says.
    pub text: &'a str,
    /// What it costs, in tokens.
    pub tokens: u64,
    /// The earliest time of its messages.
    pub earliest_at: Timestamp,
    /// The latest time of its messages.
    pub latest_at: Timestamp,
}

impl<'a> From<&'a Summary> for SummarySource<'a> {
    fn from(summary: &'a Summary) -> Self {
        Self {
            id: summary.id.as_str(),
            range: summary.range,
            depth: summary.depth,
            text: &summary.text,
            tokens: summary.tokens,
            earliest_at: summary.earliest_at,
            latest_at: summary.latest_at,
        }
    }
}

impl<'a> From<&'a Summary> for Source<'a> {
    fn from(summary: &'a Summary) -> Self {
        Source::Summary(summary.into())
    }
}

impl<'a> From<&'a LogEntry> for Source<'a> {
    fn from(entry: &'a LogEntry) -> Self {
        Source::Message(entry)
    }
}

impl Source<'_> {
    /// The messages that the piece stands for.
    pub fn range(&self) -> SeqRange {
        match self {
            Source::Message(entry) => SeqRange::single(entry.seq),
            Source::Summary(summary) => summary.range,
        }
    }

    /// What the piece costs, in tokens, as the log or the summary records it.
    pub fn tokens(&self) -> u64 {
        match self {
            Source::Message(entry) => entry.tokens,
            Source::Summary(summary) => summary.tokens,
        }
    }

    fn times(&self) -> (Timestamp, Timestamp) {
        match self {
            Source::Message(entry) => (entry.created_at, entry.created_at),
            Source::Summary(summary) => (summary.earliest_at, summary.latest_at),
        }
    }
}

/// How much a summarizer is asked to drop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// Keep decisions, their reasons, constraints, tasks.
    #[default]
    Normal,
    /// Keep durable facts and the state of the work only.
    Aggressive,
}

/// What a summary is to be put to use for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Purpose {
    /// It takes the place of its source.
    #[default]
    Replace,
    /// It takes the place of a turn's beginning; the turn's end stays in view behind it (pi's split
    /// turn).
    TurnPrefix,
}

/// What is to be summarised, and how long the summary may be.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct SummaryRequest<'a> {
    /// The pieces, in the order of the log.
    pub source: &'a [Source<'a>],
    /// How long the summary should be, in tokens of `estimator`. 0 leaves it to the ladder.
    pub target_tokens: u64,
    /// Counts every token in this request and of its result.
    pub estimator: &'a dyn TokenEstimator,
    /// What rendering adds to the summary's text in a context, in tokens: a summary must be
    /// shorter than its source with this included. Default 0.
    pub overhead_tokens: u64,
    /// How much to drop. Set by the ladder.
    pub style: Style,
    /// What it is for.
    pub purpose: Purpose,
    /// The summary that comes before the source, for continuity. It is context, not source.
    pub previous: Option<&'a str>,
    /// What the user wants the summary to mind.
    pub instructions: Option<&'a str>,
}

impl fmt::Debug for SummaryRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SummaryRequest")
            .field("range", &self.range())
            .field("pieces", &self.source.len())
            .field("depth", &self.depth())
            .field("source_tokens", &self.source_tokens())
            .field("target_tokens", &self.target_tokens)
            .field("style", &self.style)
            .finish_non_exhaustive()
    }
}

impl<'a> SummaryRequest<'a> {
    /// A request for a summary of `source`, its length left to the ladder.
    pub fn new(source: &'a [Source<'a>], estimator: &'a dyn TokenEstimator) -> Self {
        Self {
            source,
            target_tokens: 0,
            estimator,
            overhead_tokens: 0,
            style: Style::Normal,
            purpose: Purpose::Replace,
            previous: None,
            instructions: None,
        }
    }

    /// Sets how long the summary should be, in tokens.
    pub fn with_target_tokens(mut self, tokens: u64) -> Self {
        self.target_tokens = tokens;
        self
    }

    /// Sets what rendering adds to the summary's text, in tokens.
    pub fn with_overhead_tokens(mut self, tokens: u64) -> Self {
        self.overhead_tokens = tokens;
        self
    }

    /// Sets how much to drop.
    pub fn with_style(mut self, style: Style) -> Self {
        self.style = style;
        self
    }

    /// Sets what it is for.
    pub fn with_purpose(mut self, purpose: Purpose) -> Self {
        self.purpose = purpose;
        self
    }

    /// The same request for other pieces.
    pub(crate) fn with_source<'b>(&self, source: &'b [Source<'b>]) -> SummaryRequest<'b>
    where
        'a: 'b,
    {
        SummaryRequest { source, ..*self }
    }

    /// Sets the summary that comes before the source.
    pub fn with_previous(mut self, text: &'a str) -> Self {
        self.previous = Some(text);
        self
    }

    /// Sets what the user wants the summary to mind.
    pub fn with_instructions(mut self, text: &'a str) -> Self {
        self.instructions = Some(text);
        self
    }

    /// The depth that the summary gets: 1 + its deepest source, messages counting as -1.
    pub fn depth(&self) -> u32 {
        self.source
            .iter()
            .filter_map(|piece| match piece {
                Source::Message(_) => None,
                Source::Summary(summary) => Some(summary.depth.saturating_add(1)),
            })
            .max()
            .unwrap_or(0)
    }

    /// A leaf when every piece is a message.
    pub fn kind(&self) -> JobKind {
        match self.depth() {
            0 => JobKind::Leaf,
            _ => JobKind::Condensed,
        }
    }

    /// What the pieces cost together, in tokens.
    pub fn source_tokens(&self) -> u64 {
        self.source
            .iter()
            .fold(0, |sum: u64, piece| sum.saturating_add(piece.tokens()))
    }

    /// From the first message to the last; `None` when there are no pieces.
    pub fn range(&self) -> Option<SeqRange> {
        let first = self.source.iter().map(|piece| piece.range().first).min()?;
        let last = self.source.iter().map(|piece| piece.range().last).max()?;
        SeqRange::new(first.max(Seq::FIRST), last)
    }

    /// The earliest and the latest time of the messages; times need not rise in the log. Messages
    /// without a time do not count; `None` when there are no others.
    pub fn times(&self) -> Option<(Timestamp, Timestamp)> {
        let known = |times: &(Timestamp, Timestamp)| times.1 != Timestamp::default();
        let times = || self.source.iter().map(Source::times).filter(known);
        Some((
            times().map(|(first, _)| first).min()?,
            times().map(|(_, last)| last).max()?,
        ))
    }
}
