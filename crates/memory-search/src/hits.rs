//! The answer to a query.

use std::borrow::Cow;
use std::ops::Range;

use memory_model::{Role, Seq, SeqRange, SummaryId, Timestamp};

use crate::fallback::Fallback;
use crate::query::SearchScope;

/// The message or summary that a hit points to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HitTarget {
    /// A message, given by its position in the log.
    Message {
        /// Position of the message in the log.
        seq: Seq,
        /// Id that the message has in the application that it was imported from; `None` if it has none.
        external_id: Option<String>,
        /// Role of the message's author.
        role: Role,
    },
    /// A summary, given by its id.
    Summary {
        /// Id of the summary.
        id: SummaryId,
        /// Positions of the messages that the summary covers.
        range: SeqRange,
    },
}

/// A message or summary that a search found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Hit {
    /// The message or summary that was found.
    pub target: HitTarget,
    /// Score of the match; higher is better. 0 from a search that does not rank.
    pub score: f64,
    /// The text around the first match, with `…` at each cut. For a message that was ranked only because of its
    /// neighbours: the beginning of its text.
    pub snippet: String,
    /// Byte ranges of the matches in the snippet, in order, without overlaps.
    pub matches: Vec<Range<usize>>,
    /// Time of the message, or time at which the summary was made.
    pub created_at: Timestamp,
    /// Name of the message's author; `None` for messages without one and for summaries.
    pub name: Option<String>,
    /// Cursor for the hits after this one, to pass in [`Query::cursor`](crate::Query::cursor).
    pub cursor: String,
}

impl Hit {
    /// Creates a hit with score 0 and no marked matches.
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

/// Answer to a query: the hits, how they were found, and whether there are more.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[must_use]
pub struct Hits {
    /// The hits, in the order that the query requested.
    pub hits: Vec<Hit>,
    /// Name of the strategy that found the hits, such as `literal-scan`.
    pub strategy: Cow<'static, str>,
    /// The kind of content that was searched: messages, summaries or both.
    pub scope: SearchScope,
    /// Whether this answer contains the last hits: there are no more after it.
    pub complete: bool,
    /// Cursor for the next hits, to pass in [`Query::cursor`](crate::Query::cursor); `None` exactly if the answer is
    /// complete. Only the search that created it can read it.
    pub cursor: Option<String>,
    /// Search that replaced the requested one; `None` if it was not replaced.
    pub fallback: Option<Fallback>,
    /// Whether the search found a damaged part of the index. It did not use the part: it read the indexed messages and
    /// summaries instead, so no hit is missing.
    pub index_damaged: bool,
    /// Whether the search ended early because of [`Query::stop`](crate::Query::stop). The answer may then have fewer
    /// hits than requested, or none.
    pub stopped: bool,
}

impl Hits {
    /// Creates an answer with these hits. It is complete if `cursor` is `None`.
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
