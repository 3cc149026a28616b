//! Kept states of conversations. A state is a fold over the log. It is kept beside the search index at each publication, so
//! that a context reads only the messages after it.

use std::sync::Arc;

use crc32fast::hash;
use extractive_summarizer::{ConversationState, KeptState};
use memory_model::{LogEntry, Seq, SeqRange, SpanBody};
use memory_store::{
    Chunk, FullStore, IndexSegment, IndexStore, IndexedKind, LogRead, NewIndexSegment, Order,
    Snapshot, read_span_page,
};

use crate::error::Result;
use crate::known_states::KnownStates;
use crate::session::Session;

/// Key of the one chunk of a segment.
const KEY: &[u8] = b"state";
/// Number of spans that are read at once.
const SPANS: usize = 16;
/// Maximum number of kept states of a conversation. Then the two oldest ones become one.
const MOST: usize = 8;

impl Session {
    /// Returns the state of the conversation after the message at `through`. It is read from messages alone: from the kept state
    /// before them, and from the messages after that.
    pub(crate) async fn state_after(
        &self,
        snapshot: &Snapshot,
        through: Seq,
    ) -> Result<ConversationState> {
        let (kept, rest) = self.kept_state(snapshot, through).await?;
        let rest: Vec<&LogEntry> = rest.iter().collect();
        Ok(kept.then(&rest, &*self.memory().inner.conventions))
    }

    /// Reads the state of the conversation after its summarized messages, for the contexts that follow. If there is a new whole
    /// stretch of them, the store keeps the state beside its index.
    pub(crate) async fn keep_state(&self) -> Result<()> {
        let inner = &self.memory().inner;
        let index = inner.store.index().filter(|_| inner.keeps_index);
        // Read before the messages, so that the store refuses the state if some are erased meanwhile.
        let before = match index {
            Some(index) => Some((index, index.index_state(self.id()).await?)),
            None => None,
        };
        let snapshot = self.snapshot().await?;
        let Some(summarized) = summarized(&*inner.store, &snapshot).await? else {
            return Ok(());
        };
        let (kept, _) = self.kept_state(&snapshot, summarized).await?;
        let Some((index, before)) = before else {
            return Ok(());
        };
        let last = before.of(IndexedKind::States).next_back();
        let first = match last {
            Some(last) => last.last.saturating_add(1),
            None => {
                index
                    .index_snapshot(self.id())
                    .await?
                    .conversation
                    .own_first()
                    .0
            }
        };
        if kept.through().0 < first {
            return Ok(());
        }
        let data = serde_json::to_vec(&*kept)?;
        let format = format(inner.conventions.id(), &data);
        let key = KEY.to_vec();
        let new = NewIndexSegment {
            kind: IndexedKind::States,
            first,
            last: kept.through().0,
            documents: 0,
            format: &format,
            chunks: &[Chunk { key, data }],
            erasures: before.erasures,
            replaces: &[],
        };
        let Some(state) = index.put_index_segment(self.id(), &new).await? else {
            return Ok(());
        };
        let states: Vec<&IndexSegment> = state.of(IndexedKind::States).collect();
        if let [oldest, next, ..] = *states
            && states.len() > MOST
        {
            let merged = NewIndexSegment {
                first: oldest.first,
                last: next.last,
                format: &next.format,
                chunks: &index.index_chunks(next.id, None).await?,
                replaces: &[oldest.id, next.id],
                ..new
            };
            index.put_index_segment(self.id(), &merged).await?;
        }
        Ok(())
    }

    /// Returns the state at the end of the last whole stretch of messages up to `through`, and the messages after it.
    async fn kept_state(
        &self,
        snapshot: &Snapshot,
        through: Seq,
    ) -> Result<(Arc<KeptState>, Vec<LogEntry>)> {
        let inner = &self.memory().inner;
        let known = inner.kept_states.lock().get(&self.id()).cloned();
        let known = known.filter(|known| known.erasures == snapshot.erasures);
        let mut known = known.unwrap_or_else(|| KnownStates::new(snapshot.erasures));
        let begin = match known.newest(through) {
            Some(kept) => kept,
            None => match inner.store.index() {
                Some(index) => {
                    let reader = inner.conventions.id();
                    Arc::new(stored(index, reader, snapshot, through).await?)
                }
                None => Arc::default(),
            },
        };
        let begun = begin.through();
        let (mut kept, mut rest) = (begin, Vec::new());
        let mut unread = SeqRange::new(kept.through().next(), through);
        while let Some(range) = unread {
            let page = inner
                .store
                .read(snapshot.conversation, &LogRead::new(range))
                .await?;
            rest.extend(page.items);
            unread = page.next;
            let entries: Vec<&LogEntry> = rest.iter().collect();
            let read = Arc::make_mut(&mut kept).read(&entries, &*inner.conventions);
            rest.drain(..read);
        }
        known.add(begun, Arc::clone(&kept));
        inner.kept_states.remember(self.id(), known);
        Ok((kept, rest))
    }
}

/// Returns the last position that a summary of the view covers.
async fn summarized(store: &dyn FullStore, snapshot: &Snapshot) -> Result<Option<Seq>> {
    let mut rest = SeqRange::new(Seq::FIRST, snapshot.head);
    while let Some(range) = rest {
        let page = read_span_page(store, snapshot, range, Order::NewestFirst, SPANS).await?;
        let mut summaries = page
            .items
            .iter()
            .filter(|span| matches!(span.body, SpanBody::Summary { .. }));
        if let Some(newest) = summaries.next() {
            return Ok(newest.range.last);
        }
        rest = page.next;
    }
    Ok(None)
}

/// Reads the last stored state of the messages up to `through`, or an empty one. A fork also reads the states of its parents. A
/// state that another reader wrote, or that is damaged, is passed over.
async fn stored(
    index: &dyn IndexStore,
    reader: &str,
    snapshot: &Snapshot,
    through: Seq,
) -> Result<KeptState> {
    let found = index.index_snapshot(snapshot.conversation).await?;
    let logs = found.conversation.segments.iter().zip(&found.logs).rev();
    for (seen, segments) in logs {
        let end = seen.up_to(through).map_or(Seq::NONE, |range| range.last);
        let states = segments.iter().rev();
        // Where a stretch ended depends on the next message, which a fork does not share if it begins there.
        let is_own = seen.source == snapshot.conversation;
        let is_shared = |one: &IndexSegment| one.last < end.0 || (is_own && one.last == end.0);
        let states = states.filter(|one| one.kind == IndexedKind::States && is_shared(one));
        for segment in states {
            let chunks = index.index_chunks(segment.id, None).await?;
            let chunk = chunks.iter().find(|chunk| chunk.key == KEY);
            let chunk = chunk.filter(|chunk| format(reader, &chunk.data) == segment.format);
            let state =
                chunk.and_then(|chunk| serde_json::from_slice::<KeptState>(&chunk.data).ok());
            if let Some(state) = state.filter(|state| state.through().0 == segment.last) {
                return Ok(state);
            }
        }
    }
    Ok(KeptState::default())
}

/// Returns the form of a state, the conventions by which its messages were read, and the checksum of its bytes.
fn format(conventions: &str, data: &[u8]) -> String {
    format!("{} {conventions} {:08x}", KeptState::FORMAT, hash(data))
}
