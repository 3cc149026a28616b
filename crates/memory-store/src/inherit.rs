//! Inheritance of a new conversation, as pure functions: the part of the parent's log that it shares, the summaries
//! that it sees, and the parent's views cut at a fork's point.

use memory_model::{
    Child, ConversationId, Hash, Seq, SeqRange, Span, SpanBody, SpanStart, SpliceRows, Summary,
    SummaryId, clip_starts, splice_starts,
};

use crate::checks::check_fork;
use crate::error::{Error, ErrorKind, Result};
use crate::publish::KnownSummary;
use crate::types::{Conversation, NewConversation, Origin, segments_of};

/// Returns the new conversation that a request describes, with the number `id` and, below a parent, the parent's family
/// and shared segments. `tokens` does not count the shared part of a fork.
///
/// # Errors
/// `Invalid` if a fork begins beyond the parent's head; `EstimatorMismatch` if its estimator is not the parent's.
pub fn created(
    new: &NewConversation,
    id: ConversationId,
    parent: Option<&Conversation>,
) -> Result<Conversation> {
    let head = match (&new.origin, parent) {
        (Origin::Fork { at, .. }, Some(parent)) => {
            check_fork(parent, *at, &new.estimator)?;
            *at
        }
        _ => Seq::NONE,
    };
    Ok(Conversation {
        id,
        key: new.key.clone(),
        origin: new.origin.clone(),
        family: parent.map_or(id, |parent| parent.family),
        segments: segments_of(&new.origin, parent, id),
        head,
        tokens: 0,
        chain: Hash::ZERO,
        estimator: new.estimator.clone(),
        title: new.title.clone(),
        archived: false,
        meta: new.meta.clone(),
        created_at: new.now,
        updated_at: new.now,
        erasures: 0,
    })
}

/// A conversation with summaries that another conversation sees. A conversation sees its own summaries and, if it is a
/// fork, those of its parent, of the parent's parent and so on, as far as they are forks.
///
/// An ancestor's summary is visible if it covers no position after the point of the fork: then it was made from shared
/// messages. The time of its creation does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SummaryScope {
    /// Conversation that made the summaries.
    pub conversation: ConversationId,
    /// Last position that a visible summary may cover, inclusive; `None` for the conversation's own summaries, which
    /// are all visible.
    pub last: Option<Seq>,
}

impl SummaryScope {
    /// Creates the scope of a conversation's own summaries: all of them are visible.
    pub fn own(conversation: ConversationId) -> Self {
        Self {
            conversation,
            last: None,
        }
    }

    /// Returns the scope of the summaries that `parent` made, if the conversation of this scope is a fork of it at
    /// `at`.
    pub fn parent(&self, parent: ConversationId, at: Seq) -> Self {
        Self {
            conversation: parent,
            last: Some(self.last.map_or(at, |last| last.min(at))),
        }
    }

    /// Returns whether a summary that covers `range` is visible in this scope.
    pub fn sees(&self, range: SeqRange) -> bool {
        self.last.is_none_or(|last| range.last <= last)
    }
}

/// An unfinished cut of a parent's view at the point of a fork.
///
/// Spans that end at or before the point stay as they are. A summary that crosses the point is opened: its children
/// replace it, and a child that crosses the point is opened too, until only messages cross. Their part up to the point
/// is raw. Shortened messages that cross the point become raw as well, because the cost of a part of them is unknown.
///
/// ```
/// use memory_model::{SpanBody, Seq, SpanStart};
/// use memory_store::implementors::ViewCut;
///
/// let raw = |first| SpanStart { first: Seq(first), body: SpanBody::Raw, tokens: 0 };
/// let omitted = SpanStart { body: SpanBody::Omitted, ..raw(1) };
/// let cut = ViewCut::new(&[omitted, raw(9)], Seq(4));
/// assert_eq!(cut.crossing(), None);
/// let inherited = cut.finish()?.unwrap();
/// assert_eq!(inherited.rows.added[1], raw(5));
/// # Ok::<(), memory_store::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ViewCut {
    at: Seq,
    rows: Vec<SpanStart>,
    crossing: Option<SummaryId>,
}

/// First publication of a fork's view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inherited {
    /// Range of positions that the publication replaces: all shared positions.
    pub at: SeqRange,
    /// New spans of the view over that range.
    pub spans: Vec<Span>,
    /// Rows of spans that the publication removes and adds.
    pub rows: SpliceRows,
}

impl ViewCut {
    /// Begins to cut a parent's view at a point. `rows` are the parent's rows that begin at or before the position
    /// after the point; additional rows are allowed.
    pub fn new(rows: &[SpanStart], at: Seq) -> Self {
        let mut cut = Self {
            at,
            rows: Vec::new(),
            crossing: None,
        };
        let whole = rows
            .iter()
            .rev()
            .find(|row| row.first <= at.next())
            .is_some_and(|row| row.first == at.next());
        let kept: Vec<&SpanStart> = rows.iter().filter(|row| row.first <= at).collect();
        for (index, row) in kept.iter().enumerate() {
            let crosses = index + 1 == kept.len() && !whole;
            match &row.body {
                SpanBody::Summary { id, .. } if crosses => cut.crossing = Some(id.clone()),
                SpanBody::Trimmed(_) if crosses => cut.raw(row.first),
                _ => cut.rows.push((*row).clone()),
            }
        }
        cut
    }

    /// Returns the id of the summary that spans the cut's point, if there is one: look it up and [`ViewCut::open`] it.
    pub fn crossing(&self) -> Option<&SummaryId> {
        self.crossing.as_ref()
    }

    /// Replaces the summary that spans the cut's point by its children, as far as they begin at or before the point.
    /// `known` returns the store's facts about a child summary.
    ///
    /// # Errors
    /// `Corrupt` if the store does not know a child summary.
    pub fn open(
        &mut self,
        summary: &Summary,
        known: impl Fn(&SummaryId) -> Option<KnownSummary>,
    ) -> Result<()> {
        self.crossing = None;
        for child in &summary.children {
            let range = child.range();
            if range.first > self.at {
                break;
            }
            match child {
                Child::Messages { .. } => self.raw(range.first),
                Child::Summary { id, .. } if range.last > self.at => {
                    self.crossing = Some(id.clone());
                }
                Child::Summary { id, .. } => {
                    let Some(known) = known(id) else {
                        let message =
                            format!("{} was made from {id}, which is missing", summary.id);
                        return Err(Error::new(ErrorKind::Corrupt, message));
                    };
                    let (depth, tokens) = (known.depth, known.tokens);
                    self.rows.push(SpanStart {
                        first: range.first,
                        body: SpanBody::Summary {
                            id: id.clone(),
                            depth,
                        },
                        tokens,
                    });
                }
            }
        }
        Ok(())
    }

    fn raw(&mut self, first: Seq) {
        self.rows.push(SpanStart {
            first,
            body: SpanBody::Raw,
            tokens: 0,
        });
    }

    /// Returns the first publication of the fork's view; `None` if the view is raw, like every view before its first
    /// publication.
    ///
    /// # Errors
    /// `Corrupt` if the parent's rows are not a view, or if a crossing summary was not opened.
    pub fn finish(mut self) -> Result<Option<Inherited>> {
        let wrong = |problem: String| Error::new(ErrorKind::Corrupt, problem);
        if let Some(id) = self.crossing {
            return Err(wrong(format!("{id} was not opened at {}", self.at)));
        }
        let Some(at) = SeqRange::new(Seq::FIRST, self.at) else {
            return Ok(None);
        };
        self.rows
            .dedup_by(|next, row| next.body == row.body && row.body.is_divisible());
        let spans = clip_starts(&close(self.rows, at), at);
        let raw = [Span::closed(at, SpanBody::Raw, 0)];
        let rows = splice_starts(&[SpanStart::FIRST], at, &raw, &spans)
            .map_err(|error| wrong(format!("a view cannot be inherited: {error}")))?;
        if rows.added.is_empty() && rows.removed.is_empty() {
            return Ok(None);
        }
        Ok(Some(Inherited { at, spans, rows }))
    }
}

/// The rows with the one that the last of them ends at.
fn close(mut rows: Vec<SpanStart>, at: SeqRange) -> Vec<SpanStart> {
    rows.push(SpanStart {
        first: at.last.next(),
        ..SpanStart::FIRST
    });
    rows
}
