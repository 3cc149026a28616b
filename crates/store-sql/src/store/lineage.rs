//! The part of a family that a conversation sees: its ancestors, and the ranges of their logs.

use std::collections::BTreeMap;
use std::sync::Arc;

use memory_model::{ConversationId, Seq, SeqRange};
use memory_store::Segment;
use memory_store::implementors::SummaryScope;

/// Maximum number of remembered ancestors, of all conversations together: about 16 MiB.
const REMEMBERED: usize = 1 << 20;

/// A conversation with a visible log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ancestor {
    pub(super) id: ConversationId,
    /// The parent and the last position shared with it, for a fork.
    pub(super) fork: Option<(ConversationId, Seq)>,
}

/// A conversation and its ancestors, as far as they are forks. Itself first; numbers fall.
#[derive(Debug, Clone)]
pub(super) struct Lineage(Arc<[Ancestor]>);

impl Lineage {
    /// The lineage of the first of these; each conversation is the parent of the one before it.
    pub(super) fn new(ancestors: impl IntoIterator<Item = Ancestor>) -> Self {
        Self(ancestors.into_iter().collect())
    }

    /// The conversations with visible summaries.
    pub(super) fn scope(&self) -> Vec<SummaryScope> {
        let Some(own) = self.0.first() else {
            return Vec::new();
        };
        let mut last = SummaryScope::own(own.id);
        let mut scope = vec![last];
        for (parent, at) in self.0.iter().filter_map(|ancestor| ancestor.fork) {
            last = last.parent(parent, at);
            scope.push(last);
        }
        scope
    }

    /// Returns the first position of its own log.
    pub(super) fn own_first(&self) -> Seq {
        let fork = self.0.first().and_then(|own| own.fork);
        fork.map_or(Seq::FIRST, |(_, at)| at.next())
    }

    /// The visible ranges of logs, in order.
    pub(super) fn segments(&self) -> Vec<Segment> {
        let mut last: Option<Seq> = None;
        let mut segments = Vec::new();
        for ancestor in self.0.iter() {
            let first = ancestor.fork.map_or(Seq::FIRST, |(_, at)| at.next());
            if last.is_none_or(|last| SeqRange::new(first, last).is_some()) {
                segments.push(Segment {
                    first,
                    last,
                    source: ancestor.id,
                });
            }
            if let Some((_, at)) = ancestor.fork {
                last = Some(last.map_or(at, |last| last.min(at)));
            }
        }
        segments.reverse();
        segments
    }

    /// Whether a range that ends at `last` in the log of `source` is visible.
    pub(super) fn sees(&self, source: ConversationId, last: Seq) -> bool {
        let mut scope = self.scope().into_iter();
        scope.any(|scope| scope.conversation == source && scope.last.is_none_or(|end| last <= end))
    }

    /// The lineage of a fork of this conversation.
    pub(super) fn fork(&self, id: ConversationId, at: Seq) -> Self {
        let fork = self.0.first().map(|parent| (parent.id, at));
        let own = Ancestor { id, fork };
        Self(std::iter::once(own).chain(self.0.iter().copied()).collect())
    }

    pub(super) fn alone(id: ConversationId) -> Self {
        Self(Arc::new([Ancestor { id, fork: None }]))
    }
}

/// The remembered lineages.
#[derive(Debug, Default)]
pub(super) struct Lineages {
    known: BTreeMap<ConversationId, Lineage>,
    ancestors: usize,
}

impl Lineages {
    pub(super) fn get(&self, id: ConversationId) -> Option<Lineage> {
        self.known.get(&id).cloned()
    }

    pub(super) fn put(&mut self, id: ConversationId, lineage: &Lineage) {
        if self.ancestors + lineage.0.len() > REMEMBERED {
            *self = Self::default();
        }
        if self.known.insert(id, lineage.clone()).is_none() {
            self.ancestors += lineage.0.len();
        }
    }
}
