//! The trait that all searches implement.

use std::fmt;

use async_trait::async_trait;
use memory_model::ConversationId;

use crate::error::Result;
use crate::hits::Hits;
use crate::query::Query;

/// A search over the conversations in a store.
///
/// A search covers all messages and summaries of a conversation, but no notes (log entries that are not messages). A
/// fork is a conversation that continues the log of another conversation, its parent. A search of a fork also covers
/// the messages that it shares with its parent. A search never finds content of other conversations.
///
/// Every implementation supports [`SearchMode::Literal`](crate::SearchMode::Literal), all filters and all orders. With
/// the order [`Relevance`](crate::HitOrder::Relevance), implementations may rank differently, but they must all find
/// the same hits.
///
/// The crate `store-conformance` contains tests that every implementation must pass.
#[async_trait]
pub trait Search: Send + Sync + fmt::Debug {
    /// Returns at most `query.limit` messages and summaries of a conversation that match the query.
    ///
    /// To get all hits exactly once, repeat the query with the cursor of the latest answer until an answer is complete.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist. `Invalid` if the pattern is empty or too long, or if this search
    /// did not return the cursor. `Unsupported` if this search does not support the query's mode. `Corrupt` or
    /// `Storage` if the searched data cannot be read.
    async fn search(&self, conversation: ConversationId, query: &Query) -> Result<Hits>;
}
