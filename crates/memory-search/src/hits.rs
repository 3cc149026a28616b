//! The answer to a query.

use std::borrow::Cow;
use std::ops::Range;

use memory_model::{Role, Seq, SeqRange, SummaryId, Timestamp};

use crate::fallback::Fallback;
use crate::query::SearchScope;

/// The object that a hit points to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HitTarget {
    /// A message.
    Message {
        /// Position in the log.
        seq: Seq,
        /// The source's id of the message.
        external_id: Option<String>,
        /// The message's role.
        role: Role,
    },
    /// A summary.
    Summary {
        /// The summary's id.
        id: SummaryId,
        /// The messages that the summary covers.
        range: SeqRange,
    },
}

/// One match.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Hit {
    /// The message or summary.
    pub target: HitTarget,
    /// How well the text matches; higher is better. 0 from a search that does not rank.
    pub score: f64,
    /// The text around the first match, with `…` at each cut. The beginning of the text if a ranking found it by its
    /// neighbours.
    pub snippet: String,
    /// Byte ranges of the matches in the snippet, in order, without overlaps.
    pub matches: Vec<Range<usize>>,
    /// Time of the message or of the summary.
    pub created_at: Timestamp,
    /// Name of the message's author; `None` for messages without one and for summaries.
    pub name: Option<String>,
    /// The cursor of the hits that follow it.
    pub cursor: String,
}

impl Hit {
    /// A hit without a score and without marked matches.
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

/// The answer to a query: hits, how they were found, and whether they are all.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[must_use]
pub struct Hits {
    /// The hits, in the order that the query asked for.
    pub hits: Vec<Hit>,
    /// Name of the strategy that found them, such as `literal-scan`.
    pub strategy: Cow<'static, str>,
    /// Scope that was searched.
    pub scope: SearchScope,
    /// Whether the query has no further hits.
    pub complete: bool,
    /// Cursor of the next answer, as the search defines it; `None` exactly when the answer is complete.
    pub cursor: Option<String>,
    /// The replacement for the query, if it could not be answered as it was.
    pub fallback: Option<Fallback>,
    /// Whether a part of an index was damaged. It was not used: its messages and summaries were read instead, so no hit
    /// is missing.
    pub index_damaged: bool,
    /// Whether the answer is incomplete because its time was over: see [`Query::stop`](crate::Query::stop). It may then
    /// have fewer hits than asked for, or none.
    pub stopped: bool,
}

impl Hits {
    /// An answer that `cursor` continues; complete without one.
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
