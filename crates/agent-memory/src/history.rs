//! Time travel: every version of a view stays, can be assembled, compared and returned to.

use context_assembler::{AssemblyPolicy, Budget, Context};
use memory_model::{Body, Seq, SeqRange, Span, SpanStart, View, ViewVersion};
use memory_store::{Order, Page, Publication, Publish, Published, Snapshot, fill_raw_tokens};

use crate::error::{Error, ErrorKind, Result};
use crate::session::Session;

/// How many spans one read asks for.
const PAGE: usize = 1024;

/// A version of a session's view over the log as it was at one moment. It never changes, whatever
/// is written meanwhile.
///
/// ```
/// use agent_memory::testing::memory;
/// use agent_memory::{Budget, Message, Mode};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agent_memory::Result<()> {
/// let session = memory().open().await?.session("demo").await?;
/// for n in 1..=40 {
///     session.ingest(Message::user(format!("Step {n}: rename module {n}. ").repeat(8))).await?;
/// }
/// let before = session.now().await?;
/// session.compact(Mode::Full).await?;
/// // The version of before the compaction, still as it was, and what the compaction changed.
/// let again = session.at(before.version()).await?;
/// let budget = Budget::tokens(2_000);
/// assert_eq!(again.assemble(budget).await?, before.assemble(budget).await?);
/// let changes = again.diff(&session.now().await?).await?;
/// assert_eq!(changes[0].range.first.0, 1);
/// session.return_to(before.version()).await?;
/// assert_eq!(session.spans().await?.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct SnapshotView {
    session: Session,
    snapshot: Snapshot,
}

/// A range for which two versions of a view show something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Which messages.
    pub range: SeqRange,
    /// What the one shows for them. Raw spans have the cost of their messages.
    pub before: Vec<Span>,
    /// What the other shows for them.
    pub after: Vec<Span>,
}

impl SnapshotView {
    pub(crate) fn new(session: Session, snapshot: Snapshot) -> Self {
        Self { session, snapshot }
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// What it is a view of: the log's head, the view's version and its figures.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The view's version.
    pub fn version(&self) -> ViewVersion {
        self.snapshot.version
    }

    /// The cost of the whole view, in tokens.
    pub fn tokens(&self) -> u64 {
        self.snapshot.tokens()
    }

    /// The same version over the log as it was when it ended at `head`.
    ///
    /// # Errors
    /// `Invalid` when the log ends before `head`, or when the version shows something else than
    /// messages after `head`: then it was not there yet.
    pub async fn up_to(&self, head: Seq) -> Result<SnapshotView> {
        let (id, key) = (self.session.id(), self.session.key());
        if head > self.snapshot.head {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!(
                    "the log of {key} ends at {}, before {head}",
                    self.snapshot.head
                ),
            ));
        }
        let mut snapshot = self.snapshot.clone();
        if let Some(last) = self.starts().await?.last()
            && last.first > head.next()
        {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!(
                    "version {} of view {} was not there when the log of {key} ended at {head}: it \
                     covers messages up to {}",
                    snapshot.version,
                    snapshot.view,
                    last.first.prev()
                ),
            ));
        }
        let store = &self.session.memory().inner.store;
        let running = store.running(id, &[head]).await?;
        snapshot.head = head;
        snapshot.log_tokens = running.first().copied().unwrap_or(0);
        Ok(Self::new(self.session.clone(), snapshot))
    }

    /// The spans, raw ones with the cost of their messages. The last one is open.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn spans(&self) -> Result<Vec<Span>> {
        let mut spans = self.bare_spans().await?;
        self.fill(&mut spans).await?;
        Ok(spans)
    }

    async fn fill(&self, spans: &mut [Span]) -> Result<()> {
        let store = &*self.session.memory().inner.store;
        Ok(fill_raw_tokens(store, &self.snapshot, spans).await?)
    }

    /// The spans; raw ones without a figure.
    async fn bare_spans(&self) -> Result<Vec<Span>> {
        let store = &self.session.memory().inner.store;
        let mut spans = Vec::new();
        let mut rest = SeqRange::new(Seq::FIRST, self.snapshot.head);
        while let Some(range) = rest {
            let page = store
                .spans(&self.snapshot, range, Order::OldestFirst, PAGE)
                .await?;
            spans.extend(page.items);
            rest = page.next;
        }
        Ok(spans)
    }

    /// Where the spans begin, the open one included.
    async fn starts(&self) -> Result<Vec<SpanStart>> {
        let start = |span: Span| SpanStart {
            first: span.range.first,
            body: span.body,
            tokens: span.tokens,
        };
        let mut starts: Vec<SpanStart> = self.bare_spans().await?.into_iter().map(start).collect();
        if starts.last().is_none_or(|last| last.body != Body::Raw) {
            starts.push(SpanStart {
                first: self.snapshot.head.next(),
                body: Body::Raw,
                tokens: 0,
            });
        }
        Ok(starts)
    }

    /// The spans as a value of the view algebra.
    async fn view(&self) -> Result<View> {
        View::from_starts(&self.starts().await?).map_err(|problem| {
            let Snapshot { view, version, .. } = &self.snapshot;
            let kind = ErrorKind::Store(memory_store::ErrorKind::Corrupt);
            let key = self.session.key();
            Error::new(
                kind,
                format!("version {version} of view {view} of {key}: {problem}"),
            )
        })
    }

    /// Assembles a context of at most `budget` tokens, by the memory's policy.
    ///
    /// # Errors
    /// `BudgetTooSmall`; or when the store fails.
    pub async fn assemble(&self, budget: Budget) -> Result<Context> {
        let policy = self.session.memory().inner.assembly.clone();
        self.assemble_with(budget, &policy).await
    }

    /// Assembles a context by another policy than the memory's.
    ///
    /// # Errors
    /// As [`SnapshotView::assemble`].
    pub async fn assemble_with(&self, budget: Budget, policy: &AssemblyPolicy) -> Result<Context> {
        let session = &self.session;
        session
            .assemble_snapshot(&self.snapshot, budget, policy)
            .await
    }

    /// Where `other`, a version of the same session's view, shows something else: the ranges in
    /// order, each with what this one and the other show.
    ///
    /// # Errors
    /// `Invalid` for a view of another session; or when the store fails.
    pub async fn diff(&self, other: &SnapshotView) -> Result<Vec<Change>> {
        if self.session.id() != other.session.id() {
            let (a, b) = (self.session.key(), other.session.key());
            let message = format!("{a} and {b} are two sessions: compare versions of one");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let (a, b) = (self.view().await?, other.view().await?);
        let head = self.snapshot.head.max(other.snapshot.head);
        let mut changes = Vec::new();
        for range in differences(&a, &b, head) {
            let (mut before, mut after) = (a.clip(range), b.clip(range));
            self.fill(&mut before).await?;
            other.fill(&mut after).await?;
            changes.push(Change {
                range,
                before,
                after,
            });
        }
        Ok(changes)
    }
}

/// The ranges up to `head` over which two views differ, as short as can be, in order.
fn differences(a: &View, b: &View, head: Seq) -> Vec<SeqRange> {
    // A range may end where a span of each ends, or lies in messages that can be divided anywhere.
    let mut ends: Vec<Seq> = [a, b]
        .iter()
        .flat_map(|view| view.spans())
        .filter_map(|span| span.range.last)
        .filter(|last| *last < head)
        .collect();
    ends.push(head);
    ends.sort_unstable();
    ends.dedup();
    let (mut left, mut right) = (Cursor::new(a), Cursor::new(b));
    let mut first = Seq::FIRST;
    let mut found: Vec<SeqRange> = Vec::new();
    for end in ends {
        let (Some(shown), Some(other)) = (left.at(end), right.at(end)) else {
            break;
        };
        if !ends_at(shown, end) || !ends_at(other, end) {
            continue;
        }
        if let Some(range) = SeqRange::new(first, end) {
            let alike = shown.body == other.body && covers(shown, range) && covers(other, range);
            match found.last_mut() {
                _ if alike => {}
                Some(last) if last.last.next() == range.first => {
                    *last = SeqRange::new(last.first, range.last).unwrap_or(*last);
                }
                _ => found.push(range),
            }
        }
        first = end.next();
    }
    found
}

/// Walks through a view's spans.
struct Cursor<'a> {
    spans: &'a [Span],
}

impl<'a> Cursor<'a> {
    fn new(view: &'a View) -> Self {
        Self {
            spans: view.spans(),
        }
    }

    /// The span that holds a position, which never falls.
    fn at(&mut self, seq: Seq) -> Option<&'a Span> {
        while let Some((span, rest)) = self.spans.split_first()
            && span.range.last.is_some_and(|last| last < seq)
        {
            self.spans = rest;
        }
        self.spans.first()
    }
}

fn divisible(span: &Span) -> bool {
    matches!(span.body, Body::Raw | Body::Omitted)
}

fn ends_at(span: &Span, end: Seq) -> bool {
    span.range.last == Some(end) || divisible(span)
}

fn covers(span: &Span, range: SeqRange) -> bool {
    span.range.first <= range.first && span.range.last.is_none_or(|last| last >= range.last)
}

impl Session {
    /// The session's view as it is now.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn now(&self) -> Result<SnapshotView> {
        Ok(SnapshotView::new(self.clone(), self.snapshot().await?))
    }

    /// An earlier version of the session's view over today's log: 0 is all messages as they are.
    /// [`SnapshotView::up_to`] goes back in the log too.
    ///
    /// Reads all spans of that version, which is more than other reads do.
    ///
    /// # Errors
    /// `Invalid` when there is no such version yet.
    pub async fn at(&self, version: ViewVersion) -> Result<SnapshotView> {
        let mut snapshot = self.snapshot().await?;
        if version == snapshot.version {
            return Ok(SnapshotView::new(self.clone(), snapshot));
        }
        if version > snapshot.version {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!(
                    "view {} of {} has no version {version}: the newest is {}",
                    snapshot.view,
                    self.key(),
                    snapshot.version
                ),
            ));
        }
        snapshot.version = version;
        let view = SnapshotView::new(self.clone(), snapshot);
        let spans = view.spans().await?;
        let cost = spans
            .iter()
            .map(|span| span.tokens)
            .fold(0, u64::saturating_add);
        let saved = i128::from(view.snapshot.log_tokens) - i128::from(cost);
        let mut snapshot = view.snapshot;
        snapshot.saved = i64::try_from(saved).unwrap_or_default();
        Ok(SnapshotView::new(self.clone(), snapshot))
    }

    /// What made the versions of the session's view after `after`, oldest first, at most `limit`.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn versions(
        &self,
        after: ViewVersion,
        limit: usize,
    ) -> Result<Page<Publication, ViewVersion>> {
        let store = &self.memory().inner.store;
        Ok(store
            .publications(self.id(), &self.view(), after, limit)
            .await?)
    }

    /// Makes the session's view show what it showed at an earlier version, and what was said since
    /// as it is. This is a new version; those between stay.
    ///
    /// `Already` when the view shows that now; `Lost` when somebody else published meanwhile: then
    /// nothing was changed.
    ///
    /// # Errors
    /// `Invalid` when there is no such version yet.
    pub async fn return_to(&self, version: ViewVersion) -> Result<Published> {
        let now = self.now().await?;
        let then = self.at(version).await?;
        let (old, new) = (now.view().await?, then.view().await?);
        let changes = differences(&old, &new, now.snapshot.head);
        let (Some(first), Some(last)) = (changes.first(), changes.last()) else {
            return Ok(Published::Already(now.version()));
        };
        let Some(at) = SeqRange::new(first.first, last.last) else {
            return Ok(Published::Already(now.version()));
        };
        let publish = Publish {
            view: self.view(),
            at,
            expect: old.clip(at),
            spans: new.clip(at),
            summaries: Vec::new(),
            fence: None,
            now: self.memory().inner.clock.now(),
        };
        let store = &self.memory().inner.store;
        Ok(store.publish(self.id(), &publish).await?)
    }
}
