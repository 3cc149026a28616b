//! Opening, finding, listing and exporting the sessions of a memory.

use compaction_runner::Trigger;
use memory_model::{SessionKey, Timestamp};
use memory_store::{
    Conversation, ConversationFilter, ConversationRef, LogRead, Origin, read_conversations,
};
use token_estimate::EstimatorId;

use crate::error::{Error, ErrorKind, Result};
use crate::memory::Memory;
use crate::open_session::OpenSession;
use crate::session::{Session, SessionInfo};
use crate::strategy;

impl Memory {
    /// Opens the session with this key, and creates it if it does not exist. The returned [`OpenSession`] takes
    /// settings, such as the context window, and opens the session when it is awaited. Archived and
    /// [deleted](Session::delete) sessions are opened too. [`Session::info`] returns whether the session is archived.
    ///
    /// # Errors
    /// `UnknownEstimator` if this build does not have the estimator of the session, and `Store` if the store fails.
    pub fn session(&self, key: impl Into<SessionKey>) -> OpenSession {
        OpenSession::new(self, key.into(), false)
    }

    /// Opens the session with this key. Unlike [`Memory::session`], does not create it.
    ///
    /// # Errors
    /// `NotFound` if the session does not exist, and the errors of [`Memory::session`].
    pub fn get_session(&self, key: impl Into<SessionKey>) -> OpenSession {
        OpenSession::new(self, key.into(), true)
    }

    pub(crate) async fn open_or_create(&self, key: SessionKey) -> Result<Session> {
        let estimator = self.inner.estimator.id();
        self.open_conversation(key, Origin::Root, estimator).await
    }

    /// Opens a conversation, and creates it if it does not exist.
    pub(crate) async fn open_conversation(
        &self,
        key: SessionKey,
        origin: Origin,
        estimator: EstimatorId,
    ) -> Result<Session> {
        self.bound(self.create(key, origin, estimator).await?).await
    }

    /// Returns the session of a conversation, with its stored strategy.
    async fn bound(&self, conversation: Conversation) -> Result<Session> {
        let chosen = strategy::chosen(&*self.inner.store, conversation.id).await?;
        let session = Session::bind(self, conversation)?;
        Ok(match chosen {
            Some(strategy) => session.with_chosen(strategy),
            None => session,
        })
    }

    /// Opens the session with this key; returns `None` if it does not exist.
    ///
    /// # Errors
    /// The errors of [`Memory::session`].
    pub async fn find_session(&self, key: impl Into<SessionKey>) -> Result<Option<Session>> {
        let key = ConversationRef::Key(key.into());
        let conversation = self.inner.store.conversation(&key).await?;
        match conversation {
            Some(conversation) => self.bound(conversation).await.map(Some),
            None => Ok(None),
        }
    }

    pub(crate) async fn existing(&self, key: SessionKey) -> Result<Session> {
        self.find_session(key.clone()).await?.ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                format!("the session {key} does not exist: list the existing ones with `sessions`"),
            )
        })
    }

    /// Returns whether a session's view (its compacted log) costs more than a number of tokens and a compaction would
    /// change it. Returns false if the session does not exist. If the view costs less, the call takes a few look-ups,
    /// regardless of the length of the log. Otherwise it plans a compaction, as [`Session::compact`] does.
    ///
    /// Instead of a number, `trigger` may be a [`Trigger`]. [`Trigger::StoredLines`] reads all messages that the view
    /// shows unchanged. A trigger that depends on a window never fires, because the call has no window.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn needs_compaction(
        &self,
        key: impl Into<SessionKey>,
        trigger: impl Into<Trigger>,
    ) -> Result<bool> {
        match self.find_session(key).await? {
            Some(session) => session.needs_compaction(&trigger.into()).await,
            None => Ok(false),
        }
    }

    /// Returns the metadata of the sessions that match the filter, in the order in which the sessions were created.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn sessions(&self, filter: &ConversationFilter) -> Result<Vec<SessionInfo>> {
        let mut sessions = Vec::new();
        for conversation in read_conversations(&*self.inner.store, filter).await? {
            let views = self.inner.store.views(conversation.id).await?;
            sessions.push(SessionInfo {
                conversation,
                views,
            });
        }
        Ok(sessions)
    }

    /// Returns the times of the first and the last message of a conversation, from the entries at both ends of its log
    /// that have one. `None` if none of the 64 entries at an end has a time, or if they are damaged, which
    /// [`verify`](Self::verify) tells.
    ///
    /// # Errors
    /// The errors of [`Store::read`](crate::store::Store::read), except `Corrupt`.
    pub async fn times_of(
        &self,
        conversation: &Conversation,
    ) -> Result<Option<(Timestamp, Timestamp)>> {
        let Some(range) = conversation.range() else {
            return Ok(None);
        };
        let mut found = Vec::new();
        for end in [LogRead::new(range), LogRead::new(range).newest_first()] {
            // The first entry has a time in most logs.
            for max_rows in [1, 64] {
                let read = LogRead {
                    max_rows,
                    ..end.clone()
                };
                let page = match self.inner.store.read(conversation.id, &read).await {
                    Ok(page) => page,
                    Err(error) if error.kind() == memory_store::ErrorKind::Corrupt => {
                        return Ok(None);
                    }
                    Err(error) => return Err(error.into()),
                };
                let mut times = page.items.iter().map(|entry| entry.created_at);
                if let Some(time) = times.find(|time| time.is_known()) {
                    found.push(time);
                    break;
                }
            }
        }
        let (first, last) = (found.iter().min(), found.iter().max());
        Ok(first.copied().zip(last.copied()))
    }

    /// Exports sessions into a new SQLite file at `path`, with plain, uncompressed tables. An empty `sessions` exports
    /// all sessions. If an exported session is a fork, the session from which it was forked is exported too.
    ///
    /// # Errors
    /// `NotFound` if a session does not exist. Other errors if the file already exists or cannot be written, or if the
    /// store fails.
    #[cfg(feature = "sqlite")]
    pub async fn export_sqlite(
        &self,
        sessions: &[SessionKey],
        path: &std::path::Path,
    ) -> Result<store_sqlite::PlainExport> {
        let mut ids = Vec::new();
        for key in sessions {
            ids.push(self.get_session(key.clone()).await?.id());
        }
        if sessions.is_empty() {
            let mut filter = ConversationFilter::default();
            filter.archived = true;
            let all = read_conversations(&*self.inner.store, &filter).await?;
            ids.extend(all.iter().map(|conversation| conversation.id));
        }
        let (view, now) = (self.inner.planners.default.view(), self.inner.clock.now());
        Ok(store_sqlite::write_plain(&*self.inner.store, &ids, &view, path, now).await?)
    }
}
