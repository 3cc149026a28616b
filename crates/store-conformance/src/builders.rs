//! Builders of conversations, messages, summaries with valid hashes, and publishes.

use std::sync::Arc;

use memory_model::{
    Accounting, Message, RenderingId, Seq, SeqRange, Span, SpanBody, Summary, Timestamp, ViewName,
};
use memory_store::{
    Append, AppendAt, ConversationFilter, ErrorKind, FullStore, NewConversation, NewEntry, Origin,
    Page, Publish, Report, Result, Verifier, Violation, read_conversations, verify,
};
use token_estimate::{EstimatorId, HeuristicEstimator, TokenEstimator};

/// Counts costs with [`HeuristicEstimator::Bytes4`]. A summary costs as much as its text.
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

/// Creates an entry of a message, with its cost by [`PlainCounts`].
pub fn entry(message: Message) -> NewEntry {
    let tokens = PlainCounts.message(&message);
    NewEntry {
        message,
        tokens,
        clocked: false,
    }
}

/// Creates the arguments for a new conversation with costs by [`PlainCounts`].
pub fn new_conversation(key: &str, origin: Origin) -> NewConversation {
    NewConversation {
        origin,
        ..NewConversation::root(key, PlainCounts.estimator_id(), Timestamp(1))
    }
}

/// Creates an append of entries with costs by [`PlainCounts`].
pub fn batch(at: AppendAt, entries: impl IntoIterator<Item = NewEntry>) -> Append {
    Append {
        at,
        estimator: PlainCounts.estimator_id(),
        entries: entries.into_iter().collect(),
        now: Timestamp(2),
    }
}

/// Returns the span that shows a summary.
pub fn shown(summary: &Summary) -> Span {
    let body = SpanBody::Summary {
        id: summary.id.clone(),
        depth: summary.depth,
    };
    Span::closed(summary.range, body, summary.tokens)
}

/// Returns the raw span of a range.
pub fn raw(range: SeqRange) -> Span {
    Span::closed(range, SpanBody::Raw, 0)
}

/// An omitted span.
pub(crate) fn omitted(range: SeqRange) -> Span {
    Span::closed(range, SpanBody::Omitted, 0)
}

/// Creates a publish that replaces the spans `expect` by `spans`, without a fence.
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

/// A publish of spans over messages that the view shows raw.
pub(crate) fn over_raw(view: &str, at: SeqRange, spans: Vec<Span>) -> Publish {
    replace(view, at, vec![raw(at)], spans, vec![])
}

/// Creates a publish of a new summary over messages that the view shows raw.
pub fn showing(view: &str, summary: &Summary) -> Publish {
    Publish {
        summaries: vec![summary.clone()],
        ..over_raw(view, summary.range, vec![shown(summary)])
    }
}

/// Verifies every conversation of a store, with costs by [`PlainCounts`], and the store itself. Returns a report for
/// each conversation; the violations of [`memory_store::Maintain::check`] are added to the last report.
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
        // The chain of a fork starts after the shared part.
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

/// Asserts that the data of a store is sound: verifies all of it with [`verify_store`], and panics on a violation.
pub async fn sound<S: FullStore + ?Sized>(store: &S) {
    for report in verify_store(store).await {
        assert_eq!(report.violations, [], "the store is sound");
    }
}

/// Asserts that a store refused a call with an error of this kind.
#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(answer: Result<T>, kind: ErrorKind) {
    let error = answer.expect_err("the call is refused");
    assert_eq!(error.kind(), kind, "{error}");
}

/// Reads all pages by following the cursor.
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
