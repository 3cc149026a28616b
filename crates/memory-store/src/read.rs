//! Reads that combine several calls of a store, or that compute costs from its running sums.

use memory_model::{ConversationId, LogEntry, SeqRange, Span, SpanBody, Summary, SummaryId};

use crate::error::Result;
use crate::store::Store;
use crate::types::{Conversation, ConversationFilter, LogRead, Order, Page, Snapshot};

/// Maximum number of spans in one request to the store.
const SPANS: usize = 1_024;
/// Maximum number of conversations in one request to the store.
const CONVERSATIONS: usize = 256;

/// Reads all entries of a range of a log, oldest first, page by page. Returns no entries if `range` is `None`.
///
/// # Errors
/// - `NotFound` if the conversation does not exist.
/// - `Corrupt` if an entry cannot be read.
pub async fn read_entries<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    range: impl Into<Option<SeqRange>>,
) -> Result<Vec<LogEntry>> {
    let mut entries = Vec::new();
    let mut rest: Option<SeqRange> = range.into();
    while let Some(range) = rest {
        let page = store.read(conversation, &LogRead::new(range)).await?;
        entries.extend(page.items);
        rest = page.next;
    }
    Ok(entries)
}

/// Reads all spans of a snapshot that overlap a range, in the order of the log, page by page. Returns no spans if
/// `range` is `None`. Raw and omitted spans have 0 tokens. [`fill_raw_tokens`] sets the costs of raw spans.
///
/// # Errors
/// - `NotFound` if the conversation does not exist.
/// - `Invalid` if the view has no such version yet.
pub async fn read_spans<S: Store + ?Sized>(
    store: &S,
    snapshot: &Snapshot,
    range: impl Into<Option<SeqRange>>,
) -> Result<Vec<Span>> {
    let mut spans = Vec::new();
    let mut rest: Option<SeqRange> = range.into();
    while let Some(range) = rest {
        let page = store.spans(snapshot, range, Order::OldestFirst, SPANS);
        let page = page.await?;
        spans.extend(page.items);
        rest = page.next;
    }
    Ok(spans)
}

/// Reads a page of at most `limit` spans of a snapshot that overlap a range. The cost of a raw span is set to the cost
/// of its messages.
///
/// # Errors
/// - `NotFound` if the conversation does not exist.
/// - `Invalid` if the view has no such version yet.
pub async fn read_span_page<S: Store + ?Sized>(
    store: &S,
    snapshot: &Snapshot,
    range: SeqRange,
    order: Order,
    limit: usize,
) -> Result<Page<Span>> {
    let mut page = store.spans(snapshot, range, order, limit).await?;
    fill_raw_tokens(store, snapshot, &mut page.items).await?;
    Ok(page)
}

/// Reads the summaries that spans show, in the order of the spans, in one request to the store. Spans without a summary
/// are skipped. The answer for a span is `None` if its summary is not stored.
///
/// # Errors
/// `NotFound` if the conversation does not exist.
pub async fn read_shown_summaries<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    spans: &[Span],
) -> Result<Vec<Option<Summary>>> {
    let shown = spans.iter().filter_map(|span| span.body.summary());
    let ids: Vec<SummaryId> = shown.cloned().collect();
    match ids.as_slice() {
        [] => Ok(Vec::new()),
        ids => store.summaries(conversation, ids).await,
    }
}

/// Reads all conversations that match a filter, in the order of their numbers, page by page.
///
/// # Errors
/// Any error of the store's `list`.
pub async fn read_conversations<S: Store + ?Sized>(
    store: &S,
    filter: &ConversationFilter,
) -> Result<Vec<Conversation>> {
    let mut conversations = Vec::new();
    let mut after = None;
    loop {
        let page = store.list(filter, after, CONVERSATIONS).await?;
        conversations.extend(page.items);
        after = page.next;
        if after.is_none() {
            return Ok(conversations);
        }
    }
}

/// Sets the costs of the raw spans in `spans`, in tokens. The costs come from the log's running sums, in one request to
/// the store.
///
/// # Errors
/// `NotFound` if the conversation does not exist.
pub async fn fill_raw_tokens<S: Store + ?Sized>(
    store: &S,
    snapshot: &Snapshot,
    spans: &mut [Span],
) -> Result<()> {
    let mut raw: Vec<(SeqRange, &mut Span)> = spans
        .iter_mut()
        .filter(|span| span.body == SpanBody::Raw)
        .filter_map(|span| Some((span.range.up_to(snapshot.head)?, span)))
        .collect();
    let ranges: Vec<SeqRange> = raw.iter().map(|(range, _)| *range).collect();
    let costs = message_costs(store, snapshot.conversation, &ranges).await?;
    for ((_, span), cost) in raw.iter_mut().zip(costs) {
        span.tokens = cost;
    }
    Ok(())
}

/// Returns the cost of the messages of each range, in tokens, in the order of the ranges. The costs come from the log's
/// running sums, in one request to the store. Without ranges it sends no request.
///
/// # Errors
/// `NotFound` if the conversation does not exist.
pub async fn message_costs<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    ranges: &[SeqRange],
) -> Result<Vec<u64>> {
    if ranges.is_empty() {
        return Ok(Vec::new());
    }
    let ends: Vec<_> = ranges
        .iter()
        .flat_map(|range| [range.first.prev(), range.last])
        .collect();
    let sums = store.running(conversation, &ends).await?;
    let cost = |pair: &[u64]| match pair {
        [before, through] => through.saturating_sub(*before),
        _ => 0,
    };
    Ok(sums.chunks(2).map(cost).collect())
}
