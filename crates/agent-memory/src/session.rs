//! One conversation, as an agent uses it.

use std::sync::Arc;

use compaction_plan::{Mode, Plan, Room};
use compaction_runner::{Cancel, Compaction, Outcome, RedoPlan, RedoPolicy, Redone};
use context_assembler::{AssemblyPolicy, Budget, Context, ContextAccounting, assemble};
use memory_model::{
    Accounting, ConversationId, LogEntry, Message, Seq, SeqRange, SessionKey, Span, Summary,
    SummaryId, Timestamp, ViewName,
};
use memory_store::{
    Append, AppendAt, Conversation, ConversationPatch, ConversationRef, EntryOutcome, LogRead,
    NewEntry, Origin, Report, Snapshot, Store, ViewInfo,
};
use model_client::guard::Spent;
use retrieval_tools::Retrieval;

use crate::error::{Error, ErrorKind, Result};
use crate::material::material;
use crate::memory::Memory;
use crate::writers::Writer;

/// How many messages of an import one transaction takes.
#[cfg(feature = "import")]
const BATCH: usize = 256;

/// One conversation. Cheap to clone; clones share everything.
///
/// Ingesting, assembling and searching never wait for a compaction: nothing is locked while a
/// model is called.
#[derive(Debug, Clone)]
pub struct Session {
    memory: Memory,
    id: ConversationId,
    key: SessionKey,
    accounting: Arc<ContextAccounting>,
    writer: Writer,
}

/// What is known of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// The conversation.
    pub conversation: Conversation,
    /// Its views that were published at least once.
    pub views: Vec<ViewInfo>,
}

/// What became of ingested messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "messages whose external id belongs to another message were not stored: see `conflicts`"]
pub struct Ingested {
    /// For each message in order.
    pub outcomes: Vec<EntryOutcome>,
    /// The log's head afterwards.
    pub head: Seq,
}

impl Ingested {
    /// How many messages were stored.
    pub fn inserted(&self) -> usize {
        self.count(|outcome| matches!(outcome, EntryOutcome::Inserted(_)))
    }

    /// How many were there already.
    pub fn duplicates(&self) -> usize {
        self.count(|outcome| matches!(outcome, EntryOutcome::Duplicate(_)))
    }

    /// How many were refused because another message has their external id.
    pub fn conflicts(&self) -> usize {
        self.count(|outcome| matches!(outcome, EntryOutcome::Conflict(_)))
    }

    fn count(&self, is: impl Fn(&EntryOutcome) -> bool) -> usize {
        self.outcomes.iter().filter(|outcome| is(outcome)).count()
    }
}

impl Session {
    pub(crate) fn new(memory: Memory, found: Conversation, accounting: ContextAccounting) -> Self {
        Self {
            writer: memory.inner.writers.writer(found.id),
            memory,
            id: found.id,
            key: found.key,
            accounting: Arc::new(accounting),
        }
    }

    /// The session's key.
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// The store's number for the conversation.
    pub fn id(&self) -> ConversationId {
        self.id
    }

    /// The memory that the session belongs to.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// What messages and summaries of this session cost.
    pub fn accounting(&self) -> &ContextAccounting {
        &self.accounting
    }

    /// Stores a message (anna's `Ingest`). A message without a time gets the clock's.
    ///
    /// A message with an external id that is stored already is a duplicate if it is the same message. A time
    /// that one of the two came without is not compared.
    ///
    /// # Errors
    /// `Conflict` when another message is stored under its external id; when the store fails. Nothing was stored
    /// then.
    pub async fn ingest(&self, message: Message) -> Result<EntryOutcome> {
        let external_id = message.external_id.clone();
        let ingested = self.ingest_batch(vec![message]).await?;
        match ingested.outcomes.first() {
            Some(EntryOutcome::Conflict(at)) => Err(Error::new(
                ErrorKind::Conflict,
                format!(
                    "session {} holds another message with the external id {} at position {at}: give this one an \
                     id of its own",
                    self.key,
                    external_id.unwrap_or_default()
                ),
            )),
            Some(outcome) => Ok(*outcome),
            None => Err(Error::new(
                ErrorKind::Invalid,
                format!("session {} stored no message", self.key),
            )),
        }
    }

    /// Stores messages in order, all in one transaction (anna's `IngestBatch`). Those whose external id belongs to
    /// another message are not stored: see [`Ingested::conflicts`].
    ///
    /// # Errors
    /// `Invalid` when a message's parts nest deeper than [`memory_model::MAX_PART_DEPTH`]; when the
    /// store fails. Then nothing was stored.
    pub async fn ingest_batch(&self, messages: Vec<Message>) -> Result<Ingested> {
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
        Ok(Ingested {
            outcomes: appended.outcomes,
            head: appended.head,
        })
    }

    /// Stores messages as they are, in transactions of a few hundred: what an import does.
    #[cfg(feature = "import")]
    pub(crate) async fn ingest_all(&self, messages: &[Message]) -> Result<Ingested> {
        let mut all = Ingested::default();
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

    /// Assembles a context of at most `budget` tokens (anna's `Assemble`). Estimates are held
    /// against the budget divided by [`Session::safety_factor`], unless the budget has a factor.
    ///
    /// # Errors
    /// `BudgetTooSmall`; or when the store fails.
    pub async fn assemble(&self, budget: Budget) -> Result<Context> {
        self.assemble_with(budget, &self.memory.inner.assembly.clone())
            .await
    }

    /// Assembles a context by another policy than the memory's.
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
        let front = policy.read_from(snapshot.tokens(), self.fixed_tokens(), budget);
        let material = material(store, snapshot, front, policy.whole_tail).await?;
        Ok(assemble(
            &material,
            identity,
            budget,
            policy,
            &*self.accounting,
        )?)
    }

    /// Cost of what is in every request beside the view, in tokens: the identity, and what a request
    /// costs beside its messages.
    pub(crate) fn fixed_tokens(&self) -> u64 {
        let identity = self.memory.inner.identity.as_deref();
        let identity = identity.map_or(0, |text| {
            let part = memory_model::Part::text(text);
            self.accounting
                .parts(memory_model::Role::System, std::slice::from_ref(&part))
        });
        identity.saturating_add(self.accounting.estimator().request_overhead())
    }

    /// Compacts the session's view (anna's `Compact`).
    ///
    /// # Errors
    /// When the store fails. A failing summarizer is a stop reason, not an error.
    pub async fn compact(&self, mode: Mode) -> Result<Outcome> {
        Ok(self.compaction(Cancel::new()).run(mode).await?)
    }

    /// Compacts until done or until `cancel` is flipped.
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

    /// What a compaction would do next; calls no model and writes nothing.
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
            &*inner.planner,
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

    /// A compaction for contexts with this room for the view, in tokens.
    pub(crate) fn compaction_within(&self, cancel: Cancel, tokens: u64) -> Compaction<'_> {
        self.compaction(cancel).with_room(Some(self.room(tokens)))
    }

    /// The room that contexts have for the view when they have room for `tokens` of it.
    pub(crate) fn room(&self, tokens: u64) -> Room {
        Room {
            tokens,
            whole_tail: self.memory.inner.assembly.whole_tail.is_some(),
        }
    }

    /// Whether summaries are written without a model, and so at no cost.
    pub(crate) fn needs_no_model(&self) -> bool {
        self.writer.summarizer.provisional()
    }

    /// Replaces the summaries in the session's view that were written without a model, and those
    /// above them, by what the summarizer writes for the same messages. The old ones stay in the
    /// history.
    ///
    /// # Errors
    /// `Invalid` when the memory's summarizer needs no model; or when the store fails. A failing
    /// summarizer is a stop reason, not an error.
    pub async fn redo(&self, policy: &RedoPolicy) -> Result<Redone> {
        self.redo_with(policy, None, Cancel::new()).await
    }

    /// Redoes until done or until `cancel` is flipped. Instructions are part of a recipe: give
    /// those that the compaction had.
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
                    "the summaries of session {} cannot be redone without a model: build the \
                     memory with a summarizer that has one",
                    self.key
                ),
            ));
        }
        // An answer that was refused before must not be taken for a new one.
        if let Some(guards) = self.memory.inner.writers.guards() {
            guards.clear_cache();
        }
        let mut compaction = self.compaction(cancel);
        if let Some(instructions) = instructions {
            compaction = compaction.with_instructions(instructions);
        }
        Ok(compaction.redo(policy).await?)
    }

    /// What a redo would make anew; calls no model and writes nothing.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn plan_redo(&self) -> Result<RedoPlan> {
        Ok(self.compaction(Cancel::new()).plan_redo().await?)
    }

    /// What the session spent on summaries in this process; nothing without guards.
    pub fn spent(&self) -> Spent {
        let guard = self.writer.guards.first();
        guard.map(|guard| guard.spent()).unwrap_or_default()
    }

    /// Closes the session's circuit breakers: its models are asked again at once.
    pub fn reset_breaker(&self) {
        for guard in self.writer.guards.iter() {
            guard.reset();
        }
    }

    /// Whether the session's view costs more than `tokens` tokens (anna's `NeedsCompaction`): by a
    /// provider's last figure and the estimate of what came after it, or by the estimate of all of
    /// it; see [`Session::context_tokens`]. Two look-ups, however long the history is.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn needs_compaction(&self, tokens: u64) -> Result<bool> {
        Ok(self.context_tokens().await?.tokens() > tokens)
    }

    /// The retrieval tools, bound to this session.
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

    /// A session that shares this one's log up to and including `at`, and goes on from there. Its
    /// views begin as this one's are now, as far as they show what is shared; from then on neither
    /// sees what becomes of the other.
    ///
    /// Asked again with the same key it is the same session.
    ///
    /// # Errors
    /// `Invalid` when the log ends before `at`, or when the key names another session.
    pub async fn fork(&self, at: Seq, key: impl Into<SessionKey>) -> Result<Session> {
        let origin = Origin::Fork {
            parent: self.id,
            at,
        };
        // What is shared is counted already.
        let estimator = self.accounting.estimator_id();
        let found = self.memory.create(key.into(), origin.clone(), estimator);
        let found = found.await?;
        if found.origin != origin {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!(
                    "session {} exists already and is no fork of {} at {at}: choose another name",
                    found.key, self.key
                ),
            ));
        }
        self.memory.bind(found)
    }

    /// What is known of the session (anna's `LoadInfo`).
    ///
    /// # Errors
    /// When the store fails.
    pub async fn info(&self) -> Result<SessionInfo> {
        let store = &self.memory.inner.store;
        let found = store.conversation(&ConversationRef::Id(self.id)).await?;
        let Some(conversation) = found else {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("session {} is gone from the store", self.key),
            ));
        };
        let views = store.views(self.id).await?;
        Ok(SessionInfo {
            conversation,
            views,
        })
    }

    /// Changes the title, the archive flag or the caller's facts (anna's `SaveInfo`).
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

    /// A page of the log, oldest first.
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

    /// The whole log (anna's `Load`). Long ones are better read with [`Session::log`].
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

    /// The spans of the session's view, raw ones with the cost of their messages.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn spans(&self) -> Result<Vec<Span>> {
        self.now().await?.spans().await
    }

    /// Summaries by id, in the order asked; `None` for those that the session does not have.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn summaries(&self, ids: &[SummaryId]) -> Result<Vec<Option<Summary>>> {
        Ok(self.memory.inner.store.summaries(self.id, ids).await?)
    }

    /// The name of the session's view.
    pub fn view(&self) -> ViewName {
        self.memory.inner.planner.view()
    }

    /// The state of the session's view now.
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

    /// Verifies this session. Checks of the database itself are in [`Memory::verify`].
    ///
    /// # Errors
    /// When the store cannot be read at all.
    pub async fn verify(&self) -> Result<Report> {
        let info = self.info().await?;
        self.memory.verify_one(&info.conversation).await
    }
}

/// Refuses messages whose parts a log would not give back the same.
fn refuse_deep_parts(key: &SessionKey, messages: &[Message]) -> Result<()> {
    match messages.iter().position(Message::nests_too_deeply) {
        None => Ok(()),
        Some(at) => Err(Error::new(
            ErrorKind::Invalid,
            format!(
                "message {} of {} for session {key} nests its parts deeper than {} levels: write \
                 the inner tool results as text",
                at + 1,
                messages.len(),
                memory_model::MAX_PART_DEPTH
            ),
        )),
    }
}
