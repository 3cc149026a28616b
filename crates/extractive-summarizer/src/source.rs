//! Messages and earlier summaries from which an extract or a summary is made.

use memory_model::{LogEntry, Seq, SeqRange, Summary, Timestamp};

/// A message or an earlier summary from which a summary is made. A source is a list of these pieces, in the order of
/// the log.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// A message of the log.
    Message(&'a LogEntry),
    /// An earlier summary, in place of the messages that it covers.
    Summary(SummarySource<'a>),
}

/// An earlier summary from which a new summary is made.
#[derive(Debug, Clone, Copy)]
pub struct SummarySource<'a> {
    /// Id of the summary, with which a reader can expand it.
    pub id: &'a str,
    /// Positions of the messages that the summary covers.
    pub range: SeqRange,
    /// Depth of the summary: 0 if it was made directly of messages, otherwise 1 + the depth of the deepest summary in
    /// its source.
    pub depth: u32,
    /// Text of the earlier summary.
    pub text: &'a str,
    /// Rank of each line of the text, as in [`SummaryBody`](memory_model::SummaryBody); `None` if all ranks are equal
    /// or unknown.
    pub ranks: Option<&'a [u8]>,
    /// Cost of the earlier summary, in tokens.
    pub tokens: u64,
    /// Earliest time of the messages that the summary covers.
    pub earliest_at: Timestamp,
    /// Latest time of the messages that the summary covers.
    pub latest_at: Timestamp,
    /// Whether the summary was written without a model, in place of one that a model writes.
    pub provisional: bool,
}

impl<'a> From<&'a Summary> for SummarySource<'a> {
    fn from(summary: &'a Summary) -> Self {
        Self {
            id: summary.id.as_str(),
            range: summary.range,
            depth: summary.depth,
            text: summary.text(),
            ranks: summary.body.ranks(),
            tokens: summary.tokens,
            earliest_at: summary.earliest_at,
            latest_at: summary.latest_at,
            provisional: summary.provisional,
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
    /// Returns the positions of the messages that this piece covers.
    pub fn range(&self) -> SeqRange {
        match self {
            Source::Message(entry) => SeqRange::single(entry.seq),
            Source::Summary(summary) => summary.range,
        }
    }

    /// Returns the cost of this piece, in tokens, as the log or the summary records it.
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

/// Returns the depth of a summary made of these pieces: 0 if all are messages, otherwise one more than the deepest
/// summary.
pub fn depth(pieces: &[Source<'_>]) -> u32 {
    let depths = pieces.iter().filter_map(|piece| match piece {
        Source::Message(_) => None,
        Source::Summary(summary) => Some(summary.depth.saturating_add(1)),
    });
    depths.max().unwrap_or(0)
}

/// Returns the sum of the costs of the pieces, in tokens.
pub fn tokens(pieces: &[Source<'_>]) -> u64 {
    let tokens = pieces.iter().map(Source::tokens);
    tokens.fold(0, u64::saturating_add)
}

/// Returns the range of positions from the first message of the pieces to the last; `None` if there are no pieces.
pub fn range(pieces: &[Source<'_>]) -> Option<SeqRange> {
    let first = pieces.iter().map(|piece| piece.range().first).min()?;
    let last = pieces.iter().map(|piece| piece.range().last).max()?;
    SeqRange::new(first.max(Seq::FIRST), last)
}

/// Returns the earliest and the latest time of the messages that the pieces cover. Messages without a time are ignored;
/// `None` if no message has one.
pub fn times(pieces: &[Source<'_>]) -> Option<(Timestamp, Timestamp)> {
    let times = || pieces.iter().map(Source::times);
    Some((
        times().filter_map(|(first, _)| first.known()).min()?,
        times().filter_map(|(_, last)| last.known()).max()?,
    ))
}

/// Returns a time as text in UTC, to the minute, such as `2026-03-01T09:00Z`.
pub fn minute(time: Timestamp) -> String {
    let text = time.to_string();
    match text.get(..16) {
        Some(start) if text.ends_with('Z') => format!("{start}Z"),
        _ => text,
    }
}
