//! Keeps the limit of a query.

use std::borrow::Cow;
use std::ops::ControlFlow;

use super::position::Position;
use crate::hits::{Hit, Hits};
use crate::query::SearchScope;

/// Collects hits up to a limit. Offer hits in their order until one does not fit; the answer is
/// then incomplete, and its cursor is the [`Position`] of the last hit in it.
#[derive(Debug)]
pub struct HitCollector {
    hits: Vec<Hit>,
    limit: usize,
    overflow: bool,
}

impl HitCollector {
    /// An empty collector; a limit of 0 counts as 1.
    pub fn new(limit: usize) -> Self {
        Self {
            hits: Vec::new(),
            limit: limit.max(1),
            overflow: false,
        }
    }

    /// Adds a hit. Breaks, and adds nothing, when the limit was reached before: the answer is
    /// known to be incomplete then, and no more hits are needed.
    pub fn push(&mut self, hit: Hit) -> ControlFlow<()> {
        if self.hits.len() < self.limit {
            self.hits.push(hit);
            return ControlFlow::Continue(());
        }
        self.overflow = true;
        ControlFlow::Break(())
    }

    /// Adds the hits of an answer that continues this one. Breaks when no more are needed: the
    /// limit was passed, or that answer is itself incomplete.
    pub fn extend(&mut self, answer: Hits) -> ControlFlow<()> {
        for hit in answer.hits {
            self.push(hit)?;
        }
        if answer.complete {
            return ControlFlow::Continue(());
        }
        self.overflow = true;
        ControlFlow::Break(())
    }

    /// Number of further hits that fit.
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.hits.len())
    }

    /// The answer.
    pub fn finish(self, strategy: impl Into<Cow<'static, str>>, scope: SearchScope) -> Hits {
        match self.hits.last() {
            Some(last) if self.overflow => {
                let cursor = Position::of(&last.target).to_cursor();
                Hits::partial(self.hits, strategy, scope, cursor)
            }
            _ => Hits::complete(self.hits, strategy, scope),
        }
    }
}
