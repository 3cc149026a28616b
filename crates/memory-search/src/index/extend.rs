//! Builds index segments from messages and summaries that are not indexed yet.

use crate::segment::{FORMAT, GROUP, SegmentBuilder, SegmentData, is_records, last_summary, merge};
use memory_model::{ConversationId, EntryKind, LogEntry, Seq, SeqRange, SummaryId};

use super::seal::{Seal, Sound};
use crate::log_calls::{LogCalls, read_conversation};
use memory_store::{
    Chunk, Conversation, Error, IndexSegment, IndexState, IndexStore, IndexedKind, LogRead,
    NewIndexSegment, Result, Store,
};

/// Minimum number of messages in a segment. The number of messages in every segment is a multiple of it.
const LEAST_MESSAGES: usize = 8 * GROUP as usize;

/// Minimum number of summaries in a segment. It is smaller than for messages, because there are fewer summaries, and
/// each takes longer to read.
const LEAST_SUMMARIES: usize = GROUP as usize;

/// Number of segments of one size that are merged into a segment of the next size.
const MERGED: usize = 4;

/// Maximum number of documents in a segment that is built at once.
const MOST_BUILT: usize = 1024;

/// Maximum number of documents in a merged segment.
const MOST_MERGED: u32 = 65_536;

/// Maximum number of documents in a segment that is checked while an index is extended.
const MOST_CHECKED: u32 = 1_024;

/// Maximum number of attempts to extend an index. An attempt that finds damage removes the index.
const ATTEMPTS: usize = 3;

/// Result of [`extend_index`] and [`rebuild_index`]: the number of messages and summaries that the call added to the
/// index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexProgress {
    /// Number of messages that the call added to the index.
    pub messages: u64,
    /// Number of summaries that the call added to the index.
    pub summaries: u64,
}

/// Result of [`check_index`]: the size of the index, and the damage that was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexCheck {
    /// Number of segments, the parts of which the index consists.
    pub segments: u64,
    /// Number of indexed messages and summaries in all segments.
    pub documents: u64,
    /// One description for each damage that was found. Empty if the index is intact.
    pub damage: Vec<String>,
}

/// Adds the messages of a conversation's own log and its summaries to its search index, if they are not indexed yet.
/// The last few (fewer than 16 messages, and at most one summary) stay unindexed, because a search reads them directly.
/// Has no effect if the store has no index.
///
/// A call adds at most about `most` messages and about `most` summaries. A further call continues after them. If two
/// calls extend one index at the same time, one of them stops early without an error, which is harmless. A call also
/// stops if the index is removed meanwhile. A call that finds damage removes the index and builds it again. A call that
/// adds messages checks only the index segments that it merges, or else one small segment. [`mend_index`] checks all
/// segments.
///
/// # Errors
/// `NotFound` if the conversation does not exist. Also the errors of the store.
pub async fn extend_index<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    most: u64,
) -> Result<IndexProgress> {
    let Some(index) = store.index() else {
        return Ok(IndexProgress::default());
    };
    let extension = Extension::new(store, index, conversation).await?;
    let mut progress = IndexProgress::default();
    for _ in 0..ATTEMPTS {
        match extension.extend(&mut progress, most).await {
            Err(Stop::Failed(error)) => return Err(error),
            Err(Stop::Unreadable(segment)) => {
                let state = index.index_state(conversation).await?;
                if state.segments.iter().all(|one| one.id != segment) {
                    // Another call merged the segment, or is building the index again, and continues with it.
                    break;
                }
                index.drop_index(conversation).await?;
                progress = IndexProgress::default();
            }
            Ok(()) => break,
        }
    }
    Ok(progress)
}

/// Reads the whole index of a conversation. Removes the index if a part is damaged or has another format, so that
/// [`extend_index`] builds it again. Returns whether the index was removed.
///
/// # Errors
/// The errors of [`extend_index`].
pub async fn mend_index<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
) -> Result<bool> {
    let Some(index) = store.index() else {
        return Ok(false);
    };
    let extension = Extension::new(store, index, conversation).await?;
    let state = index.index_state(conversation).await?;
    let mut is_sound = extension.is_sound(&state);
    for segment in searched(&state) {
        is_sound = is_sound && extension.read(segment).await?.is_some();
    }
    // An unreadable segment may have been merged meanwhile.
    is_sound = is_sound || index.index_state(conversation).await? != state;
    if !is_sound {
        index.drop_index(conversation).await?;
    }
    Ok(!is_sound)
}

/// Removes the index of a conversation and builds it again. Returns the number of indexed messages and summaries.
///
/// # Errors
/// The errors of [`extend_index`].
pub async fn rebuild_index<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
) -> Result<IndexProgress> {
    if let Some(index) = store.index() {
        index.drop_index(conversation).await?;
    }
    extend_index(store, conversation, u64::MAX).await
}

/// Checks the index of a conversation against its messages and summaries: builds each index segment again and compares
/// the bytes.
///
/// # Errors
/// The errors of [`extend_index`]. Damage is not an error: [`IndexCheck::damage`] describes it.
pub async fn check_index<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
) -> Result<IndexCheck> {
    let Some(index) = store.index() else {
        return Ok(IndexCheck::default());
    };
    let extension = Extension::new(store, index, conversation).await?;
    let mut state = index.index_state(conversation).await?;
    loop {
        let check = extension.check(&state).await?;
        let now = index.index_state(conversation).await?;
        // Segments that another process merged or removed meanwhile cannot be read.
        if check.damage.is_empty() || now == state {
            return Ok(check);
        }
        state = now;
    }
}

/// Returns the segments that searches read.
fn searched(state: &IndexState) -> impl Iterator<Item = &IndexSegment> {
    let segments = state.segments.iter();
    segments.filter(|one| one.kind != IndexedKind::States)
}

/// A new segment of the index: its description, as a store keeps it, and its chunks.
type Made = (IndexSegment, Vec<Chunk>);

/// Reason why an index was not extended.
enum Stop {
    /// The segment with this id is damaged, or was removed.
    Unreadable(u64),
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Failed(error)
    }
}

struct Extension<'s, S: ?Sized> {
    store: &'s S,
    index: &'s dyn IndexStore,
    /// The conversation, read at the beginning. Messages that are appended later are left for the next call.
    info: Conversation,
}

impl<'s, S: Store + ?Sized> Extension<'s, S> {
    async fn new(
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

    async fn extend(
        &self,
        progress: &mut IndexProgress,
        most: u64,
    ) -> std::result::Result<(), Stop> {
        let mut state = self.state().await?;
        while progress.messages < most
            && let Some(made) = self.next_messages(&state).await?
        {
            let is_first = progress.messages == 0;
            let with_it = state.segments.len() + 1;
            let documents = u64::from(made.0.documents);
            let Some(put) = self.put(made, &state, &[]).await? else {
                return Ok(());
            };
            progress.messages += documents;
            state = self.merged(IndexedKind::Messages, put).await?;
            // A merge checks the segments that it reads.
            if is_first && state.segments.len() == with_it {
                self.check_one(&state).await?;
            }
        }
        while progress.summaries < most
            && let Some(made) = self.next_summaries(&state).await?
        {
            let documents = u64::from(made.0.documents);
            let Some(put) = self.put(made, &state, &[]).await? else {
                return Ok(());
            };
            progress.summaries += documents;
            state = self.merged(IndexedKind::Summaries, put).await?;
        }
        Ok(())
    }

    /// Returns the position of the first message, or the number of the first summary, of the first segment of a kind.
    fn begin(&self, kind: IndexedKind) -> u32 {
        match kind {
            IndexedKind::Messages | IndexedKind::States => self.info.own_first().0,
            IndexedKind::Summaries => 1,
        }
    }

    fn sound<'i>(&self, state: &'i IndexState, kind: IndexedKind) -> Sound<'i> {
        let of = (self.info.id, kind, self.begin(kind));
        Sound::of(&state.segments, of, FORMAT, &|_| true)
    }

    /// Returns whether all segments of the index have this format, leave no gap, and have stored descriptions with
    /// correct checksums.
    fn is_sound(&self, state: &IndexState) -> bool {
        let kinds = [IndexedKind::Messages, IndexedKind::Summaries];
        let sound = kinds.map(|kind| self.sound(state, kind).segments.len());
        sound.iter().sum::<usize>() == searched(state).count()
    }

    fn damage(&self, what: &str) -> String {
        let conversation = self.info.id;
        format!(
            "the search index of {what} of conversation {conversation} does not match them: build it again"
        )
    }

    /// Returns the state of the index. If a segment is damaged or has another format, first removes all segments.
    async fn state(&self) -> Result<IndexState> {
        let state = self.index.index_state(self.info.id).await?;
        if self.is_sound(&state) {
            return Ok(state);
        }
        self.index.drop_index(self.info.id).await?;
        self.index.index_state(self.info.id).await
    }

    /// Builds each segment again and compares the bytes.
    async fn check(&self, state: &IndexState) -> Result<IndexCheck> {
        let mut check = IndexCheck::default();
        for segment in searched(state) {
            check.segments += 1;
            check.documents += u64::from(segment.documents);
        }
        for kind in [IndexedKind::Messages, IndexedKind::Summaries] {
            let sound = self.sound(state, kind);
            let mut next = self.begin(kind);
            for segment in sound.segments {
                let (row, chunks) = self.made_again(segment).await?;
                let kept = self.index.index_chunks(segment.id, None).await?;
                if row.format != segment.format || kept != chunks {
                    let (first, last) = (segment.first, segment.last);
                    let what = format!("{} {first} to {last}", kind.as_str());
                    check.damage.push(self.damage(&what));
                }
                next = segment.last.saturating_add(1);
            }
            if sound.is_cut {
                let what = format!("{} from {next} on", kind.as_str());
                check.damage.push(self.damage(&what));
            }
        }
        Ok(check)
    }

    /// Checks one of the smaller segments, a different one each time. If it is damaged, returns `Stop::Unreadable`.
    async fn check_one(&self, state: &IndexState) -> std::result::Result<(), Stop> {
        let small = |one: &&IndexSegment| one.documents <= MOST_CHECKED;
        let small: Vec<&IndexSegment> = searched(state).filter(small).collect();
        let reached = state.of(IndexedKind::Messages).next_back();
        let turn = reached.map_or(0, |last| last.last as usize / LEAST_MESSAGES);
        match turn.checked_rem(small.len()).and_then(|at| small.get(at)) {
            Some(segment) if self.read(segment).await?.is_none() => {
                Err(Stop::Unreadable(segment.id))
            }
            _ => Ok(()),
        }
    }

    /// Returns the description and the chunks of a new segment with their checksums. The description does not have its
    /// id yet.
    fn sealed(&self, kind: IndexedKind, first: u32, last: u32, data: SegmentData) -> Made {
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
    async fn put(
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
    async fn next_messages(&self, state: &IndexState) -> Result<Option<Made>> {
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
    async fn next_summaries(&self, state: &IndexState) -> std::result::Result<Option<Made>, Stop> {
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

    /// Merges the last segments of a kind as long as [`to_merge`] selects some. Returns the state of the index
    /// afterwards.
    async fn merged(
        &self,
        kind: IndexedKind,
        mut state: IndexState,
    ) -> std::result::Result<IndexState, Stop> {
        loop {
            let segments: Vec<&IndexSegment> = state.of(kind).collect();
            let last = to_merge(&segments);
            let (Some(oldest), Some(newest)) = (last.first(), last.last()) else {
                return Ok(state);
            };
            let mut parts = Vec::new();
            for segment in last {
                let part = self.read(segment).await?;
                parts.push(part.ok_or(Stop::Unreadable(segment.id))?);
            }
            let merged = merge(&parts);
            let data = merged.map_err(|_| Stop::Unreadable(newest.id))?;
            drop(parts);
            let replaces: Vec<u64> = last.iter().map(|one| one.id).collect();
            let made = self.sealed(kind, oldest.first, newest.last, data);
            match self.put(made, &state, &replaces).await? {
                Some(put) => state = put,
                None => return Ok(state),
            }
        }
    }

    /// Reads all chunks of a segment. `None` if the segment is damaged.
    async fn read(&self, segment: &IndexSegment) -> Result<Option<SegmentData>> {
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
    async fn made_again(&self, segment: &IndexSegment) -> Result<Made> {
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

/// Returns the segments of one kind to merge into one: the last two or more, or none.
///
/// If there are none, no segment is larger than the one before it, and fewer than [`MERGED`] segments have the same
/// size. The number of segments therefore stays small. Segments that together would exceed [`MOST_MERGED`] documents
/// are not merged.
fn to_merge<'s, 'i>(segments: &'s [&'i IndexSegment]) -> &'s [&'i IndexSegment] {
    let Some(newest) = segments.last() else {
        return &[];
    };
    let largest = size(newest);
    let mut documents = 0_u32;
    let fits = |one: &&&IndexSegment| {
        documents = one.documents.saturating_add(documents);
        size(one) <= largest && documents <= MOST_MERGED
    };
    let count = segments.iter().rev().take_while(fits).count();
    let last = segments.get(segments.len() - count..).unwrap_or_default();
    if last.len() >= MERGED {
        return last;
    }
    let smaller = last.iter().position(|one| size(one) < largest);
    smaller
        .and_then(|first| last.get(first..))
        .unwrap_or_default()
}

/// Returns the size of a segment as an exponent of [`MERGED`], relative to the minimum size.
fn size(segment: &IndexSegment) -> u32 {
    let least = match segment.kind {
        IndexedKind::Messages | IndexedKind::States => LEAST_MESSAGES,
        IndexedKind::Summaries => LEAST_SUMMARIES,
    };
    (segment.documents / least as u32)
        .max(1)
        .ilog(MERGED as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(kind: IndexedKind, documents: u32) -> IndexSegment {
        IndexSegment {
            id: 0,
            kind,
            first: 1,
            last: documents,
            documents,
            format: String::new(),
        }
    }

    /// However many documents come at once, segments are few and each document is merged few times.
    #[test]
    fn segments_of_all_sizes_are_merged() {
        for (kind, least) in [(IndexedKind::Messages, 16), (IndexedKind::Summaries, 2)] {
            for seed in 0..30 {
                let rng = &mut fastrand::Rng::with_seed(seed);
                let most = [1, 2, 6, 64][rng.usize(..4)];
                let (mut sizes, mut written) = (Vec::new(), 0_u32);
                for _ in 0..2_000 {
                    sizes.push(least * rng.u32(1..=most));
                    loop {
                        let segments: Vec<_> =
                            sizes.iter().map(|size| segment(kind, *size)).collect();
                        let segments: Vec<&IndexSegment> = segments.iter().collect();
                        let merged = to_merge(&segments).len();
                        if merged == 0 {
                            break;
                        }
                        let all: u32 = sizes.split_off(sizes.len() - merged).iter().sum();
                        assert!(merged > 1 && all <= MOST_MERGED);
                        written += all;
                        sizes.push(all);
                    }
                }
                let documents: u32 = sizes.iter().sum();
                let full = documents / (MOST_MERGED / 2);
                assert!(sizes.len() as u32 <= full + 24, "{most}: {sizes:?}");
                assert!(written / documents < 7, "{most}: {written} of {documents}");
            }
        }
    }
}
