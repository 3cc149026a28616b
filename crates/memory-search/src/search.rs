//! The trait that a search implements.

use std::fmt;

use async_trait::async_trait;
use memory_model::ConversationId;

use crate::error::Result;
use crate::hits::Hits;
use crate::query::Query;

/// A search over conversations in a store.
///
/// A search covers all messages and summaries of a conversation, but not its notes. For a fork this includes the
/// messages that it shares with its parent. It never finds content of another conversation. Every search supports
/// [`SearchMode::Literal`](crate::SearchMode::Literal), all filters and all orders. For the order
/// [`Relevance`](crate::HitOrder::Relevance) each search may choose its ranking, but all must find the same hits.
///
/// The crate `store-conformance` has the tests that every implementation passes.
#[async_trait]
pub trait Search: Send + Sync + fmt::Debug {
    /// Finds at most `query.limit` messages and summaries of a conversation.
    ///
    /// To get all hits, each once, repeat the query with the cursor of the latest answer until an answer is complete.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist. `Invalid` for an empty pattern, and for a cursor that this search
    /// did not return. `Unsupported` for a mode that this search does not support. `Corrupt` and `Storage` if the
    /// searched data cannot be read.
    async fn search(&self, conversation: ConversationId, query: &Query) -> Result<Hits>;
}
