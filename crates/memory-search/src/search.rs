//! The trait that a search implements.

use std::fmt;

use async_trait::async_trait;
use memory_model::ConversationId;

use crate::error::Result;
use crate::hits::Hits;
use crate::query::Query;

/// Search over conversations.
///
/// A search answers for what a conversation sees: its log (for a fork with what it shares of its
/// parent's), without notes, and its summaries. Nothing of another conversation is ever found.
/// Every search supports [`SearchMode::Literal`](crate::SearchMode::Literal), all filters and all
/// orders. Of the order [`Relevance`](crate::HitOrder::Relevance) only the set of hits is fixed.
///
/// The crate `store-conformance` has the tests that every implementation passes.
#[async_trait]
pub trait Search: Send + Sync + fmt::Debug {
    /// Finds at most `query.limit` messages and summaries of a conversation.
    ///
    /// Passing the answer's cursor back, until an answer is complete, gives every hit once.
    ///
    /// # Errors
    /// `NotFound` when the conversation does not exist; `Invalid` for an empty pattern or a cursor
    /// that no answer had; `Unsupported` for a mode that this search does not have; `Corrupt` and
    /// `Storage` when what is searched cannot be read.
    async fn search(&self, conversation: ConversationId, query: &Query) -> Result<Hits>;
}
