//! Arguments and answers of a store's calls.

use std::time::Duration;

use memory_model::{
    ConversationId, Hash, Message, RawJson, Seq, SeqRange, SessionKey, Span, SpanBody, SpanStart,
    Summary, Timestamp, ViewName, ViewVersion,
};
use serde::{Deserialize, Serialize};
use token_estimate::{EstimatorId, TokenEstimator};

/// Relation of a conversation to the conversation from which it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Origin {
    /// A conversation without a parent.
    Root,
    /// A fork: shares its parent's log up to and including `at`, and continues from there.
    Fork {
        /// Conversation that was forked.
        parent: ConversationId,
        /// Last shared position; `Seq(0)` if no position is shared.
        at: Seq,
    },
    /// A sub-agent: a conversation started by a tool call in its parent's log. It shares no positions with the parent.
    Spawn {
        /// Conversation that contains the tool call.
        parent: ConversationId,
        /// Position of the tool call in the parent's log; `Seq(0)` when unknown.
        at: Seq,
        /// Id of the tool call; `None` if unknown.
        call: Option<String>,
    },
}

impl Origin {
    /// Returns the parent of a forked or spawned conversation; `None` for a root.
    pub fn parent(&self) -> Option<ConversationId> {
        match self {
            Origin::Root => None,
            Origin::Fork { parent, .. } | Origin::Spawn { parent, .. } => Some(*parent),
        }
    }
}

/// Arguments for opening a conversation. If none has the key, it is created with these values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewConversation {
    /// The caller's name for the conversation; unique in the store.
    pub key: SessionKey,
    /// Whether the conversation is a root, a fork or spawned, and from which parent.
    pub origin: Origin,
    /// Estimator that counts all costs of the conversation.
    pub estimator: EstimatorId,
    /// Human-readable title of the conversation.
    pub title: Option<String>,
    /// The caller's metadata of the conversation, as a JSON object.
    pub meta: Option<RawJson>,
    /// Time of the creation, if the conversation is created.
    pub now: Timestamp,
}

impl NewConversation {
    /// Creates the arguments for a root conversation without title or metadata.
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

/// A range of one conversation's own log that is visible in another conversation, or in itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// First visible position, inclusive.
    pub first: Seq,
    /// Last visible position, inclusive; `None` for the conversation's own log, which grows.
    pub last: Option<Seq>,
    /// Conversation that owns the log.
    pub source: ConversationId,
}

impl Segment {
    /// Returns the positions of the segment in a log that ends at `head`; `None` if there are none.
    pub fn up_to(&self, head: Seq) -> Option<SeqRange> {
        SeqRange::new(self.first, self.last.unwrap_or(head))
    }
}

/// A stored conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// Number of the conversation in its store.
    pub id: ConversationId,
    /// The caller's name for the conversation; unique in the store.
    pub key: SessionKey,
    /// Whether the conversation is a root, a fork or spawned, and from which parent.
    pub origin: Origin,
    /// Root of the conversation's family: the conversation itself, or its oldest ancestor by forks and spawns.
    pub family: ConversationId,
    /// Ranges that the conversation's log consists of, in order: the visible ranges of its ancestors' logs, then its
    /// own log.
    pub segments: Vec<Segment>,
    /// Last position of the conversation's log; `Seq(0)` when the log is empty.
    pub head: Seq,
    /// Cost of all visible messages, in tokens.
    pub tokens: u64,
    /// Chain hash: one hash over the hashes of all entries of the conversation's own log, in order. [`Hash::ZERO`] if
    /// that log is empty.
    pub chain: Hash,
    /// Estimator that counts all costs of the conversation.
    pub estimator: EstimatorId,
    /// Human-readable title of the conversation; `None` without one.
    pub title: Option<String>,
    /// Whether the conversation is archived. Lists leave out archived conversations unless
    /// [`ConversationFilter::archived`] is set; they can still be read and changed.
    pub archived: bool,
    /// The caller's metadata of the conversation, as a JSON object.
    pub meta: Option<RawJson>,
    /// Time at which the conversation was created.
    pub created_at: Timestamp,
    /// Time of the last append, publish or change of the conversation.
    pub updated_at: Timestamp,
    /// Number of erasures, since the conversation's creation, of words that it saw. Before you use words of the log
    /// that were read earlier, compare this number with its value before they were read. If it has risen, some of the
    /// words may be erased: read them again.
    pub erasures: u64,
}

impl Conversation {
    /// Returns the first position of the conversation's own log.
    pub fn own_first(&self) -> Seq {
        match self.origin {
            Origin::Fork { at, .. } => at.next(),
            Origin::Root | Origin::Spawn { .. } => Seq::FIRST,
        }
    }

    /// Returns the range of the whole visible log; `None` if the log is empty.
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

/// Reference to a conversation, by number or by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversationRef {
    /// The conversation with this number in the store.
    Id(ConversationId),
    /// The conversation with this name, which a caller gave it.
    Key(SessionKey),
}

/// Filter for listing conversations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversationFilter {
    /// Whether archived conversations are listed too.
    pub archived: bool,
    /// Lists only conversations of the family with this root; `None` lists all families.
    pub family: Option<ConversationId>,
}

/// Changes to a conversation's title, archive flag and metadata. `None` keeps a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversationPatch {
    /// New title of the conversation.
    pub title: Option<String>,
    /// Whether the conversation is archived from now on.
    pub archived: Option<bool>,
    /// New metadata of the conversation, which replaces all old metadata.
    pub meta: Option<RawJson>,
}

/// One page of a longer list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T, C = SeqRange> {
    /// Items of the page, in the requested order.
    pub items: Vec<T>,
    /// Start of the next page, to pass to the next call; `None` on the last page.
    pub next: Option<C>,
}

impl<T, C> Page<T, C> {
    /// Creates a page that is the only and last one.
    pub fn complete(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}

/// Order in which entries or spans are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// By rising position: the oldest first.
    #[default]
    OldestFirst,
    /// By falling position: the latest first.
    NewestFirst,
}

/// Arguments for reading a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRead {
    /// Positions to read; positions beyond the head are ignored.
    pub range: SeqRange,
    /// Positions of the range to read, in rising order; `None` reads all positions of the range.
    pub only: Option<Vec<Seq>>,
    /// Order in which the entries are read.
    pub order: Order,
    /// Maximum number of entries in a page.
    pub max_rows: usize,
    /// Number of bytes of bodies at which a page ends; a page holds at least one entry.
    pub max_bytes: u64,
}

impl LogRead {
    /// Creates the arguments for reading a range oldest first, in pages of at most 1,024 entries or 8 MiB.
    pub fn new(range: SeqRange) -> Self {
        Self {
            range,
            only: None,
            order: Order::OldestFirst,
            max_rows: 1024,
            max_bytes: 8 << 20,
        }
    }

    /// Creates the arguments for reading the entries at these positions, in pages as [`new`](Self::new) does; `None`
    /// without any positions.
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

    /// Sets the order to newest first.
    pub fn newest_first(mut self) -> Self {
        self.order = Order::NewestFirst;
        self
    }

    /// Sets the maximum number of entries in a page.
    pub fn with_max_rows(mut self, rows: usize) -> Self {
        self.max_rows = rows;
        self
    }

    /// Returns the positions of `only` that lie in `part`; `None` if all positions are read.
    pub fn only_in(&self, part: SeqRange) -> Option<&[Seq]> {
        let only = self.only.as_deref()?;
        let begin = only.partition_point(|seq| *seq < part.first);
        let end = only.partition_point(|seq| *seq <= part.last);
        Some(only.get(begin..end).unwrap_or_default())
    }

    /// Returns the rest of `part` after a page that ended at `last`; `None` if no position is left to read.
    pub fn rest_of(&self, part: SeqRange, last: Seq) -> Option<SeqRange> {
        let rest = rest_of(part, self.order, last);
        rest.filter(|rest| self.only_in(*rest).is_none_or(|only| !only.is_empty()))
    }
}

/// Returns the rest of `range` after a page that ended at `last` in `order`; `None` if no position is left.
pub fn rest_of(range: SeqRange, order: Order, last: Seq) -> Option<SeqRange> {
    match order {
        Order::OldestFirst => SeqRange::new(last.next(), range.last),
        Order::NewestFirst => SeqRange::new(range.first, last.prev()),
    }
}

/// Position at which the log must end before an append.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AppendAt {
    /// The log may end at any position.
    #[default]
    Any,
    /// The log must end at this position; otherwise the append fails with `HeadMoved`.
    Head(Seq),
}

/// A message to append, with its cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEntry {
    /// The message or note to append.
    pub message: Message,
    /// Cost of the message, counted by the append's estimator, in tokens; 0 for a note.
    pub tokens: u64,
    /// Whether `message.created_at` was set from the clock because the caller gave no time. Such a time, and the time
    /// 0, is not compared with the time of a stored entry with the same external id.
    pub clocked: bool,
}

impl NewEntry {
    /// Creates an entry with a message that has the caller's time, or no time.
    pub fn new(message: Message, tokens: u64) -> Self {
        Self {
            message,
            tokens,
            clocked: false,
        }
    }
}

/// Arguments for appending entries, all in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    /// Position at which the log must end before the append.
    pub at: AppendAt,
    /// Estimator that counted the costs of the entries; must be the conversation's.
    pub estimator: EstimatorId,
    /// Entries to append, in order.
    pub entries: Vec<NewEntry>,
    /// Time of the append, which the store records as the conversation's last change.
    pub now: Timestamp,
}

impl Append {
    /// Creates an append of messages at the end of the log, at this time and with the costs that the estimator counts.
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
    /// The entry was stored at this position.
    Inserted(Seq),
    /// An equal entry with the same external id is already visible at this position, and does not change. Times are
    /// compared only if both entries came with one.
    Duplicate(Seq),
    /// A different entry with the same external id is already visible at this position; the new one was not stored.
    Conflict(Seq),
}

/// Result of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// Outcome of each entry, in the order of the entries.
    pub outcomes: Vec<EntryOutcome>,
    /// Head of the log after the append.
    pub head: Seq,
    /// Cost of all visible messages after the append, in tokens.
    pub tokens: u64,
}

/// An immutable state of a conversation as a view shows it. Later appends and publishes do not change
/// it; only an erasure does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Number of the conversation in its store.
    pub conversation: ConversationId,
    /// Head of the log in this state.
    pub head: Seq,
    /// Cost of all visible messages in this state, in tokens.
    pub log_tokens: u64,
    /// Name of the view.
    pub view: ViewName,
    /// Version of the view; 0 for a view that was never published.
    pub version: ViewVersion,
    /// Cost of the messages minus the cost of the view's spans, in tokens. Negative if the spans cost more.
    pub saved: i64,
    /// Number of spans in the view.
    pub spans: u64,
    /// Number of erasures of words that the conversation saw: see [`Conversation::erasures`].
    pub erasures: u64,
}

impl Snapshot {
    /// Returns the cost of all spans of the view, in tokens.
    pub fn tokens(&self) -> u64 {
        let saved = i128::from(self.saved);
        u64::try_from(i128::from(self.log_tokens) - saved).unwrap_or(0)
    }
}

/// A view that was published at least once, without its spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewInfo {
    /// Name of the view.
    pub name: ViewName,
    /// Current version of the view.
    pub version: ViewVersion,
    /// Number of spans in the view.
    pub spans: u64,
    /// Cost of the messages minus the cost of the view's spans, in tokens: see [`Snapshot::saved`].
    pub saved: i64,
    /// Chain over the hashes of the view's publications; [`Hash::ZERO`] at version 0.
    pub chain: Hash,
}

/// Arguments for replacing spans of a view, all in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    /// Name of the view.
    pub view: ViewName,
    /// Range of positions to replace; it must lie in the log.
    pub at: SeqRange,
    /// Spans that the view must still hold over the range. Otherwise the publish is lost.
    pub expect: Vec<Span>,
    /// New spans of the view, which cover exactly the range `at`.
    pub spans: Vec<Span>,
    /// Summaries that the new spans need and the store may not have yet.
    pub summaries: Vec<Summary>,
    /// Fence of a lease that must still be held; its job is done when the publish is. `None` publishes without a lease.
    pub fence: Option<Fence>,
    /// The conversation's [`erasures`](Conversation::erasures) before the sources of the summaries were read. After a
    /// later erasure the publish is refused.
    pub erasures: u64,
    /// Time of the publish, which the store records.
    pub now: Timestamp,
}

/// Outcome of a publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// The spans were replaced; the view has this new version.
    Done(ViewVersion),
    /// The view already held the new spans, at this version; the store did not change.
    Already(ViewVersion),
    /// The view held other spans than expected; the store did not change.
    Lost {
        /// Spans that the view holds over the range.
        found: Vec<Span>,
    },
    /// Words of the conversation were erased since the sources of the summaries were read; the store did not change.
    Outdated,
}

/// Record of one publish in a view's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// Version of the view that the publish created.
    pub version: ViewVersion,
    /// Range of positions that the publish replaced.
    pub at: SeqRange,
    /// Rows of spans that the publish removed.
    pub removed: Vec<SpanStart>,
    /// Rows of spans that the publish added.
    pub added: Vec<SpanStart>,
    /// Time of the publish.
    pub created_at: Timestamp,
    /// Chain hash over this and all earlier publications of the view; see [`publication_hash`].
    pub hash: Hash,
}

/// Returns a view's chain hash after a publication: H(chain before ‖ version ‖ range ‖ removed ‖ added rows).
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

/// Returns the hash over a publication's row: H(its chain hash ‖ its time). [`publication_hash`] does not cover the
/// time.
pub fn publication_record_hash(hash: Hash, at: Timestamp) -> Hash {
    let mut hasher = memory_model::FieldHasher::new("agent-memory publication record 1");
    hasher.hash(hash);
    hasher.number(at.0);
    hasher.finish()
}

/// Name of a job in a conversation. A job is one piece of work to do once, such as one summary to write.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobKey(pub String);

/// Name of the owner of a lease: a process or a task.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner(pub String);

/// Proof of a lease on a job. It is refused after a later grant of the job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fence {
    /// Number of the conversation to which the job belongs.
    pub conversation: ConversationId,
    /// Name of the job in the conversation.
    pub key: JobKey,
    /// Number of the grant. It rises with every grant of a job of the conversation.
    pub token: u64,
}

/// Prepared work of a job that is not published yet, in the JSON of the program that prepared it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft(pub RawJson);

/// Answer to a claim of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// The job is granted with this fence; the lease ends after its time-to-live unless it is renewed.
    Granted(Fence),
    /// Another owner has an active lease on the job.
    Held {
        /// Owner of the active lease.
        owner: Owner,
        /// End of the active lease by the store's own time, unless it is renewed.
        until: Timestamp,
    },
    /// The job is granted with this fence, and its work is already prepared: publish the draft.
    Ready(Fence, Draft),
    /// Words of the conversation were erased since the words for the job were read: read them again.
    Outdated,
}

/// Update to a held lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseUpdate {
    /// The lease ends `ttl` from now, by the store's own time.
    Renew {
        /// New time-to-live of the lease. Zero ends the lease: then any owner may claim the job, with its prepared
        /// work.
        ttl: Duration,
    },
    /// The work of the job is prepared; the store keeps it until it is published.
    Prepared(Draft),
    /// The work failed. The job is free again and its number of failures rises by one. Prepared work is kept.
    Failed,
    /// The job is done or given up; the store removes its data.
    Release,
}

/// A small value that a conversation holds under a key, such as pins, notes or settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The value, as JSON.
    pub value: RawJson,
    /// Revision of the value: 1 at first, and raised by one with each change.
    pub revision: u64,
}
