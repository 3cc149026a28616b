//! Views of a log: divisions of the log into spans, and the functions that replace spans.
//!
//! All functions here are pure and never panic. A store keeps only the start of each span ([`SpanStart`]). When new
//! spans are published, [`splice_starts`] returns the few rows that change.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{Seq, SeqRange, SummaryId, TrimPolicyId};

/// Form in which a context shows the messages of a span (a range of the log).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanBody {
    /// The messages are shown verbatim.
    Raw,
    /// A summary that covers exactly these messages is shown.
    Summary {
        /// Id of the shown summary.
        id: SummaryId,
        /// Depth of the shown summary: 0 for a leaf, which is a summary of messages alone.
        depth: u32,
    },
    /// The messages are shown, and this trim policy shortens each of them.
    Trimmed(TrimPolicyId),
    /// The messages are not shown. A context gives only their number.
    Omitted,
}

impl SpanBody {
    /// Returns whether a span with this body can be cut in two, or joined with a neighbour that has the same body,
    /// without a change of the total cost. This is true of `Raw` and `Omitted`. A summary or a trimmed span has one
    /// cost for its whole range, so it can only be replaced whole.
    pub fn is_divisible(&self) -> bool {
        matches!(self, SpanBody::Raw | SpanBody::Omitted)
    }

    /// Returns the id of the shown summary; `None` for any other body.
    pub fn summary(&self) -> Option<&SummaryId> {
        match self {
            SpanBody::Summary { id, .. } => Some(id),
            _ => None,
        }
    }
}

/// Range of a span. A closed range ends at `last`, inclusive. An open range has no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SpanRange {
    /// First position of the span, inclusive.
    pub first: Seq,
    /// Last position of the span, inclusive; `None` for the open span at the end of a view.
    pub last: Option<Seq>,
}

impl SpanRange {
    /// Returns the positions of the span up to `head`, the last position of the log. `None` if the span begins after
    /// `head`.
    pub fn up_to(&self, head: Seq) -> Option<SeqRange> {
        SeqRange::new(self.first, self.last.map_or(head, |last| last.min(head)))
    }
}

impl fmt::Display for SpanRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            Some(last) => write!(f, "{}-{last}", self.first),
            None => write!(f, "{}-", self.first),
        }
    }
}

/// A range of the log, and the form in which a context shows its messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Positions of the span's messages.
    pub range: SpanRange,
    /// Form in which a context shows the messages.
    pub body: SpanBody,
    /// Cost of the span in a context, in tokens; 0 for `Omitted`. For `Raw`, a view has 0, and a reader of the log sets
    /// the sum of the costs of the span's messages.
    pub tokens: u64,
}

impl Span {
    /// Creates a closed span. `tokens` is the cost of its body, in tokens.
    pub fn closed(range: SeqRange, body: SpanBody, tokens: u64) -> Self {
        Self {
            range: SpanRange {
                first: range.first,
                last: Some(range.last),
            },
            body,
            tokens,
        }
    }

    /// Returns the range of a closed span; `None` if the span is open.
    pub fn closed_range(&self) -> Option<SeqRange> {
        self.range
            .last
            .and_then(|last| SeqRange::new(self.range.first, last))
    }

    /// Returns whether two spans have the same range and the same body. Their costs may differ.
    pub fn same(&self, other: &Span) -> bool {
        self.range == other.range && self.body == other.body
    }
}

/// First position and body of a span: the row that a store keeps for the span. The span ends right before the first
/// position of the next row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpanStart {
    /// First position of the span, inclusive.
    pub first: Seq,
    /// Form in which a context shows the span's messages.
    pub body: SpanBody,
    /// Cost of the span's body, in tokens; 0 for `Raw` and `Omitted`.
    pub tokens: u64,
}

impl SpanStart {
    /// Start of the only span of a new view, which shows all messages verbatim.
    pub const FIRST: Self = Self {
        first: Seq::FIRST,
        body: SpanBody::Raw,
        tokens: 0,
    };
}

impl From<&Span> for SpanStart {
    fn from(span: &Span) -> Self {
        Self {
            first: span.range.first,
            body: span.body.clone(),
            tokens: match span.body.is_divisible() {
                true => 0,
                false => span.tokens,
            },
        }
    }
}

/// Changes to the stored rows of a view when new spans are published. Each row is the start of a span.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpliceRows {
    /// Starts of spans to remove, in rising order of their first positions.
    pub removed: Vec<SpanStart>,
    /// Starts of spans to add, in rising order of their first positions.
    pub added: Vec<SpanStart>,
}

/// Error returned when spans of a view cannot be replaced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpliceError {
    /// The view has other spans over the range than the caller expected: another publish replaced them first.
    #[error("the view holds {} other span(s) over the replaced range", found.len())]
    Lost {
        /// Spans that the view has over the range now.
        found: Vec<Span>,
    },
    /// The new spans do not cover exactly the replaced range, in order, without gaps.
    #[error("the new spans do not tile {at}: {problem}")]
    NotTiling {
        /// Range that the splice should replace.
        at: SeqRange,
        /// Description of the gap or overlap in the new spans.
        problem: String,
    },
    /// The replaced range begins or ends inside a span that cannot be divided.
    #[error("{at} divides the span {span}, which can only be replaced whole")]
    Divides {
        /// Range that the splice should replace.
        at: SeqRange,
        /// Range of the span that cannot be divided.
        span: SpanRange,
    },
}

/// A view of a log: a list of spans in order. Every position from 1 on belongs to exactly one span. The last span is
/// raw and open, so new messages belong to it.
///
/// ```
/// use memory_model::{SpanBody, Seq, SeqRange, Span, SummaryId, View};
///
/// let view = View::new();
/// let at = SeqRange::new(Seq(1), Seq(10)).unwrap();
/// let leaf = SpanBody::Summary { id: SummaryId::new("sum_0123456789abcdef"), depth: 0 };
/// let compacted = view
///     .splice(at, &[Span::closed(at, SpanBody::Raw, 0)], &[Span::closed(at, leaf, 40)])
///     .unwrap();
/// assert_eq!(compacted.spans().len(), 2);
/// assert_eq!(compacted.spans()[1].range.first, Seq(11));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    spans: Vec<Span>,
}

impl Default for View {
    fn default() -> Self {
        Self::new()
    }
}

impl View {
    /// Creates the view of a conversation that was never compacted: one raw span.
    pub fn new() -> Self {
        let range = SpanRange {
            first: Seq::FIRST,
            last: None,
        };
        Self {
            spans: vec![Span {
                range,
                body: SpanBody::Raw,
                tokens: 0,
            }],
        }
    }

    /// Creates the view from the starts of its spans.
    ///
    /// # Errors
    /// Returns a message that names the invalid start. The first span must begin at 1, each span after the span before
    /// it, and the last span must be raw. Neighbours with the same raw or omitted body must be merged.
    pub fn from_starts(starts: &[SpanStart]) -> Result<Self, String> {
        match starts.first() {
            None => return Err("a view has at least one span".to_owned()),
            Some(start) if start.first != Seq::FIRST => {
                return Err(format!(
                    "the first span begins at {}, not at 1",
                    start.first
                ));
            }
            Some(_) => {}
        }
        for (left, right) in starts.iter().zip(starts.iter().skip(1)) {
            if right.first <= left.first {
                return Err(format!(
                    "spans begin at {} and then at {}",
                    left.first, right.first
                ));
            }
            if left.body == right.body && left.body.is_divisible() {
                return Err(format!(
                    "the spans at {} and {} should be merged",
                    left.first, right.first
                ));
            }
        }
        if let Some(last) = starts.last()
            && last.body != SpanBody::Raw
        {
            return Err(format!("the final span, at {}, is not raw", last.first));
        }
        Ok(Self {
            spans: spans_of(starts, None),
        })
    }

    /// Returns the spans of the view, in order.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Returns the starts of the spans, in order.
    pub fn starts(&self) -> Vec<SpanStart> {
        self.spans.iter().map(SpanStart::from).collect()
    }

    /// Returns the spans that overlap `at`. `Raw` and `Omitted` spans are clipped to `at`. `Summary` and `Trimmed`
    /// spans keep their whole range, because they can only be replaced whole.
    pub fn clip(&self, at: SeqRange) -> Vec<Span> {
        clip(&self.spans, at)
    }

    /// Returns the view after `new` replaces the spans over `at`. The view must still have the spans `expect` there.
    ///
    /// # Errors
    /// [`SpliceError::Lost`] if the view holds other spans over `at`; [`SpliceError::NotTiling`] if `new` does not
    /// cover exactly `at`; [`SpliceError::Divides`] if `at` cuts through a summary or a trimmed span.
    pub fn splice(&self, at: SeqRange, expect: &[Span], new: &[Span]) -> Result<View, SpliceError> {
        let rows = splice_starts(&self.starts(), at, expect, new)?;
        let mut starts = self.starts();
        starts.retain(|start| !rows.removed.iter().any(|gone| gone.first == start.first));
        starts.extend(rows.added);
        starts.sort_by_key(|start| start.first);
        Ok(View {
            spans: spans_of(&starts, None),
        })
    }
}

/// Returns the spans that begin at `starts`. Each span ends right before the next start. The last span ends at `last`,
/// inclusive, or is open if `last` is `None`.
pub fn spans_of(starts: &[SpanStart], last: Option<Seq>) -> Vec<Span> {
    let ends = starts
        .iter()
        .skip(1)
        .map(|next| Some(next.first.prev()))
        .chain([last]);
    starts
        .iter()
        .zip(ends)
        .map(|(start, last)| Span {
            range: SpanRange {
                first: start.first,
                last,
            },
            body: start.body.clone(),
            tokens: start.tokens,
        })
        .collect()
}

/// Returns the spans of a view that overlap the range `at`, clipped as by [`View::clip`]. `starts` are the starts of
/// these spans in order, and of the next span, which ends the last one of them. More starts before and after are
/// allowed.
pub fn clip_starts(starts: &[SpanStart], at: SeqRange) -> Vec<Span> {
    clip(&spans_of(starts, None), at)
}

fn clip(spans: &[Span], at: SeqRange) -> Vec<Span> {
    spans
        .iter()
        .filter(|span| {
            span.range.first <= at.last && span.range.last.is_none_or(|last| last >= at.first)
        })
        .map(|span| {
            let mut span = span.clone();
            if span.body.is_divisible() {
                span.range.first = span.range.first.max(at.first);
                span.range.last = Some(span.range.last.map_or(at.last, |last| last.min(at.last)));
            }
            span
        })
        .collect()
}

/// Returns the starts of spans that a store must remove and add when `new` replaces the spans of a view over `at`. The
/// view must still have the spans `expect` there.
///
/// `starts` are the starts of the view's spans around the range: from the span that covers the position before `at` (or
/// the first span) through the span that begins right after `at`, if there is one. Additional starts are allowed.
///
/// # Errors
/// [`SpliceError`] in the same cases as [`View::splice`].
pub fn splice_starts(
    starts: &[SpanStart],
    at: SeqRange,
    expect: &[Span],
    new: &[Span],
) -> Result<SpliceRows, SpliceError> {
    tiles(at, new)?;
    let found = clip_starts(starts, at);
    let same = found.len() == expect.len() && found.iter().zip(expect).all(|(a, b)| a.same(b));
    if !same {
        return Err(SpliceError::Lost { found });
    }
    for span in &found {
        let cut = span.range.first < at.first || span.range.last.is_none_or(|last| last > at.last);
        if cut {
            return Err(SpliceError::Divides {
                at,
                span: span.range,
            });
        }
    }

    // The replacement with its neighbours, before merging: the row to the left, the new spans, and the row that
    // continues after them.
    let after = at.last.next();
    let left = starts.iter().rev().find(|start| start.first < at.first);
    let right = starts.iter().rev().find(|start| start.first <= after);
    let mut rows: Vec<SpanStart> = Vec::new();
    let candidates = left
        .cloned()
        .into_iter()
        .chain(new.iter().map(SpanStart::from))
        .chain(right.map(|row| SpanStart {
            first: after,
            ..row.clone()
        }));
    for row in candidates {
        match rows.last_mut() {
            Some(last) if last.body == row.body && row.body.is_divisible() => {
                last.tokens = last.tokens.saturating_add(row.tokens);
            }
            _ => rows.push(row),
        }
    }

    let touched = |start: &&SpanStart| {
        left.is_some_and(|left| left.first == start.first)
            || (at.first <= start.first && start.first <= after)
    };
    let old: Vec<&SpanStart> = starts.iter().filter(touched).collect();
    Ok(SpliceRows {
        removed: old
            .iter()
            .filter(|o| !rows.contains(o))
            .map(|o| (*o).clone())
            .collect(),
        added: rows.iter().filter(|r| !old.contains(r)).cloned().collect(),
    })
}

/// Checks that `new` covers exactly `at`: closed spans, in order, without gaps.
fn tiles(at: SeqRange, new: &[Span]) -> Result<(), SpliceError> {
    let mut next = at.first;
    for span in new {
        let Some(range) = span.closed_range() else {
            let problem = format!("the span {} is open or empty", span.range);
            return Err(SpliceError::NotTiling { at, problem });
        };
        if range.first != next {
            let problem = format!("the span {range} should begin at {next}");
            return Err(SpliceError::NotTiling { at, problem });
        }
        next = range.last.next();
    }
    if next != at.last.next() {
        let problem = format!("they end at {}", next.prev());
        return Err(SpliceError::NotTiling { at, problem });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
