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
use crate::vector_store::VectorStore;
use crate::violation::Violation;

/// Storage of conversations.
///
/// Every call that writes is one transaction: after a failure, a crash or a dropped future the store has the state
/// before or after the call. No transaction object leaves a store.
///
/// Reads see every write that finished before they began. Reads of a [`Snapshot`] do not see later writes.
#[async_trait]
#[auto_impl(Arc)]
pub trait Store: Send + Sync + fmt::Debug {
    /// Gets the conversation with the key, or creates it. An existing one is returned as it is:
    /// its origin, estimator and title do not change.
    ///
    /// A new fork's views begin as its parent's views, cut at its point: see [`ViewCut`]. This is the first version of
    /// each, in the same transaction; a view of messages alone is not published.
    ///
    /// # Errors
    /// `NotFound` if the parent does not exist; `Invalid` if a fork begins beyond the
    /// parent's head; `EstimatorMismatch` if a fork names another estimator than its parent's.
    async fn open(&self, new: &NewConversation) -> Result<Conversation>;

    /// Looks up a conversation.
    async fn conversation(&self, which: &ConversationRef) -> Result<Option<Conversation>>;

    /// Conversations in the order of their numbers, from `after` (exclusive) on; at most `limit`.
    async fn list(
        &self,
        filter: &ConversationFilter,
        after: Option<ConversationId>,
        limit: usize,
    ) -> Result<Page<Conversation, ConversationId>>;

    /// Changes a conversation's title, archive flag or metadata.
    ///
    /// # Errors
    /// `NotFound`.
    async fn update(
        &self,
        conversation: ConversationId,
        patch: &ConversationPatch,
        now: Timestamp,
    ) -> Result<Conversation>;

    /// Appends entries in order. An entry is not stored if another with its external id is visible; earlier entries of
    /// the same call count as visible.
    ///
    /// # Errors
    /// `NotFound`; `HeadMoved`; `EstimatorMismatch`; `Limit` if the log would pass 2³² − 2
    /// entries.
    async fn append(&self, conversation: ConversationId, append: &Append) -> Result<Appended>;

    /// Reads a page of a log, across segments. `next` is the rest of the range, `None` if the
    /// page ends it or the head was reached.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` names the first entry that cannot be read.
    async fn read(&self, conversation: ConversationId, read: &LogRead) -> Result<Page<LogEntry>>;

    /// The running token sums at the given positions, in their order: the cost of all visible
    /// messages up to and including each. 0 at `Seq(0)`; beyond the head the sum at the head.
    async fn running(&self, conversation: ConversationId, at: &[Seq]) -> Result<Vec<u64>>;

    /// The first position with a running sum of at least `running` tokens; `None` if the whole log costs less.
    async fn seq_at(&self, conversation: ConversationId, running: u64) -> Result<Option<Seq>>;

    /// The positions of entries by external id, in the order asked; `None` for those not visible.
    async fn find(&self, conversation: ConversationId, ids: &[String]) -> Result<Vec<Option<Seq>>>;

    /// The state of a view now. A view that was never published is one raw span at version 0.
    ///
    /// # Errors
    /// `NotFound` for the conversation.
    async fn snapshot(&self, conversation: ConversationId, view: &ViewName) -> Result<Snapshot>;

    /// The views of a conversation that were published at least once, by name.
    async fn views(&self, conversation: ConversationId) -> Result<Vec<ViewInfo>>;

    /// The spans of a snapshot that touch `range`, whole, at most `limit` of them. `next` is the
    /// part of the range that is left. Works at any version of the view up to today's. Raw and
    /// omitted spans have 0 tokens here; see [`crate::fill_raw_tokens`].
    ///
    /// # Errors
    /// `NotFound`; `Invalid` if the view has no such version yet.
    async fn spans(
        &self,
        snapshot: &Snapshot,
        range: SeqRange,
        order: Order,
        limit: usize,
    ) -> Result<Page<Span>>;

    /// Replaces spans if the view still holds the expected ones.
    ///
    /// # Errors
    /// As [`Store::publish_all`], including the errors of the publish.
    async fn publish(&self, conversation: ConversationId, publish: &Publish) -> Result<Published> {
        let publishes = std::slice::from_ref(publish);
        let outcomes = self.publish_all(conversation, publishes).await?;
        only(outcomes).flatten()
    }

    /// Publishes several times to one view, in order and in one transaction: each publish sees the effects of the
    /// earlier ones, summaries included. Each has its outcome; a publish that is lost or refused changes nothing and
    /// does not undo the others. The number of statements does not grow with the number of publishes, up to 64 rows of
    /// a table.
    ///
    /// Each publish replaces spans if the view still holds the expected ones. Token figures of raw and omitted spans
    /// are not stored. A summary that the conversation already has is not changed by a publish that brings it again. An
    /// outcome `Done` ends the fence's job; `Already` and `Lost` do not change the job.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` if the publishes name different views. For one publish: `Invalid` if the new spans do not
    /// tile the range, lie beyond the head, or name summaries that are in neither the publish nor the conversation or
    /// that cover another range; `Invalid` if a summary's children do not tile its range, its children or sources do
    /// not exist, a source reaches beyond its range, or its hash or id does not match its content; `Stale` if the fence
    /// is lost.
    async fn publish_all(
        &self,
        conversation: ConversationId,
        publishes: &[Publish],
    ) -> Result<Vec<Result<Published>>>;

    /// Publications of a view with versions above `after`, oldest first, at most `limit`.
    async fn publications(
        &self,
        conversation: ConversationId,
        view: &ViewName,
        after: ViewVersion,
        limit: usize,
    ) -> Result<Page<Publication, ViewVersion>>;

    /// Returns summaries by id, in the order of the ids; `None` for summaries that the conversation does not see. It
    /// sees its own summaries, and the ancestors' summaries that cover only shared positions: see [`SummaryScope`]. If
    /// two have one id it sees the nearest.
    async fn summaries(
        &self,
        conversation: ConversationId,
        ids: &[SummaryId],
    ) -> Result<Vec<Option<Summary>>>;

    /// Returns all summaries that a conversation sees, each once, after the given one: the ancestors' summaries first,
    /// each conversation's in the order of creation.
    ///
    /// # Errors
    /// `NotFound` for the conversation, or when it has no such summary.
    async fn summary_log(
        &self,
        conversation: ConversationId,
        after: Option<&SummaryId>,
        limit: usize,
    ) -> Result<Page<Summary, SummaryId>>;

    /// Returns the summaries that a conversation itself made, after the given one, in the order of creation.
    ///
    /// # Errors
    /// As [`Store::summary_log`].
    async fn own_summaries(
        &self,
        conversation: ConversationId,
        after: Option<&SummaryId>,
        limit: usize,
    ) -> Result<Page<Summary, SummaryId>>;

    /// Returns the visible summaries that have this one as a source or a child, in the order of `summary_log`.
    async fn parents(
        &self,
        conversation: ConversationId,
        summary: &SummaryId,
    ) -> Result<Vec<SummaryId>>;

    /// For each pair of a source hash and a recipe, returns the latest visible summary made from it, if one was
    /// published; the conversation's own before its ancestors'. In the order of the pairs.
    async fn summaries_by_source(
        &self,
        conversation: ConversationId,
        sources: &[(Hash, Recipe)],
    ) -> Result<Vec<Option<Summary>>>;

    /// Asks for one job.
    ///
    /// # Errors
    /// As [`Store::claim_all`].
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

    /// Asks for several jobs in one transaction, and answers for each in the order asked. A job is granted if it is
    /// free, the holder's lease has ended, or the holder itself asks again; a refused job does not affect the others.
    /// Each grant makes the fences of earlier grants of the job stale for ever: a number is never reused, even after
    /// the job is done or released.
    ///
    /// A lease ends `ttl` after the store's own time, so that processes with different clocks agree on it. With a
    /// time-to-live of zero it ends at once: any owner may claim the job, and the fence stays valid until one does.
    ///
    /// `erasures` is the conversation's [`erasures`](Conversation::erasures) before the jobs' words were read. After a
    /// further erasure no job is granted, and an erasure ends all leases: words do not change under a valid fence.
    ///
    /// # Errors
    /// `NotFound` for the conversation.
    async fn claim_all(
        &self,
        conversation: ConversationId,
        keys: &[JobKey],
        owner: &Owner,
        ttl: Duration,
        erasures: u64,
    ) -> Result<Vec<Claim>>;

    /// Renews, releases or completes a granted job.
    ///
    /// # Errors
    /// `NotFound` for the conversation; `Stale` if the job was granted again meanwhile, or has failed, was released or
    /// is done.
    async fn settle(&self, fence: &Fence, outcome: &LeaseUpdate) -> Result<()> {
        let settled = [(fence.clone(), outcome.clone())];
        only(self.settle_all(&settled).await?).flatten()
    }

    /// Renews, releases or completes several granted jobs in order and in one transaction, and
    /// answers for each. A lost fence does not undo the others.
    ///
    /// # Errors
    /// For each job as [`Store::settle`].
    async fn settle_all(&self, settled: &[(Fence, LeaseUpdate)]) -> Result<Vec<Result<()>>>;

    /// A small value of a conversation.
    async fn state(&self, conversation: ConversationId, key: &str) -> Result<Option<State>>;

    /// Sets a small value if it still has the given revision (0: does not exist), and returns the
    /// new revision. A value of `None` removes it.
    ///
    /// # Errors
    /// `Stale` if the revision is another.
    async fn put_state(
        &self,
        conversation: ConversationId,
        key: &str,
        revision: u64,
        value: Option<&memory_model::RawJson>,
    ) -> Result<u64>;

    /// Erases words for ever, and records the erasure with its reason. Removes bodies, names and metadata of the
    /// entries, the words of every summary derived from them, and all prepared work of the conversations that show
    /// them. Positions, roles, times, external ids, token figures and hashes stay, so that everything else still
    /// verifies. Entries that forks share are erased in all forks. Repeating an erasure finishes incomplete work.
    ///
    /// Views are not changed: [`crate::erase`] calls this and then opens the spans that show an erased summary. A store
    /// with files returns only when the files contain no byte of the words.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` if the range ends beyond the head, if there is no reason, or if the store does not
    /// implement this call. `NotGone` if a reader keeps old bytes in a file: the words are erased and recorded, and
    /// the same call finishes the work once the reader has ended.
    async fn erase(&self, conversation: ConversationId, erase: &Erase) -> Result<Erased> {
        let _ = erase;
        let message = format!("conversation {conversation}: this store cannot erase: use another");
        Err(Error::new(ErrorKind::Invalid, message))
    }

    /// Returns the erasures in everything that a conversation sees. Empty for a store that cannot erase.
    ///
    /// # Errors
    /// `NotFound`.
    async fn erasures(&self, conversation: ConversationId) -> Result<Erasures> {
        let _ = conversation;
        Ok(Erasures::default())
    }

    /// The search index that the store keeps; `None` if it keeps none.
    fn index(&self) -> Option<&dyn IndexStore> {
        None
    }

    /// The vectors that the store keeps; `None` if it keeps none.
    fn vector_store(&self) -> Option<&dyn VectorStore> {
        None
    }
}

/// The only element of the answers.
fn only<T>(mut answers: Vec<T>) -> Result<T> {
    answers.pop().ok_or_else(|| {
        let message = "the store returned no answer to a request: this is a defect of the store";
        Error::new(ErrorKind::Corrupt, message)
    })
}

/// Care of a store.
#[async_trait]
#[auto_impl(Arc)]
pub trait Maintain: Store {
    /// Runs the checks that only the database can make: of its pages, indices, foreign keys and triggers, and of the
    /// agreement between its rows. [`crate::verify`] makes all other checks.
    async fn check(&self) -> Result<Vec<Violation>>;

    /// Returns the time of an interrupted erasure, which may have left words in the database's files; `None` if there
    /// is none. Opening the store for writing, and erasing, removes them.
    ///
    /// # Errors
    /// Those of the store.
    async fn pending_wipe(&self) -> Result<Option<Timestamp>> {
        Ok(None)
    }

    /// Human-readable location of the data: a path, a URL without secrets, or `memory`.
    fn location(&self) -> String;

    /// Finishes pending work and releases resources. The store must not be used afterwards.
    async fn close(&self) -> Result<()>;
}

/// A store with its maintenance, behind one pointer.
pub trait FullStore: Store + Maintain {}

impl<S: Store + Maintain + ?Sized> FullStore for S {}
