//! Builds index segments from messages and summaries that are not indexed yet.

use memory_model::ConversationId;
use memory_store::{IndexSegment, IndexState, IndexedKind, Result, Store};

use super::extension::{Extension, LEAST_MESSAGES, Stop, searched};
use super::merging::to_merge;
use crate::segment::merge;

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

/// Adds the messages of a conversation's own log and its summaries to its search index, if they are not indexed yet.
/// The last few (fewer than 16 messages, and at most one summary) stay unindexed, because a search reads them directly.
/// Has no effect if the store has no index.
///
/// A call adds at most about `most` messages and about `most` summaries. A further call continues after them. If two
/// calls extend one index at the same time, one of them stops early without an error, which is harmless. A call also
/// stops if the index is removed meanwhile. A call that finds damage removes the index and builds it again. A call that
/// adds messages checks only the index segments that it merges, or else one small segment.
/// [`mend_index`](super::mend_index) checks all segments.
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

impl<S: Store + ?Sized> Extension<'_, S> {
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

    /// Returns the state of the index. If a segment is damaged or has another format, first removes all segments.
    async fn state(&self) -> Result<IndexState> {
        let state = self.index.index_state(self.info.id).await?;
        if self.is_sound(&state) {
            return Ok(state);
        }
        self.index.drop_index(self.info.id).await?;
        self.index.index_state(self.info.id).await
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
}
