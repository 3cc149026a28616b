//! Builders of conversations, messages, summaries with valid hashes, and publishes, for tests.

use std::sync::Arc;

use memory_model::{
    Accounting, Message, RenderingId, Seq, SeqRange, Span, SpanBody, Summary, Timestamp, ViewName,
};
use memory_store::{
    Append, AppendAt, ConversationFilter, ErrorKind, FullStore, NewConversation, NewEntry, Origin,
    Page, Publish, Report, Result, Verifier, Violation, read_conversations, verify,
};
use token_estimate::{EstimatorId, HeuristicEstimator, TokenEstimator};

/// Rules for counting costs in tests: the costs of messages by [`HeuristicEstimator::Bytes4`], and the cost of a
/// summary as the cost of its text.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainCounts;

impl Accounting for PlainCounts {
    fn estimator(&self) -> &dyn TokenEstimator {
        &HeuristicEstimator::Bytes4
    }

    fn rendering(&self) -> RenderingId {
        RenderingId::new("text@1")
    }

    fn summary(&self, summary: &Summary) -> u64 {
        HeuristicEstimator::Bytes4.text(summary.text())
    }
}

/// Returns the range from `first` to `last`, both inclusive.
///
/// # Panics
/// If the range would be empty or begin before position 1.
pub fn range(first: u32, last: u32) -> SeqRange {
    SeqRange::new(Seq(first), Seq(last)).expect("a range from low to high, from 1 on")
}

/// Creates a user's message with an external id.
pub fn message(id: &str, text: &str) -> Message {
    Message::user(text).with_external_id(id)
}

/// Creates an entry from a message, with its cost by [`PlainCounts`].
pub fn entry(message: Message) -> NewEntry {
    let tokens = PlainCounts.message(&message);
    NewEntry {
        message,
        tokens,
        clocked: false,
    }
}

/// Creates the arguments for opening a conversation with costs that are counted by [`PlainCounts`].
pub fn new_conversation(key: &str, origin: Origin) -> NewConversation {
    NewConversation {
        origin,
        ..NewConversation::root(key, PlainCounts.estimator_id(), Timestamp(1))
    }
}

/// Creates an append of entries with costs that are counted by [`PlainCounts`].
pub fn batch(at: AppendAt, entries: impl IntoIterator<Item = NewEntry>) -> Append {
    Append {
        at,
        estimator: PlainCounts.estimator_id(),
        entries: entries.into_iter().collect(),
        now: Timestamp(2),
    }
}

/// Returns a span of a view that shows a summary.
pub fn shown(summary: &Summary) -> Span {
    let body = SpanBody::Summary {
        id: summary.id.clone(),
        depth: summary.depth,
    };
    Span::closed(summary.range, body, summary.tokens)
}

/// Returns a span of a view that shows the messages of a range unchanged.
pub fn raw(range: SeqRange) -> Span {
    Span::closed(range, SpanBody::Raw, 0)
}

/// Returns a span of a view that does not show the messages of a range.
pub(crate) fn omitted(range: SeqRange) -> Span {
    Span::closed(range, SpanBody::Omitted, 0)
}

/// Creates a publish that replaces the spans `expect` by the spans `spans`, without a lease.
pub fn replace(
    view: &str,
    at: SeqRange,
    expect: Vec<Span>,
    spans: Vec<Span>,
    summaries: Vec<Summary>,
) -> Publish {
    Publish {
        view: ViewName::from(view),
        at,
        expect,
        spans,
        summaries,
        fence: None,
        erasures: 0,
        now: Timestamp(4),
    }
}

/// Creates a publish that replaces a range of raw messages by spans.
pub(crate) fn over_raw(view: &str, at: SeqRange, spans: Vec<Span>) -> Publish {
    replace(view, at, vec![raw(at)], spans, vec![])
}

/// Creates a publish that replaces the raw messages of a summary's range by the summary.
pub fn showing(view: &str, summary: &Summary) -> Publish {
    Publish {
        summaries: vec![summary.clone()],
        ..over_raw(view, summary.range, vec![shown(summary)])
    }
}

/// Verifies the stored data of every conversation, and then checks the database with [`memory_store::Maintain::check`].
/// Returns one report for each conversation. The last report also contains the violations that the check of the
/// database found. Token costs are checked with [`PlainCounts`].
pub async fn verify_store<S: FullStore + ?Sized>(store: &S) -> Vec<Report> {
    let mut filter = ConversationFilter::default();
    filter.archived = true;
    let rules = |id: &EstimatorId| {
        (*id == PlainCounts.estimator_id()).then(|| Arc::new(PlainCounts) as Arc<dyn Accounting>)
    };
    let mut reports = Vec::new();
    let mut whole: Vec<Violation> = Vec::new();
    let mut verifier = Verifier::new(store, &rules);
    let all = read_conversations(store, &filter).await;
    for conversation in all.expect("conversations are listed") {
        let report = verify(store, conversation.id, &rules).await;
        reports.push(report.expect("a conversation is verified"));
        let report = verifier.verify(conversation.id).await;
        whole.extend(report.expect("a conversation is verified").violations);
    }
    for violation in reports.iter().flat_map(|report| &report.violations) {
        // The chain hash of a fork covers only its own log.
        assert!(
            whole.iter().any(|found| found.kind == violation.kind),
            "{violation}: this is found too when all conversations are verified together"
        );
    }
    let violations = store.check().await.expect("the store checks itself");
    if let Some(last) = reports.last_mut() {
        last.violations.extend(violations);
    } else {
        assert_eq!(violations, [], "an empty store is sound");
    }
    reports
}

/// Verifies all data of a store with [`verify_store`], and panics on a violation.
pub async fn sound<S: FullStore + ?Sized>(store: &S) {
    for report in verify_store(store).await {
        assert_eq!(report.violations, [], "the store is sound");
    }
}

/// Asserts that a call to a store failed with an error of this kind.
#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(answer: Result<T>, kind: ErrorKind) {
    let error = answer.expect_err("the call is refused");
    assert_eq!(error.kind(), kind, "{error}");
}

/// Reads all pages of a list. `read` gets the cursor of the page before, and `None` for the first page.
pub(crate) async fn pages<T, C>(
    mut read: impl AsyncFnMut(Option<C>) -> Result<Page<T, C>>,
) -> Vec<Vec<T>> {
    let mut pages = Vec::new();
    let mut next = None;
    loop {
        let page = read(next).await.expect("a page is read");
        pages.push(page.items);
        next = page.next;
        if next.is_none() {
            return pages;
        }
    }
}
