//! The trait of an index that an application fills, and that may lag behind the log.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use memory_model::{ConversationId, Seq, SummaryId};

use crate::error::Result;
use crate::hits::Hits;
use crate::query::Query;

/// How far an index reaches in a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Watermark {
    /// Every message that the conversation sees up to and including this position is indexed;
    /// [`Seq::NONE`] when none is.
    pub messages: Seq,
    /// Every summary that the conversation sees up to and including this one is indexed, in the
    /// order in which they were made; `None` when none is.
    ///
    /// A fork's ancestors may still make summaries that the fork sees and that come before its
    /// own. An index that does not follow them gives `None` for a fork.
    pub summaries: Option<SummaryId>,
}

impl Watermark {
    /// An index that reaches up to a position, and up to a summary.
    pub fn new(messages: Seq, summaries: Option<SummaryId>) -> Self {
        Self {
            messages,
            summaries,
        }
    }
}

/// An index's answer, and how far the index reached when it gave it.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct IndexedHits {
    /// Hits among what `watermark` covers, and no others. `complete` speaks of these alone.
    pub hits: Hits,
    /// How far the index reached at that moment.
    pub watermark: Watermark,
}

/// An index that an application fills whenever it likes.
///
/// It says with each answer how far it reaches; `memory_store::IndexedSearch` scans the rest, so
/// that together they are a complete [`Search`](crate::Search) however far the index lags. An
/// index needs no store: whoever fills it hands it what a store reads.
///
/// A query searches echoes and has no filter on tools: `memory_store::IndexedSearch`, which can read the calls
/// that results belong to, applies both to what the index finds.
///
/// Cursors are [positions](crate::implementors::Position). A query comes in the orders
/// [`Oldest`](crate::HitOrder::Oldest) or [`Newest`](crate::HitOrder::Newest).
#[async_trait]
pub trait SearchIndex: Send + Sync + fmt::Debug {
    /// Finds at most `query.limit` messages and summaries among what the index covers.
    ///
    /// A conversation of which nothing is indexed has an answer without hits and the default
    /// watermark.
    ///
    /// # Errors
    /// `Unsupported` for a mode that this index does not have; `NotFound` for a cursor after a
    /// summary that the watermark does not cover; in both cases everything is scanned. Other
    /// errors end the search.
    async fn search_indexed(
        &self,
        conversation: ConversationId,
        query: &Query,
    ) -> Result<IndexedHits>;
}

#[async_trait]
impl<I: SearchIndex + ?Sized> SearchIndex for &I {
    async fn search_indexed(
        &self,
        conversation: ConversationId,
        query: &Query,
    ) -> Result<IndexedHits> {
        (**self).search_indexed(conversation, query).await
    }
}

#[async_trait]
impl<I: SearchIndex + ?Sized> SearchIndex for Arc<I> {
    async fn search_indexed(
        &self,
        conversation: ConversationId,
        query: &Query,
    ) -> Result<IndexedHits> {
        (**self).search_indexed(conversation, query).await
    }
}
