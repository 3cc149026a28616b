//! The tool calls to which results belong, read from the log when they are needed.

use crate::Hit;
use crate::calls::{CALL_WINDOW, CallNames};
use crate::matching::Matcher;
use memory_model::{ConversationId, LogEntry, Seq, SeqRange};

use memory_store::implementors::no_conversation;
use memory_store::{Conversation, ConversationRef, LogRead, Result, Store};

/// Number of log entries before a tool result that are read first to find its call. The call is usually directly before
/// its result.
const NEAR: usize = 16;

/// The tool calls of a conversation, by their ids. They are read from the log only when a result needs them.
#[derive(Debug)]
pub(crate) struct LogCalls<'s, S: ?Sized> {
    store: &'s S,
    conversation: ConversationId,
    names: CallNames,
    /// Range of the log. `names` contains the calls of this range. `None` at the beginning.
    known: Option<SeqRange>,
}

impl<'s, S: Store + ?Sized> LogCalls<'s, S> {
    pub(crate) fn new(store: &'s S, conversation: ConversationId) -> Self {
        Self {
            store,
            conversation,
            names: CallNames::new(),
            known: None,
        }
    }

    /// Adds the calls of a page of the log, which may be in ascending or descending order.
    pub(crate) fn add_page(&mut self, page: &[LogEntry]) {
        let ends = page.first().zip(page.last());
        let ends = ends.map(|(a, b)| (a.seq.min(b.seq), a.seq.max(b.seq)));
        let Some(range) = ends.and_then(|(first, last)| SeqRange::new(first, last)) else {
            return;
        };
        let touches =
            |known: &SeqRange| range.first <= known.last.next() && known.first <= range.last.next();
        let known = self.known.filter(touches);
        if known.is_none() {
            self.names = CallNames::new();
        }
        let is_new = |entry: &&LogEntry| known.is_none_or(|known| !known.contains(entry.seq));
        page.iter()
            .filter(is_new)
            .for_each(|entry| self.names.add(entry));
        // Results in this page need no calls farther back than the window.
        self.names.forget_before(range.first);
        let oldest = Seq(range.first.0.saturating_sub(CALL_WINDOW).max(1));
        self.known = match known {
            Some(known) => SeqRange::new(
                known.first.max(oldest).min(range.first),
                known.last.max(range.last),
            ),
            None => Some(range),
        };
    }

    /// Reads the log backwards until the calls of all results in a message are known, or too far back. The message must
    /// be in a page that was added.
    pub(crate) async fn resolve(&mut self, entry: &LogEntry) -> Result<()> {
        let mut rows = NEAR;
        while self.names.misses(entry)
            && let Some(known) = self.known
        {
            let first = Seq(entry.seq.0.saturating_sub(CALL_WINDOW).max(1));
            let Some(before) = SeqRange::new(first, known.first.prev()) else {
                return Ok(());
            };
            let read = LogRead::new(before).newest_first().with_max_rows(rows);
            rows = CALL_WINDOW as usize;
            let page = self.store.read(self.conversation, &read).await?;
            let Some(oldest) = page.items.last() else {
                return Ok(());
            };
            self.known = SeqRange::new(oldest.seq, known.last);
            page.items.iter().for_each(|entry| self.names.add(entry));
        }
        Ok(())
    }

    /// Returns the calls that are known so far.
    pub(crate) fn names(&self) -> &CallNames {
        &self.names
    }

    /// Returns a hit if a message matches the query. The message must be in a page that was added.
    pub(crate) async fn hit(
        &mut self,
        matcher: &Matcher<'_>,
        entry: &LogEntry,
    ) -> Result<Option<Hit>> {
        if matcher.asks_for_calls(entry, &self.names) {
            self.resolve(entry).await?;
        }
        Ok(matcher.message(entry, &self.names))
    }
}

/// Returns a conversation of the store.
///
/// # Errors
/// `NotFound` if the conversation does not exist.
pub(crate) async fn read_conversation<S: Store + ?Sized>(
    store: &S,
    id: ConversationId,
) -> Result<Conversation> {
    let found = store.conversation(&ConversationRef::Id(id)).await?;
    found.ok_or_else(|| no_conversation(id))
}

#[cfg(test)]
mod tests {
    use memory_model::{Message, RawJson};

    use super::*;
    use crate::calls::tests::entry;
    use memory_store::InMemoryStore;

    fn call(seq: u32) -> LogEntry {
        let arguments = RawJson::parse("{}").unwrap();
        entry(seq, Message::tool_call(format!("c{seq}"), "run", arguments))
    }

    fn result(seq: u32, of: u32) -> LogEntry {
        entry(seq, Message::tool_result(format!("c{of}"), "done"))
    }

    /// Calls that were read for one result are kept for the next result, in either order.
    #[test]
    fn pages_that_touch_are_kept() {
        let store = InMemoryStore::new();
        let mut calls = LogCalls::new(&store, ConversationId(1));
        calls.add_page(&[result(20, 12), call(19)]);
        // The state after reading back for the first tool result.
        calls.known = SeqRange::new(Seq(10), Seq(20));
        calls.names.add(&call(12));
        for page in [vec![result(18, 12)], vec![call(9), call(8)]] {
            calls.add_page(&page);
            assert!(!calls.names.misses(&result(18, 12)), "{page:?}");
        }
        assert_eq!(calls.known, SeqRange::new(Seq(8), Seq(20)));
        calls.add_page(&[call(21), call(22)]);
        assert_eq!(calls.known, SeqRange::new(Seq(8), Seq(22)));
        // Calls that are too far back are removed, and their range is no longer known.
        calls.add_page(&[call(23), call(400)]);
        calls.add_page(&[call(401)]);
        assert_eq!(calls.known, SeqRange::new(Seq(401 - CALL_WINDOW), Seq(401)));
        // A gap: the calls in it are not known.
        calls.add_page(&[result(900, 12)]);
        assert_eq!(calls.known, SeqRange::new(Seq(900), Seq(900)));
        assert!(calls.names.misses(&result(900, 401)));
    }
}
