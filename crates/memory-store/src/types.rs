//! Arguments and answers of a store's calls.

use std::time::Duration;

use memory_model::{
    ConversationId, Hash, Message, RawJson, Seq, SeqRange, SessionKey, Span, SpanBody, SpanStart,
    Summary, Timestamp, ViewName, ViewVersion,
};
use serde::{Deserialize, Serialize};
use token_estimate::{EstimatorId, TokenEstimator};

/// Origin of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Origin {
    /// A conversation without a parent.
    Root,
    /// A fork: shares its parent's log up to and including `at`, and continues from there.
    Fork {
        /// The parent.
        parent: ConversationId,
        /// Last shared position; `Seq(0)` if no position is shared.
        at: Seq,
    },
    /// A sub-agent: started by a call in its parent's log. Shares no positions.
    Spawn {
        /// The parent.
        parent: ConversationId,
        /// Position of the call in the parent's log; `Seq(0)` when unknown.
        at: Seq,
        /// Id of the call; `None` if unknown.
        call: Option<String>,
    },
}

impl Origin {
    /// Returns the parent of a fork or a spawned conversation.
    pub fn parent(&self) -> Option<ConversationId> {
        match self {
            Origin::Root => None,
            Origin::Fork { parent, .. } | Origin::Spawn { parent, .. } => Some(*parent),
        }
    }
}

/// Arguments for opening a conversation, which is created if none has the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewConversation {
    /// The caller's name for the conversation; unique in the store.
    pub key: SessionKey,
    /// Origin.
    pub origin: Origin,
    /// Estimator of all its token figures.
    pub estimator: EstimatorId,
    /// Human-readable title.
    pub title: Option<String>,
    /// The caller's metadata, as a JSON object.
    pub meta: Option<RawJson>,
    /// Time of the call.
    pub now: Timestamp,
}

impl NewConversation {
    /// A root conversation without title or metadata.
    pub fn root(key: impl Into<SessionKey>, estimator: EstimatorId, now: Timestamp) -> Self {
        Self {
            key: key.into(),
            origin: Origin::Root,
            estimator,
            title: None,
            meta: None,
            now,
        }
    }
}

/// A range of one conversation's own log that is visible in another, or in itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// First position, inclusive.
    pub first: Seq,
    /// Last position, inclusive; `None` for the conversation's own, growing log.
    pub last: Option<Seq>,
    /// Conversation that owns the log.
    pub source: ConversationId,
}

impl Segment {
    /// Returns the positions of a log that ends at `head`; `None` if there are none.
    pub fn up_to(&self, head: Seq) -> Option<SeqRange> {
        SeqRange::new(self.first, self.last.unwrap_or(head))
    }
}

/// A stored conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// The store's number for the conversation.
    pub id: ConversationId,
    /// The caller's name for the conversation.
    pub key: SessionKey,
    /// Origin.
    pub origin: Origin,
    /// Root of its family: the conversation itself, or its oldest ancestor by forks and spawns.
    pub family: ConversationId,
    /// Visible ranges of its ancestors' logs, then its own log, in order.
    pub segments: Vec<Segment>,
    /// Last position of its log; `Seq(0)` when the log is empty.
    pub head: Seq,
    /// Cost of all visible messages, in tokens.
    pub tokens: u64,
    /// Chain over the hashes of its own log; [`Hash::ZERO`] if that log is empty.
    pub chain: Hash,
    /// Estimator of its token figures.
    pub estimator: EstimatorId,
    /// Human-readable title.
    pub title: Option<String>,
    /// Whether the conversation is archived.
    pub archived: bool,
    /// The caller's metadata, as a JSON object.
    pub meta: Option<RawJson>,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Time of the last append, publish or change.
    pub updated_at: Timestamp,
    /// Number of erasures since its creation of words that it saw. Compare it before using words of the log from
    /// memory.
    pub erasures: u64,
}

impl Conversation {
    /// Returns the first position of its own log.
    pub fn own_first(&self) -> Seq {
        match self.origin {
            Origin::Fork { at, .. } => at.next(),
            Origin::Root | Origin::Spawn { .. } => Seq::FIRST,
        }
    }

    /// Returns the whole visible log; `None` if it is empty.
    pub fn range(&self) -> Option<SeqRange> {
        SeqRange::new(Seq::FIRST, self.head)
    }
}

/// Returns a conversation's segments: for a fork the parent's segments up to its point, and its own log after that.
pub(crate) fn segments_of(
    origin: &Origin,
    parent: Option<&Conversation>,
    own: ConversationId,
) -> Vec<Segment> {
    let (shared, at) = match (origin, parent) {
        (Origin::Fork { at, .. }, Some(parent)) => (parent.segments.as_slice(), *at),
        _ => (&[][..], Seq::NONE),
    };
    let mut segments: Vec<Segment> = shared
        .iter()
        .filter(|segment| segment.first <= at)
        .map(|segment| Segment {
            last: Some(segment.last.map_or(at, |last| last.min(at))),
            ..*segment
        })
        .collect();
    segments.push(Segment {
        first: at.next(),
        last: None,
        source: own,
    });
    segments
}

/// Reference to a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversationRef {
    /// By the store's number.
    Id(ConversationId),
    /// By the caller's name.
    Key(SessionKey),
}

/// Filter for listing conversations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversationFilter {
    /// Whether archived conversations are listed too.
    pub archived: bool,
    /// Lists only the family with this root.
    pub family: Option<ConversationId>,
}

/// Changes to a conversation's title, archive flag and metadata. `None` keeps a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversationPatch {
    /// New title.
    pub title: Option<String>,
    /// New archive flag.
    pub archived: Option<bool>,
    /// New metadata, replacing the old.
    pub meta: Option<RawJson>,
}

/// One page of a longer answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T, C = SeqRange> {
    /// The items, in the order asked for.
    pub items: Vec<T>,
    /// Start of the next page; `None` on the last page.
    pub next: Option<C>,
}

impl<T, C> Page<T, C> {
    /// A single, last page.
    pub fn complete(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}

/// Reading order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// By rising position.
    #[default]
    OldestFirst,
    /// By falling position.
    NewestFirst,
}

/// Arguments for reading a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRead {
    /// Positions to read; those beyond the head are ignored.
    pub range: SeqRange,
    /// The positions of the range to read, rising; `None` for all.
    pub only: Option<Vec<Seq>>,
    /// Reading order.
    pub order: Order,
    /// Maximum number of entries in a page.
    pub max_rows: usize,
    /// Ends a page when its bodies have this many bytes; a page holds at least one entry.
    pub max_bytes: u64,
}

impl LogRead {
    /// Reads a range oldest first, in pages of at most 1,024 entries or 8 MiB.
    pub fn new(range: SeqRange) -> Self {
        Self {
            range,
            only: None,
            order: Order::OldestFirst,
            max_rows: 1024,
            max_bytes: 8 << 20,
        }
    }

    /// Reads the entries at these positions, in pages as [`new`](Self::new) does; `None` without any.
    pub fn at(positions: impl IntoIterator<Item = Seq>) -> Option<Self> {
        let mut only: Vec<Seq> = positions.into_iter().collect();
        only.sort_unstable();
        only.dedup();
        let range = SeqRange::new(*only.first()?, *only.last()?)?;
        Some(Self {
            only: Some(only),
            ..Self::new(range)
        })
    }

    /// Reads newest first.
    pub fn newest_first(mut self) -> Self {
        self.order = Order::NewestFirst;
        self
    }

    /// Sets the maximum number of entries in a page.
    pub fn with_max_rows(mut self, rows: usize) -> Self {
        self.max_rows = rows;
        self
    }

    /// Returns the positions of `only` in a part of the range; `None` if all are read.
    pub fn only_in(&self, part: SeqRange) -> Option<&[Seq]> {
        let only = self.only.as_deref()?;
        let begin = only.partition_point(|seq| *seq < part.first);
        let end = only.partition_point(|seq| *seq <= part.last);
        Some(only.get(begin..end).unwrap_or_default())
    }

    /// Returns the rest of a part of the range after a page that ended at `last`; `None` if there is none.
    pub fn rest_of(&self, part: SeqRange, last: Seq) -> Option<SeqRange> {
        let rest = rest_of(part, self.order, last);
        rest.filter(|rest| self.only_in(*rest).is_none_or(|only| !only.is_empty()))
    }
}

/// Returns the rest of `range` after a page that ended at `last` in `order`.
pub fn rest_of(range: SeqRange, order: Order, last: Seq) -> Option<SeqRange> {
    match order {
        Order::OldestFirst => SeqRange::new(last.next(), range.last),
        Order::NewestFirst => SeqRange::new(range.first, last.prev()),
    }
}

/// Position at which an append expects the log to end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AppendAt {
    /// Any position.
    #[default]
    Any,
    /// This position; otherwise the append fails with `HeadMoved`.
    Head(Seq),
}

/// A message to append, with its cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEntry {
    /// The message or note.
    pub message: Message,
    /// Cost by the append's estimator, in tokens; 0 for a note.
    pub tokens: u64,
    /// Whether `message.created_at` was set from the clock because the caller gave no time. Such a time, and the time
    /// 0, is not compared with the time of a stored entry with the same external id.
    pub clocked: bool,
}

impl NewEntry {
    /// An entry with a message that has the caller's time, or none.
    pub fn new(message: Message, tokens: u64) -> Self {
        Self {
            message,
            tokens,
            clocked: false,
        }
    }
}

/// Entries to append, all in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    /// Position at which the log must end.
    pub at: AppendAt,
    /// Estimator of the costs; must be the conversation's.
    pub estimator: EstimatorId,
    /// The entries, in order.
    pub entries: Vec<NewEntry>,
    /// Time of the call.
    pub now: Timestamp,
}

impl Append {
    /// Appends messages at the end of the log, at this time and with the costs that the estimator counts.
    pub fn messages(
        messages: impl IntoIterator<Item = Message>,
        estimator: &dyn TokenEstimator,
        now: Timestamp,
    ) -> Self {
        let entries = messages.into_iter().map(|message| {
            let tokens = estimator.message(&message);
            NewEntry::new(message, tokens)
        });
        Self {
            at: AppendAt::Any,
            estimator: estimator.id(),
            entries: entries.collect(),
            now,
        }
    }
}

/// Outcome of appending one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryOutcome {
    /// Stored at this position.
    Inserted(Seq),
    /// An equal entry with its external id is already visible at this position. Times are compared only if both came
    /// with one; the stored entry does not change.
    Duplicate(Seq),
    /// Another entry with its external id is already visible at this position; the new one was not stored.
    Conflict(Seq),
}

/// Result of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// Outcomes of the entries, in their order.
    pub outcomes: Vec<EntryOutcome>,
    /// The log's head after the append.
    pub head: Seq,
    /// Cost of all visible messages after the append, in tokens.
    pub tokens: u64,
}

/// An immutable state of a conversation as a view shows it. Later appends and publishes do not change
/// it; only an erasure does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The conversation.
    pub conversation: ConversationId,
    /// The log's head.
    pub head: Seq,
    /// Cost of all visible messages, in tokens.
    pub log_tokens: u64,
    /// The view.
    pub view: ViewName,
    /// The view's version; 0 for a view that was never published.
    pub version: ViewVersion,
    /// Difference between the cost of the messages and the cost of the view's spans, in tokens. Negative if the spans
    /// cost more.
    pub saved: i64,
    /// Number of the view's spans.
    pub spans: u64,
    /// As in [`Conversation::erasures`].
    pub erasures: u64,
}

impl Snapshot {
    /// Returns the cost of the whole view, in tokens.
    pub fn tokens(&self) -> u64 {
        let saved = i128::from(self.saved);
        u64::try_from(i128::from(self.log_tokens) - saved).unwrap_or(0)
    }
}

/// A stored view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewInfo {
    /// Name.
    pub name: ViewName,
    /// Current version.
    pub version: ViewVersion,
    /// Number of spans.
    pub spans: u64,
    /// As in [`Snapshot::saved`].
    pub saved: i64,
    /// Chain over its publications; [`Hash::ZERO`] at version 0.
    pub chain: Hash,
}

/// New spans for a view, all in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    /// The view.
    pub view: ViewName,
    /// The range to replace; it must lie in the log.
    pub at: SeqRange,
    /// Spans that the view must still hold over the range.
    pub expect: Vec<Span>,
    /// Spans to put in place; they cover exactly `at`.
    pub spans: Vec<Span>,
    /// The summaries that the new spans need and the store may not have yet.
    pub summaries: Vec<Summary>,
    /// A lease that must still be held; its job is done once the publish is.
    pub fence: Option<Fence>,
    /// The conversation's [`erasures`](Conversation::erasures) before the sources of the summaries were read. After a
    /// further erasure the publish is refused.
    pub erasures: u64,
    /// Time of the call.
    pub now: Timestamp,
}

/// Outcome of a publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// The view has this new version.
    Done(ViewVersion),
    /// The view already held the new spans; the store did not change.
    Already(ViewVersion),
    /// The view held other spans; the store did not change.
    Lost {
        /// Spans that the view holds over the range.
        found: Vec<Span>,
    },
    /// Words of the conversation were erased since the sources of the summaries were read; the store did not change.
    Outdated,
}

/// One publish in a view's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// Version that it created.
    pub version: ViewVersion,
    /// Range that it replaced.
    pub at: SeqRange,
    /// Rows that it removed.
    pub removed: Vec<SpanStart>,
    /// Rows that it added.
    pub added: Vec<SpanStart>,
    /// Time of the publish.
    pub created_at: Timestamp,
    /// Chain over this and all earlier publications; see [`publication_hash`].
    pub hash: Hash,
}

/// Returns the chain after a publication: H(chain before ‖ version ‖ range ‖ removed ‖ added rows).
pub fn publication_hash(
    before: Hash,
    version: ViewVersion,
    at: SeqRange,
    removed: &[SpanStart],
    added: &[SpanStart],
) -> Hash {
    let mut hasher = memory_model::FieldHasher::new("agent-memory publication 1");
    hasher.hash(before);
    hasher.number(i64::try_from(version.0).unwrap_or(i64::MAX));
    hasher.number(i64::from(at.first.0));
    hasher.number(i64::from(at.last.0));
    for rows in [removed, added] {
        hasher.number(i64::try_from(rows.len()).unwrap_or(i64::MAX));
        for row in rows {
            hasher.number(i64::from(row.first.0));
            let (kind, text, depth) = match &row.body {
                SpanBody::Raw => ("raw", None, -1),
                SpanBody::Summary { id, depth } => {
                    ("summary", Some(id.as_str()), i64::from(*depth))
                }
                SpanBody::Trimmed(policy) => ("trimmed", Some(policy.as_str()), -1),
                SpanBody::Omitted => ("omitted", None, -1),
            };
            hasher.bytes(kind.as_bytes());
            hasher.optional(text);
            hasher.number(depth);
            hasher.number(i64::try_from(row.tokens).unwrap_or(i64::MAX));
        }
    }
    hasher.finish()
}

/// Returns the hash over a publication's row: H(its hash ‖ its time). [`publication_hash`] excludes the time.
pub fn publication_record_hash(hash: Hash, at: Timestamp) -> Hash {
    let mut hasher = memory_model::FieldHasher::new("agent-memory publication record 1");
    hasher.hash(hash);
    hasher.number(at.0);
    hasher.finish()
}

/// Name of a job in a conversation, such as one summary to write.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobKey(pub String);

/// Owner of a lease: a process or a task.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner(pub String);

/// Proof of a lease. It is refused after a later grant of the job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fence {
    /// The conversation.
    pub conversation: ConversationId,
    /// The job.
    pub key: JobKey,
    /// Rises with every grant of a job of the conversation.
    pub token: u64,
}

/// Prepared work that is not published yet, in the preparer's own JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft(pub RawJson);

/// Answer to a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// The job is granted; the lease ends after its time-to-live unless renewed.
    Granted(Fence),
    /// Another owner holds the job.
    Held {
        /// The owner.
        owner: Owner,
        /// End of the lease by the store's own time, unless renewed.
        until: Timestamp,
    },
    /// The work is prepared; publish it under this fence.
    Ready(Fence, Draft),
    /// Words of the conversation were erased since the job's words were read: read them again.
    Outdated,
}

/// Update to a held lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseUpdate {
    /// The lease ends `ttl` from now, by the store's own time.
    Renew {
        /// The new time-to-live. Zero ends the lease: then any owner may claim the job, with its prepared work.
        ttl: Duration,
    },
    /// The work is prepared and kept until it is published.
    Prepared(Draft),
    /// The work failed; the job is free again and counts its failures. Prepared work is kept.
    Failed,
    /// The job is done or given up: its data is removed.
    Release,
}

/// A small value of a conversation, such as pins, notes or settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The value.
    pub value: RawJson,
    /// Rises by one with each change, from 1.
    pub revision: u64,
}
