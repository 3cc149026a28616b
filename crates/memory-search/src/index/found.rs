//! What a ranking finds, in the order of a query.

use crate::matching::{Matcher, RankedOrder, RankedTarget, is_one_of};
use crate::ranking::{Asked, Ranked, Scores};
use crate::segment::Need;
use crate::{HitOrder, Query, Result, SearchMode};

use super::base::{Base, Doc, Part, Ranking, number};
use super::cache::Handle;
use super::candidates::Candidates;
use crate::vectors::Nearness;
use memory_store::IndexedKind;

/// The documents that may match by themselves.
enum Matching {
    /// These few.
    Few(Vec<usize>),
    /// Whether each does.
    Many(Vec<bool>),
}

impl Matching {
    fn new(found: Vec<u32>, documents: usize) -> Self {
        let found = found.into_iter().map(|at| at as usize);
        if found.len() <= documents / 64 {
            return Matching::Few(found.collect());
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

/// The scores of a ranking.
pub(super) enum Scored<'r> {
    /// By words: made as they are asked for.
    ByWords(Box<Scores<'r>>),
    /// With vectors, which may raise the score of any document.
    WithVectors(Vec<Option<f64>>),
}

impl<'r> Scored<'r> {
    pub(super) fn new(ranking: &'r Ranking, asked: Asked, near: Option<&Nearness>) -> Self {
        let Base {
            corpus, docs, kind, ..
        } = &ranking.base;
        let by_words = corpus.finish(asked);
        let is_messages = *kind == IndexedKind::Messages;
        let Some(near) = near.filter(|_| is_messages) else {
            return Scored::ByWords(Box::new(by_words));
        };
        let mut scores = (0..docs.len())
            .map(|at| by_words.get(at))
            .collect::<Vec<_>>();
        corpus.fuse(&mut scores, &near.cosines(docs.iter().map(Doc::seq)));
        Scored::WithVectors(scores)
    }

    fn get(&self, at: usize) -> Option<f64> {
        match self {
            Scored::ByWords(scores) => scores.get(at),
            Scored::WithVectors(scores) => scores.get(at).copied().flatten(),
        }
    }

    /// The first `count` of those that have a score and are wanted, or more.
    fn first(&self, count: usize, is_wanted: &dyn Fn(usize) -> bool) -> Vec<(u32, f64)> {
        match self {
            Scored::ByWords(scores) => pairs(scores.first(count, is_wanted)),
            Scored::WithVectors(scores) => {
                let wanted = (0..scores.len()).filter(|at| is_wanted(*at));
                let scored = |at| Some((number(at), self.get(at)?));
                wanted.filter_map(scored).collect()
            }
        }
    }

    /// The first `count` of those that are wanted, or more; without a score they have 0.
    fn first_of(&self, count: usize, is_wanted: &dyn Fn(usize) -> bool) -> Vec<(u32, f64)> {
        match self {
            Scored::ByWords(scores) => pairs(scores.first_of(count, is_wanted)),
            Scored::WithVectors(scores) => {
                let wanted = (0..scores.len()).filter(|at| is_wanted(*at));
                let scored = |at| (number(at), self.get(at).unwrap_or_default());
                wanted.map(scored).collect()
            }
        }
    }
}

fn pairs(ranked: Vec<Ranked>) -> Vec<(u32, f64)> {
    let pair = |one: Ranked| (number(one.document), one.score);
    ranked.into_iter().map(pair).collect()
}

/// The documents of a ranking that may be hits.
pub(super) struct Found<'r> {
    ranking: &'r Ranking,
    scores: Scored<'r>,
    matcher: &'r Matcher,
    /// The documents that use a tool that is asked for; `None` where none is.
    using: Option<Vec<u32>>,
    /// What may match by itself; `None` where the ranking decides.
    matching: Option<Matching>,
}

impl<'r> Found<'r> {
    pub(super) async fn read(
        handle: &Handle<'_>,
        ranking: &'r Ranking,
        scores: Scored<'r>,
        query: &Query,
        matcher: &'r Matcher,
    ) -> Result<Self> {
        let tools = matcher.tools();
        let mut using = None;
        if !tools.is_empty() {
            let is_wanted = |name: &str| is_one_of(name, tools);
            let mut places: Vec<u32> = Vec::new();
            for part in &ranking.base.parts {
                let found = handle.using(&part.segment, &is_wanted).await?;
                places.extend(found.into_iter().filter_map(|place| part.ranked(place)));
            }
            using = Some(places);
        }
        let mut matching = None;
        if query.mode != SearchMode::Prose {
            let need = matcher.need();
            let mut found = Vec::new();
            for part in &ranking.base.parts {
                found.extend(matching_in(handle, part, &need).await?);
            }
            let tail = ranking.tail.iter().enumerate();
            let tail = tail.filter(|(_, one)| one.matches);
            found.extend(tail.map(|(at, _)| number(ranking.indexed() + at)));
            matching = Some(Matching::new(found, ranking.base.docs.len()));
        }
        Ok(Self {
            ranking,
            scores,
            matcher,
            using,
            matching,
        })
    }

    /// Whether a document passes the filters.
    fn admits(&self, at: usize) -> bool {
        match at.checked_sub(self.ranking.indexed()) {
            Some(behind) => self
                .ranking
                .tail
                .get(behind)
                .is_some_and(|one| one.admitted),
            None => {
                let uses = self.using.as_ref();
                let doc = self.ranking.base.docs.get(at);
                doc.is_some_and(|doc| doc.is_admitted(self.matcher))
                    && uses.is_none_or(|using| using.binary_search(&number(at)).is_ok())
            }
        }
    }

    /// The first `count` by score, or more where few match; in any order.
    fn first(&self, count: usize) -> Vec<(u32, f64)> {
        match &self.matching {
            None => self.scores.first(count, &|at| self.admits(at)),
            Some(Matching::Few(few)) => {
                let few = few.iter().filter(|at| self.admits(**at));
                let scored = few.map(|at| (number(*at), self.scores.get(*at).unwrap_or_default()));
                scored.collect()
            }
            Some(Matching::Many(matching)) => {
                let may_match = |at: usize| matching.get(at) == Some(&true) && self.admits(at);
                self.scores.first_of(count, &may_match)
            }
        }
    }

    /// All that a ranking finds, rising.
    fn all(&self) -> Vec<(u32, f64)> {
        let all = (0..self.ranking.base.docs.len()).filter(|at| self.admits(*at));
        all.filter_map(|at| Some((number(at), self.scores.get(at)?)))
            .collect()
    }

    fn target(&self, at: u32) -> Option<RankedTarget> {
        Some(match self.ranking.base.docs.get(at as usize)? {
            Doc::Message { seq, .. } => RankedTarget::Message(*seq),
            Doc::Summary { id, .. } => RankedTarget::Summary(id.clone()),
        })
    }
}

/// What is found, in the order of a query.
pub(super) struct FoundOrder {
    targets: Vec<(RankedTarget, f64)>,
    /// Whether more may follow.
    pub(super) is_cut: bool,
}

impl FoundOrder {
    /// The first `count` of what rankings find, or more; of a ranking of messages and of one of summaries.
    pub(super) fn new(found: &[Found<'_>], order: HitOrder, count: usize) -> Self {
        let mut lists = [Vec::new(), Vec::new()];
        let mut is_cut = false;
        for one in found {
            let is_summaries = one.ranking.base.kind == IndexedKind::Summaries;
            let list = match order {
                HitOrder::Relevance => {
                    let first = one.first(count);
                    is_cut |= first.len() >= count;
                    first
                }
                _ => one.all(),
            };
            if let Some(slot) = lists.get_mut(usize::from(is_summaries)) {
                *slot = list;
            }
        }
        let [messages, summaries] = lists;
        let mut sorted = RankedOrder::new(order, messages, summaries);
        let count = match is_cut {
            true => count,
            false => sorted.len(),
        };
        let target = |(score, is_summary, number): &(f64, bool, u32)| {
            let kind = match is_summary {
                true => IndexedKind::Summaries,
                false => IndexedKind::Messages,
            };
            let one = found.iter().find(|one| one.ranking.base.kind == kind)?;
            Some((one.target(*number)?, *score))
        };
        Self {
            targets: sorted.first(count).iter().filter_map(target).collect(),
            is_cut,
        }
    }

    pub(super) fn first(&self, count: usize) -> &[(RankedTarget, f64)] {
        let count = count.min(self.targets.len());
        self.targets.get(..count).unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.targets.len()
    }
}

/// The documents of a part that may match by themselves.
async fn matching_in(handle: &Handle<'_>, part: &Part, need: &Need) -> Result<Vec<u32>> {
    let candidates: Candidates = handle.candidates(&part.segment, need).await?;
    let numbers = candidates.numbers(part.segment.documents).into_iter();
    Ok(numbers.filter_map(|place| part.ranked(place)).collect())
}
