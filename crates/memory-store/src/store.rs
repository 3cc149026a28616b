//! The traits that a database implements.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use auto_impl::auto_impl;
use memory_model::{
    ConversationId, Hash, LogEntry, Recipe, Seq, SeqRange, Span, Summary, SummaryId, Timestamp,
    ViewName, ViewVersion,
};

use crate::erasure::{Erase, Erased, Erasures};
use crate::error::{Error, ErrorKind, Result};
#[cfg(doc)]
use crate::inherit::{SummaryScope, ViewCut};
use crate::segments::IndexStore;
use crate::types::{
    Append, Appended, Claim, Conversation, ConversationFilter, ConversationPatch, ConversationRef,
    Fence, JobKey, LeaseUpdate, LogRead, NewConversation, Order, Owner, Page, Publication, Publish,
    Published, Snapshot, State, ViewInfo,
};
use crate::usage::Usage;
use crate::vector_store::VectorStore;
use crate::violation::Violation;
use crate::work_queue::WorkQueue;

/// Storage of conversations: their logs, views, summaries, jobs and small values.
///
/// Every method that writes runs in one transaction. After a failure, a crash or a dropped future, the store has either
/// the state before the call or the state after it. Callers never keep a transaction open between calls.
///
/// A read sees every write that finished before the read began. Reads through a [`Snapshot`] do not see later writes.
#[async_trait]
#[auto_impl(Arc)]
pub trait Store: Send + Sync + fmt::Debug {
    /// Returns the conversation with the key of `new`, and creates it if it does not exist. An existing conversation is
    /// returned unchanged: it keeps its origin, estimator and title.
    ///
    /// A new fork gets its parent's views, cut at the last shared position: see [`ViewCut`]. The same transaction
    /// publishes these views as version 1. A view that shows only raw messages is not published.
    ///
    /// # Errors
    /// - `NotFound` if the parent does not exist.
    /// - `Invalid` if a fork begins beyond the parent's head, which is the last position of its log.
    /// - `EstimatorMismatch` if a fork names another estimator than its parent's.
    async fn open(&self, new: &NewConversation) -> Result<Conversation>;

    /// Looks up a conversation by number or key. Returns `None` if the conversation does not exist.
    async fn conversation(&self, which: &ConversationRef) -> Result<Option<Conversation>>;

    /// Returns a page of conversations that match a filter, in the order of their numbers. The page begins after the
    /// number `after`, or at the first conversation if `after` is `None`, and has at most `limit` conversations.
    async fn list(
        &self,
        filter: &ConversationFilter,
        after: Option<ConversationId>,
        limit: usize,
    ) -> Result<Page<Conversation, ConversationId>>;

    /// Changes a conversation's title, archive flag or metadata, and returns the changed conversation. `now` is
    /// recorded as the time of the change.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn update(
        &self,
        conversation: ConversationId,
        patch: &ConversationPatch,
        now: Timestamp,
    ) -> Result<Conversation>;

    /// Appends entries to the end of a log, in order. An entry is not stored if the conversation, or the log that it
    /// inherits from its parent, already has an entry with the same external id, or if such an entry comes earlier in
    /// the same call: see [`EntryOutcome`](crate::EntryOutcome).
    ///
    /// # Errors
    /// - `NotFound` if the conversation does not exist.
    /// - `HeadMoved` if the log does not end at the position that the append expects.
    /// - `EstimatorMismatch` if another estimator than the conversation's counted the costs.
    /// - `Limit` if the log would have more than 2³² − 2 entries.
    async fn append(&self, conversation: ConversationId, append: &Append) -> Result<Appended>;

    /// Reads a page of a conversation's log, including the parts that a fork shares with its ancestors. The page's
    /// `next` is the part of the range that is left to read. It is `None` if the page reaches the end of the range or
    /// of the log.
    ///
    /// # Errors
    /// - `NotFound` if the conversation does not exist.
    /// - `Corrupt` if an entry cannot be read. The message names the first unreadable entry.
    async fn read(&self, conversation: ConversationId, read: &LogRead) -> Result<Page<LogEntry>>;

    /// Returns the running sum at each position of `at`, in the order of `at`. The running sum is the cost of all
    /// messages up to and including the position, in tokens. Messages that a fork inherits from its parent count. It is
    /// 0 at `Seq(0)`. Beyond the end of the log it equals the sum at the last entry.
    async fn running(&self, conversation: ConversationId, at: &[Seq]) -> Result<Vec<u64>>;

    /// Returns the first position with a running sum of at least `running` tokens: the messages up to and including
    /// this position cost that much. Returns `None` if the whole log costs less.
    async fn seq_at(&self, conversation: ConversationId, running: u64) -> Result<Option<Seq>>;

    /// Returns the position of the entry with each external id, in the order of `ids`. The answer for an id is `None`
    /// if no entry has the id. Entries that a fork inherits from its parent are found too.
    async fn find(&self, conversation: ConversationId, ids: &[String]) -> Result<Vec<Option<Seq>>>;

    /// Returns a snapshot of the current state of a view. A view that was never published is one span of raw messages
    /// at version 0.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn snapshot(&self, conversation: ConversationId, view: &ViewName) -> Result<Snapshot>;

    /// Returns the views of a conversation that were published at least once, sorted by name.
    async fn views(&self, conversation: ConversationId) -> Result<Vec<ViewInfo>>;

    /// Returns at most `limit` spans of a snapshot that overlap `range`. A span that overlaps only in part is returned
    /// with its whole range. The page's `next` is the part of `range` that is left to read. The snapshot may name any
    /// existing version of the view. Raw and omitted spans have 0 tokens here. [`crate::fill_raw_tokens`] sets the
    /// costs of raw spans.
    ///
    /// # Errors
    /// - `NotFound` if the conversation does not exist.
    /// - `Invalid` if the view has no such version yet.
    async fn spans(
        &self,
        snapshot: &Snapshot,
        range: SeqRange,
        order: Order,
        limit: usize,
    ) -> Result<Page<Span>>;

    /// Replaces spans of a view if the view still has the expected spans. Returns the outcome.
    ///
    /// # Errors
    /// The errors of [`Store::publish_all`], both of the call and of a single publish.
    async fn publish(&self, conversation: ConversationId, publish: &Publish) -> Result<Published> {
        let publishes = std::slice::from_ref(publish);
        let outcomes = self.publish_all(conversation, publishes).await?;
        only(outcomes).flatten()
    }

    /// Makes several publishes to one view, in order and in one transaction. Returns the outcome of each publish. Each
    /// publish sees the effects of the earlier ones, including their summaries. A publish that is lost or refused
    /// changes no data and does not undo the others. The number of database statements does not grow with the number of
    /// publishes, up to 64 new rows in a table.
    ///
    /// Each publish replaces spans if the view still has the expected spans. Costs of raw and omitted spans are not
    /// stored. If a publish contains a summary that the conversation already has, the stored summary does not change.
    /// The outcome `Done` completes the job of the publish's fence. The outcomes `Already` and `Lost` do not change the
    /// job.
    ///
    /// # Errors
    /// Errors of the call:
    /// - `NotFound` if the conversation does not exist.
    /// - `Invalid` if the publishes name different views.
    ///
    /// Errors of a single publish:
    /// - `Invalid` if the new spans leave a gap in the range, overlap, or lie beyond the end of the log.
    /// - `Invalid` if the new spans name a summary that is in neither the publish nor the conversation, or that covers
    ///   another range.
    /// - `Invalid` if a summary's children do not cover exactly its range, its children or sources do not exist, a
    ///   source ends after its range, or its hash or id does not match its content.
    /// - `Stale` if the fence is no longer valid.
    async fn publish_all(
        &self,
        conversation: ConversationId,
        publishes: &[Publish],
    ) -> Result<Vec<Result<Published>>>;

    /// Returns a page of a view's publications with versions above `after`, oldest first. The page has at most `limit`
    /// publications.
    async fn publications(
        &self,
        conversation: ConversationId,
        view: &ViewName,
        after: ViewVersion,
        limit: usize,
    ) -> Result<Page<Publication, ViewVersion>>;

    /// Returns the summary with each id, in the order of `ids`. The answer for an id is `None` if the conversation does
    /// not see a summary with the id. A conversation sees its own summaries, and the summaries of its ancestors that
    /// cover only shared positions: see [`SummaryScope`]. If several conversations made a summary with the same id, the
    /// summary of the nearest one is returned: the conversation's own, else its parent's, and so on.
    async fn summaries(
        &self,
        conversation: ConversationId,
        ids: &[SummaryId],
    ) -> Result<Vec<Option<Summary>>>;

    /// Returns a page of all summaries that a conversation sees, each once. The page begins after the summary `after`
    /// and has at most `limit` summaries. The summaries of ancestors come before the conversation's own. The summaries
    /// of each conversation are in the order of creation.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist, or does not see the summary `after`.
    async fn summary_log(
        &self,
        conversation: ConversationId,
        after: Option<&SummaryId>,
        limit: usize,
    ) -> Result<Page<Summary, SummaryId>>;

    /// Returns a page of the summaries that the conversation itself made, in the order of creation. The page begins
    /// after the summary `after` and has at most `limit` summaries.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist, or did not make the summary `after`.
    async fn own_summaries(
        &self,
        conversation: ConversationId,
        after: Option<&SummaryId>,
        limit: usize,
    ) -> Result<Page<Summary, SummaryId>>;

    /// Returns the ids of the summaries that have this summary as a source or a child, in the order of
    /// [`Store::summary_log`]. Looks at the summaries of the conversation, and at the summaries that a fork inherits
    /// from its parent.
    async fn parents(
        &self,
        conversation: ConversationId,
        summary: &SummaryId,
    ) -> Result<Vec<SummaryId>>;

    /// Looks up summaries by their sources, to avoid paying a model twice for the same work. Each item of `sources` is
    /// the hash of a summary's sources and the [`Recipe`] by which the summary was made. Returns, in the order of
    /// `sources`, the latest summary with that hash and recipe, or `None` if there is none. A fork also finds summaries
    /// that it inherits from its parent, but its own summaries are preferred. Erased summaries are not returned.
    async fn summaries_by_source(
        &self,
        conversation: ConversationId,
        sources: &[(Hash, Recipe)],
    ) -> Result<Vec<Option<Summary>>>;

    /// Asks for the lease on one job: the right of one owner to work on the job for a limited time. The arguments are
    /// those of [`Store::claim_all`].
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn claim(
        &self,
        conversation: ConversationId,
        key: &JobKey,
        owner: &Owner,
        ttl: Duration,
        erasures: u64,
    ) -> Result<Claim> {
        let keys = std::slice::from_ref(key);
        let claims = self.claim_all(conversation, keys, owner, ttl, erasures);
        only(claims.await?)
    }

    /// Asks for the leases on several jobs in one transaction. Returns an answer for each job, in the order of `keys`.
    /// The caller gets the lease if the job is free, if the lease of another owner has ended, or if the caller already
    /// has it. A refused job does not affect the others. Each new lease makes the fences of earlier leases on the same
    /// job invalid for ever. The number of a fence is never reused, even after the job is done or released.
    ///
    /// A lease ends `ttl` after it was given. The store's clock decides, so that processes with different clocks agree
    /// on the end. A lease with a `ttl` of zero ends at once: any owner may claim the job, and the fence stays valid
    /// until another owner does.
    ///
    /// `erasures` is the conversation's [`erasures`](Conversation::erasures) before the words for the jobs were read.
    /// If words of the conversation were erased later, no lease is given. An erasure also ends all leases, so words do
    /// not change under a valid fence.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn claim_all(
        &self,
        conversation: ConversationId,
        keys: &[JobKey],
        owner: &Owner,
        ttl: Duration,
        erasures: u64,
    ) -> Result<Vec<Claim>>;

    /// Updates the lease on a job that the caller holds: renews or releases the lease, or records that the work is
    /// prepared or has failed. See [`LeaseUpdate`].
    ///
    /// # Errors
    /// - `NotFound` if the conversation does not exist.
    /// - `Stale` if the lease was given to an owner again, or the job has failed, was released or is done.
    async fn settle(&self, fence: &Fence, outcome: &LeaseUpdate) -> Result<()> {
        let settled = [(fence.clone(), outcome.clone())];
        only(self.settle_all(&settled).await?).flatten()
    }

    /// Updates the leases on several jobs that the caller holds, in order and in one transaction. Returns the outcome
    /// for each job. A fence that is no longer valid does not undo the other updates.
    ///
    /// # Errors
    /// The outcome for each job has the errors of [`Store::settle`].
    async fn settle_all(&self, settled: &[(Fence, LeaseUpdate)]) -> Result<Vec<Result<()>>>;

    /// Returns the small value that a conversation has under a key, or `None` if there is no value.
    async fn state(&self, conversation: ConversationId, key: &str) -> Result<Option<State>>;

    /// Sets a small value of a conversation if the stored value still has the given revision. Revision 0 means that no
    /// value is stored. Returns the new revision. A `value` of `None` removes the stored value.
    ///
    /// # Errors
    /// `Stale` if the stored value has another revision.
    async fn put_state(
        &self,
        conversation: ConversationId,
        key: &str,
        revision: u64,
        value: Option<&memory_model::RawJson>,
    ) -> Result<u64>;

    /// Erases words for ever, and records the erasure with its reason. Removes the bodies, names and metadata of the
    /// entries, the words of every summary derived from these entries, and all prepared work of the conversations that
    /// show the entries. Positions, roles, times, external ids, costs and hashes stay, so that all other data can still
    /// be verified. Entries that forks share are erased in all forks. A repeated call finishes an incomplete erasure.
    ///
    /// This method does not change views. [`crate::erase`] calls this method and then shows raw messages in place of
    /// erased summaries. A store with files returns only when no file contains a byte of the words.
    ///
    /// # Errors
    /// - `NotFound` if the conversation does not exist.
    /// - `Invalid` if the range ends beyond the end of the log, if there is no reason, or if the store does not
    ///   implement this method.
    /// - `NotGone` if another reader keeps old bytes in a file. The words are then erased and the erasure is recorded.
    ///   Repeat the call when the reader has ended, to finish the work.
    async fn erase(&self, conversation: ConversationId, erase: &Erase) -> Result<Erased> {
        let _ = erase;
        let message = format!("conversation {conversation}: this store cannot erase: use another");
        Err(Error::new(ErrorKind::Invalid, message))
    }

    /// Returns the recorded erasures of all entries and summaries that a conversation sees. Empty for a store that
    /// cannot erase.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn erasures(&self, conversation: ConversationId) -> Result<Erasures> {
        let _ = conversation;
        Ok(Erasures::default())
    }

    /// Returns the interface for storing search indexes, or `None` if the store has no search indexes.
    fn index(&self) -> Option<&dyn IndexStore> {
        None
    }

    /// Returns the interface for storing vectors of messages, or `None` if the store has no vectors.
    fn vector_store(&self) -> Option<&dyn VectorStore> {
        None
    }

    /// Returns the store's queue of changed conversations, or `None` if the store has none. The default is `None`: a
    /// worker then looks at all conversations.
    fn work_queue(&self) -> Option<&dyn WorkQueue> {
        None
    }
}

/// Returns the only answer of a call with one request.
fn only<T>(mut answers: Vec<T>) -> Result<T> {
    answers.pop().ok_or_else(|| {
        let message = "the store returned no answer to a request: this is a defect of the store";
        Error::new(ErrorKind::Corrupt, message)
    })
}

/// Maintenance of a store: checks, its location, and closing it.
#[async_trait]
#[auto_impl(Arc)]
pub trait Maintain: Store {
    /// Runs the checks that only the database itself can make, and returns the violations. These checks cover pages,
    /// indices, foreign keys and triggers, and whether the rows agree with each other. [`crate::verify`] makes all
    /// other checks.
    async fn check(&self) -> Result<Vec<Violation>>;

    /// Returns the time of an erasure that was interrupted and may have left words in the database's files, or `None`
    /// if there is no interrupted erasure. Opening the store for writing, or another erasure, removes these words.
    ///
    /// # Errors
    /// If the database cannot be read.
    async fn pending_wipe(&self) -> Result<Option<Timestamp>> {
        Ok(None)
    }

    /// Returns for people the places outside of the database's reach that may still have the words of an erasure, such
    /// as backups of a server. Returns `None` if the store has none that it knows.
    fn erasure_note(&self) -> Option<&'static str> {
        None
    }

    /// Returns the sizes of the parts of the stored data. Takes time proportional to the size of the data. A store in
    /// memory counts no sizes.
    ///
    /// # Errors
    /// If the database cannot be read.
    async fn usage(&self) -> Result<Usage> {
        Ok(Usage::default())
    }

    /// Returns the human-readable location of the data: a path, a URL without secrets, or `memory`.
    fn location(&self) -> String;

    /// Finishes pending work and releases the store's resources. The store must not be used afterwards.
    async fn close(&self) -> Result<()>;
}

/// A [`Store`] together with [`Maintain`], as one trait for trait objects: `dyn FullStore`.
pub trait FullStore: Store + Maintain {}

impl<S: Store + Maintain + ?Sized> FullStore for S {}
