//! One conversation, as an agent uses it.

use std::sync::Arc;

use compaction_plan::{Mode, Plan, Planner, Room};
use compaction_runner::{Cancel, Compaction, Outcome, RedoPlan, RedoPolicy, Redone};
use context_assembler::{AssemblyPolicy, Budget, Context, ContextAccounting, assemble};
use memory_model::{
    Accounting, ConversationId, LogEntry, Message, Seq, SeqRange, SessionKey, Span, Summary,
    SummaryId, Timestamp, ViewName,
};
use memory_store::{
    Append, AppendAt, Conversation, ConversationPatch, ConversationRef, EntryOutcome, LogRead,
    NewEntry, Origin, Snapshot, Store, ViewInfo,
};
use model_client::guard::Spent;
use retrieval_tools::Retrieval;

use crate::assembly_input::read_input;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::{Memory, VerifyReport};
use crate::writers::Writer;

/// Number of an import's messages in one transaction.
#[cfg(feature = "import")]
const BATCH: usize = 256;

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
}

/// Metadata of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// The conversation.
    pub conversation: Conversation,
    /// Views that were published at least once.
    pub views: Vec<ViewInfo>,
}

/// Report of ingesting messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "messages whose external id belongs to another message were not stored: see `conflicts`"]
pub struct IngestReport {
    /// Outcome of each message, in order.
    pub outcomes: Vec<EntryOutcome>,
    /// Head of the log afterwards.
    pub head: Seq,
}

impl IngestReport {
    /// Returns the number of messages that were stored.
    pub fn inserted(&self) -> usize {
        self.count(|outcome| matches!(outcome, EntryOutcome::Inserted(_)))
    }

    /// Returns the number of messages that were stored before.
    pub fn duplicates(&self) -> usize {
        self.count(|outcome| matches!(outcome, EntryOutcome::Duplicate(_)))
    }

    /// Returns the number of messages that were refused, because another message has their external
    /// id.
    pub fn conflicts(&self) -> usize {
        self.count(|outcome| matches!(outcome, EntryOutcome::Conflict(_)))
    }

    fn count(&self, is: impl Fn(&EntryOutcome) -> bool) -> usize {
        self.outcomes.iter().filter(|outcome| is(outcome)).count()
    }
}

impl Session {
    pub(crate) fn new(
        memory: Memory,
        conversation: Conversation,
        accounting: ContextAccounting,
    ) -> Self {
        Self {
            writer: memory.inner.writers.writer(conversation.id),
            planner: memory.inner.planner.clone(),
            memory,
            id: conversation.id,
            key: conversation.key,
            accounting: Arc::new(accounting),
        }
    }

    /// Returns this handle with another planner than the memory's.
    ///
    /// A planner compacts the view of its own [`ViewName`], which is empty at first: contexts,
    /// plans and turns of this handle follow it, and the views of other planners stay as they are.
    /// The choice is not stored: pass the planner again when the session is opened again. Forks that
    /// are made from this handle have its planner.
    pub fn with_planner(mut self, planner: Arc<dyn Planner>) -> Self {
        self.planner = planner;
        self
    }

    /// Returns the planner that decides what is compacted.
    pub fn planner(&self) -> &Arc<dyn Planner> {
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

    /// Returns the accounting that counts this session's messages and summaries.
    pub fn accounting(&self) -> &ContextAccounting {
        &self.accounting
    }

    /// Appends a message to the log. A message without a time gets the clock's.
    ///
    /// If a message with the same external id is stored already, an equal message is a duplicate and
    /// is not stored again. Times are compared only if both messages came with one.
    ///
    /// # Errors
    /// `Conflict` when another message is stored under its external id; or when the store fails.
    /// Nothing was stored then.
    pub async fn ingest(&self, message: Message) -> Result<EntryOutcome> {
        let external_id = message.external_id.clone();
        let ingested = self.ingest_batch(vec![message]).await?;
        match ingested.outcomes.first() {
            Some(EntryOutcome::Conflict(position)) => Err(Error::new(
                ErrorKind::Conflict,
                format!(
                    "the session {} has another message with the external id {} at position {position}: give \
                     this message a different id",
                    self.key,
                    external_id.unwrap_or_default()
                ),
            )),
            Some(outcome) => Ok(*outcome),
            None => Err(Error::new(
                ErrorKind::Invalid,
                format!("the session {} stored no message", self.key),
            )),
        }
    }

    /// Appends messages to the log in order, in one transaction. A message whose external id belongs
    /// to another message is not stored: see [`IngestReport::conflicts`].
    ///
    /// # Errors
    /// `Invalid` when a message's parts nest deeper than [`MAX_PART_DEPTH`](crate::MAX_PART_DEPTH);
    /// or when the store fails. Nothing was stored then.
    pub async fn ingest_batch(&self, messages: Vec<Message>) -> Result<IngestReport> {
        refuse_deep_parts(&self.key, &messages)?;
        let now = self.memory.inner.clock.now();
        let entries = messages
            .into_iter()
            .map(|mut message| {
                let clocked = message.created_at == Timestamp::default();
                if clocked {
                    message.created_at = now;
                }
                NewEntry {
                    tokens: self.accounting.message(&message),
                    message,
                    clocked,
                }
            })
            .collect();
        let estimator = self.accounting.estimator_id();
        let append = Append {
            at: AppendAt::Any,
            estimator,
            entries,
            now,
        };
        let appended = self.memory.inner.store.append(self.id, &append).await?;
        Ok(IngestReport {
            outcomes: appended.outcomes,
            head: appended.head,
        })
    }

    /// Appends imported messages unchanged, in transactions of [`BATCH`].
    #[cfg(feature = "import")]
    pub(crate) async fn ingest_import(&self, messages: &[Message]) -> Result<IngestReport> {
        let mut all = IngestReport::default();
        for batch in messages.chunks(BATCH) {
            let entries = batch
                .iter()
                .map(|message| NewEntry {
                    tokens: self.accounting.message(message),
                    message: message.clone(),
                    clocked: false,
                })
                .collect();
            let append = Append {
                at: AppendAt::Any,
                estimator: self.accounting.estimator_id(),
                entries,
                now: self.memory.inner.clock.now(),
            };
            let appended = self.memory.inner.store.append(self.id, &append).await?;
            all.outcomes.extend(appended.outcomes);
            all.head = appended.head;
        }
        Ok(all)
    }

    /// Assembles a context of at most `budget` tokens, by the memory's assembly policy. The estimate
    /// stays below the budget divided by [`Session::safety_factor`], unless the budget has a factor
    /// of its own.
    ///
    /// # Errors
    /// `BudgetTooSmall` when the newest messages do not fit even shortened; or when the store fails.
    pub async fn assemble(&self, budget: Budget) -> Result<Context> {
        self.assemble_with(budget, &self.memory.inner.assembly.clone())
            .await
    }

    /// Assembles a context as [`Session::assemble`], by this policy.
    ///
    /// # Errors
    /// As [`Session::assemble`].
    pub async fn assemble_with(&self, budget: Budget, policy: &AssemblyPolicy) -> Result<Context> {
        let snapshot = self.snapshot().await?;
        self.assemble_snapshot(&snapshot, budget, policy).await
    }

    pub(crate) async fn assemble_snapshot(
        &self,
        snapshot: &Snapshot,
        budget: Budget,
        policy: &AssemblyPolicy,
    ) -> Result<Context> {
        let budget = self.scaled(budget).await?;
        let store = &*self.memory.inner.store;
        let identity = self.memory.inner.identity.as_deref();
        let tokens_before = policy.read_from(snapshot.tokens(), self.fixed_tokens(), budget);
        let input = read_input(store, snapshot, tokens_before, policy.whole_tail).await?;
        Ok(assemble(
            &input,
            identity,
            budget,
            policy,
            &*self.accounting,
        )?)
    }

    /// Cost of every request besides the view, in tokens: the identity and the request's overhead.
    pub(crate) fn fixed_tokens(&self) -> u64 {
        let identity = self.memory.inner.identity.as_deref();
        let identity = identity.map_or(0, |text| {
            let part = memory_model::Part::text(text);
            self.accounting
                .parts(memory_model::Role::System, std::slice::from_ref(&part))
        });
        identity.saturating_add(self.accounting.estimator().request_overhead())
    }

    /// Compacts the session's view, and returns what was published and why it stopped.
    ///
    /// # Errors
    /// When the store fails. A failing summarizer is a stop reason, not an error.
    pub async fn compact(&self, mode: Mode) -> Result<Outcome> {
        Ok(self.compaction(Cancel::new()).run(mode).await?)
    }

    /// Compacts until done or cancelled. `instructions` go to the summarizer and are part of the
    /// summaries' recipe.
    ///
    /// # Errors
    /// As [`Session::compact`].
    pub async fn compact_with(
        &self,
        mode: Mode,
        instructions: Option<&str>,
        cancel: Cancel,
    ) -> Result<Outcome> {
        let mut compaction = self.compaction(cancel);
        if let Some(instructions) = instructions {
            compaction = compaction.with_instructions(instructions);
        }
        Ok(compaction.run(mode).await?)
    }

    /// Plans the next step of a compaction. Calls no model and writes nothing.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn plan(&self) -> Result<Plan> {
        Ok(self.compaction(Cancel::new()).plan().await?)
    }

    pub(crate) fn compaction(&self, cancel: Cancel) -> Compaction<'_> {
        let inner = &self.memory.inner;
        Compaction::new(
            &*inner.store,
            self.id,
            &*self.planner,
            &*self.writer.summarizer,
            &inner.ladder,
            &*self.accounting,
            &*inner.clock,
        )
        .with_extractive(&inner.extractive)
        .with_policy(inner.runner.clone())
        .with_hooks(&*inner.hooks)
        .with_owner(inner.owner.clone())
        .with_in_flight(inner.in_flight.clone())
        .with_liveness(&*inner.liveness)
        .with_cancel(cancel)
    }

    /// Returns a compaction for contexts that have room for `tokens` tokens of the view.
    pub(crate) fn compaction_within(&self, cancel: Cancel, tokens: u64) -> Compaction<'_> {
        self.compaction(cancel).with_room(Some(self.room(tokens)))
    }

    /// Returns the room of contexts that hold at most `tokens` tokens of the view.
    pub(crate) fn room(&self, tokens: u64) -> Room {
        Room {
            tokens,
            whole_tail: self.memory.inner.assembly.whole_tail.is_some(),
        }
    }

    /// Whether summaries are written without a model, and so for free.
    pub(crate) fn needs_no_model(&self) -> bool {
        self.writer.summarizer.provisional()
    }

    /// Rewrites the provisional summaries of the session's view, and the summaries above them, with
    /// the memory's summarizer. The old summaries stay in earlier versions of the view.
    ///
    /// # Errors
    /// `Invalid` when the memory's summarizer needs no model; or when the store fails. A failing
    /// summarizer is a stop reason, not an error.
    pub async fn redo(&self, policy: &RedoPolicy) -> Result<Redone> {
        self.redo_with(policy, None, Cancel::new()).await
    }

    /// Rewrites provisional summaries until done or cancelled. Instructions are part of the recipe:
    /// give those of the compaction.
    ///
    /// # Errors
    /// As [`Session::redo`].
    pub async fn redo_with(
        &self,
        policy: &RedoPolicy,
        instructions: Option<&str>,
        cancel: Cancel,
    ) -> Result<Redone> {
        if self.needs_no_model() {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!(
                    "the summaries of the session {} cannot be rewritten without a model: give the builder \
                     a summarizer that calls one",
                    self.key
                ),
            ));
        }
        // The cache must not answer with a summary that was refused before.
        if let Some(guards) = self.memory.inner.writers.guards() {
            guards.clear_cache();
        }
        let mut compaction = self.compaction(cancel);
        if let Some(instructions) = instructions {
            compaction = compaction.with_instructions(instructions);
        }
        Ok(compaction.redo(policy).await?)
    }

    /// Plans what [`Session::redo`] would rewrite. Calls no model and writes nothing.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn plan_redo(&self) -> Result<RedoPlan> {
        Ok(self.compaction(Cancel::new()).plan_redo().await?)
    }

    /// Returns what the session spent on summaries in this process; zero without guards.
    pub fn spent(&self) -> Spent {
        let guard = self.writer.guards.first();
        guard.map(|guard| guard.spent()).unwrap_or_default()
    }

    /// Closes the session's circuit breakers, so that the next summary calls a model again.
    pub fn reset_breaker(&self) {
        for guard in self.writer.guards.iter() {
            guard.reset();
        }
    }

    /// Whether the session's view costs more than `tokens` tokens, by [`Session::context_tokens`].
    /// Takes two look-ups, however long the log is.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn needs_compaction(&self, tokens: u64) -> Result<bool> {
        Ok(self.context_tokens().await?.tokens() > tokens)
    }

    /// Returns the retrieval tools, bound to this session.
    pub fn retrieval(&self) -> Retrieval {
        let inner = &self.memory.inner;
        let accounting = Arc::clone(&self.accounting) as Arc<dyn Accounting>;
        Retrieval::new(
            Arc::clone(&inner.store) as Arc<dyn Store>,
            self.id,
            accounting,
        )
        .with_search(Arc::clone(&inner.search))
        .with_session_key(self.key.clone())
    }

    /// Opens a fork: a session that shares this one's log up to and including `at`, and continues on
    /// its own. Its views start as this session's current views, cut at `at`; later changes of either
    /// session do not affect the other.
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
        let fork = self.memory.bind(conversation)?;
        Ok(fork.with_planner(self.planner.clone()))
    }

    /// Returns the session's metadata.
    ///
    /// # Errors
    /// `NotFound` when the session is gone from the store; or when the store fails.
    pub async fn info(&self) -> Result<SessionInfo> {
        let store = &self.memory.inner.store;
        let id = ConversationRef::Id(self.id);
        let Some(conversation) = store.conversation(&id).await? else {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("the session {} is gone from the store", self.key),
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
    pub async fn log(&self, range: SeqRange) -> Result<memory_store::Page<LogEntry>> {
        Ok(self
            .memory
            .inner
            .store
            .read(self.id, &LogRead::new(range))
            .await?)
    }

    /// Reads the whole log. Read long logs page by page with [`Session::log`].
    ///
    /// # Errors
    /// When the store fails.
    pub async fn load(&self) -> Result<Vec<LogEntry>> {
        let mut entries = Vec::new();
        let mut rest = self.info().await?.conversation.range();
        while let Some(range) = rest {
            let page = self.log(range).await?;
            entries.extend(page.items);
            rest = page.next;
        }
        Ok(entries)
    }

    /// Returns the spans of the session's view, raw ones with the cost of their messages.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn spans(&self) -> Result<Vec<Span>> {
        self.current_view().await?.spans().await
    }

    /// Returns summaries by id, in the order of `ids`; `None` for ids that the session does not have.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn summaries(&self, ids: &[SummaryId]) -> Result<Vec<Option<Summary>>> {
        Ok(self.memory.inner.store.summaries(self.id, ids).await?)
    }

    /// Returns the name of the session's view.
    pub fn view(&self) -> ViewName {
        self.planner.view()
    }

    /// Returns the current state of the session's view.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn snapshot(&self) -> Result<Snapshot> {
        Ok(self
            .memory
            .inner
            .store
            .snapshot(self.id, &self.view())
            .await?)
    }

    /// Verifies this session. [`Memory::verify`] also checks the database itself.
    ///
    /// # Errors
    /// When the store cannot be read at all. Damage in it is a violation, not an error.
    pub async fn verify(&self) -> Result<VerifyReport> {
        let info = self.info().await?;
        self.memory.verify_one(&info.conversation).await
    }
}

/// Refuses messages whose parts nest too deeply to be read back unchanged.
fn refuse_deep_parts(key: &SessionKey, messages: &[Message]) -> Result<()> {
    match messages.iter().position(Message::nests_too_deeply) {
        None => Ok(()),
        Some(index) => Err(Error::new(
            ErrorKind::Invalid,
            format!(
                "message {} of {} for the session {key} nests its parts deeper than {} levels: write \
                 the inner tool results as text",
                index + 1,
                messages.len(),
                memory_model::MAX_PART_DEPTH
            ),
        )),
    }
}
