//! Stores that wrap other stores and change their calls and answers, for tests.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use memory_model::{
    ConversationId, Hash, LogEntry, RawJson, Recipe, Seq, SeqRange, Span, Summary, SummaryId,
    Timestamp, ViewName, ViewVersion,
};
use memory_store::{
    Append, Appended, Claim, Conversation, ConversationFilter, ConversationPatch, ConversationRef,
    Erase, Erased, Erasures, Error, Fence, FullStore, IndexStore, JobKey, LeaseUpdate, LogRead,
    Maintain, NewConversation, Order, Owner, Page, Publication, Publish, Published, Result,
    Snapshot, State, Store, Usage, VectorStore, ViewInfo, Violation, WorkQueue,
};

/// Answer of the wrapped store to a call. A layer may change it before it is returned to the caller.
#[derive(Debug)]
#[expect(missing_docs, reason = "each is the answer of a method of a store")]
pub enum Answer<'a> {
    Conversation(&'a mut Option<Conversation>),
    Read(&'a LogRead, &'a mut Page<LogEntry>),
    Running(&'a mut Vec<u64>),
    Find(&'a mut Vec<Option<Seq>>),
    Spans(Order, &'a mut Page<Span>),
    Views(&'a mut Vec<ViewInfo>),
    Publications(&'a mut Page<Publication, ViewVersion>),
    /// Answer to [`Store::summaries`].
    Summaries(&'a mut Vec<Option<Summary>>),
    /// Answer to [`Store::summary_log`] or [`Store::own_summaries`].
    SummaryLog(&'a mut Page<Summary, SummaryId>),
}

/// Changes that a [`Layered`] store makes to the calls and answers of the wrapped store. The default methods change
/// none.
#[async_trait]
pub trait Layer: Send + Sync + fmt::Debug {
    /// Returns the wrapped store.
    fn inner(&self) -> &dyn FullStore;

    /// Called before each read of the wrapped store.
    async fn before_read(&self) {}

    /// Called before each write. If it returns an error, the write fails without effect. If it returns `Some`, the
    /// write takes effect, and then the caller gets this error.
    async fn before_write(&self) -> Result<Option<Error>> {
        Ok(None)
    }

    /// Changes an answer of the wrapped store before it is returned. If it returns an error, the caller gets the error.
    fn answer(&self, _answer: Answer<'_>) -> Result<()> {
        Ok(())
    }

    /// Called after an append has failed, with the arguments of the append.
    async fn append_failed(&self, _conversation: ConversationId, _append: &Append) -> Result<()> {
        Ok(())
    }

    /// Called with the outcomes of publishes that the wrapped store has made, even if the caller gets an error for
    /// them.
    fn published(&self, _done: &[Result<Published>]) {}

    /// Called with publishes for which the caller gets an error.
    async fn publish_failed(
        &self,
        _conversation: ConversationId,
        _publishes: &[Publish],
    ) -> Result<()> {
        Ok(())
    }
}

/// A store that passes its calls to the store that the layer `L` wraps, with the changes of the layer.
#[derive(Debug)]
pub struct Layered<L>(pub L);

impl<L: Layer> Layered<L> {
    /// Makes a call that writes, with the changes of the layer. The future of the call has no effect until it is
    /// awaited.
    async fn write<T>(&self, write: impl Future<Output = Result<T>> + Send) -> Result<T> {
        let told = self.0.before_write().await?;
        let done = write.await?;
        told.map_or(Ok(done), Err)
    }

    /// Awaits a reading call of the wrapped store, after [`Layer::before_read`].
    async fn read<T>(&self, read: impl Future<Output = Result<T>> + Send) -> Result<T> {
        self.0.before_read().await;
        read.await
    }
}

#[async_trait]
impl<L: Layer> Store for Layered<L> {
    async fn open(&self, new: &NewConversation) -> Result<Conversation> {
        self.write(self.0.inner().open(new)).await
    }

    async fn conversation(&self, which: &ConversationRef) -> Result<Option<Conversation>> {
        let found = self.0.inner().conversation(which);
        let mut found = self.read(found).await?;
        self.0.answer(Answer::Conversation(&mut found))?;
        Ok(found)
    }

    async fn erase(&self, conversation: ConversationId, erase: &Erase) -> Result<Erased> {
        self.write(self.0.inner().erase(conversation, erase)).await
    }

    async fn erasures(&self, conversation: ConversationId) -> Result<Erasures> {
        self.0.inner().erasures(conversation).await
    }

    async fn list(
        &self,
        filter: &ConversationFilter,
        after: Option<ConversationId>,
        limit: usize,
    ) -> Result<Page<Conversation, ConversationId>> {
        self.0.inner().list(filter, after, limit).await
    }

    async fn update(
        &self,
        conversation: ConversationId,
        patch: &ConversationPatch,
        now: Timestamp,
    ) -> Result<Conversation> {
        self.write(self.0.inner().update(conversation, patch, now))
            .await
    }

    async fn append(&self, conversation: ConversationId, append: &Append) -> Result<Appended> {
        let done = self
            .write(self.0.inner().append(conversation, append))
            .await;
        if done.is_err() {
            let layer = &self.0;
            layer.append_failed(conversation, append).await?;
        }
        done
    }

    async fn read(&self, conversation: ConversationId, read: &LogRead) -> Result<Page<LogEntry>> {
        let found = self.0.inner().read(conversation, read);
        let mut found = self.read(found).await?;
        self.0.answer(Answer::Read(read, &mut found))?;
        Ok(found)
    }

    async fn running(&self, conversation: ConversationId, at: &[Seq]) -> Result<Vec<u64>> {
        let found = self.0.inner().running(conversation, at);
        let mut found = self.read(found).await?;
        self.0.answer(Answer::Running(&mut found))?;
        Ok(found)
    }

    async fn seq_at(&self, conversation: ConversationId, running: u64) -> Result<Option<Seq>> {
        self.read(self.0.inner().seq_at(conversation, running))
            .await
    }

    async fn find(&self, conversation: ConversationId, ids: &[String]) -> Result<Vec<Option<Seq>>> {
        let found = self.0.inner().find(conversation, ids);
        let mut found = self.read(found).await?;
        self.0.answer(Answer::Find(&mut found))?;
        Ok(found)
    }

    async fn snapshot(&self, conversation: ConversationId, view: &ViewName) -> Result<Snapshot> {
        self.read(self.0.inner().snapshot(conversation, view)).await
    }

    async fn views(&self, conversation: ConversationId) -> Result<Vec<ViewInfo>> {
        let found = self.0.inner().views(conversation);
        let mut found = self.read(found).await?;
        self.0.answer(Answer::Views(&mut found))?;
        Ok(found)
    }

    async fn spans(
        &self,
        snapshot: &Snapshot,
        range: SeqRange,
        order: Order,
        limit: usize,
    ) -> Result<Page<Span>> {
        let found = self.0.inner().spans(snapshot, range, order, limit);
        let mut found = self.read(found).await?;
        self.0.answer(Answer::Spans(order, &mut found))?;
        Ok(found)
    }

    async fn publish_all(
        &self,
        conversation: ConversationId,
        publishes: &[Publish],
    ) -> Result<Vec<Result<Published>>> {
        let publish = async {
            let done = self.0.inner().publish_all(conversation, publishes).await?;
            self.0.published(&done);
            Ok(done)
        };
        let done = self.write(publish).await;
        if done.is_err() {
            self.0.publish_failed(conversation, publishes).await?;
        }
        done
    }

    async fn publications(
        &self,
        conversation: ConversationId,
        view: &ViewName,
        after: ViewVersion,
        limit: usize,
    ) -> Result<Page<Publication, ViewVersion>> {
        let found = self
            .0
            .inner()
            .publications(conversation, view, after, limit);
        let mut found = self.read(found).await?;
        self.0.answer(Answer::Publications(&mut found))?;
        Ok(found)
    }

    async fn summaries(
        &self,
        conversation: ConversationId,
        ids: &[SummaryId],
    ) -> Result<Vec<Option<Summary>>> {
        let found = self.0.inner().summaries(conversation, ids);
        let mut found = self.read(found).await?;
        self.0.answer(Answer::Summaries(&mut found))?;
        Ok(found)
    }

    async fn summary_log(
        &self,
        conversation: ConversationId,
        after: Option<&SummaryId>,
        limit: usize,
    ) -> Result<Page<Summary, SummaryId>> {
        let found = self.0.inner().summary_log(conversation, after, limit);
        let mut found = self.read(found).await?;
        self.0.answer(Answer::SummaryLog(&mut found))?;
        Ok(found)
    }

    async fn own_summaries(
        &self,
        conversation: ConversationId,
        after: Option<&SummaryId>,
        limit: usize,
    ) -> Result<Page<Summary, SummaryId>> {
        let found = self.0.inner().own_summaries(conversation, after, limit);
        let mut found = self.read(found).await?;
        self.0.answer(Answer::SummaryLog(&mut found))?;
        Ok(found)
    }

    async fn parents(
        &self,
        conversation: ConversationId,
        summary: &SummaryId,
    ) -> Result<Vec<SummaryId>> {
        self.read(self.0.inner().parents(conversation, summary))
            .await
    }

    async fn summaries_by_source(
        &self,
        conversation: ConversationId,
        sources: &[(Hash, Recipe)],
    ) -> Result<Vec<Option<Summary>>> {
        self.read(self.0.inner().summaries_by_source(conversation, sources))
            .await
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
            .0
            .inner()
            .claim_all(conversation, keys, owner, ttl, erasures);
        self.write(claims).await
    }

    async fn settle_all(&self, settled: &[(Fence, LeaseUpdate)]) -> Result<Vec<Result<()>>> {
        self.write(self.0.inner().settle_all(settled)).await
    }

    async fn state(&self, conversation: ConversationId, key: &str) -> Result<Option<State>> {
        self.0.inner().state(conversation, key).await
    }

    async fn put_state(
        &self,
        conversation: ConversationId,
        key: &str,
        revision: u64,
        value: Option<&RawJson>,
    ) -> Result<u64> {
        self.write(self.0.inner().put_state(conversation, key, revision, value))
            .await
    }

    fn index(&self) -> Option<&dyn IndexStore> {
        self.0.inner().index()
    }

    fn vector_store(&self) -> Option<&dyn VectorStore> {
        self.0.inner().vector_store()
    }

    fn work_queue(&self) -> Option<&dyn WorkQueue> {
        self.0.inner().work_queue()
    }
}

#[async_trait]
impl<L: Layer> Maintain for Layered<L> {
    async fn check(&self) -> Result<Vec<Violation>> {
        self.0.inner().check().await
    }

    fn erasure_note(&self) -> Option<&'static str> {
        self.0.inner().erasure_note()
    }

    async fn usage(&self) -> Result<Usage> {
        self.0.inner().usage().await
    }

    fn location(&self) -> String {
        self.0.inner().location()
    }

    async fn close(&self) -> Result<()> {
        self.0.inner().close().await
    }
}
