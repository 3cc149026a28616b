//! A memory: all conversations of a store.

use std::collections::BTreeMap;
use std::sync::Arc;

use compaction_plan::Planner;
use compaction_runner::{Cancel, Hooks, InFlight, Liveness, RunnerPolicy};
use context_assembler::{AssemblyPolicy, ContextAccounting};
use memory_model::{Accounting, Clock, ConversationId, SessionKey};
use memory_search::Search;
use memory_store::{
    Conversation, ConversationFilter, ConversationRef, FullStore, NewConversation, Origin, Report,
    Verifier, Violation, ViolationKind, verify,
};
use model_client::guard::Spent;
use summarize_escalation::{ExtractiveSummarizer, Ladder};

use token_estimate::{EstimatorId, TokenEstimator, estimator};

use crate::builder::Builder;
use crate::error::{Error, ErrorKind, Result};
use crate::session::{Session, SessionInfo};
use crate::spawner::{Prefetches, Spawner};
use crate::turn_policy::TurnPolicy;
use crate::writers::Writers;

/// Settings and resources that sessions share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) store: Arc<dyn FullStore>,
    pub(crate) search: Arc<dyn Search>,
    pub(crate) estimator: Arc<dyn TokenEstimator>,
    pub(crate) writers: Writers,
    /// Writes the summaries of the ladder's extractive tier.
    pub(crate) extractive: ExtractiveSummarizer,
    pub(crate) ladder: Ladder,
    pub(crate) planner: Arc<dyn Planner>,
    pub(crate) assembly: AssemblyPolicy,
    pub(crate) runner: RunnerPolicy,
    pub(crate) identity: Option<String>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) hooks: Arc<dyn Hooks>,
    pub(crate) owner: String,
    pub(crate) liveness: Arc<dyn Liveness>,
    pub(crate) in_flight: InFlight,
    pub(crate) turns: TurnPolicy,
    pub(crate) spawner: Option<Arc<dyn Spawner>>,
    pub(crate) prefetches: Prefetches,
    /// Cancels background summarization.
    pub(crate) closing: Cancel,
}

/// Number of conversations that one read asks for.
const PAGE: usize = 256;

/// All conversations of a store. Cheap to clone; clones share everything.
#[derive(Debug, Clone)]
pub struct Memory {
    pub(crate) inner: Arc<Inner>,
}

/// Report of a verification: what was checked, and what is wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Conversations checked.
    pub conversations: u64,
    /// Log entries read.
    pub messages: u64,
    /// Summaries checked.
    pub summaries: u64,
    /// Views replayed.
    pub views: u64,
    /// Violations; empty if everything is valid.
    pub violations: Vec<Violation>,
}

impl VerifyReport {
    /// Whether there are no violations.
    pub fn is_ok(&self) -> bool {
        self.violations.is_empty()
    }

    /// Records that something is too damaged to be checked further.
    fn add_unreadable(&mut self, what: &str, error: &dyn std::error::Error) {
        let message = format!("{what} cannot be read: {error}");
        self.violations
            .push(Violation::new(ViolationKind::Database, message));
    }

    fn add(&mut self, report: Report) {
        self.conversations += 1;
        self.messages += report.messages;
        self.summaries += report.summaries;
        self.views += report.views;
        self.violations.extend(report.violations);
    }
}

impl Memory {
    /// Returns a builder with default settings.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn new(inner: Inner) -> Self {
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Opens the session with this key, and creates it if it does not exist.
    ///
    /// # Errors
    /// `UnknownEstimator` when the session was counted by an estimator that this build does not have;
    /// or when the store fails.
    pub async fn session(&self, key: impl Into<SessionKey>) -> Result<Session> {
        let estimator = self.inner.estimator.id();
        self.open(key.into(), Origin::Root, estimator).await
    }

    pub(crate) async fn open(
        &self,
        key: SessionKey,
        origin: Origin,
        estimator: EstimatorId,
    ) -> Result<Session> {
        self.bind(self.create(key, origin, estimator).await?)
    }

    pub(crate) async fn create(
        &self,
        key: SessionKey,
        origin: Origin,
        estimator: EstimatorId,
    ) -> Result<Conversation> {
        let new = NewConversation {
            key,
            origin,
            estimator,
            title: None,
            meta: None,
            now: self.inner.clock.now(),
        };
        Ok(self.inner.store.open(&new).await?)
    }

    /// Looks up the session with this key; `None` if it does not exist.
    ///
    /// # Errors
    /// As [`Memory::session`].
    pub async fn find_session(&self, key: impl Into<SessionKey>) -> Result<Option<Session>> {
        let key = ConversationRef::Key(key.into());
        let conversation = self.inner.store.conversation(&key).await?;
        conversation
            .map(|conversation| self.bind(conversation))
            .transpose()
    }

    /// Opens the session with this key, which must exist.
    ///
    /// # Errors
    /// `NotFound` when it does not exist; else as [`Memory::session`].
    pub async fn get_session(&self, key: impl Into<SessionKey>) -> Result<Session> {
        let key = key.into();
        self.find_session(key.clone()).await?.ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                format!("the session {key} does not exist: list the existing ones with `sessions`"),
            )
        })
    }

    pub(crate) fn bind(&self, conversation: Conversation) -> Result<Session> {
        let Some(accounting) = self.accounting(&conversation.estimator) else {
            return Err(Error::new(
                ErrorKind::UnknownEstimator,
                format!(
                    "the session {} was counted by the estimator {}, which this build does not have: open it \
                     with the version that wrote it, or give the estimator to the builder",
                    conversation.key, conversation.estimator
                ),
            ));
        };
        Ok(Session::new(self.clone(), conversation, accounting))
    }

    fn accounting(&self, id: &EstimatorId) -> Option<ContextAccounting> {
        if self.inner.estimator.id() == *id {
            return Some(ContextAccounting::new(Arc::clone(&self.inner.estimator)));
        }
        estimator(id.as_str()).ok().map(ContextAccounting::new)
    }

    /// Whether a session's view costs more than `tokens` tokens; false for a session that does not
    /// exist. See [`Session::needs_compaction`].
    ///
    /// # Errors
    /// When the store fails.
    pub async fn needs_compaction(&self, key: impl Into<SessionKey>, tokens: u64) -> Result<bool> {
        match self.find_session(key).await? {
            Some(session) => session.needs_compaction(tokens).await,
            None => Ok(false),
        }
    }

    /// Lists the sessions that match the filter, in the order of their creation.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn sessions(&self, filter: &ConversationFilter) -> Result<Vec<SessionInfo>> {
        let mut sessions = Vec::new();
        let mut after = None;
        loop {
            let page = self.inner.store.list(filter, after, PAGE).await?;
            for conversation in page.items {
                let views = self.inner.store.views(conversation.id).await?;
                sessions.push(SessionInfo {
                    conversation,
                    views,
                });
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(sessions),
            }
        }
    }

    /// Verifies the database and all conversations, archived ones included. Entries and summaries
    /// that forks share are read and counted once.
    ///
    /// # Errors
    /// When the store cannot be read at all. Damage in it is a violation, not an error.
    pub async fn verify(&self) -> Result<VerifyReport> {
        let mut verified = VerifyReport {
            violations: self.inner.store.check().await?,
            ..VerifyReport::default()
        };
        let mut filter = ConversationFilter::default();
        filter.archived = true;
        let mut families: BTreeMap<ConversationId, Vec<(ConversationId, SessionKey)>> =
            BTreeMap::new();
        let mut after = None;
        loop {
            let page = match self.inner.store.list(&filter, after, PAGE).await {
                Err(error) if error.kind() == memory_store::ErrorKind::Corrupt => {
                    verified.add_unreadable("the conversations", &error);
                    break;
                }
                page => page?,
            };
            for conversation in page.items {
                let family = families.entry(conversation.tree).or_default();
                family.push((conversation.id, conversation.key));
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let accountings = self.accountings();
        for family in families.into_values() {
            let mut verifier = Verifier::new(&*self.inner.store, &accountings);
            for (id, key) in family {
                match verifier.verify(id).await {
                    Err(error) if error.kind() == memory_store::ErrorKind::Corrupt => {
                        verified.conversations += 1;
                        verified.add_unreadable(key.as_str(), &error);
                    }
                    report => verified.add(report?),
                }
            }
        }
        Ok(verified)
    }

    /// Returns the accounting for an estimator's id, for verification.
    fn accountings(&self) -> impl Fn(&EstimatorId) -> Option<Arc<dyn Accounting>> + Send + Sync {
        |id: &EstimatorId| {
            self.accounting(id)
                .map(|accounting| Arc::new(accounting) as Arc<dyn Accounting>)
        }
    }

    pub(crate) async fn verify_one(&self, conversation: &Conversation) -> Result<VerifyReport> {
        let accountings = self.accountings();
        let mut verified = VerifyReport::default();
        verified.add(verify(&*self.inner.store, conversation.id, &accountings).await?);
        Ok(verified)
    }

    /// Exports sessions into a new SQLite file at `path`, with plain tables and nothing compressed;
    /// all sessions if `sessions` is empty. Ancestors of forks are exported too.
    ///
    /// # Errors
    /// `NotFound` for a session that does not exist; when the file exists or cannot be written; when
    /// the store fails.
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
        let mut after = None;
        while sessions.is_empty() {
            let mut filter = ConversationFilter::default();
            filter.archived = true;
            let page = self.inner.store.list(&filter, after, PAGE).await?;
            ids.extend(page.items.iter().map(|conversation| conversation.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let (view, now) = (self.inner.planner.view(), self.inner.clock.now());
        Ok(store_sqlite::write_plain(&*self.inner.store, &ids, &view, path, now).await?)
    }

    /// Returns what all sessions spent on summaries in this process; zero without guards.
    pub fn spent(&self) -> Spent {
        let guards = self.inner.writers.guards();
        guards.map(|guards| guards.spent()).unwrap_or_default()
    }

    /// Returns the human-readable location of the data: a path, a URL without secrets, or `memory`.
    pub fn location(&self) -> String {
        self.inner.store.location()
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<dyn FullStore> {
        &self.inner.store
    }

    /// Cancels background summarization, waits until it has ended and released its leases, finishes
    /// pending writes and closes the store. Background tasks that have not started yet end without
    /// touching the store.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn close(&self) -> Result<()> {
        self.inner.closing.cancel();
        self.inner.prefetches.close().await;
        Ok(self.inner.store.close().await?)
    }
}
