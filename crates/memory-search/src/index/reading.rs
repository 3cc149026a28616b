//! Reads candidate messages from the log.

use std::collections::VecDeque;

use crate::Result;
use memory_model::{ConversationId, LogEntry, Seq, SeqRange};

use crate::log_calls::LogCalls;
use memory_store::{LogRead, Store};

/// Maximum distance, in positions, between two messages to read at which the messages between them are read too. These
/// messages may contain the calls of tool results in the second message.
const NEAR: u32 = 8;

/// Reads messages of a log by their positions, and keeps the tool calls before each.
#[derive(Debug)]
pub(super) struct Reading<'s, S: ?Sized> {
    store: &'s S,
    conversation: ConversationId,
    /// Positions of the messages to return, in ascending order. `None` for all messages.
    wanted: Option<Vec<Seq>>,
    /// The part of the log that is not read yet.
    rest: Option<LogRead>,
    /// The entries that were read, in sections without gaps.
    stretches: VecDeque<VecDeque<LogEntry>>,
    /// The tool calls before the message that was returned last.
    pub(super) calls: LogCalls<'s, S>,
}

impl<'s, S: Store + ?Sized> Reading<'s, S> {
    /// Reads the messages at these positions, oldest first.
    pub(super) fn new(
        store: &'s S,
        conversation: ConversationId,
        wanted: impl IntoIterator<Item = Seq>,
    ) -> Self {
        let mut wanted: Vec<Seq> = wanted.into_iter().collect();
        wanted.sort_unstable();
        let read = LogRead::at(with_between(&wanted));
        Self::of(store, conversation, read, Some(wanted))
    }

    /// Reads all messages in a range, oldest first.
    pub(super) fn all(store: &'s S, conversation: ConversationId, range: SeqRange) -> Self {
        Self::of(store, conversation, Some(LogRead::new(range)), None)
    }

    fn of(
        store: &'s S,
        conversation: ConversationId,
        rest: Option<LogRead>,
        wanted: Option<Vec<Seq>>,
    ) -> Self {
        Self {
            store,
            conversation,
            rest,
            wanted,
            stretches: VecDeque::new(),
            calls: LogCalls::new(store, conversation),
        }
    }

    /// Reverses the order: newest message first.
    pub(super) fn newest_first(mut self) -> Self {
        self.rest = self.rest.map(LogRead::newest_first);
        self
    }

    /// Returns the next message. `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<LogEntry>> {
        loop {
            if let Some(stretch) = self.stretches.front_mut() {
                while let Some(entry) = stretch.pop_front() {
                    let wanted = self.wanted.as_ref();
                    if wanted.is_none_or(|wanted| wanted.binary_search(&entry.seq).is_ok()) {
                        return Ok(Some(entry));
                    }
                }
                self.stretches.pop_front();
                self.begin_stretch();
                continue;
            }
            let Some(read) = self.rest.take() else {
                return Ok(None);
            };
            let page = self.store.read(self.conversation, &read).await?;
            for entry in page.items {
                let follows = |last: &LogEntry| last.seq.0.abs_diff(entry.seq.0) == 1;
                match self.stretches.back_mut() {
                    Some(open) if open.back().is_some_and(follows) => open.push_back(entry),
                    _ => self.stretches.push_back(VecDeque::from([entry])),
                }
            }
            self.rest = page.next.map(|range| LogRead { range, ..read });
            self.begin_stretch();
        }
    }

    fn begin_stretch(&mut self) {
        if let Some(stretch) = self.stretches.front_mut() {
            self.calls.add_page(stretch.make_contiguous());
        }
    }
}

/// Adds the positions between two that are close to each other. `wanted` must be in ascending order.
fn with_between(wanted: &[Seq]) -> Vec<Seq> {
    let mut all = wanted.to_vec();
    for pair in wanted.windows(2) {
        if let [one, next] = pair
            && next.0 - one.0 <= NEAR
            && let Some(between) = SeqRange::new(one.next(), next.prev())
        {
            all.extend((between.first.0..=between.last.0).map(Seq));
        }
    }
    all
}
