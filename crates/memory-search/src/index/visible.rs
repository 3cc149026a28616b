//! The part of an index that a conversation sees.

use memory_model::{ConversationId, Seq, SummaryId};

use super::cache::ChunkCache;
use super::seal::Sound;
use crate::segment::FORMAT;
use memory_store::{Conversation, IndexSegment, IndexStore, IndexedKind, Origin, Result};

/// An index segment that a conversation sees, and the last position in it that the conversation sees.
#[derive(Debug, Clone)]
pub(super) struct Stretch {
    pub(super) segment: IndexSegment,
    /// Last position of the segment that the conversation sees, inclusive. A fork sees the segments of its parent up to
    /// the last position that both share.
    pub(super) last: Seq,
}

/// The index segments that a conversation sees, in the order of the log and without gaps.
#[derive(Debug, Clone, Default)]
pub(super) struct Visible {
    pub(super) messages: Vec<Stretch>,
    /// Position up to which all messages are indexed, inclusive. [`Seq::NONE`] if no message is indexed.
    pub(super) indexed: Seq,
    /// Segments of the conversation's summaries. Empty for a fork, because its ancestors may still create summaries
    /// that come before the fork's own summaries.
    pub(super) summaries: Vec<IndexSegment>,
    /// Id of the conversation's last summary. `None` if it has to be looked up.
    pub(super) last_summary: Option<Option<SummaryId>>,
    /// Whether some segments are left out because of damage.
    pub(super) is_damaged: bool,
}

impl Visible {
    /// Reads a conversation and the undamaged segments that it sees.
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
