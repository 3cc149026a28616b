//! Small values of a conversation.

use memory_model::{ConversationId, RawJson};
use memory_store::{Error, ErrorKind, Result, State};

use super::SqlStore;
use crate::executor::{Database, Executor};
use crate::work as sql;

impl<D: Database> SqlStore<D> {
    pub(super) async fn get_state(&self, id: ConversationId, key: &str) -> Result<Option<State>> {
        let mut reader = self.database.read().await?;
        let on = &mut reader;
        self.lineage(on, id).await?;
        let family = self.family(on, id).await?;
        let row = on.first(&sql::find_state(family, id, key)).await?;
        row.map(|row| sql::state(&row)).transpose()
    }

    pub(super) async fn set_state(
        &self,
        id: ConversationId,
        key: &str,
        revision: u64,
        value: Option<&RawJson>,
    ) -> Result<u64> {
        let mut writer = self.database.write().await?;
        let (mut tx, family) = self.begin_in(&mut writer, id).await?;
        let on = &mut tx;
        self.lineage(on, id).await?;
        let found = match on.first(&sql::find_state(family, id, key)).await? {
            Some(row) => sql::state(&row)?.revision,
            None => 0,
        };
        if found != revision {
            return Err(Error::new(
                ErrorKind::Stale,
                format!("{key} has revision {found}, not {revision}: read it again"),
            ));
        }
        let next = match value {
            Some(value) => {
                on.run(&sql::put_state(family, id, key, value, revision + 1)?)
                    .await?;
                revision + 1
            }
            None => {
                on.run(&sql::delete_state(family, id, key)).await?;
                0
            }
        };
        self.database.commit(tx).await?;
        Ok(next)
    }
}
