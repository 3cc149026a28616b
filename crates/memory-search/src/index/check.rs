//! Checks an index by building its segments again, and removes a damaged index.

use memory_model::ConversationId;
use memory_store::{IndexState, IndexedKind, Result, Store};

use super::extension::{Extension, searched};

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

/// Reads the whole index of a conversation. Removes the index if a part is damaged or has another format, so that
/// [`extend_index`](super::extend_index) builds it again. Returns whether the index was removed.
///
/// # Errors
/// The errors of [`extend_index`](super::extend_index).
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

/// Checks the index of a conversation against its messages and summaries: builds each index segment again and compares
/// the bytes.
///
/// # Errors
/// The errors of [`extend_index`](super::extend_index). Damage is not an error: [`IndexCheck::damage`] describes it.
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

impl<S: Store + ?Sized> Extension<'_, S> {
    fn damage(&self, what: &str) -> String {
        let conversation = self.info.id;
        format!(
            "the search index of {what} of conversation {conversation} does not match them: build it again"
        )
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
}
