//! Queue of changed conversations.

use std::time::Duration;

use async_trait::async_trait;
use memory_store::{ChangedConversation, Owner, Result, WorkQueue};

use super::SqlStore;
use crate::executor::{Database, Executor as _};
use crate::queue as sql;

#[async_trait]
impl<D: Database> WorkQueue for SqlStore<D> {
    async fn take_changed(
        &self,
        owner: &Owner,
        ttl: Duration,
    ) -> Result<Option<ChangedConversation>> {
        let mut writer = self.database.write().await?;
        let now = writer.now().await?;
        let take = sql::take(owner, now, now.saturating_add(ttl));
        let mut row = writer.first(&take).await?;
        if row.is_none() {
            writer.run(&sql::note_changes()?).await?;
            row = writer.first(&take).await?;
        }
        row.map(|row| sql::taken(&row)).transpose()
    }

    async fn finish_changed(&self, changed: &ChangedConversation, owner: &Owner) -> Result<()> {
        let mut writer = self.database.write().await?;
        writer.run(&sql::finish(changed, owner)).await?;
        Ok(())
    }
}
