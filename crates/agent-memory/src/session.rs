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
use retrieval_tools::Retrieval;

use crate::defaults::default_conventions;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::Memory;
use crate::settings::Settings;
use crate::strategy::{self, Strategy};
use crate::system_prompt::SystemPrompt;
use crate::turn_policy::Window;
use crate::verify::VerifyReport;
use crate::writers::Writer;

/// A handle on one conversation. Cloning is cheap, and clones share all state.
///
/// Appending messages, assembling contexts and searching never wait for a compaction, because no lock is held while a
/// model is called.
#[derive(Debug, Clone)]
pub struct Session {
    memory: Memory,
    id: ConversationId,
    key: SessionKey,
    accounting: Arc<ContextAccounting>,
    writer: Writer,
    planner: Arc<dyn Planner>,
    /// The strategy that is stored for the session; `None` if none is stored.
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

/// Metadata of a session: its conversation in the store, and its views.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Stored metadata of the session's conversation, such as title and archive flag.
    pub conversation: Conversation,
    /// Views of the session that were published at least once.
    pub views: Vec<ViewInfo>,
}

impl Session {
    /// Returns the session for a stored conversation.
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

    /// Stores a strategy (method of compacting) for the session, and returns a handle that uses it. From now on, each
    /// opening of the session uses this strategy, regardless of the memory's default. The log and the views are
    /// unchanged. Of several calls at the same time, also of other processes, the last one counts for later openings.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn use_strategy(&self, strategy: Strategy) -> Result<Self> {
        strategy::choose(&*self.memory.inner.store, self.id, strategy).await?;
        Ok(self.clone().with_chosen(strategy))
    }

    /// Returns the strategy of this handle; `None` if it uses a planner of the application.
    pub fn strategy(&self) -> Option<Strategy> {
        let planners = &self.memory.inner.planners;
        let has = |strategy: &Strategy| Arc::ptr_eq(&self.planner, &planners.planner(*strategy));
        Strategy::ALL.into_iter().find(has)
    }

    /// Returns this handle with the strategy that is stored for the session.
    pub(crate) fn with_chosen(mut self, strategy: Strategy) -> Self {
        self.chosen = Some(strategy);
        self.with_strategy(strategy)
    }

    /// Returns the context window that the session was opened with.
    ///
    /// # Errors
    /// `Invalid` if the session was opened without a window.
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

    /// Returns the definitions of the tools that are part of each request of this handle.
    pub fn tools(&self) -> &[ToolDefinition] {
        self.system.as_deref().map_or(&[], SystemPrompt::tools)
    }

    /// Returns the system prompt, tools and identity that currently begin every request of this handle.
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

    /// Returns the key by which the session is opened.
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// Returns the id that the store gave to the session's conversation.
    pub fn id(&self) -> ConversationId {
        self.id
    }

    /// Returns the memory to which the session belongs.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Returns the summarizer of this session.
    pub(crate) fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Returns the accounting that counts the tokens of this session's messages and summaries.
    pub fn accounting(&self) -> &ContextAccounting {
        &self.accounting
    }

    /// Returns the retrieval tools for this session: the model's tools for searching and expanding messages. They use
    /// the summaries of the session's view. They have no limits for the session's window: see
    /// [`Retrieval::with_limits`]. With the feature `conventions` they recognize the tools of all agents whose transcripts
    /// can be imported.
    pub fn retrieval(&self) -> Retrieval {
        let inner = &self.memory.inner;
        let accounting = Arc::clone(&self.accounting) as Arc<dyn Accounting>;
        let tools = Retrieval::new(
            Arc::clone(&inner.store) as Arc<dyn Store>,
            self.id,
            accounting,
        );
        tools
            .with_conventions(default_conventions())
            .with_search(Arc::clone(&inner.search))
            .with_session_key(self.key.clone())
            .with_view(self.view_name())
    }

    /// Opens a fork: a session that shares the log of this session through position `at`, and has a separate log
    /// after that. The fork's views start as the current views of this session, cut at `at`. Later changes to either
    /// session do not affect the other.
    ///
    /// If a fork with the same key and position exists, it is opened.
    ///
    /// # Errors
    /// `Invalid` if the log ends before `at`, or if the key belongs to another session or is
    /// [reserved](SessionKey::RESERVED).
    pub async fn fork(&self, at: Seq, key: impl Into<SessionKey>) -> Result<Session> {
        let key = key.into();
        if key.is_reserved() {
            let message = format!("the key {key} is the memory's own: choose another name");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let origin = Origin::Fork {
            parent: self.id,
            at,
        };
        // The fork keeps the estimator, because the shared messages are already counted with it.
        let estimator = self.accounting.estimator_id();
        let created = self.memory.create(key, origin.clone(), estimator);
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

    /// Reads the session's metadata.
    ///
    /// # Errors
    /// `NotFound` if the session is no longer in the store, and `Store` if the store fails.
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

    /// Changes the title, the archive flag or the application's metadata of the session. Returns the changed metadata.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn update(&self, patch: &ConversationPatch) -> Result<Conversation> {
        let inner = &self.memory.inner;
        Ok(inner
            .store
            .update(self.id, patch, inner.clock.now())
            .await?)
    }

    /// Reads one page of the entries in a range of the log, oldest first. [`Page::next`](crate::store::Page::next) is
    /// the range of the next page.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn entries_in(&self, range: SeqRange) -> Result<memory_store::Page<LogEntry>> {
        Ok(self
            .memory
            .inner
            .store
            .read(self.id, &LogRead::new(range))
            .await?)
    }

    /// Reads all entries of the log, oldest first. Read a long log page by page with [`Session::entries_in`].
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn entries(&self) -> Result<Vec<LogEntry>> {
        let range = self.info().await?.conversation.range();
        Ok(read_entries(&*self.memory.inner.store, self.id, range).await?)
    }

    /// Returns summaries by id, in the order of `ids`; `None` for ids that the session does not have.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub(crate) async fn summaries(&self, ids: &[SummaryId]) -> Result<Vec<Option<Summary>>> {
        Ok(self.memory.inner.store.summaries(self.id, ids).await?)
    }

    /// Returns the summaries that these spans show, in the order of the spans.
    pub(crate) async fn summaries_in(&self, spans: &[Span]) -> Result<Vec<Summary>> {
        let ids = spans.iter().filter_map(|span| span.body.summary().cloned());
        let summaries = self.summaries(&ids.collect::<Vec<_>>()).await?;
        Ok(summaries.into_iter().flatten().collect())
    }

    /// Returns the name of the view that this handle uses.
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

    /// Erases the words of a range of the log permanently, records the time and the reason, and returns a report. If
    /// `reason` is `None`, nothing is erased, and the report contains what would be erased.
    ///
    /// The texts, tool calls, results, names and metadata of the entries are erased, and so are drafts and every
    /// summary that was made from the entries. Positions, times, token counts and hashes stay, so that
    /// [`Session::verify`] still finds no violation. Entries that forks share are erased in all forks, and the report
    /// names the forks. Views show messages again in place of an erased summary, and the next compaction summarizes the
    /// remaining words. The text of an erased message is `[erased]`, or empty if it cost less than 8 tokens, because no
    /// message may cost more than before. `reason` is stored permanently, so it should not repeat the erased words.
    ///
    /// # Errors
    /// `Invalid` if the range ends after the last entry of the log, or if the reason is blank. `Store` if the store
    /// fails. The store's error kind is `NotGone` if another program is reading the database. The words are then
    /// erased, but their bytes stay in the file until the same call is repeated after that program has ended.
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

    /// Erases all entries of this session, its title, its metadata and its small stored values, and archives it. If
    /// the session is a fork, the entries that it shares with its parent stay. If the session has forks, the entries
    /// that they share with it are erased in the forks too. If `reason` is `None`, nothing is erased, and the report
    /// contains what would be erased.
    ///
    /// The key stays in use: [`Memory::session`](crate::Memory::session) opens the archived session, with all of its
    /// erased messages. For a user who returns, open a session with another key, such as `telegram:42#2`.
    /// [`Session::info`] returns whether a session is archived.
    ///
    /// # Errors
    /// The errors of [`Session::erase`].
    pub async fn delete<'a>(&self, reason: impl Into<Option<&'a str>>) -> Result<Erased> {
        self.erase_words(|reason, now| Erase::all(reason, now), reason.into())
            .await
    }

    /// Returns the erasures of the session's entries, including the entries that it shares with a parent.
    ///
    /// # Errors
    /// `Store` if the store fails.
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
        let inner = &self.memory.inner;
        let erased = memory_store::erase(&*inner.store, &which, &erase).await?;
        for seen in erased.seen_by.iter().filter(|_| !erase.dry_run) {
            inner.kept_states.forget(seen.conversation);
            inner.states.forget(seen.conversation);
        }
        Ok(erased)
    }

    /// Checks that the session's stored data is consistent, and returns the violations. [`Memory::verify`] also checks
    /// the database itself.
    ///
    /// # Errors
    /// `Store` if the store cannot be read at all. Damaged content is not an error: it is a violation in the report.
    pub async fn verify(&self) -> Result<VerifyReport> {
        let info = self.info().await?;
        self.memory.verify_one(&info.conversation).await
    }
}
