//! Builds, stores and reads the segments of a conversation's index.

use memory_model::{ConversationId, EntryKind, LogEntry, Seq, SeqRange, SummaryId};
use memory_store::{
    Chunk, Conversation, Error, IndexSegment, IndexState, IndexStore, IndexedKind, LogRead,
    NewIndexSegment, Result, Store,
};

use super::seal::{Seal, Sound};
use crate::log_calls::{LogCalls, read_conversation};
use crate::segment::{FORMAT, GROUP, SegmentBuilder, SegmentData, is_records, last_summary};

/// Minimum number of messages in a segment. The number of messages in every segment is a multiple of it.
pub(super) const LEAST_MESSAGES: usize = 8 * GROUP as usize;

/// Minimum number of summaries in a segment. It is smaller than for messages, because there are fewer summaries, and
/// each takes longer to read.
pub(super) const LEAST_SUMMARIES: usize = GROUP as usize;

/// Maximum number of documents in a segment that is built at once.
const MOST_BUILT: usize = 1024;

/// Returns the segments that searches read.
pub(super) fn searched(state: &IndexState) -> impl Iterator<Item = &IndexSegment> {
    let segments = state.segments.iter();
    segments.filter(|one| one.kind != IndexedKind::States)
}

/// A new segment of the index: its description, as a store keeps it, and its chunks.
pub(super) type Made = (IndexSegment, Vec<Chunk>);

/// Reason why an index was not extended.
pub(super) enum Stop {
    /// The segment with this id is damaged, or was removed.
    Unreadable(u64),
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Failed(error)
    }
}

/// The index of a conversation, to read and to extend.
pub(super) struct Extension<'s, S: ?Sized> {
    store: &'s S,
    pub(super) index: &'s dyn IndexStore,
    /// The conversation, read at the beginning. Messages that are appended later are left for the next call.
    pub(super) info: Conversation,
}

impl<'s, S: Store + ?Sized> Extension<'s, S> {
    pub(super) async fn new(
        store: &'s S,
        index: &'s dyn IndexStore,
        conversation: ConversationId,
    ) -> Result<Self> {
        Ok(Self {
            store,
            index,
            info: read_conversation(store, conversation).await?,
        })
    }

    /// Returns the position of the first message, or the number of the first summary, of the first segment of a kind.
    pub(super) fn begin(&self, kind: IndexedKind) -> u32 {
        match kind {
            IndexedKind::Messages | IndexedKind::States => self.info.own_first().0,
            IndexedKind::Summaries => 1,
        }
    }

    pub(super) fn sound<'i>(&self, state: &'i IndexState, kind: IndexedKind) -> Sound<'i> {
        let of = (self.info.id, kind, self.begin(kind));
        Sound::of(&state.segments, of, FORMAT, &|_| true)
    }

    /// Returns whether all segments of the index have this format, leave no gap, and have stored descriptions with
    /// correct checksums.
    pub(super) fn is_sound(&self, state: &IndexState) -> bool {
        let kinds = [IndexedKind::Messages, IndexedKind::Summaries];
        let sound = kinds.map(|kind| self.sound(state, kind).segments.len());
        sound.iter().sum::<usize>() == searched(state).count()
    }

    /// Returns the description and the chunks of a new segment with their checksums. The description does not have its
    /// id yet.
    pub(super) fn sealed(
        &self,
        kind: IndexedKind,
        first: u32,
        last: u32,
        data: SegmentData,
    ) -> Made {
        let mut row = IndexSegment {
            id: 0,
            kind,
            first,
            last,
            documents: data.documents,
            format: FORMAT.to_owned(),
        };
        let mut chunks = data.chunks;
        Seal::put_on(self.info.id, &mut row, &mut chunks);
        (row, chunks)
    }

    /// Stores a segment, and returns the state of the index afterwards. `None` if the store refused the segment because
    /// the index changed meanwhile.
    pub(super) async fn put(
        &self,
        (row, chunks): Made,
        state: &IndexState,
        replaces: &[u64],
    ) -> Result<Option<IndexState>> {
        let segment = NewIndexSegment {
            kind: row.kind,
            first: row.first,
            last: row.last,
            documents: row.documents,
            format: &row.format,
            chunks: &chunks,
            erasures: state.erasures,
            replaces,
        };
        self.index.put_index_segment(self.info.id, &segment).await
    }

    /// Builds a segment from the next unindexed messages. `None` if there are too few.
    pub(super) async fn next_messages(&self, state: &IndexState) -> Result<Option<Made>> {
        let info = &self.info;
        let indexed = state.of(IndexedKind::Messages).next_back();
        let first = indexed.map_or(info.own_first(), |last| Seq(last.last).next());
        let pending = (u64::from(info.head.0) + 1).saturating_sub(u64::from(first.0));
        let wanted = usize::try_from(pending)
            .unwrap_or(MOST_BUILT)
            .min(MOST_BUILT);
        let mut entries = self
            .entries(first, info.head, wanted / LEAST_MESSAGES * LEAST_MESSAGES)
            .await?;
        entries.truncate(entries.len() / LEAST_MESSAGES * LEAST_MESSAGES);
        let Some(last) = entries.last() else {
            return Ok(None);
        };
        let last = last.seq.0;
        let mut builder = SegmentBuilder::new();
        self.add_messages(&mut builder, &entries).await?;
        let made = self.sealed(IndexedKind::Messages, first.0, last, builder.finish());
        Ok(Some(made))
    }

    async fn add_messages(&self, builder: &mut SegmentBuilder, entries: &[LogEntry]) -> Result<()> {
        let mut calls = LogCalls::new(self.store, self.info.id);
        calls.add_page(entries);
        for entry in entries {
            calls.resolve(entry).await?;
            builder.add_message(entry, calls.names());
        }
        Ok(())
    }

    /// Reads at most `wanted` messages, without notes.
    async fn entries(&self, first: Seq, last: Seq, wanted: usize) -> Result<Vec<LogEntry>> {
        let mut entries = Vec::new();
        let mut rest = SeqRange::new(first, last);
        while let Some(range) = rest
            && entries.len() < wanted
        {
            let page = self.store.read(self.info.id, &LogRead::new(range)).await?;
            let messages = page.items.into_iter();
            entries.extend(messages.filter(|entry| entry.kind != EntryKind::Note));
            rest = page.next;
        }
        entries.truncate(wanted);
        Ok(entries)
    }

    /// Builds a segment from the next unindexed summaries. `None` if there are too few.
    pub(super) async fn next_summaries(
        &self,
        state: &IndexState,
    ) -> std::result::Result<Option<Made>, Stop> {
        let indexed = state.of(IndexedKind::Summaries).next_back();
        let after = match indexed {
            Some(last) => Some(self.last_summary(last).await?),
            None => None,
        };
        let first = indexed.map_or(1, |last| last.last + 1);
        let page = self
            .store
            .own_summaries(self.info.id, after.as_ref(), MOST_BUILT)
            .await?;
        let count = page.items.len() / LEAST_SUMMARIES * LEAST_SUMMARIES;
        if count == 0 {
            return Ok(None);
        }
        let mut builder = SegmentBuilder::new();
        let summaries = page.items.iter().take(count);
        summaries.for_each(|summary| builder.add_summary(summary));
        let last = first + count as u32 - 1;
        let made = self.sealed(IndexedKind::Summaries, first, last, builder.finish());
        Ok(Some(made))
    }

    /// Returns the id of the last summary in a segment.
    async fn last_summary(&self, segment: &IndexSegment) -> std::result::Result<SummaryId, Stop> {
        let unreadable = || Stop::Unreadable(segment.id);
        let seal = Seal::of(segment).ok_or_else(unreadable)?;
        let keys = self.index.index_keys(segment.id).await?;
        if !seal.has_keys(&keys) {
            return Err(unreadable());
        }
        let key = keys.into_iter().rfind(|key| is_records(key));
        let key = key.ok_or_else(unreadable)?;
        let chunks = self
            .index
            .index_chunks(segment.id, Some(std::slice::from_ref(&key)));
        let chunk = chunks.await?.into_iter().next().ok_or_else(unreadable)?;
        let data = seal.opened(&key, chunk.data).ok_or_else(unreadable)?;
        let last = last_summary(&data).map_err(|_| unreadable())?;
        last.ok_or_else(unreadable)
    }

    /// Reads all chunks of a segment. `None` if the segment is damaged.
    pub(super) async fn read(&self, segment: &IndexSegment) -> Result<Option<SegmentData>> {
        let stored = self.index.index_chunks(segment.id, None).await?;
        let keys: Vec<Vec<u8>> = stored.iter().map(|chunk| chunk.key.clone()).collect();
        let Some(seal) = Seal::of(segment).filter(|seal| seal.has_keys(&keys)) else {
            return Ok(None);
        };
        let opened = stored.into_iter().map(|Chunk { key, data }| {
            let data = seal.opened(&key, data)?;
            Some(Chunk { key, data })
        });
        let data = |chunks| SegmentData {
            documents: segment.documents,
            chunks,
        };
        Ok(opened.collect::<Option<Vec<Chunk>>>().map(data))
    }

    /// Builds an existing segment again.
    pub(super) async fn made_again(&self, segment: &IndexSegment) -> Result<Made> {
        let mut builder = SegmentBuilder::new();
        match segment.kind {
            IndexedKind::Messages => {
                let (first, last) = (Seq(segment.first), Seq(segment.last));
                let entries = self.entries(first, last, usize::MAX).await?;
                self.add_messages(&mut builder, &entries).await?;
            }
            IndexedKind::Summaries => {
                let (mut after, mut number) = (None, 0);
                while number < segment.last {
                    let page = self
                        .store
                        .own_summaries(self.info.id, after.as_ref(), MOST_BUILT)
                        .await?;
                    for summary in &page.items {
                        number += 1;
                        if (segment.first..=segment.last).contains(&number) {
                            builder.add_summary(summary);
                        }
                    }
                    match page.next {
                        Some(next) => after = Some(next),
                        None => break,
                    }
                }
            }
            IndexedKind::States => {}
        }
        let (first, last) = (segment.first, segment.last);
        Ok(self.sealed(segment.kind, first, last, builder.finish()))
    }
}
