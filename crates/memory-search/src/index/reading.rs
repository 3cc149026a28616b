//! Reads candidates from the log.

use std::collections::VecDeque;

use crate::Result;
use memory_model::{ConversationId, LogEntry, Seq, SeqRange};

use crate::log_calls::LogCalls;
use memory_store::{LogRead, Store};

/// Maximum distance between two candidates at which the messages between them are read too: these may hold the calls of
/// their results.
const NEAR: u32 = 8;

/// Messages that are read from a log by their positions, with the calls before each.
#[derive(Debug)]
pub(super) struct Reading<'s, S: ?Sized> {
    store: &'s S,
    conversation: ConversationId,
    /// Rising; `None` for all.
    wanted: Option<Vec<Seq>>,
    /// The rest of the log, which is not read yet.
    rest: Option<LogRead>,
    /// The entries that were read, in stretches without a gap.
    stretches: VecDeque<VecDeque<LogEntry>>,
    /// The calls before the message that came last.
    pub(super) calls: LogCalls<'s, S>,
}

impl<'s, S: Store + ?Sized> Reading<'s, S> {
    /// The messages at these positions, oldest first.
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

    /// All messages of a range, oldest first.
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

    /// Reads newest first.
    pub(super) fn newest_first(mut self) -> Self {
        self.rest = self.rest.map(LogRead::newest_first);
        self
    }

    /// The next message.
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

/// Adds to positions, which rise, the ones between two that are near each other.
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
