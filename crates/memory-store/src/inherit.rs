//! Data that a new conversation takes over from its parent, as functions without I/O: the shared part of the parent's
//! log, the summaries of this part, and the parent's views, cut at the last shared position.

use memory_model::{
    Child, ConversationId, Hash, Seq, SeqRange, Span, SpanBody, SpanStart, SpliceRows, Summary,
    SummaryId, clip_starts, splice_starts,
};

use crate::checks::check_fork;
use crate::error::{Error, ErrorKind, Result};
use crate::publish::KnownSummary;
use crate::types::{Conversation, NewConversation, Origin, segments_of};

/// Returns the new conversation with number `id`, as a request describes it. A conversation with a parent gets the
/// parent's family and, as a fork, the parent's segments up to the last shared position. `tokens` is 0: a fork's shared
/// part is not counted.
///
/// # Errors
/// - `Invalid` if a fork begins beyond the end of the parent's log.
/// - `EstimatorMismatch` if a fork's estimator is not the parent's.
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

/// The summaries of one conversation that are visible: the same conversation or one of its forks can use them. A
/// conversation sees all of its own summaries. A fork also sees summaries of its parent, of the parent's parent if the
/// parent is a fork, and so on.
///
/// An ancestor's summary is visible if it covers only shared positions, because it was then made from shared messages.
/// The time of its creation does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SummaryScope {
    /// Conversation that made the summaries.
    pub conversation: ConversationId,
    /// Last position that a visible summary may cover, inclusive. `None` for the conversation's own summaries, which
    /// are all visible.
    pub last: Option<Seq>,
}

impl SummaryScope {
    /// Creates the scope of a conversation's own summaries, which are all visible.
    pub fn own(conversation: ConversationId) -> Self {
        Self {
            conversation,
            last: None,
        }
    }

    /// Returns the scope of the summaries of `parent`. The conversation of this scope must be a fork of `parent`, with
    /// `at` as the last shared position.
    pub fn parent(&self, parent: ConversationId, at: Seq) -> Self {
        Self {
            conversation: parent,
            last: Some(self.last.map_or(at, |last| last.min(at))),
        }
    }

    /// Returns whether the scope includes a summary that covers `range`: it ends at or before [`last`](Self::last).
    pub fn sees(&self, range: SeqRange) -> bool {
        self.last.is_none_or(|last| range.last <= last)
    }
}

/// A parent's view while it is cut after the last position that a fork shares. The result is the fork's first view.
///
/// Spans that end at or before this position stay unchanged. A summary that continues after it is replaced by its
/// children. A child that continues after it is replaced in the same way, until only messages continue. Messages among
/// the children become raw, up to the position. Shortened messages of a span that continues also become raw, because
/// the cost of a part of them is unknown.
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

/// First publication of a fork's view, derived from the parent's view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inherited {
    /// Range of positions that the publication replaces: all shared positions.
    pub at: SeqRange,
    /// New spans of the view (the compacted log) over the shared positions.
    pub spans: Vec<Span>,
    /// Starts of spans that the publication removes from the view and adds to it.
    pub rows: SpliceRows,
}

impl ViewCut {
    /// Begins to cut a parent's view after the position `at`, the last shared position of a fork. `rows` are the starts
    /// of the spans of the parent's view that begin at or before the position after `at`. Later starts are ignored.
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

    /// Returns the id of the summary that covers positions on both sides of the cut, or `None` if there is none. Read
    /// this summary from the store and pass it to [`ViewCut::open`].
    pub fn crossing(&self) -> Option<&SummaryId> {
        self.crossing.as_ref()
    }

    /// Replaces the summary on both sides of the cut by its children that begin at or before the last shared position.
    /// `known` returns the range, depth and cost of a child summary.
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

    /// Returns the first publication of the fork's view. Returns `None` if the view shows only raw messages, because a
    /// view without a publication shows them too.
    ///
    /// # Errors
    /// `Corrupt` if the span starts of the parent's view do not form a view, or if a summary on both sides of the cut
    /// was not opened.
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

/// Returns the span starts with one more at the end: a start after `at`, which ends the last span.
fn close(mut rows: Vec<SpanStart>, at: SeqRange) -> Vec<SpanStart> {
    rows.push(SpanStart {
        first: at.last.next(),
        ..SpanStart::FIRST
    });
    rows
}
