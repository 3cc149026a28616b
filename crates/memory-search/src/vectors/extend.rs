//! Embeds messages that have no vector yet, and checks stored vectors.

use crate::embedding::{Embedder, embed};
use crate::ranking::Document;
use memory_model::{ConversationId, EntryKind, LogEntry, Seq, SeqRange};
use memory_store::{ERASED, NewVectors, PlacedVector, Store, Vector, read_entries};

use crate::log_calls::read_conversation;

/// Number of log entries that are embedded at once.
const BATCH: u32 = 64;

/// Result of [`extend_vectors`]: the number of messages that the call embedded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VectorProgress {
    /// Number of messages for which this call stored a vector.
    pub messages: u64,
}

/// Result of [`check_vectors`]: the number of vectors, and the damage that was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VectorCheck {
    /// Number of messages that have a stored vector.
    pub vectors: u64,
    /// One description for each damaged vector or unreadable range of vectors. Empty if all vectors are intact.
    pub damage: Vec<String>,
}

/// Embeds all messages of a conversation that have no vector of this embedder yet, and stores the vectors. A fork
/// shares messages with its ancestors, the conversations that it was forked from. The vectors of shared messages are
/// stored with the ancestors, so that all forks use them. Has no effect on a store that keeps no vectors.
///
/// A call embeds about `most` log entries. A further call continues after them. If two calls embed one conversation at
/// the same time, one of them may stop early without an error, which is harmless.
///
/// # Errors
/// `NotFound` if the conversation does not exist. `Unavailable` if the embedder fails. Also the errors of the store.
pub async fn extend_vectors<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    embedder: &dyn Embedder,
    most: u64,
) -> crate::Result<VectorProgress> {
    let mut progress = VectorProgress::default();
    let Some(kept) = store.vector_store() else {
        return Ok(progress);
    };
    let info = read_conversation(store, conversation).await?;
    let mut seen = 0;
    for segment in &info.segments {
        let Some(range) = segment.up_to(info.head) else {
            continue;
        };
        while seen < most {
            let state = kept.vector_state(segment.source, embedder.id()).await?;
            let first = range.first.max(state.last.next());
            let last = Seq(first.0.saturating_add(BATCH - 1)).min(range.last);
            let Some(batch) = SeqRange::new(first, last) else {
                break;
            };
            let vectors = embed_range(store, segment.source, embedder, batch).await?;
            let new = NewVectors {
                embedder: embedder.id(),
                vectors: &vectors,
                state,
            };
            if vectors.is_empty() || !kept.put_vectors(segment.source, &new).await? {
                return Ok(progress);
            }
            seen += vectors.len() as u64;
            progress.messages += vectors
                .iter()
                .filter(|(_, vector)| vector.is_some())
                .count() as u64;
        }
    }
    Ok(progress)
}

/// Checks the stored vectors of a conversation's own messages. A fork's own messages are those after the fork. Each
/// vector must have the embedder's dimension and belong to an existing message that is not erased. If the embedder is
/// [cheap](Embedder::is_cheap), the function also embeds each message again, and the new vector must equal the stored
/// one.
///
/// # Errors
/// The errors of [`extend_vectors`]. Damage is not an error: [`VectorCheck::damage`] describes it.
pub async fn check_vectors<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    embedder: &dyn Embedder,
) -> crate::Result<VectorCheck> {
    let mut check = VectorCheck::default();
    let Some(kept) = store.vector_store() else {
        return Ok(check);
    };
    let info = read_conversation(store, conversation).await?;
    let mut rest = SeqRange::new(info.own_first(), info.head);
    while let Some(range) = rest {
        let last = Seq(range.first.0.saturating_add(BATCH - 1)).min(range.last);
        let batch = SeqRange::new(range.first, last).unwrap_or(range);
        rest = SeqRange::new(last.next(), range.last);
        let (id, dimension) = (embedder.id(), embedder.dimension());
        let found = match kept.vectors(conversation, id, dimension, batch).await {
            Err(error) if error.kind() == memory_store::ErrorKind::Corrupt => {
                check.damage.push(error.to_string());
                continue;
            }
            found => found?,
        };
        let made = match embedder.is_cheap() {
            true => Some(embed_range(store, conversation, embedder, batch).await?),
            false => None,
        };
        let entries = read_entries(store, conversation, batch).await?;
        for (seq, vector) in found {
            let Some(vector) = vector else { continue };
            check.vectors += 1;
            let entry = entries.iter().find(|entry| entry.seq == seq);
            let expected = made.iter().flatten().find(|(at, _)| *at == seq);
            let is_sound = entry.is_some_and(|entry| text_of(entry).is_some())
                && expected.is_none_or(|(_, made)| made.as_ref() == Some(&vector));
            if !is_sound {
                check.damage.push(format!(
                    "the vector of message {seq} of conversation {conversation} does not match the embedder {:?}: \
                     drop the vectors and embed the messages again",
                    embedder.id()
                ));
            }
        }
    }
    Ok(check)
}

/// Embeds the log entries in a range of a conversation. Returns one vector per entry; `None` for an entry without text.
pub(super) async fn embed_range<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    embedder: &dyn Embedder,
    range: SeqRange,
) -> crate::Result<Vec<PlacedVector>> {
    let entries = read_entries(store, conversation, range).await?;
    let texts: Vec<Option<String>> = entries.iter().map(text_of).collect();
    let known: Vec<String> = texts.iter().flatten().cloned().collect();
    let mut made = embed(embedder, &known).await?.into_iter();
    let place = |(entry, text): (&LogEntry, &Option<String>)| {
        let vector = text.as_ref().and_then(|_| made.next());
        (
            entry.seq,
            vector.and_then(|vector| Vector::from_slice(&vector)),
        )
    };
    Ok(entries.iter().zip(&texts).map(place).collect())
}

/// Returns the text of an entry to embed. `None` for a note, for an erased message, and for a message without text.
fn text_of(entry: &LogEntry) -> Option<String> {
    let text = Document::of_entry(entry).text_to_embed();
    let has_words = !text.trim().is_empty() && text != ERASED;
    (entry.kind != EntryKind::Note && has_words).then_some(text)
}
