//! Reads the input of an assembly: the end of a view or of its log, as far as it may fit into the context.

use compaction_runner::atom_start;
use context_assembler::{AssemblyInput, InputLimits, Item, is_ranked};
use memory_model::{Child, EntryKind, LogEntry, Seq, SeqRange, Span, SpanBody, Summary, SummaryId};
use memory_store::{
    Error, ErrorKind, FullStore, LogRead, Order, Result, Snapshot, read_entries,
    read_shown_summaries, read_span_page,
};

/// Maximum number of spans in one read from the store.
const PAGE: usize = 64;

/// Reads from the store what one context needs of a view and its log. A large message counts with at most
/// [`tokens_per_message`](InputLimits::tokens_per_message), because a context shows no more of it.
pub(crate) struct InputReader<'a> {
    pub(crate) store: &'a dyn FullStore,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) limits: InputLimits,
    /// Maximum cost of the view in the context, in tokens.
    pub(crate) room: u64,
}

/// A part of a log: its range, and the cost of the log before the range and through its end, in tokens.
type Stretch = (SeqRange, u64, u64);

impl InputReader<'_> {
    /// Reads the end of the view, up to the limits: its latest summaries, and the latest messages between them. Older
    /// content becomes [`Item::Unread`].
    pub(crate) async fn view(&self) -> Result<AssemblyInput> {
        let (store, snapshot, mut limits) = (self.store, self.snapshot, self.limits);
        let mut newest_first: Vec<Item> = Vec::new();
        // Cost of the view before the spans that were read, in tokens.
        let mut before = snapshot.tokens();
        let mut rest = SeqRange::new(Seq::FIRST, snapshot.head);
        'view: while let Some(range) = rest {
            let page = read_span_page(store, snapshot, range, Order::NewestFirst, PAGE).await?;
            let summaries = read_shown_summaries(store, snapshot.conversation, &page.items).await?;
            let mut summaries = summaries.into_iter();
            for span in page.items {
                let Some(range) = span.range.up_to(snapshot.head) else {
                    continue;
                };
                match &span.body {
                    SpanBody::Summary { .. } if limits.summaries == 0 => {
                        let older = SeqRange::new(Seq::FIRST, range.last);
                        newest_first.extend(older.map(|older| Item::Unread(older, before)));
                        break 'view;
                    }
                    SpanBody::Summary { id, .. } => {
                        let summary = summaries.next().flatten().ok_or_else(|| {
                            let text =
                                format!("the view shows {id}, which is missing: run `verify`");
                            Error::new(ErrorKind::Corrupt, text)
                        })?;
                        limits.summaries -= 1;
                        newest_first.push(Item::Summary(Box::new(summary)));
                    }
                    SpanBody::Omitted => newest_first.push(Item::Omitted(range)),
                    SpanBody::Trimmed(_) | SpanBody::Raw => {
                        let newest_first = &mut newest_first;
                        self.messages(&span, range, &mut limits, newest_first)
                            .await?;
                    }
                }
                before = before.saturating_sub(span.tokens);
            }
            rest = page.next;
        }
        newest_first.reverse();
        Ok(self.input(newest_first))
    }

    /// Replaces condensed extracts (summaries of summaries) by their children, latest first. Stops when all summaries
    /// together cost as much as the limit, or when no condensed summary is left.
    ///
    /// A summary without ranks, or with children without ranks, stays: the children are read
    /// [below](AssemblyInput::below), and the assembly shows them if all of them fit whole.
    pub(crate) async fn unfold(&self, input: &mut AssemblyInput) -> Result<()> {
        loop {
            let shown = unfolded(input);
            let costs = shown.iter().map(|(summary, _)| summary.tokens);
            if costs.fold(0, u64::saturating_add) >= self.limits.unfolded_tokens {
                return Ok(());
            }
            let mut newest_first = shown.into_iter().rev();
            let newest =
                newest_first.find_map(|(it, at)| Some((is_ranked(it), at, condensed(it)?)));
            let Some((is_extract, at, ids)) = newest else {
                return Ok(());
            };
            let conversation = self.snapshot.conversation;
            let children = self.store.summaries(conversation, &ids).await?;
            let Some(children) = children.into_iter().collect::<Option<Vec<_>>>() else {
                return Ok(());
            };
            match at.filter(|_| is_extract && children.iter().all(is_ranked)) {
                Some(at) => {
                    let children = children.into_iter().map(Box::new).map(Item::Summary);
                    input.items.splice(at..=at, children);
                }
                None => input.below.extend(children),
            }
        }
    }

    /// Adds the last messages to the input verbatim, about as many as the room allows. A log that fits is read whole.
    /// In a longer log the summaries stay, and the messages of a summary are quoted after it.
    pub(crate) async fn fill(&self, input: &mut AssemblyInput) -> Result<()> {
        let from = self.start(self.log(), self.room).await?;
        let newer = input.items.partition_point(|item| ends(item).1 < from);
        let is_shown = |item: &Item| matches!(item, Item::Raw(_));
        if input.items.iter().skip(newer).all(is_shown) {
            return Ok(());
        }
        let mut entries = self.entries(from, self.snapshot.head).await?;
        for item in input.items.split_off(newer) {
            let (first, last) = ends(&item);
            let behind = entries.partition_point(|entry| entry.seq <= last);
            let rest = entries.split_off(behind);
            let of_item = std::mem::replace(&mut entries, rest);
            match item {
                Item::Summary(summary) if from > Seq::FIRST => {
                    input.items.push(Item::Summary(summary));
                    input.items.push(Item::Quoted(of_item));
                }
                item => {
                    input.items.extend(older(item, first, from, &of_item));
                    input.items.push(Item::Raw(of_item));
                }
            }
        }
        Ok(())
    }

    /// Reads the whole log in place of its view if the log costs at most `room` tokens; otherwise returns `None`. A
    /// view that was compacted because of one large message then does not hide other messages that fit.
    pub(crate) async fn whole_log(&self, room: u64) -> Result<Option<AssemblyInput>> {
        if self.oldest_within(self.log(), room).await?.is_some() {
            return Ok(None);
        }
        let entries = self.entries(Seq::FIRST, self.snapshot.head).await?;
        Ok(Some(self.input(vec![Item::Raw(entries)])))
    }

    /// Reads the requested messages that the input does not show, and inserts each after the item that covers its
    /// position.
    pub(crate) async fn quote(&self, input: &mut AssemblyInput) -> Result<()> {
        let shown = |seq: Seq| {
            input.items.iter().any(|item| match item {
                Item::Raw(entries) | Item::Trimmed(_, entries, _) | Item::Quoted(entries) => {
                    entries
                        .binary_search_by_key(&seq, |entry| entry.seq)
                        .is_ok()
                }
                _ => false,
            })
        };
        let hidden: Vec<Seq> = input
            .requested
            .iter()
            .copied()
            .filter(|seq| !shown(*seq))
            .collect();
        let mut read = LogRead::at(hidden);
        while let Some(wanted) = read {
            let page = self.store.read(self.snapshot.conversation, &wanted).await?;
            for entry in page.items {
                let at = input
                    .items
                    .partition_point(|item| ends(item).0 <= entry.seq);
                input.items.insert(at, Item::Quoted(vec![entry]));
            }
            read = page.next.map(|range| LogRead { range, ..wanted });
        }
        Ok(())
    }

    /// Reads the messages of a span from its end, as far as the limit of message tokens allows, and subtracts their
    /// cost from the limit. The last message of the view is read even if the limit is zero.
    async fn messages(
        &self,
        span: &Span,
        range: SeqRange,
        limits: &mut InputLimits,
        newest_first: &mut Vec<Item>,
    ) -> Result<()> {
        let left = limits.message_tokens;
        let is_first = !newest_first.iter().any(shows);
        if left == 0 && !is_first {
            newest_first.push(Item::Unread(range, span.tokens));
            return Ok(());
        }
        if let SpanBody::Trimmed(policy) = &span.body {
            let entries = self.entries(range.first, range.last).await?;
            limits.message_tokens = left.saturating_sub(span.tokens);
            newest_first.push(Item::Trimmed(policy.clone(), entries, span.tokens));
            return Ok(());
        }
        let mut from = range.first;
        if span.tokens > left {
            let before = [range.first.prev()];
            let before = self.store.running(self.snapshot.conversation, &before);
            let before = before.await?.first().copied().unwrap_or(0);
            let stretch = (range, before, before.saturating_add(span.tokens));
            from = self.start(Some(stretch), left).await?;
        }
        let mut newer = self.entries(from, range.last).await?;
        if is_first && from > range.first && !newer.iter().any(is_message) {
            from = range.first;
            newer = self.entries(from, range.last).await?;
        }
        let most = limits.tokens_per_message;
        let counted = newer.iter().map(|entry| entry.tokens.min(most));
        limits.message_tokens = left.saturating_sub(counted.fold(0, u64::saturating_add));
        let older_tokens = span.tokens.saturating_sub(sum(&newer));
        newest_first.push(Item::Raw(newer));
        if let Some(older) = SeqRange::new(range.first, from.prev()) {
            limits.message_tokens = 0;
            newest_first.push(Item::Unread(older, older_tokens));
        }
        Ok(())
    }

    /// Returns the position from which the last messages of a stretch are read for `room` tokens. It is the beginning
    /// of an atom, so the messages from there on may exceed `room`.
    async fn start(&self, stretch: Option<Stretch>, room: u64) -> Result<Seq> {
        let floor = stretch.map_or(Seq::FIRST, |(range, ..)| range.first);
        match self.oldest_within(stretch, room).await? {
            Some(seq) => atom_start(self.store, self.snapshot.conversation, floor, seq).await,
            None => Ok(floor),
        }
    }

    /// Returns the position from which the last messages of a stretch are read for `room` tokens; `None` if the whole
    /// stretch fits. The message at this position may exceed `room`.
    async fn oldest_within(&self, stretch: Option<Stretch>, room: u64) -> Result<Option<Seq>> {
        let (store, conversation) = (self.store, self.snapshot.conversation);
        let most = self.limits.tokens_per_message;
        let (mut left, mut rest) = (room, stretch);
        while let Some((range, start, end)) = rest {
            let skip = end.saturating_sub(start).saturating_sub(left);
            if skip == 0 {
                break;
            }
            let seq = store
                .seq_at(conversation, start.saturating_add(skip))
                .await?;
            let seq = seq.unwrap_or(range.last).min(range.last).max(range.first);
            if most >= end - start {
                return Ok(Some(seq));
            }
            let sums = store.running(conversation, &[seq.prev(), seq]).await?;
            let [before, through] = <[u64; 2]>::try_from(sums).unwrap_or_default();
            let counted = end.saturating_sub(through).saturating_add(most);
            let is_large = through.saturating_sub(before) > most;
            let Some(remains) = left.checked_sub(counted).filter(|_| is_large) else {
                return Ok(Some(seq));
            };
            left = remains;
            rest = SeqRange::new(range.first, seq.prev()).map(|range| (range, start, before));
        }
        Ok(None)
    }

    /// Returns the whole log as a stretch; `None` if the log is empty.
    fn log(&self) -> Option<Stretch> {
        let range = SeqRange::new(Seq::FIRST, self.snapshot.head)?;
        Some((range, 0, self.snapshot.log_tokens))
    }

    fn input(&self, items: Vec<Item>) -> AssemblyInput {
        AssemblyInput {
            view_tokens: self.snapshot.tokens(),
            items,
            ..AssemblyInput::default()
        }
    }

    async fn entries(&self, first: Seq, last: Seq) -> Result<Vec<LogEntry>> {
        let range = SeqRange::new(first, last);
        read_entries(self.store, self.snapshot.conversation, range).await
    }
}

/// Returns the summaries of the items, with the ones that were read below in place of those that were made from them.
/// Each summary that is an item has the index of the item.
pub(crate) fn unfolded(input: &AssemblyInput) -> Vec<(&Summary, Option<usize>)> {
    let items = input.items.iter().enumerate().rev();
    let mut stack: Vec<(&Summary, Option<usize>)> = Vec::new();
    stack.extend(items.filter_map(|(at, item)| match item {
        Item::Summary(summary) => Some((&**summary, Some(at))),
        _ => None,
    }));
    let mut unfolded = Vec::new();
    while let Some((summary, at)) = stack.pop() {
        let ids: Vec<_> = summary.children.iter().filter_map(Child::summary).collect();
        let children = input.below.iter().rev().filter(|it| ids.contains(&&it.id));
        let before = stack.len();
        stack.extend(children.map(|child| (child, None)));
        if stack.len() == before {
            unfolded.push((summary, at));
        }
    }
    unfolded
}

/// Returns the ids of the summaries from which a summary was condensed; `None` for a summary of messages.
fn condensed(summary: &Summary) -> Option<Vec<SummaryId>> {
    let ids = summary
        .children
        .iter()
        .map(|child| child.summary().cloned());
    ids.collect()
}

/// Returns the part of an item before position `from`; `None` if there is no such part. `newer` has the item's messages
/// from that position on.
fn older(item: Item, first: Seq, from: Seq, newer: &[LogEntry]) -> Option<Item> {
    let range = SeqRange::new(first, from.prev())?;
    Some(match item {
        Item::Raw(mut entries) => {
            entries.retain(|entry| entry.seq < from);
            Item::Raw(entries)
        }
        Item::Trimmed(policy, mut entries, tokens) => {
            let all = sum(&entries);
            entries.retain(|entry| entry.seq < from);
            let part = u128::from(tokens) * u128::from(sum(&entries)) / u128::from(all.max(1));
            let part = u64::try_from(part).unwrap_or(tokens);
            Item::Trimmed(policy, entries, part)
        }
        Item::Unread(_, tokens) => Item::Unread(range, tokens.saturating_sub(sum(newer))),
        Item::Omitted(_) | Item::Summary(_) | Item::Quoted(_) => Item::Omitted(range),
    })
}

fn sum(entries: &[LogEntry]) -> u64 {
    let tokens = entries.iter().map(|entry| entry.tokens);
    tokens.fold(0, u64::saturating_add)
}

/// Returns the positions of an item's first and last messages.
fn ends(item: &Item) -> (Seq, Seq) {
    match item {
        Item::Raw(entries) | Item::Trimmed(_, entries, _) | Item::Quoted(entries) => {
            let seq = |entry: Option<&LogEntry>| entry.map_or(Seq::NONE, |entry| entry.seq);
            (seq(entries.first()), seq(entries.last()))
        }
        Item::Summary(summary) => (summary.range.first, summary.range.last),
        Item::Omitted(range) | Item::Unread(range, _) => (range.first, range.last),
    }
}

fn is_message(entry: &LogEntry) -> bool {
    entry.kind == EntryKind::Message
}

/// Returns whether an item (a summary, or neighbouring entries of the log) adds text to a context. An item that
/// consists only of notes adds none.
fn shows(item: &Item) -> bool {
    match item {
        Item::Raw(entries) | Item::Trimmed(_, entries, _) => entries.iter().any(is_message),
        _ => true,
    }
}
