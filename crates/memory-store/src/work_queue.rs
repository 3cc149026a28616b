//! Queue of conversations for background workers.

use std::time::Duration;

use async_trait::async_trait;
use memory_model::{ConversationId, Timestamp};

use crate::error::Result;
use crate::types::Owner;

/// A conversation that has changed, and that one worker has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangedConversation {
    /// The conversation.
    pub conversation: ConversationId,
    /// Time of the latest change that was noted when the worker took the conversation.
    pub changed_at: Timestamp,
}

/// Queue of changed conversations, from which background workers of many processes and machines take one at a time.
///
/// The queue distributes attention, and protects no data: the leases on jobs do that.
#[async_trait]
pub trait WorkQueue: Send + Sync {
    /// Takes the conversation with the oldest change, for `owner` and the time `ttl`. No other worker gets it within
    /// this time, and none gets it later if the owner finishes it. Archived conversations are left out. Returns `None`
    /// if no conversation waits.
    ///
    /// # Errors
    /// If the database cannot be read or written.
    async fn take_changed(
        &self,
        owner: &Owner,
        ttl: Duration,
    ) -> Result<Option<ChangedConversation>>;

    /// Records that `owner` has worked on a conversation that it took. A later change puts it into the queue again. Has
    /// no effect if another worker has taken it meanwhile.
    ///
    /// # Errors
    /// If the database cannot be written.
    async fn finish_changed(&self, changed: &ChangedConversation, owner: &Owner) -> Result<()>;
}
