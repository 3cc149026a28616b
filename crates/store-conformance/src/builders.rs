//! Builders: conversations, messages, summaries with right hashes, publishes.

use std::sync::Arc;

use memory_model::{
    Accounting, Child, ConversationId, LogEntry, Message, RawJson, Recipe, RenderingId, Seq,
    SeqRange, SourceHasher, Span, SpanBody, Summary, SummaryId, Timestamp, ViewName,
};
use memory_store::{
    Append, AppendAt, Appended, Conversation, ConversationFilter, ConversationRef, FullStore,
    NewConversation, NewEntry, Order, Publish, Published, Report, Store, Verifier, Violation,
    read_entries, verify,
};
use token_estimate::{EstimatorId, HeuristicEstimator, TokenEstimator};

/// Counts by anna's formula; a summary costs what its text costs.
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

/// The positions from `first` to `last`, both inclusive.
///
/// # Panics
/// When that would be empty.
pub fn range(first: u32, last: u32) -> SeqRange {
    SeqRange::new(Seq(first), Seq(last)).expect("a range from low to high, from 1 on")
}

/// A user's message with an external id.
pub fn message(id: &str, text: &str) -> Message {
    Message::user(text).with_external_id(id)
}

/// A message with its cost by [`PlainCounts`].
pub fn entry(message: Message) -> NewEntry {
    let tokens = PlainCounts.message(&message);
    NewEntry {
        message,
        tokens,
        clocked: false,
    }
}

/// Opens a root conversation counted by [`PlainCounts`].
pub async fn root<S: Store + ?Sized>(store: &S, key: &str) -> Conversation {
    let new = NewConversation::root(key, PlainCounts.estimator_id(), Timestamp(1));
    store.open(&new).await.expect("a new conversation opens")
}

/// Appends messages at the head.
pub async fn append<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    messages: Vec<Message>,
) -> Appended {
    let append = Append {
        at: AppendAt::Any,
        estimator: PlainCounts.estimator_id(),
        entries: messages.into_iter().map(entry).collect(),
        now: Timestamp(2),
    };
    store
        .append(conversation, &append)
        .await
        .expect("an append at the head succeeds")
}

/// Appends `count` messages of growing length: `m1`, `m2` … by position.
pub async fn fill<S: Store + ?Sized>(store: &S, conversation: ConversationId, count: u32) {
    let head = info(store, conversation).await.head.0;
    let messages = (head + 1..=head + count)
        .map(|seq| {
            message(
                &format!("m{seq}"),
                &format!("message {seq} {}", "x ".repeat(20)),
            )
        })
        .collect();
    append(store, conversation, messages).await;
}

/// Opens the root conversation `chat` with `messages` messages.
pub(crate) async fn chat<S: Store + ?Sized>(store: &S, messages: u32) -> ConversationId {
    let chat = root(store, "chat").await;
    fill(store, chat.id, messages).await;
    chat.id
}

/// The conversation as it is now.
pub(crate) async fn info<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
) -> Conversation {
    store
        .conversation(&ConversationRef::Id(conversation))
        .await
        .expect("a conversation is looked up")
        .expect("the conversation exists")
}

/// All visible entries.
pub(crate) async fn entries<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
) -> Vec<LogEntry> {
    let range = info(store, conversation).await.range();
    let entries = read_entries(store, conversation, range).await;
    entries.expect("the log is read")
}

/// The texts of all visible entries.
pub async fn texts<S: Store + ?Sized>(store: &S, conversation: ConversationId) -> Vec<String> {
    let entries = entries(store, conversation).await;
    entries.iter().map(|entry| entry.text()).collect()
}

/// Something that a summary is made from.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// Messages of the log.
    Messages(SeqRange),
    /// Another summary, stored or not.
    Summary(&'a Summary),
}

/// Makes a summary with right hashes, depth, times and figures by [`PlainCounts`]. Nothing is
/// stored. The recipe is `test@1`.
///
/// # Panics
/// Without sources, or when their messages are not in the log.
pub async fn summary_of<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    sources: &[Source<'_>],
    text: &str,
) -> Summary {
    let mut hasher = SourceHasher::new();
    let mut children = Vec::new();
    let mut source_tokens = 0;
    let mut depth = 0;
    let mut times: Vec<Timestamp> = Vec::new();
    for source in sources {
        match source {
            Source::Messages(range) => {
                let entries = read_entries(store, conversation, *range).await;
                for entry in entries.expect("the sources are read") {
                    hasher.message(entry.hash);
                    source_tokens += entry.tokens;
                    times.push(entry.created_at);
                }
                children.push(Child::Messages { range: *range });
            }
            Source::Summary(summary) => {
                hasher.summary(summary.hash);
                source_tokens += summary.tokens;
                depth = depth.max(summary.depth + 1);
                times.extend([summary.earliest_at, summary.latest_at]);
                children.push(Child::Summary {
                    range: summary.range,
                    id: summary.id.clone(),
                });
            }
        }
    }
    let first = children.iter().map(|child| child.range().first).min();
    let last = children.iter().map(|child| child.range().last).max();
    let (first, last) = first.zip(last).expect("a summary has sources");
    let range = range(first.0, last.0);
    let recipe = Recipe::new("test@1");
    Summary {
        tokens: PlainCounts.text(text),
        rendering: PlainCounts.rendering(),
        source_tokens,
        meta: RawJson::parse(r#"{"scores": 1.00}"#).ok(),
        earliest_at: times.iter().min().copied().unwrap_or_default(),
        latest_at: times.iter().max().copied().unwrap_or_default(),
        created_at: Timestamp(3),
        ..Summary::new(range, depth, children, hasher.finish(), recipe, text)
    }
}

/// Makes a summary of messages, as [`summary_of`].
pub(crate) async fn leaf<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    at: SeqRange,
    text: &str,
) -> Summary {
    summary_of(store, conversation, &[Source::Messages(at)], text).await
}

/// Makes a summary that unfolds to messages, whatever its sources are: to ranges of at most 5
/// messages. Else as [`summary_of`].
///
/// # Panics
/// As [`summary_of`].
pub async fn flat_summary_of<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    sources: &[Source<'_>],
    text: &str,
) -> Summary {
    let mut summary = summary_of(store, conversation, sources, text).await;
    let (first, last) = (summary.range.first.0, summary.range.last.0);
    let pieces = (first..=last).step_by(5);
    let pieces = pieces.map(|first| range(first, last.min(first + 4)));
    summary.children = pieces.map(|range| Child::Messages { range }).collect();
    summary.depth = 0;
    summary.set_hash_and_id();
    summary
}

/// The span that shows a summary.
pub fn shown(summary: &Summary) -> Span {
    let body = SpanBody::Summary {
        id: summary.id.clone(),
        depth: summary.depth,
    };
    Span::closed(summary.range, body, summary.tokens)
}

/// A raw span.
pub fn raw(range: SeqRange) -> Span {
    Span::closed(range, SpanBody::Raw, 0)
}

/// An omitted span.
pub(crate) fn omitted(range: SeqRange) -> Span {
    Span::closed(range, SpanBody::Omitted, 0)
}

/// A publish without a fence.
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

/// Publishes a summary over whatever the view holds over its range now.
pub async fn publish_summary<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    view: &str,
    summary: &Summary,
) -> Published {
    let expect = clipped(store, conversation, view, summary.range).await;
    let spans = vec![shown(summary)];
    let publish = replace(view, summary.range, expect, spans, vec![summary.clone()]);
    store
        .publish(conversation, &publish)
        .await
        .expect("a right publish is accepted")
}

/// What a view holds over a range now, as a publish expects it.
pub(crate) async fn clipped<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    view: &str,
    at: SeqRange,
) -> Vec<Span> {
    let mut spans = spans_of_view(store, conversation, view).await;
    spans.retain(|span| {
        span.range.first <= at.last && span.range.last.is_none_or(|last| at.first <= last)
    });
    for span in &mut spans {
        if matches!(span.body, SpanBody::Raw | SpanBody::Omitted) {
            span.range.first = span.range.first.max(at.first);
            span.range.last = Some(span.range.last.map_or(at.last, |last| last.min(at.last)));
        }
    }
    spans
}

/// All spans of a view now, the open one last.
pub async fn spans_of_view<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    view: &str,
) -> Vec<Span> {
    let snapshot = store
        .snapshot(conversation, &ViewName::from(view))
        .await
        .expect("a view is looked at");
    let mut spans = Vec::new();
    let mut rest = SeqRange::new(Seq::FIRST, Seq(u32::MAX - 1));
    while let Some(range) = rest {
        let page = store
            .spans(&snapshot, range, Order::OldestFirst, 100)
            .await
            .expect("spans are read");
        spans.extend(page.items);
        rest = page.next;
    }
    spans
}

/// The positions that a summary was made from, found by following its children to the messages.
pub async fn expand<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    summary: &SummaryId,
) -> Vec<Seq> {
    let mut positions = Vec::new();
    // A stack of what is left to follow, the next child on top.
    let mut left = vec![summary.clone()];
    let mut ranges: Vec<Child> = Vec::new();
    loop {
        if let Some(id) = left.pop() {
            let found = store
                .summaries(conversation, std::slice::from_ref(&id))
                .await
                .expect("summaries are looked up");
            let found = found.into_iter().next().flatten();
            let found = found.unwrap_or_else(|| panic!("{id} exists"));
            ranges.extend(found.children.into_iter().rev());
        }
        match ranges.pop() {
            None => return positions,
            Some(Child::Summary { id, .. }) => left.push(id),
            Some(Child::Messages { range }) => {
                positions.extend((range.first.0..=range.last.0).map(Seq));
            }
        }
    }
}

/// Verifies every conversation of a store, counted by [`PlainCounts`], and the store itself; the
/// violations of [`memory_store::Maintain::check`] are added to the last report.
pub async fn verify_store<S: FullStore + ?Sized>(store: &S) -> Vec<Report> {
    let mut filter = ConversationFilter::default();
    filter.archived = true;
    let rules = |id: &EstimatorId| {
        (*id == PlainCounts.estimator_id()).then(|| Arc::new(PlainCounts) as Arc<dyn Accounting>)
    };
    let mut reports = Vec::new();
    let mut whole: Vec<Violation> = Vec::new();
    let mut verifier = Verifier::new(store, &rules);
    let mut after = None;
    loop {
        let page = store
            .list(&filter, after, 100)
            .await
            .expect("conversations are listed");
        for conversation in &page.items {
            let report = verify(store, conversation.id, &rules)
                .await
                .expect("a conversation is verified");
            reports.push(report);
            let report = verifier.verify(conversation.id).await;
            whole.extend(report.expect("a conversation is verified").violations);
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    for violation in reports.iter().flat_map(|report| &report.violations) {
        // A fork's name for what it shares is its own.
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

/// Asserts that a store is sound: everything that is in it verifies.
pub async fn sound<S: FullStore + ?Sized>(store: &S) {
    for report in verify_store(store).await {
        assert_eq!(report.violations, [], "the store is sound");
    }
}

/// Waits for three futures that run side by side.
pub(crate) async fn join3<A: Future, B: Future, C: Future>(
    a: A,
    b: B,
    c: C,
) -> (A::Output, B::Output, C::Output) {
    let (mut a, mut b, mut c) = (Box::pin(a), Box::pin(b), Box::pin(c));
    let (mut x, mut y, mut z) = (None, None, None);
    std::future::poll_fn(move |context| {
        use std::task::Poll;
        if x.is_none()
            && let Poll::Ready(out) = a.as_mut().poll(context)
        {
            x = Some(out);
        }
        if y.is_none()
            && let Poll::Ready(out) = b.as_mut().poll(context)
        {
            y = Some(out);
        }
        if z.is_none()
            && let Poll::Ready(out) = c.as_mut().poll(context)
        {
            z = Some(out);
        }
        match (x.take(), y.take(), z.take()) {
            (Some(a), Some(b), Some(c)) => Poll::Ready((a, b, c)),
            (a, b, c) => {
                (x, y, z) = (a, b, c);
                Poll::Pending
            }
        }
    })
    .await
}
