//! The session in which a conversation goes on.
//!
//! A log is never rewritten. If an agent takes turns back that are stored already, it goes on in a fork, and the session
//! that has the conversation's name keeps a small value: the fork that stands for it.

#[cfg(feature = "import")]
use memory_model::RawJson;
use memory_model::{ConversationId, SessionKey, Timestamp};
#[cfg(feature = "import")]
use memory_store::ErrorKind as StoreErrorKind;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::memory::Memory;
use crate::session::Session;

/// Key under which the store keeps the value.
const KEY: &str = "in-use";

/// The session in which a conversation goes on, and the time of the source that says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InUse {
    pub(crate) session: SessionKey,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
}

impl Session {
    /// Returns the session in which this one's agent goes on: the fork that an imported transcript made the branch in
    /// use, for example after an edited message, or else this session itself. What was taken back is in this session's
    /// log, and not in the other's.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn in_use(&self) -> Result<Session> {
        let Some(in_use) = self.memory().stored_in_use(self.id()).await? else {
            return Ok(self.clone());
        };
        match in_use.session == *self.key() {
            true => Ok(self.clone()),
            false => {
                let found = self.memory().find_session(in_use.session).await?;
                Ok(found.unwrap_or_else(|| self.clone()))
            }
        }
    }
}

impl Memory {
    /// Returns what is stored about the session in which a conversation goes on.
    pub(crate) async fn stored_in_use(&self, id: ConversationId) -> Result<Option<InUse>> {
        let stored = self.inner.store.state(id, KEY).await?;
        Ok(stored.and_then(|stored| serde_json::from_str(stored.value.as_str()).ok()))
    }

    /// Records the session in which the conversation of `owner` goes on. A source of an earlier time changes nothing,
    /// nor does one in which nothing was taken back yet. Whether the source brings new entries does not matter: those of
    /// a thread may have come with the file of another that goes on from it.
    #[cfg(feature = "import")]
    pub(crate) async fn record_in_use(&self, owner: &SessionKey, in_use: InUse) -> Result<()> {
        let Some(session) = self.find_session(owner.clone()).await? else {
            return Ok(());
        };
        let store = &self.inner.store;
        let stored = store.state(session.id(), KEY).await?;
        let known: Option<InUse> = match &stored {
            Some(stored) => serde_json::from_str(stored.value.as_str()).ok(),
            None => None,
        };
        let is_own = in_use.session == *owner && in_use.since.is_none();
        let is_later = |known: &InUse| known.since <= in_use.since && *known != in_use;
        if is_own || !known.as_ref().is_none_or(is_later) {
            return Ok(());
        }
        let revision = stored.map_or(0, |stored| stored.revision);
        let value = RawJson::from_value(&in_use)?;
        match store
            .put_state(session.id(), KEY, revision, Some(&value))
            .await
        {
            // Another import has recorded what it read.
            Err(error) if error.kind() == StoreErrorKind::Stale => Ok(()),
            recorded => Ok(recorded.map(|_| ())?),
        }
    }
}
