//! The calls that results belong to, read where they are needed.

use memory_model::{ConversationId, LogEntry, Seq, SeqRange};
use memory_search::implementors::Matcher;
use memory_search::{CALL_WINDOW, CallNames, Hit};

use crate::error::Result;
use crate::store::Store;
use crate::types::LogRead;

/// Entries before a result that are read first: its call mostly stands right before it.
const NEAR: usize = 16;

/// The calls before what is read of a log. They are read only where a result asks for them.
#[derive(Debug)]
pub(crate) struct LogCalls<'s, S: ?Sized> {
    store: &'s S,
    conversation: ConversationId,
    names: CallNames,
    /// The positions whose calls are in `names`.
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

    /// Adds the calls of a page of the log, in either order.
    pub(crate) fn add_page(&mut self, page: &[LogEntry]) {
        let ends = page.first().zip(page.last());
        let ends = ends.map(|(a, b)| (a.seq.min(b.seq), a.seq.max(b.seq)));
        let Some(range) = ends.and_then(|(first, last)| SeqRange::new(first, last)) else {
            return;
        };
        let follows = |known: &SeqRange| known.last.next() == range.first;
        self.known = match self.known.filter(follows) {
            Some(known) => SeqRange::new(known.first, range.last),
            None => {
                self.names = CallNames::new();
                Some(range)
            }
        };
        self.names.forget_before(range.first);
        page.iter().for_each(|entry| self.names.add(entry));
    }

    /// Reads back until the calls of a message's results are known, or too far away. The message is in a
    /// page that was added.
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

    /// What is known.
    pub(crate) fn names(&self) -> &CallNames {
        &self.names
    }

    /// Returns a hit where a message of a page that was added matches.
    pub(crate) async fn hit(&mut self, matcher: &Matcher, entry: &LogEntry) -> Result<Option<Hit>> {
        if matcher.asks_for_calls(entry, &self.names) {
            self.resolve(entry).await?;
        }
        Ok(matcher.message(entry, &self.names))
    }
}
