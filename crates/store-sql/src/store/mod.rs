//! A store on any SQL database.

mod append;
mod check;
mod conversations;
mod copy;
mod erase;
mod facts;
mod families;
mod fork;
mod known_facts;
mod known_summaries;
mod leases;
mod lineage;
mod lineages;
mod log;
mod new_summaries;
mod packing;
mod pages;
mod positions;
mod publish;
mod queue;
mod reached;
mod read;
mod running;
mod search;
mod settle;
mod spans;
mod state;
mod summaries;
mod vectors;
mod view_change;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use memory_model::{
    ConversationId, Hash, LogEntry, RawJson, Recipe, Seq, SeqRange, Span, Summary, SummaryId,
    Timestamp, ViewName, ViewVersion,
};
use memory_store::{
    Append, Appended, Claim, Conversation, ConversationFilter, ConversationPatch, ConversationRef,
    Erase, Erased, Erasures, Fence, IndexStore, JobKey, LeaseUpdate, LogRead, Maintain,
    NewConversation, Order, Owner, Page, Publication, Publish, Published, Result, Snapshot, State,
    Store, Usage, VectorStore, ViewInfo, Violation, WorkQueue,
};

pub use self::copy::Copied;
use self::known_facts::KnownFacts;
use self::lineage::Lineages;
use self::reached::Reached;
use crate::executor::Database;
use crate::family::Family;

/// Maximum number of rows in one SQL `insert` statement. A call that adds more rows to a table sends several
/// statements.
const ROWS: usize = 64;

/// A store on an SQL database. It has the logic that all SQL databases share, and runs on the connections of the
/// database `D`.
#[derive(Debug)]
pub struct SqlStore<D> {
    database: D,
    /// Lineages of conversations. A lineage never changes once the conversation exists, so the copy in memory is always
    /// right.
    lineages: Mutex<Lineages>,
    /// Families of conversations, which never change either. Empty for a database without a column for the family.
    families: Mutex<BTreeMap<ConversationId, Family>>,
    /// Lengths of logs and versions of views that were seen so far. The real ones may be larger.
    reached: Mutex<Reached>,
    /// Facts of conversations that are kept in memory.
    facts: Mutex<BTreeMap<ConversationId, KnownFacts>>,
}

impl<D: Database> SqlStore<D> {
    /// Creates a store on an open database. The database must already have the schema.
    pub fn new(database: D) -> Self {
        Self {
            database,
            lineages: Mutex::default(),
            families: Mutex::default(),
            reached: Mutex::default(),
            facts: Mutex::default(),
        }
    }

    /// Opens the database at `place` with the default settings of its kind, and creates a store on it.
    ///
    /// # Errors
    /// The errors of [`Database::open`].
    pub async fn open(place: impl AsRef<D::Place>) -> Result<Self> {
        Self::opened(D::open(place.as_ref()).await?).await
    }

    /// Creates a store from the result of [`Database::open`]: an open database, and whether an erasure was interrupted.
    /// Finishes an interrupted erasure first.
    ///
    /// # Errors
    /// If an interrupted erasure cannot be finished: `NotGone` if another reader keeps old bytes in a file, or an error
    /// of writing the database.
    pub async fn opened((database, is_cut_short): (D, bool)) -> Result<Self> {
        let store = Self::new(database);
        if is_cut_short {
            store.finish_wipe().await?;
        }
        Ok(store)
    }

    /// Returns the number of SQL statements that the store has run, including `begin` and `commit`. Meant for tests and
    /// measurements.
    pub fn statements(&self) -> u64 {
        self.database.statements()
    }
}

#[async_trait]
impl<D: Database> Store for SqlStore<D> {
    async fn open(&self, new: &NewConversation) -> Result<Conversation> {
        self.open_conversation(new).await
    }

    async fn conversation(&self, which: &ConversationRef) -> Result<Option<Conversation>> {
        let mut reader = self.database.read().await?;
        self.look_up(&mut reader, which).await
    }

    async fn list(
        &self,
        filter: &ConversationFilter,
        after: Option<ConversationId>,
        limit: usize,
    ) -> Result<Page<Conversation, ConversationId>> {
        self.list_conversations(filter, after, limit).await
    }

    async fn update(
        &self,
        conversation: ConversationId,
        patch: &ConversationPatch,
        now: Timestamp,
    ) -> Result<Conversation> {
        self.patch(conversation, patch, now).await
    }

    async fn append(&self, conversation: ConversationId, append: &Append) -> Result<Appended> {
        self.append_entries(conversation, append).await
    }

    async fn read(&self, conversation: ConversationId, read: &LogRead) -> Result<Page<LogEntry>> {
        self.read_log(conversation, read).await
    }

    async fn running(&self, conversation: ConversationId, at: &[Seq]) -> Result<Vec<u64>> {
        self.running_sums(conversation, at).await
    }

    async fn seq_at(&self, conversation: ConversationId, running: u64) -> Result<Option<Seq>> {
        self.position_of(conversation, running).await
    }

    async fn find(&self, conversation: ConversationId, ids: &[String]) -> Result<Vec<Option<Seq>>> {
        self.find_external(conversation, ids).await
    }

    async fn snapshot(&self, conversation: ConversationId, view: &ViewName) -> Result<Snapshot> {
        self.look_at(conversation, view).await
    }

    async fn views(&self, conversation: ConversationId) -> Result<Vec<ViewInfo>> {
        self.list_views(conversation).await
    }

    async fn spans(
        &self,
        snapshot: &Snapshot,
        range: SeqRange,
        order: Order,
        limit: usize,
    ) -> Result<Page<Span>> {
        self.spans_page(snapshot, range, order, limit).await
    }

    async fn publish_all(
        &self,
        conversation: ConversationId,
        publishes: &[Publish],
    ) -> Result<Vec<Result<Published>>> {
        self.publish_spans(conversation, publishes).await
    }

    async fn publications(
        &self,
        conversation: ConversationId,
        view: &ViewName,
        after: ViewVersion,
        limit: usize,
    ) -> Result<Page<Publication, ViewVersion>> {
        self.publication_log(conversation, view, after, limit).await
    }

    async fn summaries(
        &self,
        conversation: ConversationId,
        ids: &[SummaryId],
    ) -> Result<Vec<Option<Summary>>> {
        self.summaries_by_id(conversation, ids).await
    }

    async fn summary_log(
        &self,
        conversation: ConversationId,
        after: Option<&SummaryId>,
        limit: usize,
    ) -> Result<Page<Summary, SummaryId>> {
        self.summaries_in_order(conversation, after, limit).await
    }

    async fn own_summaries(
        &self,
        conversation: ConversationId,
        after: Option<&SummaryId>,
        limit: usize,
    ) -> Result<Page<Summary, SummaryId>> {
        self.own_summaries_in_order(conversation, after, limit)
            .await
    }

    async fn parents(
        &self,
        conversation: ConversationId,
        summary: &SummaryId,
    ) -> Result<Vec<SummaryId>> {
        self.parents_of(conversation, summary).await
    }

    async fn summaries_by_source(
        &self,
        conversation: ConversationId,
        sources: &[(Hash, Recipe)],
    ) -> Result<Vec<Option<Summary>>> {
        self.newest_by_source(conversation, sources).await
    }

    async fn claim_all(
        &self,
        conversation: ConversationId,
        keys: &[JobKey],
        owner: &Owner,
        ttl: Duration,
        erasures: u64,
    ) -> Result<Vec<Claim>> {
        self.claim_jobs(conversation, keys, owner, ttl, erasures)
            .await
    }

    async fn settle_all(&self, settled: &[(Fence, LeaseUpdate)]) -> Result<Vec<Result<()>>> {
        self.settle_jobs(settled).await
    }

    async fn state(&self, conversation: ConversationId, key: &str) -> Result<Option<State>> {
        self.get_state(conversation, key).await
    }

    async fn put_state(
        &self,
        conversation: ConversationId,
        key: &str,
        revision: u64,
        value: Option<&RawJson>,
    ) -> Result<u64> {
        self.set_state(conversation, key, revision, value).await
    }

    async fn erase(&self, conversation: ConversationId, erase: &Erase) -> Result<Erased> {
        self.erase_words(conversation, erase).await
    }

    async fn erasures(&self, conversation: ConversationId) -> Result<Erasures> {
        self.erased_of(conversation).await
    }

    fn index(&self) -> Option<&dyn IndexStore> {
        Some(self)
    }

    fn vector_store(&self) -> Option<&dyn VectorStore> {
        Some(self)
    }

    fn work_queue(&self) -> Option<&dyn WorkQueue> {
        D::BY_FAMILY.then_some(self as &dyn WorkQueue)
    }
}

#[async_trait]
impl<D: Database> Maintain for SqlStore<D> {
    async fn check(&self) -> Result<Vec<Violation>> {
        self.check_rows().await
    }

    async fn pending_wipe(&self) -> Result<Option<Timestamp>> {
        let mut reader = self.database.read().await?;
        let pending = self.pending_wipes(&mut reader).await?;
        Ok(pending.into_iter().map(|(_, at)| Timestamp(at)).min())
    }

    fn erasure_note(&self) -> Option<&'static str> {
        D::ERASURE_NOTE
    }

    async fn usage(&self) -> Result<Usage> {
        self.database.usage().await
    }

    fn location(&self) -> String {
        self.database.location()
    }

    async fn close(&self) -> Result<()> {
        self.database.close().await
    }
}
