//! A memory: the settings and resources that all sessions of a store share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use compaction_runner::{CancellationToken, Hooks, InFlight, Liveness, RunnerPolicy};
use context_assembler::{AssemblyPolicy, ContextAccounting};
use memory_model::conventions::AgentConventions;
use memory_model::{Clock, ConversationId, SessionKey, ViewVersion};
use memory_search::{Embedder, Search};
use memory_store::{Conversation, FullStore, NewConversation, Origin};
use model_client::guard::Spent;
use summarize_escalation::{ExtractiveSummarizer, Ladder};
use token_estimate::{EstimatorId, TokenEstimator, estimator};

use crate::activity::Activities;
use crate::error::Result;
use crate::hand_over_options::HandOver;
use crate::identity::Identity;
use crate::known_states::KnownStates;
use crate::per_session::PerSession;
use crate::requests::Requests;
use crate::sent::SentContext;
use crate::spawner::{Prefetches, Spawner};
use crate::strategy::Planners;
use crate::turn_policy::LiveTurnPolicy;
use crate::writers::Writers;

/// Cache key of the conversation's state in contexts of a live session: the version of the view, the number of
/// erasures, and the maximum number of tokens.
pub(crate) type StateKey = (ViewVersion, u64, u64);

/// Settings and resources that sessions share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) store: Arc<dyn FullStore>,
    pub(crate) search: Arc<dyn Search>,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    /// Whether ingesting and compacting extend the search index of the store.
    pub(crate) keeps_index: bool,
    /// Sessions with an index that could not be extended at the last attempt.
    pub(crate) not_indexed: Mutex<BTreeSet<ConversationId>>,
    pub(crate) estimator: Arc<dyn TokenEstimator>,
    pub(crate) writers: Writers,
    /// Summarizer of the ladder's extractive tier, which needs no model.
    pub(crate) extractive: ExtractiveSummarizer,
    pub(crate) ladder: Ladder,
    /// Ladder of sessions that are compacted by handoff.
    pub(crate) handoff_ladder: Ladder,
    /// Options of automatic handoffs.
    pub(crate) automatic: HandOver,
    pub(crate) planners: Planners,
    pub(crate) assembly: AssemblyPolicy,
    pub(crate) runner: RunnerPolicy,
    pub(crate) identity: Identity,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) hooks: Arc<dyn Hooks>,
    pub(crate) liveness: Arc<dyn Liveness>,
    pub(crate) in_flight: InFlight,
    pub(crate) turns: LiveTurnPolicy,
    pub(crate) spawner: Option<Spawner>,
    pub(crate) prefetches: Prefetches,
    pub(crate) activities: Activities,
    /// Conventions by which text that a person typed is recognized.
    pub(crate) conventions: Arc<dyn AgentConventions>,
    pub(crate) requests: Requests,
    /// Sessions whose extracts of older versions were already rewritten.
    pub(crate) upgraded: PerSession<()>,
    /// Cached states of sessions, at ends of stretches of their logs.
    pub(crate) kept_states: PerSession<KnownStates>,
    /// Cached states (the user's rules) that contexts of live sessions show.
    pub(crate) states: PerSession<(StateKey, Option<String>)>,
    /// The last prepared context of each session, until the model's reply to it is appended.
    pub(crate) sent: PerSession<SentContext>,
    /// Token that cancels background summarization.
    pub(crate) closing: CancellationToken,
}

/// A memory: all conversations of a store, with the settings for them. Cloning is cheap, and clones share all state.
#[derive(Debug, Clone)]
pub struct Memory {
    pub(crate) inner: Arc<Inner>,
}

impl Inner {
    pub(crate) fn not_indexed(&self) -> MutexGuard<'_, BTreeSet<ConversationId>> {
        let failed = self.not_indexed.lock();
        failed.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    pub(crate) fn new(inner: Inner) -> Self {
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Opens the conversation with this key, and creates it if it does not exist.
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

    /// Returns the token accounting of an estimator; `None` if this build does not have the estimator.
    pub(crate) fn accounting(&self, id: &EstimatorId) -> Option<ContextAccounting> {
        if self.inner.estimator.id() == *id {
            return Some(ContextAccounting::new(Arc::clone(&self.inner.estimator)));
        }
        estimator(id.as_str()).ok().map(ContextAccounting::new)
    }

    /// Returns the total spending of all sessions on summaries in this process; zero if the memory has no guards.
    pub fn spent(&self) -> Spent {
        let guards = self.inner.writers.guards();
        guards.map(|guards| guards.spent()).unwrap_or_default()
    }

    /// Returns the total spending of all sessions on summaries in this process, for each model by its name; empty if the
    /// memory has no guards.
    pub fn spent_by_model(&self) -> BTreeMap<String, Spent> {
        let guards = self.inner.writers.guards();
        guards
            .map(|guards| guards.spent_by_model())
            .unwrap_or_default()
    }

    /// Returns the human-readable location of the data: a path, a URL without secrets, or `memory`.
    pub fn location(&self) -> String {
        self.inner.store.location()
    }

    /// Returns the store that holds the conversations.
    pub fn store(&self) -> &Arc<dyn FullStore> {
        &self.inner.store
    }

    /// Closes the memory: cancels background summarization, waits until the running tasks have ended and released
    /// their leases, finishes pending writes and closes the store. Background tasks that have not started yet end
    /// without using the store.
    ///
    /// # Errors
    /// `Store` if the store fails, or if a search index that could not be extended cannot be extended now either. In the
    /// second case all messages are stored.
    pub async fn close(&self) -> Result<()> {
        self.inner.closing.cancel();
        self.inner.prefetches.close().await;
        let extended = self.extend_failed_indexes().await;
        self.inner.store.close().await?;
        Ok(extended?)
    }
}
