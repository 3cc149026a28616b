//! The answer to a search query.

use std::borrow::Cow;
use std::ops::Range;

use memory_model::{Role, Seq, SeqRange, SummaryId, Timestamp};

use crate::fallback::Fallback;
use crate::query::SearchScope;

/// The message or summary of a [`Hit`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HitTarget {
    /// A message, given by its position in the log.
    Message {
        /// Position of the message in the conversation's log. Positions begin at 1.
        seq: Seq,
        /// Id of the message in the application from which it was imported. `None` if it has none.
        external_id: Option<String>,
        /// Role of the message's author.
        role: Role,
    },
    /// A summary, given by its id.
    Summary {
        /// Id of the summary.
        id: SummaryId,
        /// Positions of the messages that the summary covers, as an inclusive range.
        range: SeqRange,
    },
}

/// A message or summary that a search found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Hit {
    /// The message or summary that was found.
    pub target: HitTarget,
    /// Score of the match. A higher score is a better match. 0 if the search does not rank its hits.
    pub score: f64,
    /// Excerpt of the text around a match, with `…` at each cut. If the text has no match, for example because only a
    /// neighbouring message matches, the excerpt is the beginning of the text.
    pub snippet: String,
    /// Byte ranges of the matches in [`snippet`](Self::snippet), in ascending order and without overlaps.
    pub matches: Vec<Range<usize>>,
    /// Time at which the message was written, or at which the summary was made.
    pub created_at: Timestamp,
    /// Name of the message's author. `None` for a message without a name, and for a summary.
    pub name: Option<String>,
    /// Cursor that continues the search after this hit. Pass it in [`Query::cursor`](crate::Query::cursor).
    pub cursor: String,
}

impl Hit {
    /// Creates a hit with score 0, without marked matches and without an author name.
    pub fn new(
        target: HitTarget,
        snippet: impl Into<String>,
        created_at: Timestamp,
        cursor: impl Into<String>,
    ) -> Self {
        Self {
            target,
            score: 0.0,
            snippet: snippet.into(),
            matches: Vec::new(),
            created_at,
            name: None,
            cursor: cursor.into(),
        }
    }
}

/// Answer to a query: the hits, the search method that found them, and the cursor for more.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[must_use]
pub struct Hits {
    /// The hits, in the order that the query requested.
    pub hits: Vec<Hit>,
    /// Name of the search method that found the hits, such as `literal-scan`.
    pub strategy: Cow<'static, str>,
    /// The kind of content that was searched: messages, summaries or both.
    pub scope: SearchScope,
    /// Whether this is the last answer: `true` if no more hits follow.
    pub complete: bool,
    /// Cursor for the next hits, to pass in [`Query::cursor`](crate::Query::cursor). `None` if and only if the answer
    /// is complete. A cursor is valid only for the search that returned it.
    pub cursor: Option<String>,
    /// Kind of the search that was made in place of the requested search. `None` if the requested search was made.
    pub fallback: Option<Fallback>,
    /// Whether the search found a damaged part of the index. The search then reads the messages and summaries of this
    /// part directly, so no hit is missing.
    pub index_damaged: bool,
    /// Whether the search ended early because of [`Query::stop`](crate::Query::stop). The answer may then have fewer
    /// hits than requested, or none.
    pub stopped: bool,
}

impl Hits {
    /// Creates an answer without a fallback. The answer is complete if `cursor` is `None`.
    pub fn new(
        hits: Vec<Hit>,
        strategy: impl Into<Cow<'static, str>>,
        scope: SearchScope,
        cursor: Option<String>,
    ) -> Self {
        Self {
            hits,
            strategy: strategy.into(),
            scope,
            complete: cursor.is_none(),
            cursor,
            fallback: None,
            index_damaged: false,
            stopped: false,
        }
    }
}
