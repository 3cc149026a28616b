//! Types of the arguments and return values of a store's methods.

use std::time::Duration;

use memory_model::{
    ConversationId, Hash, Message, RawJson, Seq, SeqRange, SessionKey, Span, SpanBody, SpanStart,
    Summary, Timestamp, ViewName, ViewVersion,
};
use serde::{Deserialize, Serialize};
use token_estimate::{EstimatorId, TokenEstimator};

/// Relation of a conversation to the conversation from which it was forked or spawned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Origin {
    /// A conversation without a parent.
    Root,
    /// A fork: shares its parent's log up to and including the position `at`, and continues with its own log.
    Fork {
        /// Conversation from which the fork was made.
        parent: ConversationId,
        /// Last shared position. `Seq(0)` if no position is shared.
        at: Seq,
    },
    /// A sub-agent: a conversation started by a tool call in its parent's log. It shares no positions with the parent.
    Spawn {
        /// Conversation that contains the tool call.
        parent: ConversationId,
        /// Position of the tool call in the parent's log. `Seq(0)` if unknown.
        at: Seq,
        /// Id of the tool call. `None` if unknown.
        call: Option<String>,
    },
}

impl Origin {
    /// Returns the parent of a forked or spawned conversation, or `None` for a root.
    pub fn parent(&self) -> Option<ConversationId> {
        match self {
            Origin::Root => None,
            Origin::Fork { parent, .. } | Origin::Spawn { parent, .. } => Some(*parent),
        }
    }
}

/// Arguments for opening a conversation. A new conversation is created with these values if no conversation has the
/// key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewConversation {
    /// Name of the conversation, chosen by the caller. Unique in the store.
    pub key: SessionKey,
    /// Whether the conversation is a root, a fork or a spawned sub-agent, and its parent.
    pub origin: Origin,
    /// Estimator that counts all costs of the conversation, in tokens.
    pub estimator: EstimatorId,
    /// Human-readable title of the conversation.
    pub title: Option<String>,
    /// Metadata of the conversation, chosen by the caller, as a JSON object.
    pub meta: Option<RawJson>,
    /// Creation time, used if the conversation is created.
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

/// A range of a conversation's own log that is part of the log of the same conversation or of a fork. The whole log
/// that a fork reads is a list of segments: the ranges that it inherits from its ancestors, then its own log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// First position of the range, inclusive.
    pub first: Seq,
    /// Last position of the range, inclusive. `None` for the conversation's own log, which grows.
    pub last: Option<Seq>,
    /// Conversation that owns the log.
    pub source: ConversationId,
}

impl Segment {
    /// Returns the range of the segment in a log that ends at position `head`. Returns `None` if the segment is empty.
    pub fn up_to(&self, head: Seq) -> Option<SeqRange> {
        SeqRange::new(self.first, self.last.unwrap_or(head))
    }
}

/// A stored conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// Number of the conversation in its store.
    pub id: ConversationId,
    /// Name of the conversation, chosen by the caller. Unique in the store.
    pub key: SessionKey,
    /// Whether the conversation is a root, a fork or a spawned sub-agent, and its parent.
    pub origin: Origin,
    /// Root of the conversation's family: its oldest ancestor by forks and spawns, or the conversation itself if it has
    /// no parent.
    pub family: ConversationId,
    /// Segments of the log that the conversation reads, in order: the ranges that it inherits from its ancestors' logs,
    /// then its own log.
    pub segments: Vec<Segment>,
    /// Last position of the conversation's log. `Seq(0)` if the log is empty.
    pub head: Seq,
    /// Cost of all messages of the log, in tokens. Includes the messages that a fork inherits from its parent.
    pub tokens: u64,
    /// Hash over the hashes of all entries of the conversation's own log, in order. [`Hash::ZERO`] if the own log is
    /// empty.
    pub chain: Hash,
    /// Estimator that counts all costs of the conversation, in tokens.
    pub estimator: EstimatorId,
    /// Human-readable title of the conversation. `None` if it has no title.
    pub title: Option<String>,
    /// Whether the conversation is archived. Lists leave out archived conversations unless
    /// [`ConversationFilter::archived`] is set. Archived conversations can still be read and changed.
    pub archived: bool,
    /// Metadata of the conversation, chosen by the caller, as a JSON object.
    pub meta: Option<RawJson>,
    /// Time at which the conversation was created.
    pub created_at: Timestamp,
    /// Time of the last append, publish or change of the conversation.
    pub updated_at: Timestamp,
    /// Number of erasures of words of this conversation since it was created. Erasures in the part of the log that a
    /// fork inherits from its parent count. Note this number before you read words of the log, and compare it again
    /// before you use the words. If the number has risen, some of the words may be erased: read them again.
    pub erasures: u64,
}

impl Conversation {
    /// Returns the first position of the conversation's own log: in a fork the position after the last shared one, else
    /// 1.
    pub fn own_first(&self) -> Seq {
        match self.origin {
            Origin::Fork { at, .. } => at.next(),
            Origin::Root | Origin::Spawn { .. } => Seq::FIRST,
        }
    }

    /// Returns the range of the whole log, including the part that a fork inherits from its parent. `None` if the log
    /// is empty.
    pub fn range(&self) -> Option<SeqRange> {
        SeqRange::new(Seq::FIRST, self.head)
    }
}

/// Returns the segments of a conversation's log: for a fork, the parent's segments up to the last shared position, then
/// the conversation's own log.
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

/// Reference to a conversation, by number or by key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversationRef {
    /// The conversation with this number in the store.
    Id(ConversationId),
    /// The conversation with this key, which the caller chose.
    Key(SessionKey),
}

/// Filter for listing conversations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversationFilter {
    /// Whether archived conversations are included.
    pub archived: bool,
    /// Root of the only family to list: the root and all conversations forked or spawned from it. `None` lists all
    /// families.
    pub family: Option<ConversationId>,
}

/// Changes to a conversation's title, archive flag and metadata. A field that is `None` does not change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversationPatch {
    /// New title of the conversation. `None` keeps the old title.
    pub title: Option<String>,
    /// Whether the conversation becomes archived. `None` keeps the flag.
    pub archived: Option<bool>,
    /// New metadata of the conversation, which replace all old metadata. `None` keeps the old metadata.
    pub meta: Option<RawJson>,
}

/// One page of a longer list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T, C = SeqRange> {
    /// Items of the page, in the requested order.
    pub items: Vec<T>,
    /// Argument for the call that reads the next page. `None` on the last page.
    pub next: Option<C>,
}

impl<T, C> Page<T, C> {
    /// Creates a page with all items, without a next page.
    pub fn complete(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}

/// Order in which entries or spans are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// By rising position: the oldest entry first.
    #[default]
    OldestFirst,
    /// By falling position: the latest entry first.
    NewestFirst,
}

/// Arguments for reading a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRead {
    /// Positions to read. Positions beyond the end of the log are ignored.
    pub range: SeqRange,
    /// Positions of the range to read, in rising order. `None` reads all positions of the range.
    pub only: Option<Vec<Seq>>,
    /// Order in which the entries are read.
    pub order: Order,
    /// Maximum number of entries in a page.
    pub max_rows: usize,
    /// Number of bytes of messages at which a page ends. A page has at least one entry, even if the entry is larger.
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

    /// Creates the arguments for reading the entries at these positions, oldest first, in pages of at most 1,024
    /// entries or 8 MiB. Returns `None` if there are no positions.
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

    /// Returns the positions of [`only`](Self::only) that lie in the range `part`. Returns `None` if the read has no
    /// such list and reads all positions.
    pub fn only_in(&self, part: SeqRange) -> Option<&[Seq]> {
        let only = self.only.as_deref()?;
        let begin = only.partition_point(|seq| *seq < part.first);
        let end = only.partition_point(|seq| *seq <= part.last);
        Some(only.get(begin..end).unwrap_or_default())
    }

    /// Returns the part of the range `part` that is left to read after a page that ended at position `last`. Returns
    /// `None` if no position is left.
    pub fn rest_of(&self, part: SeqRange, last: Seq) -> Option<SeqRange> {
        let rest = rest_of(part, self.order, last);
        rest.filter(|rest| self.only_in(*rest).is_none_or(|only| !only.is_empty()))
    }
}

/// Returns the part of `range` that is left to read after a page in this order that ended at position `last`. Returns
/// `None` if no position is left.
pub fn rest_of(range: SeqRange, order: Order, last: Seq) -> Option<SeqRange> {
    match order {
        Order::OldestFirst => SeqRange::new(last.next(), range.last),
        Order::NewestFirst => SeqRange::new(range.first, last.prev()),
    }
}

/// Condition on the end of the log before an append.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AppendAt {
    /// The log may end at any position.
    #[default]
    Any,
    /// The log must end at this position. Otherwise the append fails with `HeadMoved`.
    Head(Seq),
}

/// A message to append, with its cost in tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEntry {
    /// The message or note to append.
    pub message: Message,
    /// Cost of the message in tokens, as the append's estimator counts it. 0 for a note.
    pub tokens: u64,
    /// Whether `message.created_at` was set from the clock because the caller gave no time. If an entry with the same
    /// external id is already stored, a time from the clock, or the time 0, is not compared with the stored time.
    pub clocked: bool,
}

impl NewEntry {
    /// Creates an entry from a message with the caller's time, or with no time, and its cost in tokens.
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
    /// Estimator that counted the costs of the entries. It must be the conversation's estimator.
    pub estimator: EstimatorId,
    /// Entries to append, in order.
    pub entries: Vec<NewEntry>,
    /// Time of the append, recorded as the time of the conversation's last change.
    pub now: Timestamp,
}

impl Append {
    /// Creates an append of messages to the end of the log. The estimator counts the costs. `now` is the time of the
    /// append.
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
    /// The conversation already has an equal entry with the same external id at this position, possibly inherited from
    /// its parent. The stored entry does not change, and the new entry is not stored. Times are compared only if the
    /// caller gave a time for both entries.
    Duplicate(Seq),
    /// The conversation already has a different entry with the same external id at this position, possibly inherited
    /// from its parent. The new entry is not stored.
    Conflict(Seq),
}

/// Result of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// Outcome of each entry, in the order of the entries.
    pub outcomes: Vec<EntryOutcome>,
    /// Last position of the log after the append.
    pub head: Seq,
    /// Cost of all messages of the log after the append, in tokens. Includes the messages that a fork inherits from its
    /// parent.
    pub tokens: u64,
}

/// An immutable state of a conversation and of one of its views. Later appends and publishes do not change the state.
/// Only an erasure does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Number of the conversation in its store.
    pub conversation: ConversationId,
    /// Last position of the log in this state.
    pub head: Seq,
    /// Cost of all messages of the log in this state, in tokens. Includes the messages that a fork inherits from its
    /// parent.
    pub log_tokens: u64,
    /// Name of the view: the compacted form of the log, which consists of spans.
    pub view: ViewName,
    /// Version of the view (the compacted log). 0 for a view that was never published.
    pub version: ViewVersion,
    /// Tokens that the view (the compacted log) saves: the cost of all messages minus the cost of the view's spans.
    /// Negative if the spans cost more.
    pub saved: i64,
    /// Number of spans in the view (the compacted log).
    pub spans: u64,
    /// Number of erasures of words of the conversation, in this state: see [`Conversation::erasures`].
    pub erasures: u64,
}

impl Snapshot {
    /// Returns the cost of all spans of the view (the compacted log), in tokens.
    pub fn tokens(&self) -> u64 {
        let saved = i128::from(self.saved);
        u64::try_from(i128::from(self.log_tokens) - saved).unwrap_or(0)
    }
}

/// Description of a view that was published at least once: its name, version, and sizes, without its spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewInfo {
    /// Name of the view (the compacted log).
    pub name: ViewName,
    /// Current version of the view.
    pub version: ViewVersion,
    /// Number of spans in the view (the compacted log).
    pub spans: u64,
    /// Tokens that the view (the compacted log) saves: the cost of all messages minus the cost of the view's spans. See
    /// [`Snapshot::saved`].
    pub saved: i64,
    /// Chain hash over all publications of the view (the compacted log). [`Hash::ZERO`] at version 0.
    pub chain: Hash,
}

/// Arguments for replacing spans of a view, all in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    /// Name of the view (the compacted log).
    pub view: ViewName,
    /// Range of positions to replace. It must lie in the log.
    pub at: SeqRange,
    /// Spans that the view (the compacted log) must still have over the range. If the view has others, the publish is
    /// lost.
    pub expect: Vec<Span>,
    /// New spans of the view (the compacted log), which cover exactly the range `at`.
    pub spans: Vec<Span>,
    /// Summaries that the new spans refer to and that the store may not have yet.
    pub summaries: Vec<Summary>,
    /// Fence of a lease that must still be valid. A successful publish completes the lease's job. `None` publishes
    /// without a lease.
    pub fence: Option<Fence>,
    /// The conversation's [`erasures`](Conversation::erasures) before the sources of the summaries were read. If words
    /// were erased later, the publish is refused with [`Published::Outdated`].
    pub erasures: u64,
    /// Time of the publish, recorded by the store.
    pub now: Timestamp,
}

/// Outcome of a publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// The spans were replaced. The view (the compacted log) now has this version.
    Done(ViewVersion),
    /// The view (the compacted log) already had the new spans, at this version. The store did not change.
    Already(ViewVersion),
    /// The view (the compacted log) had other spans than expected. The store did not change.
    Lost {
        /// Spans that the view has over the range.
        found: Vec<Span>,
    },
    /// Words of the conversation were erased after the sources of the summaries were read. The store did not change.
    Outdated,
}

/// Record of one publish in a view's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// Version of the view (the compacted log) that the publish created.
    pub version: ViewVersion,
    /// Range of positions that the publish replaced.
    pub at: SeqRange,
    /// Spans that the publish removed, as rows of the view's table of spans.
    pub removed: Vec<SpanStart>,
    /// Spans that the publish added, as rows of the view's table of spans.
    pub added: Vec<SpanStart>,
    /// Time of the publish.
    pub created_at: Timestamp,
    /// Chain hash over this publication and all earlier publications of the view (the compacted log). See
    /// [`publication_hash`].
    pub hash: Hash,
}

/// Returns a view's chain hash after a publication: H(`before` ‖ version ‖ range ‖ removed span starts ‖ added span
/// starts). `before` is the chain hash before the publication.
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

/// Returns the hash over the stored record of a publication: H(its chain hash ‖ its time). [`publication_hash`] does
/// not cover the time.
pub fn publication_record_hash(hash: Hash, at: Timestamp) -> Hash {
    let mut hasher = memory_model::FieldHasher::new("agent-memory publication record 1");
    hasher.hash(hash);
    hasher.number(at.0);
    hasher.finish()
}

/// Name of a job, unique in a conversation. A job is one piece of work to do once, for example one summary to write.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobKey(pub String);

/// Name of the owner of a lease: a process or a task.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner(pub String);

/// Proof that an owner got the lease on a job. An update of the lease needs the fence. After a later lease on the same
/// job the fence is refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fence {
    /// Number of the conversation to which the job belongs.
    pub conversation: ConversationId,
    /// Name of the job in the conversation.
    pub key: JobKey,
    /// Number of the lease. It rises with every lease on any job of the conversation.
    pub token: u64,
}

/// Prepared work of a job that is not published yet, such as a written summary. The JSON has the format of the program
/// that prepared the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft(pub RawJson);

/// Answer to a claim of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// The caller has the lease on the job, with this fence. If the owner does not renew the lease, it ends after its
    /// time-to-live.
    Granted(Fence),
    /// Another owner has an active lease on the job.
    Held {
        /// Owner of the active lease.
        owner: Owner,
        /// End of the active lease by the store's clock, unless the owner renews it.
        until: Timestamp,
    },
    /// The caller has the lease on the job, with this fence. The draft is the work that was prepared earlier: publish
    /// it.
    Ready(Fence, Draft),
    /// The caller does not get the lease, because words of the conversation were erased after the words for the job
    /// were read. Read them again.
    Outdated,
}

/// Update to an active lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseUpdate {
    /// Sets the end of the lease to `ttl` from now, by the store's clock.
    Renew {
        /// New time-to-live of the lease. Zero ends the lease at once: any owner may then claim the job with its
        /// prepared work.
        ttl: Duration,
    },
    /// Records that the work of the job is prepared. The store keeps the draft until the job is published or released.
    Prepared(Draft),
    /// Records that the work failed. The job becomes free, and its number of failures rises by one. Prepared work is
    /// kept.
    Failed,
    /// Records that the job is done or given up. The store removes the job's data.
    Release,
}

/// A small value that a conversation stores under a key, for example pins, notes or settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The value, as JSON.
    pub value: RawJson,
    /// Revision of the value: 1 for the first value, and one more after each change.
    pub revision: u64,
}
