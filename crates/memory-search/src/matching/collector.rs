//! Collects hits up to the limit of a query.

use std::borrow::Cow;
use std::ops::ControlFlow;

use super::position::Position;
use crate::hits::{Hit, Hits};
use crate::query::SearchScope;

/// Collects hits up to a limit. The caller offers hits in their order until one does not fit. The answer is then
/// incomplete, and its cursor is the [`Position`] of its last hit.
#[derive(Debug)]
pub(crate) struct HitCollector {
    hits: Vec<Hit>,
    limit: usize,
    overflow: bool,
    /// Position of the last examined message, if the search ended early.
    ended: Option<Position>,
}

impl HitCollector {
    /// Creates an empty collector. A limit of 0 counts as 1.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            hits: Vec::new(),
            limit: limit.max(1),
            overflow: false,
            ended: None,
        }
    }

    /// Records that the search ends early after the message or summary at `place`. Always returns `Break`.
    pub(crate) fn stop_behind(&mut self, place: Position) -> ControlFlow<()> {
        self.ended = Some(place);
        ControlFlow::Break(())
    }

    /// Adds a hit and returns `Continue`. Returns `Break` without adding the hit if the limit is already reached. The
    /// answer is then incomplete, and no more hits are needed.
    pub(crate) fn push(&mut self, hit: Hit) -> ControlFlow<()> {
        if self.hits.len() < self.limit {
            self.hits.push(hit);
            return ControlFlow::Continue(());
        }
        self.overflow = true;
        ControlFlow::Break(())
    }

    /// Returns the number of further hits that fit.
    pub(crate) fn room(&self) -> usize {
        self.limit.saturating_sub(self.hits.len())
    }

    /// Returns the answer with the collected hits.
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
