//! Keeps the limit of a query.

use std::borrow::Cow;
use std::ops::ControlFlow;

use super::position::Position;
use crate::hits::{Hit, Hits};
use crate::query::SearchScope;

/// Collects hits up to a limit. Offer hits in their order until one does not fit; the answer is
/// then incomplete, and its cursor is the [`Position`] of the last hit in it.
#[derive(Debug)]
pub(crate) struct HitCollector {
    hits: Vec<Hit>,
    limit: usize,
    overflow: bool,
    /// The last position that was examined, if the time was over.
    ended: Option<Position>,
}

impl HitCollector {
    /// An empty collector; a limit of 0 counts as 1.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            hits: Vec::new(),
            limit: limit.max(1),
            overflow: false,
            ended: None,
        }
    }

    /// Ends the search behind this place, because its time is over. Breaks.
    pub(crate) fn stop_behind(&mut self, place: Position) -> ControlFlow<()> {
        self.ended = Some(place);
        ControlFlow::Break(())
    }

    /// Adds a hit. Breaks without adding it if the limit was reached before: the answer is then known to be incomplete,
    /// and no more hits are needed.
    pub(crate) fn push(&mut self, hit: Hit) -> ControlFlow<()> {
        if self.hits.len() < self.limit {
            self.hits.push(hit);
            return ControlFlow::Continue(());
        }
        self.overflow = true;
        ControlFlow::Break(())
    }

    /// Number of further hits that fit.
    pub(crate) fn room(&self) -> usize {
        self.limit.saturating_sub(self.hits.len())
    }

    /// The answer.
    pub(crate) fn finish(self, strategy: impl Into<Cow<'static, str>>, scope: SearchScope) -> Hits {
        let ended = self.ended.map(|place| place.to_cursor());
        let stopped = ended.is_some();
        let last = self.hits.last().filter(|_| self.overflow);
        let cursor = ended.or(last.map(|hit| hit.cursor.clone()));
        let mut hits = Hits::new(self.hits, strategy, scope, cursor);
        hits.stopped = stopped;
        hits
    }
}
