//! What of an index a conversation sees.

use memory_model::{ConversationId, Seq};

use super::cache::ChunkCache;
use crate::error::Result;
use crate::segments::{IndexSegment, IndexStore, IndexedKind};
use crate::types::{Conversation, Origin};

/// A segment of the log that a conversation sees, and up to where it sees it.
#[derive(Debug, Clone)]
pub(super) struct Stretch {
    pub(super) segment: IndexSegment,
    /// Last position that is seen, inclusive.
    pub(super) last: Seq,
}

/// The segments that a conversation sees, in the order of the log and without a gap.
#[derive(Debug, Clone, Default)]
pub(super) struct Visible {
    pub(super) messages: Vec<Stretch>,
    /// Every message up to here is in them; [`Seq::NONE`] when none is.
    pub(super) indexed: Seq,
    /// The segments of its summaries. A fork has none: its ancestors may still make summaries that come
    /// before its own.
    pub(super) summaries: Vec<IndexSegment>,
}

impl Visible {
    pub(super) async fn read(
        index: &dyn IndexStore,
        info: &Conversation,
        format: &str,
    ) -> Result<Self> {
        let mut visible = Self::default();
        for seen in &info.segments {
            let Some(range) = seen.up_to(info.head) else {
                continue;
            };
            if visible.indexed.next() != range.first {
                break;
            }
            let segments = index.index_segments(seen.source).await?;
            let of = |kind| segments.iter().filter(move |one| one.kind == kind);
            for segment in of(IndexedKind::Messages) {
                let begins = segment.first == visible.indexed.next().0 && segment.format == format;
                if !begins || segment.first > range.last.0 {
                    break;
                }
                let last = Seq(segment.last).min(range.last);
                visible.messages.push(Stretch {
                    segment: segment.clone(),
                    last,
                });
                visible.indexed = last;
            }
            if seen.source == info.id && !matches!(info.origin, Origin::Fork { .. }) {
                let own = of(IndexedKind::Summaries);
                visible.summaries = own
                    .take_while(|one| one.format == format)
                    .cloned()
                    .collect();
            }
        }
        Ok(visible)
    }

    /// Cuts off what comes after a position.
    pub(super) fn up_to(&mut self, head: Seq) {
        self.messages
            .retain(|stretch| stretch.segment.first <= head.0);
        for stretch in &mut self.messages {
            stretch.last = stretch.last.min(head);
        }
        self.indexed = self.indexed.min(head);
    }
}

/// What a search by an index holds on to.
#[derive(Debug)]
pub(super) struct Handle<'s> {
    pub(super) index: &'s dyn IndexStore,
    pub(super) cache: &'s ChunkCache,
    pub(super) conversation: ConversationId,
}
