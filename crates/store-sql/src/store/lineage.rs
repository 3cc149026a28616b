//! Lineages: a conversation, its ancestors, and the ranges of their logs that the conversation inherits.

use std::collections::BTreeMap;
use std::sync::Arc;

use memory_model::{ConversationId, Seq, SeqRange};
use memory_store::Segment;
use memory_store::implementors::SummaryScope;

/// Maximum number of ancestors in memory, over all conversations: about 16 MiB.
const REMEMBERED: usize = 1 << 20;

/// A conversation that shares its log, or the beginning of it, with a fork. Also the fork itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ancestor {
    pub(super) id: ConversationId,
    /// Parent and last shared position of a fork. `None` for other conversations.
    pub(super) fork: Option<(ConversationId, Seq)>,
}

/// A conversation with its ancestors by forks. The conversation itself is the first, and the numbers fall.
#[derive(Debug, Clone)]
pub(super) struct Lineage(Arc<[Ancestor]>);

impl Lineage {
    /// Creates the lineage of the first of these conversations. Each conversation must be followed by its parent.
    pub(super) fn new(ancestors: impl IntoIterator<Item = Ancestor>) -> Self {
        Self(ancestors.into_iter().collect())
    }

    /// Returns, for each conversation in the lineage, the scope of its summaries that the first conversation can use:
    /// all of its own summaries, and the summaries of each ancestor that cover only shared positions.
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

    /// Returns the first position of the conversation's own log.
    pub(super) fn own_first(&self) -> Seq {
        let fork = self.0.first().and_then(|own| own.fork);
        fork.map_or(Seq::FIRST, |(_, at)| at.next())
    }

    /// Returns the ranges of the logs from which the log of the first conversation is composed, by rising position.
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

    /// Returns whether the first conversation reads the log of `source` at least up to position `last`.
    pub(super) fn sees(&self, source: ConversationId, last: Seq) -> bool {
        let mut scope = self.scope().into_iter();
        scope.any(|scope| scope.conversation == source && scope.last.is_none_or(|end| last <= end))
    }

    /// Returns the lineage of a fork of this conversation. `at` is the last shared position.
    pub(super) fn fork(&self, id: ConversationId, at: Seq) -> Self {
        let fork = self.0.first().map(|parent| (parent.id, at));
        let own = Ancestor { id, fork };
        Self(std::iter::once(own).chain(self.0.iter().copied()).collect())
    }

    pub(super) fn alone(id: ConversationId) -> Self {
        Self(Arc::new([Ancestor { id, fork: None }]))
    }
}

/// Lineages that are kept in memory.
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
