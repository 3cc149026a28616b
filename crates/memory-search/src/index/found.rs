//! Messages and summaries that a ranking found, in the order that the query requests.

use crate::matching::{Matcher, Position, is_one_of};
use crate::ranking::{Asked, Ranked, Scores};
use crate::{HitOrder, Query, Result, SearchMode};

use super::base::{Base, Doc};
use super::cache::Handle;
use super::candidates::numbers;
use crate::vectors::Nearness;
use memory_store::IndexedKind;

/// The documents that may match the pattern by their own text.
enum Matching {
    /// Numbers of the documents, if there are few.
    Few(Vec<usize>),
    /// For each document, whether it may match.
    Many(Vec<bool>),
}

impl Matching {
    fn new(found: Vec<usize>, documents: usize) -> Self {
        if found.len() <= documents / 64 {
            return Matching::Few(found);
        }
        let mut all = vec![false; documents];
        for at in found {
            if let Some(slot) = all.get_mut(at) {
                *slot = true;
            }
        }
        Matching::Many(all)
    }
}

/// The documents of a ranking that may be hits.
pub(super) struct Found<'r> {
    ranking: &'r Base,
    /// Scores by words, computed when needed.
    scores: Scores<'r>,
    /// Scores by words and vectors, for all documents. Only in the mode `Prose`.
    fused: Option<Vec<Option<f64>>>,
    matcher: &'r Matcher<'r>,
    /// Numbers of the indexed documents that call a requested tool or contain a result of one. `None` if no tool is
    /// requested.
    using: Option<Vec<usize>>,
    /// The documents that may match the pattern by their own text. `None` if only the score decides.
    matching: Option<Matching>,
}

impl<'r> Found<'r> {
    pub(super) async fn read(
        handle: &Handle<'_>,
        ranking: &'r Base,
        asked: Asked,
        near: Option<&Nearness>,
        query: &Query,
        matcher: &'r Matcher<'r>,
    ) -> Result<Self> {
        let base = ranking;
        let scores = base.corpus.finish(asked);
        let fused = near
            .filter(|_| base.kind == IndexedKind::Messages)
            .map(|near| {
                let mut fused: Vec<_> = (0..base.docs.len()).map(|at| scores.get(at)).collect();
                let cosines = near.cosines(base.docs.iter().map(Doc::seq));
                base.corpus.fuse(&mut fused, &cosines);
                fused
            });
        let tools = matcher.tools();
        let mut using = None;
        if !tools.is_empty() {
            let is_wanted = |name: &str| is_one_of(name, tools);
            let places = using.get_or_insert_with(Vec::new);
            for part in &base.parts {
                let found = handle.using(&part.segment, &is_wanted).await?;
                places.extend(found.into_iter().filter_map(|place| part.ranked(place)));
            }
        }
        let mut matching = None;
        if query.mode != SearchMode::Prose {
            let need = matcher.need();
            let mut found = Vec::new();
            for part in &base.parts {
                let candidates = handle.candidates(&part.segment, &need).await?;
                let places = numbers(candidates, part.segment.documents).into_iter();
                found.extend(places.filter_map(|place| part.ranked(place)));
            }
            let tail = (ranking.indexed()..).zip(&ranking.tail);
            found.extend(tail.filter(|(_, one)| one.matches).map(|(at, _)| at));
            matching = Some(Matching::new(found, base.docs.len()));
        }
        Ok(Self {
            ranking,
            scores,
            fused,
            matcher,
            using,
            matching,
        })
    }

    fn score(&self, at: usize) -> Option<f64> {
        match &self.fused {
            Some(fused) => fused.get(at).copied().flatten(),
            None => self.scores.get(at),
        }
    }

    /// Returns whether a document satisfies the filters.
    fn admits(&self, at: usize) -> bool {
        match at.checked_sub(self.ranking.indexed()) {
            Some(behind) => {
                let pending = self.ranking.tail.get(behind);
                pending.is_some_and(|one| one.admitted)
            }
            None => {
                let uses = self.using.as_ref();
                let doc = self.ranking.docs.get(at);
                doc.is_some_and(|doc| doc.is_admitted(self.matcher))
                    && uses.is_none_or(|using| using.binary_search(&at).is_ok())
            }
        }
    }

    /// Returns at least the `count` documents with the highest scores, in any order.
    fn first(&self, count: usize) -> Vec<Ranked> {
        match &self.matching {
            None if self.fused.is_some() => self.all(),
            None => self.scores.first(count, &|at| self.admits(at)),
            Some(Matching::Few(few)) => {
                let few = few.iter().filter(|at| self.admits(**at));
                let scored = few.map(|at| Ranked {
                    document: *at,
                    score: self.score(*at).unwrap_or_default(),
                });
                scored.collect()
            }
            Some(Matching::Many(matching)) => {
                let may_match = |at: usize| matching.get(at) == Some(&true) && self.admits(at);
                self.scores.first_of(count, &may_match)
            }
        }
    }

    /// Returns all documents that satisfy the filters and have a score, in ascending order.
    fn all(&self) -> Vec<Ranked> {
        let all = (0..self.ranking.docs.len()).filter(|at| self.admits(*at));
        let scored = all.filter_map(|document| {
            let score = self.score(document)?;
            Some(Ranked { document, score })
        });
        scored.collect()
    }
}

/// Hits in the order of a query, with their scores.
pub(super) struct FoundOrder {
    pub(super) hits: Vec<(Position, f64)>,
    /// Whether more hits may follow.
    pub(super) is_cut: bool,
}

impl FoundOrder {
    /// Returns at least the first `count` hits of several rankings: one of messages, and one of summaries. Of hits with
    /// equal scores, messages come before summaries, and earlier ones before later ones.
    pub(super) fn new(found: &[Found<'_>], order: HitOrder, count: usize) -> Self {
        let mut items: Vec<(usize, Ranked)> = Vec::new();
        let mut is_cut = false;
        for (kind, one) in found.iter().enumerate() {
            let mut list = match order {
                HitOrder::Relevance => one.first(count),
                _ => one.all(),
            };
            match order {
                HitOrder::Relevance => is_cut |= list.len() >= count,
                HitOrder::Newest => list.reverse(),
                HitOrder::Oldest => {}
            }
            items.extend(list.into_iter().map(|ranked| (kind, ranked)));
        }
        if order == HitOrder::Relevance {
            let better = |(kind, a): &(usize, Ranked), (other, b): &(usize, Ranked)| {
                let by_score = b.score.total_cmp(&a.score);
                by_score.then((kind, a.document).cmp(&(other, b.document)))
            };
            if is_cut && count < items.len() {
                items.select_nth_unstable_by(count, better);
                items.truncate(count);
            }
            items.sort_unstable_by(better);
        }
        let hit = |(kind, Ranked { document, score }): (usize, Ranked)| {
            let doc = found.get(kind)?.ranking.docs.get(document)?;
            Some((doc.position(), score))
        };
        Self {
            hits: items.into_iter().filter_map(hit).collect(),
            is_cut,
        }
    }
}
