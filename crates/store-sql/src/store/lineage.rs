//! What conversations see: their ancestors, and the stretches of logs that follow from those.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use memory_model::{ConversationId, Seq, SeqRange};
use memory_store::{
    Conversation, Error, ErrorKind, Origin, Result, Segment, SummaryScope, no_conversation,
};

use super::SqlStore;
use crate::conversation as sql;
use crate::executor::{Database, Executor};

/// How many ancestors are remembered, of all conversations together: about 16 MiB.
const REMEMBERED: usize = 1 << 20;

/// One conversation whose log is seen.
#[derive(Debug, Clone, Copy)]
struct Ancestor {
    id: ConversationId,
    /// The parent and the last position shared with it, for a fork.
    fork: Option<(ConversationId, Seq)>,
}

/// A conversation and its ancestors, as far as they are forks. Itself first; numbers fall.
#[derive(Debug, Clone)]
pub(super) struct Lineage(Arc<[Ancestor]>);

impl Lineage {
    /// Whose summaries are seen.
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

    /// Which logs are read, in order.
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

    /// Whether what ends at `last` in the log of `source` is seen.
    pub(super) fn sees(&self, source: ConversationId, last: Seq) -> bool {
        let mut scope = self.scope().into_iter();
        scope.any(|scope| scope.conversation == source && scope.last.is_none_or(|end| last <= end))
    }

    /// The lineage of a fork of this conversation.
    fn fork(&self, id: ConversationId, at: Seq) -> Self {
        let fork = self.0.first().map(|parent| (parent.id, at));
        let own = Ancestor { id, fork };
        Self(std::iter::once(own).chain(self.0.iter().copied()).collect())
    }

    fn alone(id: ConversationId) -> Self {
        Self(Arc::new([Ancestor { id, fork: None }]))
    }
}

/// The lineages that were looked up so far.
#[derive(Debug, Default)]
pub(super) struct Lineages {
    known: BTreeMap<ConversationId, Lineage>,
    ancestors: usize,
}

impl Lineages {
    fn put(&mut self, id: ConversationId, lineage: &Lineage) {
        if self.ancestors + lineage.0.len() > REMEMBERED {
            *self = Self::default();
        }
        if self.known.insert(id, lineage.clone()).is_none() {
            self.ancestors += lineage.0.len();
        }
    }
}

impl<D: Database> SqlStore<D> {
    /// The lineage of a conversation: one statement, unless it is remembered.
    pub(super) async fn lineage(
        &self,
        on: &mut impl Executor,
        id: ConversationId,
    ) -> Result<Lineage> {
        if let Some(known) = self.known_lineage(id) {
            return Ok(known);
        }
        let mut lineage = Vec::new();
        let mut next = Some(id);
        for row in on.all(&sql::lineage(id.0)).await? {
            let (id, fork) = sql::ancestor(&row)?;
            if next != Some(id) {
                break;
            }
            if let Some((parent, _)) = fork
                && parent >= id
            {
                let message = format!("conversation {id}: its parent is younger");
                return Err(Error::new(ErrorKind::Corrupt, message));
            }
            next = fork.map(|(parent, _)| parent);
            lineage.push(Ancestor { id, fork });
        }
        if lineage.is_empty() {
            return Err(no_conversation(id));
        }
        let lineage = Lineage(lineage.into());
        self.remember_lineage(id, &lineage);
        Ok(lineage)
    }

    /// The lineage of a conversation whose row was read: no statement, unless it is a fork of one that is not
    /// remembered.
    pub(super) async fn lineage_of(
        &self,
        on: &mut impl Executor,
        found: &Conversation,
    ) -> Result<Lineage> {
        if let Some(known) = self.known_lineage(found.id) {
            return Ok(known);
        }
        let lineage = match found.origin {
            Origin::Fork { parent, at } if parent < found.id => {
                match self.lineage(on, parent).await {
                    Ok(parent) => parent.fork(found.id, at),
                    // Where the parent is gone, its fork can still be looked at.
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        Lineage(Arc::new([Ancestor {
                            id: found.id,
                            fork: Some((parent, at)),
                        }]))
                    }
                    Err(error) => return Err(error),
                }
            }
            Origin::Fork { .. } => {
                let message = format!("conversation {}: its parent is younger", found.id);
                return Err(Error::new(ErrorKind::Corrupt, message));
            }
            Origin::Root | Origin::Spawn { .. } => Lineage::alone(found.id),
        };
        self.remember_lineage(found.id, &lineage);
        Ok(lineage)
    }

    pub(super) fn known_lineage(&self, id: ConversationId) -> Option<Lineage> {
        let lineages = self.lineages.lock().unwrap_or_else(PoisonError::into_inner);
        lineages.known.get(&id).cloned()
    }

    fn remember_lineage(&self, id: ConversationId, lineage: &Lineage) {
        let mut lineages = self.lineages.lock().unwrap_or_else(PoisonError::into_inner);
        lineages.put(id, lineage);
    }
}
