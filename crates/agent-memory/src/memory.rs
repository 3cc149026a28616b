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

use crate::background::{Background, Preparing};
use crate::builder::Builder;
use crate::error::{Error, ErrorKind, Result};
use crate::session::{Session, SessionInfo};
use crate::turns::TurnPolicy;
use crate::writers::Writers;

/// Everything that sessions share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) store: Arc<dyn FullStore>,
    pub(crate) search: Arc<dyn Search>,
    pub(crate) estimator: Arc<dyn TokenEstimator>,
    pub(crate) writers: Writers,
    /// Writes what the ladder's tier `extractive` asks for.
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
    pub(crate) background: Option<Arc<dyn Background>>,
    pub(crate) preparing: Preparing,
    /// Stops what goes on beside the turns.
    pub(crate) closing: Cancel,
}

/// All conversations of a store. Cheap to clone; clones share everything.
#[derive(Debug, Clone)]
pub struct Memory {
    pub(crate) inner: Arc<Inner>,
}

/// What a verification of a whole memory looked at and found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// Conversations checked.
    pub conversations: u64,
    /// Log entries read.
    pub messages: u64,
    /// Summaries checked.
    pub summaries: u64,
    /// Views replayed.
    pub views: u64,
    /// What is wrong; empty when everything is right.
    pub violations: Vec<Violation>,
}

impl Verified {
    /// Whether everything is right.
    pub fn is_ok(&self) -> bool {
        self.violations.is_empty()
    }

    /// Notes that something is too damaged to be looked at further.
    fn unreadable(&mut self, what: &str, error: &dyn std::error::Error) {
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
    /// Begins to put a memory together.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn new(inner: Inner) -> Self {
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The session with this key; it is created if it does not exist (anna's `Bootstrap`).
    ///
    /// # Errors
    /// `UnknownEstimator` when it is counted with an estimator that this build does not know.
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

    /// The session with this key, if it exists.
    ///
    /// # Errors
    /// `UnknownEstimator` as [`Memory::session`].
    pub async fn find(&self, key: impl Into<SessionKey>) -> Result<Option<Session>> {
        let key = ConversationRef::Key(key.into());
        let found = self.inner.store.conversation(&key).await?;
        found
            .map(|conversation| self.bind(conversation))
            .transpose()
    }

    /// The session with this key, which must exist.
    ///
    /// # Errors
    /// `NotFound`, naming the key.
    pub async fn existing(&self, key: impl Into<SessionKey>) -> Result<Session> {
        let key = key.into();
        self.find(key.clone()).await?.ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                format!("there is no session {key}: list those there are with `sessions`"),
            )
        })
    }

    pub(crate) fn bind(&self, conversation: Conversation) -> Result<Session> {
        let Some(accounting) = self.accounting(&conversation.estimator) else {
            return Err(Error::new(
                ErrorKind::UnknownEstimator,
                format!(
                    "session {} is counted with {}, which this build does not know: open it with the \
                     version that wrote it, or give the estimator to the builder",
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

    /// Whether a session's context costs more than `tokens` tokens; false for a session that does
    /// not exist (anna's `NeedsCompaction`).
    ///
    /// # Errors
    /// When the store fails.
    pub async fn needs_compaction(&self, key: impl Into<SessionKey>, tokens: u64) -> Result<bool> {
        match self.find(key).await? {
            Some(session) => session.needs_compaction(tokens).await,
            None => Ok(false),
        }
    }

    /// What is known of the sessions, in the order of their creation (anna's `ListInfo`).
    ///
    /// # Errors
    /// When the store fails.
    pub async fn sessions(&self, filter: &ConversationFilter) -> Result<Vec<SessionInfo>> {
        let mut out = Vec::new();
        let mut after = None;
        loop {
            let page = self.inner.store.list(filter, after, 256).await?;
            for conversation in page.items {
                let views = self.inner.store.views(conversation.id).await?;
                out.push(SessionInfo {
                    conversation,
                    views,
                });
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(out),
            }
        }
    }

    /// Verifies the database and every conversation in it, archived ones too. What several conversations of a
    /// family show is read and counted once.
    ///
    /// # Errors
    /// When the store cannot be read at all. What is wrong in it is a violation, not an error.
    pub async fn verify(&self) -> Result<Verified> {
        let mut verified = Verified {
            violations: self.inner.store.check().await?,
            ..Verified::default()
        };
        let mut filter = ConversationFilter::default();
        filter.archived = true;
        let mut families: BTreeMap<ConversationId, Vec<(ConversationId, SessionKey)>> =
            BTreeMap::new();
        let mut after = None;
        loop {
            let page = match self.inner.store.list(&filter, after, 256).await {
                Err(error) if error.kind() == memory_store::ErrorKind::Corrupt => {
                    verified.unreadable("the conversations", &error);
                    break;
                }
                page => page?,
            };
            for found in page.items {
                let family = families.entry(found.tree).or_default();
                family.push((found.id, found.key));
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let rules = self.rules();
        for family in families.into_values() {
            let mut verifier = Verifier::new(&*self.inner.store, &rules);
            for (id, key) in family {
                match verifier.verify(id).await {
                    Err(error) if error.kind() == memory_store::ErrorKind::Corrupt => {
                        verified.conversations += 1;
                        verified.unreadable(key.as_str(), &error);
                    }
                    report => verified.add(report?),
                }
            }
        }
        Ok(verified)
    }

    /// The rules of the estimators that conversations may be recorded with.
    fn rules(&self) -> impl Fn(&EstimatorId) -> Option<Arc<dyn Accounting>> + Send + Sync {
        |id: &EstimatorId| {
            self.accounting(id)
                .map(|rules| Arc::new(rules) as Arc<dyn Accounting>)
        }
    }

    pub(crate) async fn verify_one(&self, conversation: &Conversation) -> Result<Report> {
        let rules = self.rules();
        Ok(verify(&*self.inner.store, conversation.id, &rules).await?)
    }

    /// Writes sessions into a new SQLite file at `path`, with the tables of the older memory engine
    /// and nothing packed; all sessions when `sessions` is empty. Ancestors of forks come along.
    ///
    /// # Errors
    /// `NotFound` for a session; when the file exists or cannot be written; when the store fails.
    #[cfg(feature = "sqlite")]
    pub async fn export_sqlite(
        &self,
        sessions: &[SessionKey],
        path: &std::path::Path,
    ) -> Result<store_sqlite::PlainExport> {
        let mut ids = Vec::new();
        for key in sessions {
            ids.push(self.existing(key.clone()).await?.id());
        }
        let mut after = None;
        while sessions.is_empty() {
            let mut filter = ConversationFilter::default();
            filter.archived = true;
            let page = self.inner.store.list(&filter, after, 256).await?;
            ids.extend(page.items.iter().map(|found| found.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let (view, now) = (self.inner.planner.view(), self.inner.clock.now());
        Ok(store_sqlite::write_plain(&*self.inner.store, &ids, &view, path, now).await?)
    }

    /// What all sessions together spent on summaries in this process; nothing without guards.
    pub fn spent(&self) -> Spent {
        let guards = self.inner.writers.guards();
        guards.map(|guards| guards.spent()).unwrap_or_default()
    }

    /// Where the conversations are kept, for people.
    pub fn location(&self) -> String {
        self.inner.store.location()
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn FullStore> {
        &self.inner.store
    }

    /// Cancels the background summarization, waits until it has ended and given its leases back,
    /// finishes what is being written and gives the store's resources back (anna's `Close`).
    /// Background work that has not begun yet ends without touching the store.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn close(&self) -> Result<()> {
        self.inner.closing.cancel();
        self.inner.preparing.close().await;
        Ok(self.inner.store.close().await?)
    }
}
