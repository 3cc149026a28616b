//! Copies of sessions, to try a compaction.

use compaction_runner::REJECTED;
use memory_store::InMemoryStore;

use crate::builder::Builder;
use crate::error::Result;
use crate::session::Session;

impl Session {
    /// Copies the session into RAM, and returns the copy with the settings of this builder, whose store is replaced. The
    /// copy has the log, the views with their summaries, the list of rejected ones, and the strategy of this handle. A
    /// compaction of the copy does not change the session, and with
    /// [`Guards::without_calls`](crate::models::Guards::without_calls) calls no model:
    /// [`Memory::spent_by_model`](crate::Memory::spent_by_model) of the copy then returns an estimate of the cost.
    ///
    /// # Errors
    /// `Store` if the store fails, and the errors of opening a memory.
    pub async fn copy_to_ram(&self, builder: Builder) -> Result<Self> {
        let store = InMemoryStore::copy_of(&**self.memory().store(), self.id()).await?;
        let memory = builder.without_index().store(store).open().await?;
        let copy = memory.get_session(self.key().clone());
        let copy = match self.strategy() {
            Some(strategy) => copy.strategy(strategy).await?,
            None => copy.await?,
        };
        let from = self.memory().store();
        if let Some(rejected) = from.state(self.id(), REJECTED).await? {
            let (to, value) = (copy.memory().store(), Some(&rejected.value));
            to.put_state(copy.id(), REJECTED, 0, value).await?;
        }
        Ok(copy)
    }
}
