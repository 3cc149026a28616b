//! The part of an index that a conversation sees.

use memory_model::{ConversationId, Seq, SummaryId};

use super::cache::ChunkCache;
use super::seal::Sound;
use crate::segment::FORMAT;
use memory_store::{Conversation, IndexSegment, IndexStore, IndexedKind, Origin, Result};

/// A segment of the log that a conversation sees, and the last position that it sees.
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
    /// The last of its summaries; `None` if it has to be looked up.
    pub(super) last_summary: Option<Option<SummaryId>>,
    /// Whether there would be more if it were not damaged.
    pub(super) is_damaged: bool,
}

impl Visible {
    /// Reads a conversation and the sound segments that it sees.
    pub(super) async fn read(
        index: &dyn IndexStore,
        cache: &ChunkCache,
        conversation: ConversationId,
    ) -> Result<(Conversation, Self)> {
        let found = index.index_snapshot(conversation).await?;
        let (info, is_trusted) = (found.conversation, |one: &IndexSegment| cache.trusts(one));
        let visible = Self::new(&info, &found.logs, found.last_summary, &is_trusted);
        Ok((info, visible))
    }

    fn new(
        info: &Conversation,
        logs: &[Vec<IndexSegment>],
        last_summary: Option<SummaryId>,
        is_trusted: &dyn Fn(&IndexSegment) -> bool,
    ) -> Self {
        let mut visible = Self::default();
        for (seen, segments) in info.segments.iter().zip(logs) {
            let Some(range) = seen.up_to(info.head) else {
                continue;
            };
            if visible.indexed.next() != range.first {
                break;
            }
            let of =
                |kind, begin| Sound::of(segments, (seen.source, kind, begin), FORMAT, is_trusted);
            let messages = of(IndexedKind::Messages, range.first.0);
            for segment in messages.segments {
                if segment.first > range.last.0 {
                    break;
                }
                let last = Seq(segment.last).min(range.last);
                visible.messages.push(Stretch {
                    segment: segment.clone(),
                    last,
                });
                visible.indexed = last;
            }
            visible.is_damaged |= messages.is_cut && visible.indexed < range.last;
            if seen.source == info.id && !matches!(info.origin, Origin::Fork { .. }) {
                let own = of(IndexedKind::Summaries, 1);
                visible.is_damaged |= own.is_cut;
                visible.summaries = own.segments.into_iter().cloned().collect();
                visible.last_summary = Some(last_summary.clone());
            }
        }
        visible
    }

    /// Removes everything after a position.
    pub(super) fn up_to(&mut self, head: Seq) {
        self.messages
            .retain(|stretch| stretch.segment.first <= head.0);
        for stretch in &mut self.messages {
            stretch.last = stretch.last.min(head);
        }
        self.indexed = self.indexed.min(head);
    }
}
