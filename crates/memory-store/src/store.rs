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

/// Storage of conversations: their logs, views, summaries, jobs and small values.
///
/// Every call that writes is one transaction: after a failure, a crash or a dropped future the store has the state
/// before or after the call. A caller never holds a transaction.
///
/// A read sees every write that finished before it began. Reads of a [`Snapshot`] do not see later writes.
#[async_trait]
#[auto_impl(Arc)]
pub trait Store: Send + Sync + fmt::Debug {
    /// Returns the conversation with the key, or creates it. An existing one is returned unchanged: its origin,
    /// estimator and title stay the same.
    ///
    /// The views of a new fork are its parent's views, cut at the point of the fork: see [`ViewCut`]. The same
    /// transaction publishes them as version 1; a view of messages alone is not published.
    ///
    /// # Errors
    /// `NotFound` if the parent does not exist; `Invalid` if a fork begins beyond the
    /// parent's head; `EstimatorMismatch` if a fork names another estimator than its parent's.
    async fn open(&self, new: &NewConversation) -> Result<Conversation>;

    /// Looks up a conversation by number or key; `None` if it does not exist.
    async fn conversation(&self, which: &ConversationRef) -> Result<Option<Conversation>>;

    /// Returns a page of at most `limit` conversations that match a filter, in the order of their numbers, after the
    /// number `after`.
    async fn list(
        &self,
        filter: &ConversationFilter,
        after: Option<ConversationId>,
        limit: usize,
    ) -> Result<Page<Conversation, ConversationId>>;

    /// Changes a conversation's title, archive flag or metadata.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn update(
        &self,
        conversation: ConversationId,
        patch: &ConversationPatch,
        now: Timestamp,
    ) -> Result<Conversation>;

    /// Appends entries in order. An entry is not stored if another entry with its external id is visible; earlier
    /// entries of the same call count as visible.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist; `HeadMoved` if the log has another head than the append expects;
    /// `EstimatorMismatch` if the costs are by another estimator; `Limit` if the log would have more than 2³² − 2
    /// entries.
    async fn append(&self, conversation: ConversationId, append: &Append) -> Result<Appended>;

    /// Reads a page of a log, across segments. `next` is the rest of the range to read; `None` if the page reaches the
    /// end of the range or of the log.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist; `Corrupt` if an entry cannot be read; the message names the first
    /// one.
    async fn read(&self, conversation: ConversationId, read: &LogRead) -> Result<Page<LogEntry>>;

    /// Returns the running sum at each given position, in their order: the cost of all visible messages up to and
    /// including the position, in tokens. The sum is 0 at `Seq(0)`; beyond the head it is the sum at the head.
    async fn running(&self, conversation: ConversationId, at: &[Seq]) -> Result<Vec<u64>>;

    /// Returns the first position with a running sum of at least `running` tokens; `None` if the whole log costs less.
    async fn seq_at(&self, conversation: ConversationId, running: u64) -> Result<Option<Seq>>;

    /// Returns the positions of the entries with these external ids, in the order of the ids; `None` for an id that is
    /// not visible.
    async fn find(&self, conversation: ConversationId, ids: &[String]) -> Result<Vec<Option<Seq>>>;

    /// Returns a snapshot of a view as it is now. A view that was never published is one raw span at version 0.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn snapshot(&self, conversation: ConversationId, view: &ViewName) -> Result<Snapshot>;

    /// Returns the views of a conversation that were published at least once, by name.
    async fn views(&self, conversation: ConversationId) -> Result<Vec<ViewInfo>>;

    /// Returns at most `limit` spans of a snapshot that overlap `range`, each with its whole range. `next` is the part
    /// of `range` that is left to read. The snapshot may be of any existing version of the view. Raw and omitted spans
    /// have 0 tokens here; see [`crate::fill_raw_tokens`].
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist; `Invalid` if the view has no such version yet.
    async fn spans(
        &self,
        snapshot: &Snapshot,
        range: SeqRange,
        order: Order,
        limit: usize,
    ) -> Result<Page<Span>>;

    /// Replaces spans of a view, if the view still holds the expected ones.
    ///
    /// # Errors
    /// As [`Store::publish_all`]. An error of the publish is returned as an error of the call.
    async fn publish(&self, conversation: ConversationId, publish: &Publish) -> Result<Published> {
        let publishes = std::slice::from_ref(publish);
        let outcomes = self.publish_all(conversation, publishes).await?;
        only(outcomes).flatten()
    }

    /// Publishes several times to one view, in order and in one transaction: each publish sees the effects of the
    /// earlier ones, summaries included. Returns the outcome of each. A publish that is lost or refused changes no data
    /// and does not undo the others. The number of statements does not grow with the number of publishes, up to 64 rows
    /// of a table.
    ///
    /// Each publish replaces spans if the view still holds the expected ones. Costs of raw and omitted spans are not
    /// stored. A summary that the conversation already has is not changed by a publish that contains it. The outcome
    /// `Done` ends the job of the fence; `Already` and `Lost` do not change the job.
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

    /// Returns at most `limit` publications of a view with versions above `after`, oldest first.
    async fn publications(
        &self,
        conversation: ConversationId,
        view: &ViewName,
        after: ViewVersion,
        limit: usize,
    ) -> Result<Page<Publication, ViewVersion>>;

    /// Returns the summaries with these ids, in the order of the ids; `None` for a summary that the conversation does
    /// not see. A conversation sees its own summaries, and its ancestors' summaries that cover only shared positions:
    /// see [`SummaryScope`]. If several of them have an id, the nearest conversation's is returned.
    async fn summaries(
        &self,
        conversation: ConversationId,
        ids: &[SummaryId],
    ) -> Result<Vec<Option<Summary>>>;

    /// Returns a page of all summaries that a conversation sees, each once, after the given one. The order is: the
    /// ancestors' summaries before its own, and each conversation's in the order of creation.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist or does not see the given summary.
    async fn summary_log(
        &self,
        conversation: ConversationId,
        after: Option<&SummaryId>,
        limit: usize,
    ) -> Result<Page<Summary, SummaryId>>;

    /// Returns a page of the summaries that a conversation itself made, after the given one, in the order of creation.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist or did not make the given summary.
    async fn own_summaries(
        &self,
        conversation: ConversationId,
        after: Option<&SummaryId>,
        limit: usize,
    ) -> Result<Page<Summary, SummaryId>>;

    /// Returns the visible summaries that have this summary as a source or a child, in the order of
    /// [`Store::summary_log`].
    async fn parents(
        &self,
        conversation: ConversationId,
        summary: &SummaryId,
    ) -> Result<Vec<SummaryId>>;

    /// For each pair of a source hash and a recipe, in the order of the pairs, returns the latest visible summary that
    /// was made from these sources by this recipe; `None` if there is none. The conversation's own summaries come
    /// before its ancestors'.
    async fn summaries_by_source(
        &self,
        conversation: ConversationId,
        sources: &[(Hash, Recipe)],
    ) -> Result<Vec<Option<Summary>>>;

    /// Asks for the lease on one job.
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

    /// Asks for the leases on several jobs in one transaction. Returns an answer for each job, in their order. A job is
    /// granted if it is free, if the lease of its holder has ended, or if the holder itself asks again. A refused job
    /// does not affect the others. Each grant makes the fences of earlier grants of the job stale for ever: a fence's
    /// number is never reused, even after the job is done or released.
    ///
    /// A lease ends `ttl` after the grant, by the store's own time, so that processes with different clocks agree on
    /// its end. With a `ttl` of zero it ends at once: any owner may claim the job, and the fence stays valid until one
    /// does.
    ///
    /// `erasures` is the conversation's [`erasures`](Conversation::erasures) before the words for the jobs were read.
    /// After a later erasure no job is granted. An erasure also ends all leases, so words do not change under a valid
    /// fence.
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

    /// Renews, releases or completes a granted job.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist; `Stale` if the job was granted again meanwhile, or has failed,
    /// was released or is done.
    async fn settle(&self, fence: &Fence, outcome: &LeaseUpdate) -> Result<()> {
        let settled = [(fence.clone(), outcome.clone())];
        only(self.settle_all(&settled).await?).flatten()
    }

    /// Renews, releases or completes several granted jobs in order and in one transaction. Returns the result for each.
    /// A fence that is lost does not undo the others.
    ///
    /// # Errors
    /// The result for each job has the errors of [`Store::settle`].
    async fn settle_all(&self, settled: &[(Fence, LeaseUpdate)]) -> Result<Vec<Result<()>>>;

    /// Returns a small value of a conversation; `None` if there is no value with this key.
    async fn state(&self, conversation: ConversationId, key: &str) -> Result<Option<State>>;

    /// Sets a small value if it still has the given revision (0: it does not exist). Returns the new revision. A value
    /// of `None` removes the stored one.
    ///
    /// # Errors
    /// `Stale` if the value has another revision.
    async fn put_state(
        &self,
        conversation: ConversationId,
        key: &str,
        revision: u64,
        value: Option<&memory_model::RawJson>,
    ) -> Result<u64>;

    /// Erases words for ever, and records the erasure with its reason. It removes the bodies, names and metadata of the
    /// entries, the words of every summary derived from them, and all prepared work of the conversations that show
    /// them. Positions, roles, times, external ids, costs and hashes stay, so that everything else still verifies.
    /// Entries that forks share are erased in all forks. A repeated erasure finishes incomplete work.
    ///
    /// This call does not change views: [`crate::erase`] calls it and then opens the spans that show an erased summary.
    /// A store with files returns only when no file contains a byte of the words.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist; `Invalid` if the range ends beyond the head, if there is no
    /// reason, or if the store does not implement this call; `NotGone` if a reader keeps old bytes in a file. After
    /// `NotGone` the words are erased and the erasure is recorded; repeat the call when the reader has ended to finish
    /// the work.
    async fn erase(&self, conversation: ConversationId, erase: &Erase) -> Result<Erased> {
        let _ = erase;
        let message = format!("conversation {conversation}: this store cannot erase: use another");
        Err(Error::new(ErrorKind::Invalid, message))
    }

    /// Returns the recorded erasures in everything that a conversation sees. Empty for a store that cannot erase.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn erasures(&self, conversation: ConversationId) -> Result<Erasures> {
        let _ = conversation;
        Ok(Erasures::default())
    }

    /// Returns the part of the store that keeps search indexes; `None` if it keeps none.
    fn index(&self) -> Option<&dyn IndexStore> {
        None
    }

    /// Returns the part of the store that keeps vectors; `None` if it keeps none.
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

/// Maintenance of a store: checks, its location, and closing it.
#[async_trait]
#[auto_impl(Arc)]
pub trait Maintain: Store {
    /// Runs the checks that only the database can make, and returns the violations: of its pages, indices, foreign keys
    /// and triggers, and of the agreement between its rows. [`crate::verify`] makes all other checks.
    async fn check(&self) -> Result<Vec<Violation>>;

    /// Returns the time of an interrupted erasure, which may have left words in the database's files; `None` if there
    /// is none. Opening the store for writing, or another erasure, removes these words.
    ///
    /// # Errors
    /// If the database cannot be read.
    async fn pending_wipe(&self) -> Result<Option<Timestamp>> {
        Ok(None)
    }

    /// Human-readable location of the data: a path, a URL without secrets, or `memory`.
    fn location(&self) -> String;

    /// Finishes pending work and releases the store's resources. The store must not be used afterwards.
    async fn close(&self) -> Result<()>;
}

/// A [`Store`] with its maintenance, as one trait for use behind one pointer.
pub trait FullStore: Store + Maintain {}

impl<S: Store + Maintain + ?Sized> FullStore for S {}
