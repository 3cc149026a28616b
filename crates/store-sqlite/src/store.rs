//! The traits of a store.

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
    Store, VectorStore, ViewInfo, Violation,
};

use crate::open::SqliteStore;

#[async_trait]
impl Store for SqliteStore {
    async fn open(&self, new: &NewConversation) -> Result<Conversation> {
        self.sql.open(new).await
    }

    async fn conversation(&self, which: &ConversationRef) -> Result<Option<Conversation>> {
        self.sql.conversation(which).await
    }

    async fn list(
        &self,
        filter: &ConversationFilter,
        after: Option<ConversationId>,
        limit: usize,
    ) -> Result<Page<Conversation, ConversationId>> {
        self.sql.list(filter, after, limit).await
    }

    async fn update(
        &self,
        conversation: ConversationId,
        patch: &ConversationPatch,
        now: Timestamp,
    ) -> Result<Conversation> {
        self.sql.update(conversation, patch, now).await
    }

    async fn append(&self, conversation: ConversationId, append: &Append) -> Result<Appended> {
        self.sql.append(conversation, append).await
    }

    async fn read(&self, conversation: ConversationId, read: &LogRead) -> Result<Page<LogEntry>> {
        self.sql.read(conversation, read).await
    }

    async fn running(&self, conversation: ConversationId, at: &[Seq]) -> Result<Vec<u64>> {
        self.sql.running(conversation, at).await
    }

    async fn seq_at(&self, conversation: ConversationId, running: u64) -> Result<Option<Seq>> {
        self.sql.seq_at(conversation, running).await
    }

    async fn find(&self, conversation: ConversationId, ids: &[String]) -> Result<Vec<Option<Seq>>> {
        self.sql.find(conversation, ids).await
    }

    async fn snapshot(&self, conversation: ConversationId, view: &ViewName) -> Result<Snapshot> {
        self.sql.snapshot(conversation, view).await
    }

    async fn views(&self, conversation: ConversationId) -> Result<Vec<ViewInfo>> {
        self.sql.views(conversation).await
    }

    async fn spans(
        &self,
        snapshot: &Snapshot,
        range: SeqRange,
        order: Order,
        limit: usize,
    ) -> Result<Page<Span>> {
        self.sql.spans(snapshot, range, order, limit).await
    }

    async fn publish_all(
        &self,
        conversation: ConversationId,
        publishes: &[Publish],
    ) -> Result<Vec<Result<Published>>> {
        self.sql.publish_all(conversation, publishes).await
    }

    async fn publications(
        &self,
        conversation: ConversationId,
        view: &ViewName,
        after: ViewVersion,
        limit: usize,
    ) -> Result<Page<Publication, ViewVersion>> {
        self.sql
            .publications(conversation, view, after, limit)
            .await
    }

    async fn summaries(
        &self,
        conversation: ConversationId,
        ids: &[SummaryId],
    ) -> Result<Vec<Option<Summary>>> {
        self.sql.summaries(conversation, ids).await
    }

    async fn summary_log(
        &self,
        conversation: ConversationId,
        after: Option<&SummaryId>,
        limit: usize,
    ) -> Result<Page<Summary, SummaryId>> {
        self.sql.summary_log(conversation, after, limit).await
    }

    async fn own_summaries(
        &self,
        conversation: ConversationId,
        after: Option<&SummaryId>,
        limit: usize,
    ) -> Result<Page<Summary, SummaryId>> {
        self.sql.own_summaries(conversation, after, limit).await
    }

    async fn parents(
        &self,
        conversation: ConversationId,
        summary: &SummaryId,
    ) -> Result<Vec<SummaryId>> {
        self.sql.parents(conversation, summary).await
    }

    async fn summaries_by_source(
        &self,
        conversation: ConversationId,
        sources: &[(Hash, Recipe)],
    ) -> Result<Vec<Option<Summary>>> {
        self.sql.summaries_by_source(conversation, sources).await
    }

    async fn claim_all(
        &self,
        conversation: ConversationId,
        keys: &[JobKey],
        owner: &Owner,
        ttl: Duration,
        erasures: u64,
    ) -> Result<Vec<Claim>> {
        self.sql
            .claim_all(conversation, keys, owner, ttl, erasures)
            .await
    }

    async fn settle_all(&self, settled: &[(Fence, LeaseUpdate)]) -> Result<Vec<Result<()>>> {
        self.sql.settle_all(settled).await
    }

    async fn state(&self, conversation: ConversationId, key: &str) -> Result<Option<State>> {
        self.sql.state(conversation, key).await
    }

    async fn put_state(
        &self,
        conversation: ConversationId,
        key: &str,
        revision: u64,
        value: Option<&RawJson>,
    ) -> Result<u64> {
        self.sql.put_state(conversation, key, revision, value).await
    }

    async fn erase(&self, conversation: ConversationId, erase: &Erase) -> Result<Erased> {
        self.sql.erase(conversation, erase).await
    }

    async fn erasures(&self, conversation: ConversationId) -> Result<Erasures> {
        self.sql.erasures(conversation).await
    }

    fn index(&self) -> Option<&dyn IndexStore> {
        self.sql.index()
    }

    fn vector_store(&self) -> Option<&dyn VectorStore> {
        self.sql.vector_store()
    }
}

#[async_trait]
impl Maintain for SqliteStore {
    async fn check(&self) -> Result<Vec<Violation>> {
        self.sql.check().await
    }

    async fn pending_wipe(&self) -> Result<Option<Timestamp>> {
        self.sql.pending_wipe().await
    }

    fn location(&self) -> String {
        self.sql.location()
    }

    async fn close(&self) -> Result<()> {
        self.sql.close().await
    }
}
