//! Versions of a view. Every version stays in the store, and can be assembled, compared and reverted to.

use compaction_plan::JobSource;
use compaction_runner::Measure;
use context_assembler::Context;
use handoff_compactor::{FileLedger, LeftOut, left_out};
use memory_model::{
    Seq, SeqRange, Span, SpanBody, SpanStart, Summary, SummaryId, View, ViewVersion,
};
use memory_store::{Page, Publication, Publish, Published, Snapshot, fill_raw_tokens, read_spans};

use crate::assembly::AssembleRequest;
use crate::error::{Error, ErrorKind, Result};
use crate::handing_over::joined;
use crate::session::Session;

/// One version of a session's view, over the log at one time. The view divides the log into spans: unchanged messages,
/// summaries, shortened messages and omissions. Later writes do not change this value.
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
/// let before = session.current_view().await?;
/// session.compact(Mode::Full).await?;
/// // The version before the compaction is unchanged, and shows what the compaction did.
/// let again = session.view_at(before.version()).await?;
/// let budget = Budget::tokens(2_000);
/// assert_eq!(again.assemble(budget).await?, before.assemble(budget).await?);
/// let changes = again.diff(&session.current_view().await?).await?;
/// assert_eq!(changes[0].range.first.0, 1);
/// session.revert_to(before.version()).await?;
/// assert_eq!(session.current_view().await?.spans().await?.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ViewAtVersion {
    session: Session,
    snapshot: Snapshot,
}

/// A range of messages that two versions of a view show differently.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// Range of messages that the versions show differently.
    pub range: SeqRange,
    /// Spans of the first version in this range. The cost of a raw span (unchanged messages) is the cost of its
    /// messages.
    pub before: Vec<Span>,
    /// Spans of the second version in this range.
    pub after: Vec<Span>,
}

impl ViewAtVersion {
    pub(crate) fn new(session: Session, snapshot: Snapshot) -> Self {
        Self { session, snapshot }
    }

    /// Returns the session to which the view belongs.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the state of the view: its version, the last position of the log, and the token counts.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Returns the number of this version of the view.
    pub fn version(&self) -> ViewVersion {
        self.snapshot.version
    }

    /// Returns the cost of the whole view, in tokens.
    pub fn tokens(&self) -> u64 {
        self.snapshot.tokens()
    }

    /// Returns the same version of the view over a shorter log, which ends at position `head`.
    ///
    /// # Errors
    /// `Invalid` if the log ends before `head`, or if the version replaces messages after `head` because it was
    /// published later.
    pub async fn up_to(&self, head: Seq) -> Result<ViewAtVersion> {
        let (id, key) = (self.session.id(), self.session.key());
        if head > self.snapshot.head {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!(
                    "the log of the session {key} ends at {}, before {head}",
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
                    "version {} of the view {} did not exist when the log of the session {key} ended at \
                     {head}: it covers messages up to {}",
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

    /// Returns the spans of the view, in the order of the log. The cost of a raw span (unchanged messages) is the cost
    /// of its messages. A raw span at the end of the log has no last position, because new messages become part of it.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn spans(&self) -> Result<Vec<Span>> {
        let mut spans = self.bare_spans().await?;
        self.fill(&mut spans).await?;
        Ok(spans)
    }

    /// Returns the messages that the summaries `ids` cover but do not mention. Ids of summaries that the view does not
    /// show are ignored.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn left_out(&self, ids: &[SummaryId]) -> Result<Vec<LeftOut>> {
        let spans = self.spans().await?;
        let shown: Vec<&SummaryId> = spans
            .iter()
            .filter_map(|span| span.body.summary())
            .collect();
        let mut all = Vec::new();
        for summary in self.session.summaries(ids).await?.into_iter().flatten() {
            let mut rest = Some(summary.range).filter(|_| shown.contains(&&summary.id));
            while let Some(range) = rest {
                let page = self.session.entries_in(range).await?;
                all.extend(left_out(summary.text(), &page.items));
                rest = page.next;
            }
        }
        Ok(all)
    }

    /// Returns the text of the summary that a handoff wrote; `None` if the view shows no summary. If the kept messages
    /// began inside a turn, a summary of that turn's beginning follows.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn handoff_summary(&self) -> Result<Option<String>> {
        let spans = self.bare_spans().await?;
        let summaries = self.session.summaries_in(&spans).await?;
        let texts: Vec<&str> = summaries.iter().map(Summary::text).collect();
        Ok(joined(&texts))
    }

    /// Returns the record of the files that the agents of the session read, created, changed and deleted, and of the
    /// agent that changed each file last. Every strategy keeps the whole record: a handoff stores it in its summary, and
    /// for the messages under all other summaries it is made from the log. Only this call reads them.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn files(&self) -> Result<FileLedger> {
        let spans = self.bare_spans().await?;
        let summaries = self.session.summaries_in(&spans).await?;
        let mut summaries = summaries.iter().peekable();
        let conventions = &*self.session.memory().inner.conventions;
        let mut files = FileLedger::default();
        for span in &spans {
            let shown = summaries.next_if(|one| span.body.summary() == Some(&one.id));
            if let Some(one) = shown.filter(|one| FileLedger::of(one).is_some()) {
                files.add(&JobSource::Summary(one), conventions);
                continue;
            }
            let mut rest = span.range.up_to(self.snapshot.head);
            while let Some(range) = rest {
                let page = self.session.entries_in(range).await?;
                for entry in &page.items {
                    files.add(&JobSource::Entry(entry), conventions);
                }
                rest = page.next;
            }
        }
        files.end();
        Ok(files)
    }

    /// Returns the size of the view: its numbers of entries, spans and tokens.
    pub fn measure(&self) -> Measure {
        Measure::from(&self.snapshot)
    }

    async fn fill(&self, spans: &mut [Span]) -> Result<()> {
        let store = &*self.session.memory().inner.store;
        Ok(fill_raw_tokens(store, &self.snapshot, spans).await?)
    }

    /// Reads the spans. Raw spans have no cost yet.
    async fn bare_spans(&self) -> Result<Vec<Span>> {
        let store = &*self.session.memory().inner.store;
        let whole = SeqRange::new(Seq::FIRST, self.snapshot.head);
        Ok(read_spans(store, &self.snapshot, whole).await?)
    }

    /// Returns the starts of all spans, including the open span at the end of the log.
    async fn starts(&self) -> Result<Vec<SpanStart>> {
        let spans = self.bare_spans().await?;
        let mut starts: Vec<SpanStart> = spans.iter().map(SpanStart::from).collect();
        if starts.last().is_none_or(|last| last.body != SpanBody::Raw) {
            starts.push(SpanStart {
                first: self.snapshot.head.next(),
                body: SpanBody::Raw,
                tokens: 0,
            });
        }
        Ok(starts)
    }

    /// Returns the spans as a [`View`].
    async fn view(&self) -> Result<View> {
        View::from_starts(&self.starts().await?).map_err(|problem| {
            let Snapshot { view, version, .. } = &self.snapshot;
            let kind = ErrorKind::Store(memory_store::ErrorKind::Corrupt);
            let key = self.session.key();
            Error::new(
                kind,
                format!("version {version} of the view {view} of the session {key}: {problem}"),
            )
        })
    }

    /// Assembles a context from this version of the view, as [`Session::assemble`] does from the current one.
    ///
    /// # Errors
    /// The errors of [`Session::assemble`].
    pub async fn assemble(&self, request: impl Into<AssembleRequest>) -> Result<Context> {
        self.session
            .assemble_at(&self.snapshot, request.into())
            .await
    }

    /// Returns the ranges that this version and `other` show differently, in order. [`Change::before`] has the spans of
    /// this version, and [`Change::after`] the spans of `other`.
    ///
    /// # Errors
    /// `Invalid` if `other` is a view of another session, and `Store` if the store fails.
    pub async fn diff(&self, other: &ViewAtVersion) -> Result<Vec<Change>> {
        if self.session.id() != other.session.id() {
            let (a, b) = (self.session.key(), other.session.key());
            let message =
                format!("{a} and {b} are different sessions: compare versions of the same session");
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

/// Returns the shortest ranges up to `head` over which two views differ, in order.
fn differences(a: &View, b: &View, head: Seq) -> Vec<SeqRange> {
    // A range may end at the end of a span in both views, or inside a span that can be divided.
    let mut ends: Vec<Seq> = [a, b]
        .iter()
        .flat_map(|view| view.spans())
        .filter_map(|span| span.range.last)
        .filter(|last| *last < head)
        .collect();
    ends.push(head);
    ends.sort_unstable();
    ends.dedup();
    let (mut left, mut right) = (SpanCursor::new(a), SpanCursor::new(b));
    let mut first = Seq::FIRST;
    let mut ranges: Vec<SeqRange> = Vec::new();
    for end in ends {
        let (Some(in_a), Some(in_b)) = (left.span_of(end), right.span_of(end)) else {
            break;
        };
        if !can_end_at(in_a, end) || !can_end_at(in_b, end) {
            continue;
        }
        if let Some(range) = SeqRange::new(first, end) {
            let equal = in_a.body == in_b.body && covers(in_a, range) && covers(in_b, range);
            match ranges.last_mut() {
                _ if equal => {}
                Some(last) if last.last.next() == range.first => {
                    *last = SeqRange::new(last.first, range.last).unwrap_or(*last);
                }
                _ => ranges.push(range),
            }
        }
        first = end.next();
    }
    ranges
}

/// A cursor over a view's spans.
struct SpanCursor<'a> {
    spans: &'a [Span],
}

impl<'a> SpanCursor<'a> {
    fn new(view: &'a View) -> Self {
        Self {
            spans: view.spans(),
        }
    }

    /// Returns the span that contains a position. Positions must not decrease from call to call.
    fn span_of(&mut self, seq: Seq) -> Option<&'a Span> {
        while let Some((span, rest)) = self.spans.split_first()
            && span.range.last.is_some_and(|last| last < seq)
        {
            self.spans = rest;
        }
        self.spans.first()
    }
}

/// Returns whether a span ends at this position, or can be divided there.
fn can_end_at(span: &Span, end: Seq) -> bool {
    span.range.last == Some(end) || matches!(span.body, SpanBody::Raw | SpanBody::Omitted)
}

fn covers(span: &Span, range: SeqRange) -> bool {
    span.range.first <= range.first && span.range.last.is_none_or(|last| last >= range.last)
}

impl Session {
    /// Returns the current version of the session's view.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn current_view(&self) -> Result<ViewAtVersion> {
        Ok(ViewAtVersion::new(self.clone(), self.snapshot().await?))
    }

    /// Returns the spans of the session's view. The cost of a raw span is the cost of its messages.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn spans(&self) -> Result<Vec<Span>> {
        self.current_view().await?.spans().await
    }

    /// Returns an earlier version of the session's view, over the current log. Version 0 shows all messages unchanged.
    /// [`ViewAtVersion::up_to`] also shortens the log.
    ///
    /// Reads all spans of the earlier version to add up their costs.
    ///
    /// # Errors
    /// `Invalid` if the version does not exist, and `Store` if the store fails.
    pub async fn view_at(&self, version: ViewVersion) -> Result<ViewAtVersion> {
        let mut snapshot = self.snapshot().await?;
        if version == snapshot.version {
            return Ok(ViewAtVersion::new(self.clone(), snapshot));
        }
        if version > snapshot.version {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!(
                    "the view {} of the session {} has no version {version}: the newest is {}",
                    snapshot.view,
                    self.key(),
                    snapshot.version
                ),
            ));
        }
        snapshot.version = version;
        let view = ViewAtVersion::new(self.clone(), snapshot);
        let spans = view.spans().await?;
        let cost = spans
            .iter()
            .map(|span| span.tokens)
            .fold(0, u64::saturating_add);
        let saved = i128::from(view.snapshot.log_tokens) - i128::from(cost);
        let mut snapshot = view.snapshot;
        snapshot.saved = i64::try_from(saved).unwrap_or_default();
        // The open span is not read if all messages are compacted.
        let open = spans.last().is_none_or(|last| last.body != SpanBody::Raw);
        snapshot.spans = spans.len() as u64 + u64::from(open);
        Ok(ViewAtVersion::new(self.clone(), snapshot))
    }

    /// Returns the publications (records of changes to the view) that made the versions after `after`, oldest first.
    /// At most `limit` publications are returned.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn publications(
        &self,
        after: ViewVersion,
        limit: usize,
    ) -> Result<Page<Publication, ViewVersion>> {
        let store = &self.memory().inner.store;
        Ok(store
            .publications(self.id(), &self.view_name(), after, limit)
            .await?)
    }

    /// Publishes the spans of an earlier version as a new version. Messages that were added since then are shown
    /// unchanged. The versions in between stay.
    ///
    /// Returns [`Published::Already`] if the view already shows the same spans, and [`Published::Lost`] if another
    /// process published in the meantime. In both cases the view is unchanged.
    ///
    /// # Errors
    /// `Invalid` if the version does not exist, and `Store` if the store fails.
    pub async fn revert_to(&self, version: ViewVersion) -> Result<Published> {
        let current = self.current_view().await?;
        let earlier = self.view_at(version).await?;
        let (old, new) = (current.view().await?, earlier.view().await?);
        let changes = differences(&old, &new, current.snapshot.head);
        let (Some(first), Some(last)) = (changes.first(), changes.last()) else {
            return Ok(Published::Already(current.version()));
        };
        let Some(at) = SeqRange::new(first.first, last.last) else {
            return Ok(Published::Already(current.version()));
        };
        let publish = Publish {
            view: self.view_name(),
            at,
            expect: old.clip(at),
            spans: new.clip(at),
            summaries: Vec::new(),
            fence: None,
            erasures: current.snapshot.erasures,
            now: self.memory().inner.clock.now(),
        };
        let store = &self.memory().inner.store;
        Ok(store.publish(self.id(), &publish).await?)
    }
}
