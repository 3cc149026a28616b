//! What goes into a store and comes out of it.

use memory_model::{
    Body, ConversationId, Hash, Message, RawJson, Seq, SeqRange, SessionKey, Span, SpanStart,
    Summary, Timestamp, ViewName, ViewVersion,
};
use serde::{Deserialize, Serialize};
use token_estimate::EstimatorId;

/// Where a conversation comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Origin {
    /// It stands alone.
    Root,
    /// It shares its parent's log up to and including `at`, and goes on from there.
    Fork {
        /// The parent.
        parent: ConversationId,
        /// The last shared position; `Seq(0)` shares nothing.
        at: Seq,
    },
    /// It was started by a call in its parent's log and shares nothing (a sub-agent).
    Spawn {
        /// The parent.
        parent: ConversationId,
        /// The position of the call in the parent's log; `Seq(0)` when it is not known.
        at: Seq,
        /// The id of the call, when it is known.
        call: Option<String>,
    },
}

impl Origin {
    /// The parent, for a fork or a spawned conversation.
    pub fn parent(&self) -> Option<ConversationId> {
        match self {
            Origin::Root => None,
            Origin::Fork { parent, .. } | Origin::Spawn { parent, .. } => Some(*parent),
        }
    }
}

/// A conversation to be created, if there is none with its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewConversation {
    /// The caller's name of it; unique in the store.
    pub key: SessionKey,
    /// Where it comes from.
    pub origin: Origin,
    /// The estimator that all its figures are made with.
    pub estimator: EstimatorId,
    /// A title for people.
    pub title: Option<String>,
    /// The caller's own facts, as a JSON object.
    pub meta: Option<RawJson>,
    /// The time.
    pub now: Timestamp,
}

impl NewConversation {
    /// A root conversation without title or facts.
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

/// A stretch of some conversation's own log that is visible in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// First position, inclusive.
    pub first: Seq,
    /// Last position, inclusive; `None` for the conversation's own, growing log.
    pub last: Option<Seq>,
    /// Whose own log it is.
    pub source: ConversationId,
}

/// A conversation as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// The store's number for it.
    pub id: ConversationId,
    /// The caller's name of it.
    pub key: SessionKey,
    /// Where it comes from.
    pub origin: Origin,
    /// The root of its family.
    pub tree: ConversationId,
    /// What is visible of it: its own log, and stretches of its ancestors' logs. In order.
    pub segments: Vec<Segment>,
    /// The last position of its log; `Seq(0)` when it is empty.
    pub head: Seq,
    /// The cost of all visible messages, in tokens.
    pub tokens: u64,
    /// Chain over the hashes of its own log; [`Hash::ZERO`] when that is empty.
    pub chain: Hash,
    /// The estimator that its figures are made with.
    pub estimator: EstimatorId,
    /// A title for people.
    pub title: Option<String>,
    /// Whether the caller put it away.
    pub archived: bool,
    /// The caller's own facts, as a JSON object.
    pub meta: Option<RawJson>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When something was last appended, published or changed.
    pub updated_at: Timestamp,
}

impl Conversation {
    /// The first position of its own log.
    pub fn own_first(&self) -> Seq {
        match self.origin {
            Origin::Fork { at, .. } => at.next(),
            Origin::Root | Origin::Spawn { .. } => Seq::FIRST,
        }
    }

    /// The whole visible log; `None` when it is empty.
    pub fn range(&self) -> Option<SeqRange> {
        SeqRange::new(Seq::FIRST, self.head)
    }
}

/// The segments of a fork: what its parent sees up to `at`, and its own log after that.
pub fn fork_segments(parent: &[Segment], at: Seq, own: ConversationId) -> Vec<Segment> {
    let mut segments: Vec<Segment> = parent
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

/// Names a conversation by number or by key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversationRef {
    /// By the store's number.
    Id(ConversationId),
    /// By the caller's name.
    Key(SessionKey),
}

/// Which conversations to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversationFilter {
    /// Archived ones too.
    pub archived: bool,
    /// Only those of this family.
    pub tree: Option<ConversationId>,
}

/// Changes of what may change in a conversation beside its log. `None` leaves a field alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversationPatch {
    /// A new title.
    pub title: Option<String>,
    /// Put away, or taken back.
    pub archived: Option<bool>,
    /// New facts, replacing the old ones.
    pub meta: Option<RawJson>,
}

/// A piece of a longer answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T, C = SeqRange> {
    /// The items, in the order asked for.
    pub items: Vec<T>,
    /// What to ask for next; `None` when this was all.
    pub next: Option<C>,
}

impl<T, C> Page<T, C> {
    /// An answer that is complete.
    pub fn complete(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}

/// In which order to read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// Rising positions.
    #[default]
    OldestFirst,
    /// Falling positions.
    NewestFirst,
}

/// Which entries of a log to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRead {
    /// Which positions; those beyond the head are ignored.
    pub range: SeqRange,
    /// In which order.
    pub order: Order,
    /// At most so many entries.
    pub max_rows: usize,
    /// Stop when the bodies read so far have this many bytes; at least one entry is returned.
    pub max_bytes: u64,
}

impl LogRead {
    /// Reads a range oldest first, in pages of at most 1,024 entries or 8 MiB.
    pub fn new(range: SeqRange) -> Self {
        Self {
            range,
            order: Order::OldestFirst,
            max_rows: 1024,
            max_bytes: 8 << 20,
        }
    }

    /// Reads newest first.
    pub fn newest_first(mut self) -> Self {
        self.order = Order::NewestFirst;
        self
    }

    /// Sets the largest number of entries in a page.
    pub fn with_max_rows(mut self, rows: usize) -> Self {
        self.max_rows = rows;
        self
    }
}

/// What remains of `range` after the page that ended at `last` in `order`.
pub fn rest_of(range: SeqRange, order: Order, last: Seq) -> Option<SeqRange> {
    match order {
        Order::OldestFirst => SeqRange::new(last.next(), range.last),
        Order::NewestFirst => SeqRange::new(range.first, last.prev()),
    }
}

/// Where an append expects the log to end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AppendAt {
    /// Wherever it ends.
    #[default]
    Any,
    /// At this position, else the append fails with `HeadMoved`.
    Head(Seq),
}

/// A message and what it costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEntry {
    /// The message or note.
    pub message: Message,
    /// Its cost in tokens by the append's estimator; 0 for a note.
    pub tokens: u64,
    /// Whether `message.created_at` is the clock's because the caller gave no time. Then, and when
    /// the time is 0, it is not compared with that of a stored entry of the same external id.
    pub clocked: bool,
}

impl NewEntry {
    /// An entry whose message has the caller's own time, or none.
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
    /// Where the log is expected to end.
    pub at: AppendAt,
    /// What the costs were made with; must be the conversation's estimator.
    pub estimator: EstimatorId,
    /// The entries, in order.
    pub entries: Vec<NewEntry>,
    /// The time.
    pub now: Timestamp,
}

/// What became of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryOutcome {
    /// It is stored at this position.
    Inserted(Seq),
    /// An equal entry with its external id is already visible at this position. A time that one of
    /// the two came without is not compared; the stored one stays as it is.
    Duplicate(Seq),
    /// Another entry with its external id is already visible at this position; nothing was
    /// stored.
    Conflict(Seq),
}

/// What an append did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// For each entry in order.
    pub outcomes: Vec<EntryOutcome>,
    /// The log's head afterwards.
    pub head: Seq,
    /// The cost of all visible messages afterwards, in tokens.
    pub tokens: u64,
}

/// An immutable state of a conversation as a view shows it: appends and publishes after it do not
/// change what it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The conversation.
    pub conversation: ConversationId,
    /// The log's head.
    pub head: Seq,
    /// The cost of all visible messages, in tokens.
    pub log_tokens: u64,
    /// The view.
    pub view: ViewName,
    /// The view's version; 0 for a view that was never published.
    pub version: ViewVersion,
    /// How much less the view's spans cost than the messages they stand for, in tokens. Negative
    /// if they cost more.
    pub saved: i64,
}

impl Snapshot {
    /// The cost of the whole view, in tokens.
    pub fn tokens(&self) -> u64 {
        let saved = i128::from(self.saved);
        u64::try_from(i128::from(self.log_tokens) - saved).unwrap_or(0)
    }
}

/// A view as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewInfo {
    /// Its name.
    pub name: ViewName,
    /// Its version.
    pub version: ViewVersion,
    /// How many spans it has.
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
    /// The range whose spans are replaced; must lie in the log.
    pub at: SeqRange,
    /// What the view must still hold there.
    pub expect: Vec<Span>,
    /// What it shall hold there; covers exactly `at`.
    pub spans: Vec<Span>,
    /// The summaries that the new spans need and the store may not have yet.
    pub summaries: Vec<Summary>,
    /// A lease that must still be held; its job is done once the publish is.
    pub fence: Option<Fence>,
    /// The time.
    pub now: Timestamp,
}

/// What a publish did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// The view has this new version.
    Done(ViewVersion),
    /// The view already held the new spans; nothing changed.
    Already(ViewVersion),
    /// The view held something else; nothing changed, no summary was stored.
    Lost {
        /// What it holds over the range.
        found: Vec<Span>,
    },
}

/// One publish, as the history keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// The version that it made.
    pub version: ViewVersion,
    /// The range it replaced.
    pub at: SeqRange,
    /// The rows that ended.
    pub removed: Vec<SpanStart>,
    /// The rows that began.
    pub added: Vec<SpanStart>,
    /// When.
    pub created_at: Timestamp,
    /// Chain over this and all earlier publications; see [`publication_hash`].
    pub hash: Hash,
}

/// The chain after a publication: H(chain before ‖ version ‖ range ‖ removed rows ‖ added rows).
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
                Body::Raw => ("raw", None, -1),
                Body::Summary { id, depth } => ("summary", Some(id.as_str()), i64::from(*depth)),
                Body::Trimmed(policy) => ("trimmed", Some(policy.as_str()), -1),
                Body::Omitted => ("omitted", None, -1),
            };
            hasher.bytes(kind.as_bytes());
            hasher.optional(text);
            hasher.number(depth);
            hasher.number(i64::try_from(row.tokens).unwrap_or(i64::MAX));
        }
    }
    hasher.finish()
}

/// Names a piece of work in a conversation, such as one summary to be made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobKey(pub String);

/// Who works: a process, a task.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner(pub String);

/// Proof of a lease: it is refused once somebody else was granted the job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fence {
    /// The conversation.
    pub conversation: ConversationId,
    /// The job.
    pub key: JobKey,
    /// Rises with every grant of the job.
    pub token: u64,
}

/// Work that was prepared and not yet published: the preparer's own JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft(pub RawJson);

/// The answer to a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// Do the work; the lease ends at the time-to-live unless renewed.
    Granted(Fence),
    /// Somebody else works on it.
    Held {
        /// Who.
        owner: Owner,
        /// Until when, unless renewed.
        until: Timestamp,
    },
    /// The work is prepared; publish it under this fence.
    Ready(Fence, Draft),
}

/// How a lease goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobOutcome {
    /// It is extended: it now ends so many microseconds after `now`.
    Renew {
        /// The new time-to-live, in microseconds.
        ttl_micros: i64,
    },
    /// The work is prepared and kept until it is published.
    Prepared(Draft),
    /// The work failed; the job is free again and remembers how often it failed. Prepared work is
    /// kept.
    Failed,
    /// The job is done or given up: nothing is kept.
    Release,
}

/// A small value that belongs to a conversation: pins, notes, settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The value.
    pub value: RawJson,
    /// Rises by one with each change, from 1.
    pub revision: u64,
}
