//! Reads the input of an assembly: the part of a view that can go into the context.

use compaction_plan::Tail;
use compaction_runner::{atom_start, newest_entries};
use context_assembler::{AssemblyInput, InputLimits, Item};
use memory_model::{EntryKind, LogEntry, Seq, SeqRange, Span, SpanBody, SummaryId};
use memory_store::{
    Error, ErrorKind, FullStore, Order, Result, Snapshot, fill_raw_tokens, read_entries,
};

/// Number of spans that one read asks for.
const PAGE: usize = 64;

/// Reads the part of a view from its token `tokens_before` on. Of a raw span that holds this token,
/// only the newer part is read, from the tool group that holds the token.
pub(crate) async fn read_input(
    store: &dyn FullStore,
    snapshot: &Snapshot,
    tokens_before: u64,
    whole_tail: Option<usize>,
) -> Result<AssemblyInput> {
    let mut input = AssemblyInput {
        view_tokens: snapshot.tokens(),
        tokens_before: snapshot.tokens(),
        items: Vec::new(),
    };
    let tail = tail_start(store, snapshot, whole_tail).await?;
    let mut newest_first: Vec<Item> = Vec::new();
    let mut rest = SeqRange::new(Seq::FIRST, snapshot.head);
    'spans: while let Some(range) = rest {
        let page = store
            .spans(snapshot, range, Order::NewestFirst, PAGE)
            .await?;
        let mut spans = page.items;
        fill_raw_tokens(store, snapshot, &mut spans).await?;
        let summaries = summaries(store, snapshot, &spans).await?;
        let mut summaries = summaries.into_iter();
        for span in spans {
            let needed = tail.is_some_and(|tail| span.range.last.is_none_or(|last| last >= tail));
            if input.tokens_before <= tokens_before && !needed && newest_first.iter().any(shows) {
                break 'spans;
            }
            let Some(range) = span.range.up_to(snapshot.head) else {
                continue;
            };
            let item = match &span.body {
                SpanBody::Summary { .. } => {
                    let Some(summary) = summaries.next() else {
                        break 'spans;
                    };
                    input.tokens_before = input.tokens_before.saturating_sub(span.tokens);
                    Item::Summary(Box::new(summary))
                }
                SpanBody::Omitted => Item::Omitted(range),
                SpanBody::Trimmed(policy) => {
                    input.tokens_before = input.tokens_before.saturating_sub(span.tokens);
                    let entries = read_entries(store, snapshot.conversation, range).await?;
                    Item::Trimmed(policy.clone(), entries, span.tokens)
                }
                SpanBody::Raw => {
                    let start = input.tokens_before.saturating_sub(span.tokens);
                    let (from, cost) = raw_from(
                        store,
                        snapshot,
                        &span,
                        range,
                        tokens_before.saturating_sub(start),
                        tail,
                    )
                    .await?;
                    input.tokens_before = input.tokens_before.saturating_sub(cost);
                    let newer = SeqRange::new(from, range.last);
                    let entries = read_entries(store, snapshot.conversation, newer).await?;
                    newest_first.push(Item::Raw(entries));
                    if from > range.first && newest_first.iter().any(shows) {
                        break 'spans;
                    }
                    continue;
                }
            };
            newest_first.push(item);
        }
        rest = page.next;
    }
    newest_first.reverse();
    input.items = newest_first;
    Ok(input)
}

/// Reads a view as far as an assembly needs it that covers the whole view: all its summaries, newest first, up to a
/// limit, and the newest of the messages between them. The others are [`Item::Unread`].
pub(crate) async fn read_whole_view(
    store: &dyn FullStore,
    snapshot: &Snapshot,
    limits: InputLimits,
) -> Result<AssemblyInput> {
    let mut reader = ViewReader {
        store,
        snapshot,
        summaries_left: limits.summaries,
        tokens_left: limits.message_tokens,
        tokens_before: snapshot.tokens(),
        newest_first: Vec::new(),
    };
    let mut rest = SeqRange::new(Seq::FIRST, snapshot.head);
    while let Some(range) = rest {
        let page = store
            .spans(snapshot, range, Order::NewestFirst, PAGE)
            .await?;
        let mut spans = page.items;
        fill_raw_tokens(store, snapshot, &mut spans).await?;
        rest = page.next;
        if !reader.page(spans).await? {
            break;
        }
        if rest.is_none() {
            reader.tokens_before = 0;
        }
    }
    let mut items = reader.newest_first;
    items.reverse();
    Ok(AssemblyInput {
        view_tokens: snapshot.tokens(),
        tokens_before: reader.tokens_before,
        items,
    })
}

/// Reads the spans of a view, newest first.
struct ViewReader<'a> {
    store: &'a dyn FullStore,
    snapshot: &'a Snapshot,
    /// Number of summaries that are still to be read.
    summaries_left: u64,
    /// Cost of the messages that are still to be read, in tokens.
    tokens_left: u64,
    /// Cost of the view before what was read, in tokens.
    tokens_before: u64,
    newest_first: Vec<Item>,
}

impl ViewReader<'_> {
    /// Reads a page of spans, newest first. Returns false where a summary is beyond the limit.
    async fn page(&mut self, spans: Vec<Span>) -> Result<bool> {
        let summaries = summaries(self.store, self.snapshot, &spans).await?;
        let mut summaries = summaries.into_iter();
        for span in spans {
            let Some(range) = span.range.up_to(self.snapshot.head) else {
                continue;
            };
            match &span.body {
                SpanBody::Summary { .. } => {
                    let Some(summary) = summaries.next().filter(|_| self.summaries_left > 0) else {
                        return Ok(false);
                    };
                    self.summaries_left -= 1;
                    self.newest_first.push(Item::Summary(Box::new(summary)));
                }
                SpanBody::Omitted => self.newest_first.push(Item::Omitted(range)),
                SpanBody::Trimmed(_) | SpanBody::Raw => self.messages(&span, range).await?,
            }
            self.tokens_before = self.tokens_before.saturating_sub(span.tokens);
        }
        Ok(true)
    }

    /// Reads the messages of a span, the newer part of it, or nothing. The newest message is always read.
    async fn messages(&mut self, span: &Span, range: SeqRange) -> Result<()> {
        let (store, conversation) = (self.store, self.snapshot.conversation);
        let first = !self.newest_first.iter().any(shows);
        if self.tokens_left == 0 && !first {
            self.newest_first.push(Item::Unread(range, span.tokens));
            return Ok(());
        }
        if let SpanBody::Trimmed(policy) = &span.body {
            let entries = read_entries(store, conversation, range).await?;
            self.tokens_left = self.tokens_left.saturating_sub(span.tokens);
            let item = Item::Trimmed(policy.clone(), entries, span.tokens);
            self.newest_first.push(item);
            return Ok(());
        }
        let skip = span.tokens.saturating_sub(self.tokens_left);
        let (mut from, mut cost) = raw_from(store, self.snapshot, span, range, skip, None).await?;
        let mut newer = read_entries(store, conversation, SeqRange::new(from, range.last)).await?;
        let notes =
            |entries: &[LogEntry]| entries.iter().all(|entry| entry.kind == EntryKind::Note);
        if first && from > range.first && notes(&newer) {
            (from, cost) = (range.first, span.tokens);
            newer = read_entries(store, conversation, range).await?;
        }
        self.tokens_left = self.tokens_left.saturating_sub(cost);
        self.newest_first.push(Item::Raw(newer));
        if let Some(older) = SeqRange::new(range.first, from.prev()) {
            self.tokens_left = 0;
            let item = Item::Unread(older, span.tokens.saturating_sub(cost));
            self.newest_first.push(item);
        }
        Ok(())
    }
}

/// Returns the position at which the newest `messages` messages begin, with the tool group that the
/// oldest of them belongs to; `None` without a number or without messages.
async fn tail_start(
    store: &dyn FullStore,
    snapshot: &Snapshot,
    messages: Option<usize>,
) -> Result<Option<Seq>> {
    let Some(messages) = messages else {
        return Ok(None);
    };
    let (conversation, tail) = (snapshot.conversation, Tail::messages(messages.max(1)));
    let newest = newest_entries(store, conversation, snapshot.head, tail).await?;
    Ok(newest.first().map(|entry| entry.seq))
}

/// Whether an item shows anything in a context: notes alone do not.
fn shows(item: &Item) -> bool {
    match item {
        Item::Raw(entries) | Item::Trimmed(_, entries, _) => {
            entries.iter().any(|entry| entry.kind == EntryKind::Message)
        }
        _ => true,
    }
}

/// Returns where to start in a raw span to read its token `skip` and everything after it: the
/// position, and the cost of the span from there.
async fn raw_from(
    store: &dyn FullStore,
    snapshot: &Snapshot,
    span: &Span,
    range: SeqRange,
    skip: u64,
    tail: Option<Seq>,
) -> Result<(Seq, u64)> {
    if skip == 0 {
        return Ok((range.first, span.tokens));
    }
    let conversation = snapshot.conversation;
    let before = store.running(conversation, &[range.first.prev()]).await?;
    let before = before.first().copied().unwrap_or(0);
    let seq = store
        .seq_at(conversation, before.saturating_add(skip))
        .await?;
    let seq = seq.unwrap_or(range.last).min(range.last);
    let seq = tail.map_or(seq, |tail| seq.min(tail)).max(range.first);
    let from = atom_start(store, conversation, range.first, seq).await?;
    let skipped = store.running(conversation, &[from.prev()]).await?;
    let skipped = skipped.first().copied().unwrap_or(0).saturating_sub(before);
    Ok((from, span.tokens.saturating_sub(skipped)))
}

/// Returns the summaries that the spans show, in the spans' order.
async fn summaries(
    store: &dyn FullStore,
    snapshot: &Snapshot,
    spans: &[Span],
) -> Result<Vec<memory_model::Summary>> {
    let ids: Vec<SummaryId> = spans
        .iter()
        .filter_map(|s| s.body.summary().cloned())
        .collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let found = store.summaries(snapshot.conversation, &ids).await?;
    found
        .into_iter()
        .zip(&ids)
        .map(|(summary, id)| {
            summary.ok_or_else(|| {
                Error::new(
                    ErrorKind::Corrupt,
                    format!("the view shows {id}, which is missing: run `verify`"),
                )
            })
        })
        .collect()
}
