//! A store that fails when told to.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use memory_model::{
    ConversationId, Hash, LogEntry, RawJson, Recipe, Seq, SeqRange, Span, Summary, SummaryId,
    Timestamp, ViewName, ViewVersion,
};

use memory_store::{
    Append, Appended, Claim, Conversation, ConversationFilter, ConversationPatch, ConversationRef,
    Erase, Erased, Erasures, Error, ErrorKind, Fence, FullStore, IndexStore, JobKey, LeaseUpdate,
    LogRead, Maintain, NewConversation, Order, Owner, Page, Publication, Publish, Published,
    Result, Snapshot, State, Store, VectorStore, ViewInfo, Violation,
};

/// How a write fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is written.
    Before,
    /// Everything is written, but the caller is told that it failed: a crash between the commit
    /// and the answer.
    After,
}

/// A store whose writes fail from a given one on, to see what its users make of a crash.
///
/// Calls that write are `open`, `update`, `append`, `publish`, `claim`, `settle` and `put_state`,
/// whether or not they change something; a call for several publishes or jobs is one write. From the first failure on every further write fails and
/// writes nothing, as after a crash, until [`FaultyStore::heal`]; or only one fails, with
/// [`FaultyStore::fail_once`]. Failures are of kind `Io`. Reads always work.
///
/// ```
/// use store_conformance::{Fault, FaultyStore, root};
/// use memory_store::{InMemoryStore, Store};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// // How many writes does the work take? Then let each of them fail, in both ways.
/// let dry = FaultyStore::new(InMemoryStore::new());
/// root(&dry, "chat").await;
/// for write in 1..=dry.writes() {
///     let store = FaultyStore::new(InMemoryStore::new());
///     store.fail_from(write, Fault::Before);
///     // Do the work, expect it to fail, heal, look at what is left, do the work again.
///     store.heal();
///     root(&store, "chat").await;
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct FaultyStore<S> {
    inner: S,
    state: Mutex<Faults>,
}

#[derive(Debug, Default)]
struct Faults {
    writes: u64,
    next: Option<Next>,
}

#[derive(Debug, Clone, Copy)]
struct Next {
    write: u64,
    fault: Fault,
    once: bool,
}

impl<S: FullStore> FaultyStore<S> {
    /// Wraps a store; nothing fails yet.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            state: Mutex::default(),
        }
    }

    /// How many writes were asked for so far, failed ones too.
    pub fn writes(&self) -> u64 {
        self.state().writes
    }

    /// Lets a write, and all after it, fail: 1 is the next one.
    pub fn fail_from(&self, write: u64, fault: Fault) {
        self.plan(write, fault, false);
    }

    /// Lets one write fail: 1 is the next one.
    pub fn fail_once(&self, write: u64, fault: Fault) {
        self.plan(write, fault, true);
    }

    /// Lets all writes succeed again.
    pub fn heal(&self) {
        self.state().next = None;
    }

    /// The store inside.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Gives the store inside back.
    pub fn into_inner(self) -> S {
        self.inner
    }

    fn plan(&self, write: u64, fault: Fault, once: bool) {
        let mut state = self.state();
        let write = state.writes.saturating_add(write.max(1));
        state.next = Some(Next { write, fault, once });
    }

    fn state(&self) -> std::sync::MutexGuard<'_, Faults> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does a write, or fails it. The future does nothing until it is awaited.
    async fn write<T>(&self, write: impl Future<Output = Result<T>> + Send) -> Result<T> {
        let (number, fault) = {
            let mut state = self.state();
            state.writes += 1;
            let number = state.writes;
            let fault = match state.next {
                Some(next) if number == next.write => Some(next.fault),
                Some(next) if number > next.write && !next.once => Some(Fault::Before),
                _ => None,
            };
            (number, fault)
        };
        let failed = |when: &str| {
            Err(Error::new(
                ErrorKind::Io,
                format!("write {number} was made to fail {when} it was done"),
            ))
        };
        match fault {
            None => write.await,
            Some(Fault::Before) => failed("before"),
            Some(Fault::After) => {
                write.await?;
                failed("after")
            }
        }
    }
}

#[async_trait]
impl<S: FullStore> Store for FaultyStore<S> {
    async fn open(&self, new: &NewConversation) -> Result<Conversation> {
        self.write(self.inner.open(new)).await
    }

    async fn conversation(&self, which: &ConversationRef) -> Result<Option<Conversation>> {
        self.inner.conversation(which).await
    }

    async fn erase(&self, conversation: ConversationId, erase: &Erase) -> Result<Erased> {
        self.write(self.inner.erase(conversation, erase)).await
    }

    async fn erasures(&self, conversation: ConversationId) -> Result<Erasures> {
        self.inner.erasures(conversation).await
    }

    async fn list(
        &self,
        filter: &ConversationFilter,
        after: Option<ConversationId>,
        limit: usize,
    ) -> Result<Page<Conversation, ConversationId>> {
        self.inner.list(filter, after, limit).await
    }

    async fn update(
        &self,
        conversation: ConversationId,
        patch: &ConversationPatch,
        now: Timestamp,
    ) -> Result<Conversation> {
        self.write(self.inner.update(conversation, patch, now))
            .await
    }

    async fn append(&self, conversation: ConversationId, append: &Append) -> Result<Appended> {
        self.write(self.inner.append(conversation, append)).await
    }

    async fn read(&self, conversation: ConversationId, read: &LogRead) -> Result<Page<LogEntry>> {
        self.inner.read(conversation, read).await
    }

    async fn running(&self, conversation: ConversationId, at: &[Seq]) -> Result<Vec<u64>> {
        self.inner.running(conversation, at).await
    }

    async fn seq_at(&self, conversation: ConversationId, running: u64) -> Result<Option<Seq>> {
        self.inner.seq_at(conversation, running).await
    }

    async fn find(&self, conversation: ConversationId, ids: &[String]) -> Result<Vec<Option<Seq>>> {
        self.inner.find(conversation, ids).await
    }

    async fn snapshot(&self, conversation: ConversationId, view: &ViewName) -> Result<Snapshot> {
        self.inner.snapshot(conversation, view).await
    }

    async fn views(&self, conversation: ConversationId) -> Result<Vec<ViewInfo>> {
        self.inner.views(conversation).await
    }

    async fn spans(
        &self,
        snapshot: &Snapshot,
        range: SeqRange,
        order: Order,
        limit: usize,
    ) -> Result<Page<Span>> {
        self.inner.spans(snapshot, range, order, limit).await
    }

    async fn publish_all(
        &self,
        conversation: ConversationId,
        publishes: &[Publish],
    ) -> Result<Vec<Result<Published>>> {
        self.write(self.inner.publish_all(conversation, publishes))
            .await
    }

    async fn publications(
        &self,
        conversation: ConversationId,
        view: &ViewName,
        after: ViewVersion,
        limit: usize,
    ) -> Result<Page<Publication, ViewVersion>> {
        self.inner
            .publications(conversation, view, after, limit)
            .await
    }

    async fn summaries(
        &self,
        conversation: ConversationId,
        ids: &[SummaryId],
    ) -> Result<Vec<Option<Summary>>> {
        self.inner.summaries(conversation, ids).await
    }

    async fn summary_log(
        &self,
        conversation: ConversationId,
        after: Option<&SummaryId>,
        limit: usize,
    ) -> Result<Page<Summary, SummaryId>> {
        self.inner.summary_log(conversation, after, limit).await
    }

    async fn own_summaries(
        &self,
        conversation: ConversationId,
        after: Option<&SummaryId>,
        limit: usize,
    ) -> Result<Page<Summary, SummaryId>> {
        self.inner.own_summaries(conversation, after, limit).await
    }

    async fn parents(
        &self,
        conversation: ConversationId,
        summary: &SummaryId,
    ) -> Result<Vec<SummaryId>> {
        self.inner.parents(conversation, summary).await
    }

    async fn summaries_by_source(
        &self,
        conversation: ConversationId,
        sources: &[(Hash, Recipe)],
    ) -> Result<Vec<Option<Summary>>> {
        self.inner.summaries_by_source(conversation, sources).await
    }

    async fn claim_all(
        &self,
        conversation: ConversationId,
        keys: &[JobKey],
        owner: &Owner,
        ttl: Duration,
        erasures: u64,
    ) -> Result<Vec<Claim>> {
        let claims = self
            .inner
            .claim_all(conversation, keys, owner, ttl, erasures);
        self.write(claims).await
    }

    async fn settle_all(&self, settled: &[(Fence, LeaseUpdate)]) -> Result<Vec<Result<()>>> {
        self.write(self.inner.settle_all(settled)).await
    }

    async fn state(&self, conversation: ConversationId, key: &str) -> Result<Option<State>> {
        self.inner.state(conversation, key).await
    }

    async fn put_state(
        &self,
        conversation: ConversationId,
        key: &str,
        revision: u64,
        value: Option<&RawJson>,
    ) -> Result<u64> {
        self.write(self.inner.put_state(conversation, key, revision, value))
            .await
    }

    fn index(&self) -> Option<&dyn IndexStore> {
        self.inner.index()
    }

    fn vector_store(&self) -> Option<&dyn VectorStore> {
        self.inner.vector_store()
    }
}

#[async_trait]
impl<S: FullStore> Maintain for FaultyStore<S> {
    async fn check(&self) -> Result<Vec<Violation>> {
        self.inner.check().await
    }

    fn location(&self) -> String {
        self.inner.location()
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}
