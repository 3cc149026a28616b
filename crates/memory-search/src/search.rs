//! The trait that a search implements.

use std::fmt;

use async_trait::async_trait;
use memory_model::ConversationId;

use crate::error::Result;
use crate::hits::Hits;
use crate::query::Query;

/// Search over conversations.
///
/// A search covers everything that a conversation sees: its log without notes (for a fork, with the part that it shares
/// with its parent), and its summaries. It never finds anything of another conversation. Every search supports
/// [`SearchMode::Literal`](crate::SearchMode::Literal), all filters and all orders. For the order
/// [`Relevance`](crate::HitOrder::Relevance) only the set of hits is fixed.
///
/// The crate `store-conformance` has the tests that every implementation passes.
#[async_trait]
pub trait Search: Send + Sync + fmt::Debug {
    /// Finds at most `query.limit` messages and summaries of a conversation.
    ///
    /// Passing the answer's cursor back, until an answer is complete, gives every hit once.
    ///
    /// # Errors
    /// `NotFound` when the conversation does not exist; `Invalid` for an empty pattern or a cursor that no answer had;
    /// `Unsupported` for a mode that this search does not support; `Corrupt` and `Storage` when the searched data
    /// cannot be read.
    async fn search(&self, conversation: ConversationId, query: &Query) -> Result<Hits>;
}
