//! Similarity of a conversation's messages to a question, by their vectors.

use std::collections::BTreeMap;

use crate::embedding::{Embedder, cosines, embed};
use crate::{ErrorKind, Result};
use memory_model::{Seq, SeqRange};
use memory_store::{Conversation, Store, Vector};

use super::extend::embed_range;

/// Maximum number of log entries that a search embeds at once.
const BATCH: u32 = 1_024;

/// The vectors of a question and of a conversation's messages, for comparison.
#[derive(Debug)]
pub(crate) struct Nearness {
    /// Position of the last message that may have a vector in this comparison.
    pub(crate) last: Seq,
    vectors: BTreeMap<Seq, Vector>,
    question: Vec<f32>,
}

impl Nearness {
    /// Returns the similarity (cosine) of each message to the question. `None` for a message without a usable vector.
    pub(crate) fn cosines(&self, messages: impl Iterator<Item = Option<Seq>>) -> Vec<Option<f64>> {
        let vector = |seq: Option<Seq>| seq.and_then(|seq| self.vectors.get(&seq).cloned());
        let vectors: Vec<Option<Vector>> = messages.map(vector).collect();
        cosines(&self.question, &vectors)
    }
}

/// Embeds a question, and reads the stored vectors of a conversation's messages up to position `head`. A cheap embedder
/// also computes the missing vectors. An answer can have several pages. For a later page, `last` is the last position
/// that was used for the first page, and vectors after it are ignored.
///
/// Returns `None` on a first page if the embedder is not available. The search then ranks by words alone.
///
/// # Errors
/// `Unavailable` on a later page if the embedder is not available. Also the errors of the store.
pub(crate) async fn nearness<S: Store + ?Sized>(
    store: &S,
    info: &Conversation,
    embedder: &dyn Embedder,
    question: &str,
    head: Seq,
    last: Option<Seq>,
) -> Result<Option<Nearness>> {
    let asked = embed(embedder, &[question.to_owned()]).await;
    let question = match asked {
        Err(error) if error.kind() == ErrorKind::Unavailable && last.is_none() => return Ok(None),
        asked => asked?.pop().unwrap_or_default(),
    };
    let up_to = head.min(last.unwrap_or(head));
    let (mut vectors, mut reached) = (BTreeMap::new(), Seq::NONE);
    if let Some(kept) = store.vector_store() {
        for segment in &info.segments {
            let range = segment.up_to(info.head);
            let range = range.and_then(|range| SeqRange::new(range.first, range.last.min(up_to)));
            let Some(range) = range else { continue };
            let state = kept.vector_state(segment.source, embedder.id());
            let kept_last = state.await?.last;
            let (id, dimension) = (embedder.id(), embedder.dimension());
            let found = kept.vectors(segment.source, id, dimension, range).await?;
            let found = found.into_iter();
            vectors.extend(found.filter_map(|(seq, vector)| Some((seq, vector?))));
            reached = reached.max(kept_last.min(range.last));
            if kept_last < range.last {
                break;
            }
        }
    }
    if embedder.is_cheap() {
        while let Some(rest) = SeqRange::new(reached.next(), up_to) {
            let end = Seq(rest.first.0.saturating_add(BATCH - 1)).min(rest.last);
            let batch = SeqRange::new(rest.first, end).unwrap_or(rest);
            let made = embed_range(store, info.id, embedder, batch).await?;
            let made = made.into_iter();
            vectors.extend(made.filter_map(|(seq, vector)| Some((seq, vector?))));
            reached = end;
        }
    }
    Ok(Some(Nearness {
        last: reached,
        vectors,
        question,
    }))
}
