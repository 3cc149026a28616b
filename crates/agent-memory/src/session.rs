//! A session: the handle on one conversation, its metadata and its log.

use std::sync::Arc;

use compaction_plan::Planner;
use context_assembler::{ContextAccounting, Preamble};
use memory_model::{
    Accounting, ConversationId, LogEntry, Seq, SeqRange, SessionKey, Span, Summary, SummaryId,
    Timestamp, ToolDefinition, ViewName,
};
use memory_store::{
    Conversation, ConversationPatch, ConversationRef, Erase, Erased, Erasures, LogRead, Origin,
    Snapshot, Store, ViewInfo, read_entries,
};
use retrieval_tools::{Retrieval, RetrievalLimits};

use crate::error::{Error, ErrorKind, Result};
use crate::memory::Memory;
use crate::settings::Settings;
use crate::strategy::{self, Strategy};
use crate::system_prompt::SystemPrompt;
use crate::turn_policy::Window;
use crate::verify::VerifyReport;
use crate::writers::Writer;

/// A handle on one conversation. Cheap to clone; clones share everything.
///
/// Ingesting, assembling and searching never wait for a compaction: no lock is held while a model
/// is called.
#[derive(Debug, Clone)]
pub struct Session {
    memory: Memory,
    id: ConversationId,
    key: SessionKey,
    accounting: Arc<ContextAccounting>,
    writer: Writer,
    planner: Arc<dyn Planner>,
    /// The strategy that the session stored.
    chosen: Option<Strategy>,
    system: Option<Arc<SystemPrompt>>,
    window: Option<Window>,
}

/// System prompt, tools and identity at the beginning of every request of a session.
#[derive(Debug)]
pub(crate) struct Beginning {
    system: Option<Arc<SystemPrompt>>,
    identity: Option<Arc<str>>,
}

impl Beginning {
    pub(crate) fn preamble(&self) -> Preamble<'_> {
        let system = self.system.as_deref();
        Preamble {
            system: system.and_then(SystemPrompt::text),
            identity: self.identity.as_deref(),
            tools_tokens: system.map_or(0, SystemPrompt::tools_tokens),
        }
    }
}

/// Metadata of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// The conversation.
    pub conversation: Conversation,
    /// Views that were published at least once.
    pub views: Vec<ViewInfo>,
}

impl Session {
    /// Returns the session of a conversation.
    ///
    /// # Errors
    /// `UnknownEstimator` when this build does not have the estimator of the conversation.
    pub(crate) fn bind(memory: &Memory, conversation: Conversation) -> Result<Self> {
        let Some(accounting) = memory.accounting(&conversation.estimator) else {
            return Err(Error::new(
                ErrorKind::UnknownEstimator,
                format!(
                    "the session {} was counted by the estimator {}, which this build does not have: open it \
                     with the version that wrote it, or give the estimator to the builder",
                    conversation.key, conversation.estimator
                ),
            ));
        };
        Ok(Self {
            writer: memory.inner.writers.writer(conversation.id),
            planner: Arc::clone(&memory.inner.planners.default),
            memory: memory.clone(),
            id: conversation.id,
            key: conversation.key,
            accounting: Arc::new(accounting),
            chosen: None,
            system: None,
            window: None,
        })
    }

    /// Returns this handle with these settings.
    pub(crate) fn with(mut self, settings: Settings) -> Self {
        if let Some(strategy) = settings.strategy {
            self = self.with_strategy(strategy);
        }
        if let Some(planner) = settings.planner {
            self.planner = planner;
        }
        if !settings.system.is_empty() || !settings.tools.is_empty() {
            let system = SystemPrompt::new(settings.system, settings.tools, &self.accounting);
            self.system = Some(Arc::new(system));
        }
        self.window = settings.window.or(self.window);
        self
    }

    pub(crate) fn with_planner(mut self, planner: Arc<dyn Planner>) -> Self {
        self.planner = planner;
        self
    }

    /// Returns this handle with another strategy.
    pub(crate) fn with_strategy(self, strategy: Strategy) -> Self {
        let planner = self.memory.inner.planners.planner(strategy);
        self.with_planner(planner)
    }

    /// Stores the session's strategy, and returns a handle that has it. Opening the session again gives the same
    /// strategy, regardless of the memory's default. The log and the views are unchanged.
    ///
    /// # Errors
    /// `Store` when the store fails, or when another process changes the strategy at the same time.
    pub async fn use_strategy(&self, strategy: Strategy) -> Result<Self> {
        strategy::choose(&*self.memory.inner.store, self.id, strategy).await?;
        Ok(self.clone().with_chosen(strategy))
    }

    /// Returns the strategy of this handle; `None` with a planner of the application.
    pub fn strategy(&self) -> Option<Strategy> {
        let planners = &self.memory.inner.planners;
        let has = |strategy: &Strategy| Arc::ptr_eq(&self.planner, &planners.planner(*strategy));
        Strategy::ALL.into_iter().find(has)
    }

    /// Returns this handle with the strategy that the session stored.
    pub(crate) fn with_chosen(mut self, strategy: Strategy) -> Self {
        self.chosen = Some(strategy);
        self.with_strategy(strategy)
    }

    /// Returns the context window that the session was opened with.
    ///
    /// # Errors
    /// `Invalid` when it was opened without one.
    pub(crate) fn window(&self) -> Result<&Window> {
        self.window.as_ref().ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                format!(
                    "the session {} has no context window: open it with `memory.session(key).window(window)`",
                    self.key
                ),
            )
        })
    }

    pub(crate) fn has_window(&self) -> bool {
        self.window.is_some()
    }

    /// Returns the tools that the requests of this handle define.
    pub fn tools(&self) -> &[ToolDefinition] {
        self.system.as_deref().map_or(&[], SystemPrompt::tools)
    }

    /// Returns the current beginning of every request of this handle.
    pub(crate) fn beginning(&self) -> Beginning {
        Beginning {
            system: self.system.clone(),
            identity: self.memory.inner.identity.render(),
        }
    }

    /// Returns the planner that selects the messages to compact.
    pub(crate) fn planner(&self) -> &Arc<dyn Planner> {
        &self.planner
    }

    /// Returns the session's key.
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// Returns the store's id of the conversation.
    pub fn id(&self) -> ConversationId {
        self.id
    }

    /// Returns the memory that the session belongs to.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Returns the summarizer of this session.
    pub(crate) fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Returns the accounting that counts this session's messages and summaries.
    pub fn accounting(&self) -> &ContextAccounting {
        &self.accounting
    }

    /// Returns the retrieval tools, bound to this session, with limits for its window. They follow the summaries of the
    /// session's view. With the feature `import` they recognize the tools of all agents with importable transcripts.
    pub fn retrieval(&self) -> Retrieval {
        let inner = &self.memory.inner;
        let accounting = Arc::clone(&self.accounting) as Arc<dyn Accounting>;
        let tools = Retrieval::new(
            Arc::clone(&inner.store) as Arc<dyn Store>,
            self.id,
            accounting,
        );
        #[cfg(feature = "import")]
        let tools = tools.with_conventions(Arc::new(message_formats::KnownAgents));
        let tools = match &self.window {
            Some(window) => tools.with_limits(RetrievalLimits::for_window(window.tokens)),
            None => tools,
        };
        tools
            .with_search(Arc::clone(&inner.search))
            .with_session_key(self.key.clone())
            .with_view(self.view_name())
    }

    /// Opens a fork: a session that shares this one's log up to and including `at`, and has a separate log after it.
    /// Its views start as this session's current views, cut at `at`; later changes of either session do not affect the
    /// other.
    ///
    /// Opens the existing fork if it was created before with the same key and position.
    ///
    /// # Errors
    /// `Invalid` when the log ends before `at`, or when the key belongs to another session.
    pub async fn fork(&self, at: Seq, key: impl Into<SessionKey>) -> Result<Session> {
        let origin = Origin::Fork {
            parent: self.id,
            at,
        };
        // The shared messages are counted already.
        let estimator = self.accounting.estimator_id();
        let created = self.memory.create(key.into(), origin.clone(), estimator);
        let conversation = created.await?;
        if conversation.origin != origin {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!(
                    "the session {} exists and is not a fork of {} at {at}: choose another name",
                    conversation.key, self.key
                ),
            ));
        }
        let mut fork = Self::bind(&self.memory, conversation)?;
        if let Some(strategy) = self.chosen {
            fork = fork.use_strategy(strategy).await?;
        }
        Ok(Self {
            planner: self.planner.clone(),
            system: self.system.clone(),
            window: self.window,
            ..fork
        })
    }

    /// Returns the session's metadata.
    ///
    /// # Errors
    /// `NotFound` when the session is not in the store any more; or when the store fails.
    pub async fn info(&self) -> Result<SessionInfo> {
        let store = &self.memory.inner.store;
        let id = ConversationRef::Id(self.id);
        let Some(conversation) = store.conversation(&id).await? else {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("the session {} is not in the store any more", self.key),
            ));
        };
        let views = store.views(self.id).await?;
        Ok(SessionInfo {
            conversation,
            views,
        })
    }

    /// Changes the title, the archive flag or the application's metadata, and returns the changed
    /// conversation.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn update(&self, patch: &ConversationPatch) -> Result<Conversation> {
        let inner = &self.memory.inner;
        Ok(inner
            .store
            .update(self.id, patch, inner.clock.now())
            .await?)
    }

    /// Reads a page of the log, oldest entry first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn entries_in(&self, range: SeqRange) -> Result<memory_store::Page<LogEntry>> {
        Ok(self
            .memory
            .inner
            .store
            .read(self.id, &LogRead::new(range))
            .await?)
    }

    /// Reads the whole log. Read long logs page by page with [`Session::entries_in`].
    ///
    /// # Errors
    /// When the store fails.
    pub async fn entries(&self) -> Result<Vec<LogEntry>> {
        let range = self.info().await?.conversation.range();
        Ok(read_entries(&*self.memory.inner.store, self.id, range).await?)
    }

    /// Returns summaries by id, in the order of `ids`; `None` for ids that the session does not have.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn summaries(&self, ids: &[SummaryId]) -> Result<Vec<Option<Summary>>> {
        Ok(self.memory.inner.store.summaries(self.id, ids).await?)
    }

    /// Returns the summaries that spans of the session show, in the order of the spans.
    pub(crate) async fn summaries_in(&self, spans: &[Span]) -> Result<Vec<Summary>> {
        let ids = spans.iter().filter_map(|span| span.body.summary().cloned());
        let summaries = self.summaries(&ids.collect::<Vec<_>>()).await?;
        Ok(summaries.into_iter().flatten().collect())
    }

    /// Returns the name of the session's view.
    pub(crate) fn view_name(&self) -> ViewName {
        self.planner.view()
    }

    /// Returns the current state of the session's view.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn snapshot(&self) -> Result<Snapshot> {
        Ok(self
            .memory
            .inner
            .store
            .snapshot(self.id, &self.view_name())
            .await?)
    }

    /// Erases the words of a range permanently, records the time and the reason, and returns a report. Without a reason
    /// it only returns a report of the words that would be erased.
    ///
    /// Erases the texts, calls, results, names and metadata of the entries, every summary that was made from them, and
    /// drafts. Positions, times, token figures and hashes stay, so that [`Session::verify`] still holds. Entries that
    /// forks share are erased in all of them, and the report names the forks. Views show messages again in place of an
    /// erased summary, and the next compaction summarizes the rest. An erased message shows `[erased]`, or no text if
    /// it cost less than 8 tokens, because no message may cost more than before. `reason` is kept permanently: it
    /// should not repeat the erased words.
    ///
    /// # Errors
    /// When the range ends beyond the head or the reason is blank. A store error of the kind `NotGone` when another
    /// program reads the database: the words are erased, and the same call wipes their bytes once that program has
    /// ended.
    pub async fn erase<'a>(
        &self,
        range: SeqRange,
        reason: impl Into<Option<&'a str>>,
    ) -> Result<Erased> {
        self.erase_words(
            |reason, now| Erase::range(range, reason, now),
            reason.into(),
        )
        .await
    }

    /// Erases all entries of this session itself, its title, metadata and small values, and archives it. Entries that a
    /// fork shares with its parent stay; entries that its own forks share are erased in them too. Without a reason it
    /// only returns a report of the words that would be erased.
    ///
    /// The key stays taken: [`Memory::session`](crate::Memory::session) opens the archived session, with all of its
    /// erased messages. For a user who returns, open a session with another key, such as `telegram:42#2`.
    /// [`Session::info`] returns whether a session is archived.
    ///
    /// # Errors
    /// As [`Session::erase`].
    pub async fn delete<'a>(&self, reason: impl Into<Option<&'a str>>) -> Result<Erased> {
        self.erase_words(|reason, now| Erase::all(reason, now), reason.into())
            .await
    }

    /// Returns the erasures of all entries that this session sees.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn erasures(&self) -> Result<Erasures> {
        Ok(self.memory.inner.store.erasures(self.id).await?)
    }

    async fn erase_words(
        &self,
        erase: impl FnOnce(&str, Timestamp) -> Erase,
        reason: Option<&str>,
    ) -> Result<Erased> {
        let erase = erase(reason.unwrap_or("dry run"), self.memory.inner.clock.now());
        let erase = erase.with_dry_run(reason.is_none());
        let which = ConversationRef::Id(self.id);
        Ok(memory_store::erase(&*self.memory.inner.store, &which, &erase).await?)
    }

    /// Verifies this session. [`Memory::verify`] also checks the database itself.
    ///
    /// # Errors
    /// When the store cannot be read at all. Damaged content is a violation, not an error.
    pub async fn verify(&self) -> Result<VerifyReport> {
        let info = self.info().await?;
        self.memory.verify_one(&info.conversation).await
    }
}
