//! What a ranking finds, in the order of a query.

use super::base::{Base, Doc, Part, Ranking, number};
use super::cache::Handle;
use crate::matching::{Matcher, RankedOrder, RankedTarget, is_one_of};
use crate::ranking::Asked;
use crate::segment::Need;
use crate::vectors::Nearness;
use crate::{HitOrder, Query, Result, SearchMode};
use memory_store::IndexedKind;

/// The documents of a ranking that may be hits.
pub(super) struct Found<'r> {
    base: &'r Base,
    /// Their numbers, rising, and their scores.
    scored: Vec<(u32, f64)>,
}

impl<'r> Found<'r> {
    pub(super) async fn read(
        handle: &Handle<'_>,
        ranking: &'r Ranking,
        asked: Asked,
        near: Option<&Nearness>,
        query: &Query,
        matcher: &Matcher,
    ) -> Result<Self> {
        let base = &ranking.base;
        let mut scores = base.corpus.finish(asked);
        if let Some(near) = near.filter(|_| base.kind == IndexedKind::Messages) {
            let cosines = near.cosines(base.docs.iter().map(Doc::seq));
            base.corpus.fuse(&mut scores, &cosines);
        }
        let tools = matcher.tools();
        // The documents that use a tool that is asked for.
        let mut using = None;
        if !tools.is_empty() {
            let is_wanted = |name: &str| is_one_of(name, tools);
            let mut places: Vec<u32> = Vec::new();
            for part in &base.parts {
                let found = handle.using(&part.segment, &is_wanted).await?;
                places.extend(found.into_iter().filter_map(|place| part.ranked(place)));
            }
            using = Some(places);
        }
        let is_admitted = |at: usize| match at.checked_sub(ranking.indexed()) {
            Some(behind) => ranking.tail.get(behind).is_some_and(|one| one.admitted),
            None => {
                let uses = using.as_ref();
                let doc = base.docs.get(at);
                doc.is_some_and(|doc| doc.is_admitted(matcher))
                    && uses.is_none_or(|using| using.binary_search(&number(at)).is_ok())
            }
        };
        let score = |at: usize| scores.get(at).copied().flatten();
        if query.mode == SearchMode::Prose {
            let admitted = (0..base.docs.len()).filter(|at| is_admitted(*at));
            let scored = admitted.filter_map(|at| Some((number(at), score(at)?)));
            return Ok(Self {
                base,
                scored: scored.collect(),
            });
        }
        // Those that may match by themselves.
        let need = matcher.need();
        let mut matching = Vec::new();
        for part in &base.parts {
            matching.extend(matching_in(handle, part, &need).await?);
        }
        let tail = ranking.tail.iter().enumerate();
        let tail = tail.filter(|(_, one)| one.matches);
        matching.extend(tail.map(|(at, _)| number(ranking.indexed() + at)));
        matching.retain(|at| is_admitted(*at as usize));
        let scored = |at| (at, score(at as usize).unwrap_or_default());
        Ok(Self {
            base,
            scored: matching.into_iter().map(scored).collect(),
        })
    }
}

/// What rankings of messages and of summaries find, in the order of a query.
pub(super) struct FoundOrder<'r> {
    messages: Option<&'r Base>,
    summaries: Option<&'r Base>,
    order: RankedOrder,
}

impl<'r> FoundOrder<'r> {
    pub(super) fn new(
        messages: Option<Found<'r>>,
        summaries: Option<Found<'r>>,
        order: HitOrder,
    ) -> Self {
        let split = |found: Option<Found<'r>>| match found {
            Some(Found { base, scored }) => (Some(base), scored),
            None => (None, Vec::new()),
        };
        let ((messages, of_messages), (summaries, of_summaries)) =
            (split(messages), split(summaries));
        Self {
            messages,
            summaries,
            order: RankedOrder::new(order, of_messages, of_summaries),
        }
    }

    /// The first `count` with their scores, or all where there are fewer.
    pub(super) fn first(&mut self, count: usize) -> Vec<(RankedTarget, f64)> {
        let (messages, summaries) = (self.messages, self.summaries);
        let target = |(score, is_summary, number): &(f64, bool, u32)| {
            let base = if *is_summary { summaries } else { messages };
            let target = match base?.docs.get(*number as usize)? {
                Doc::Message { seq, .. } => RankedTarget::Message(*seq),
                Doc::Summary { id, .. } => RankedTarget::Summary(id.clone()),
            };
            Some((target, *score))
        };
        self.order.first(count).iter().filter_map(target).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }
}

/// The documents of a part that may match by themselves.
async fn matching_in(handle: &Handle<'_>, part: &Part, need: &Need) -> Result<Vec<u32>> {
    let candidates = handle.candidates(&part.segment, need).await?;
    let numbers = candidates.numbers(part.segment.documents).into_iter();
    Ok(numbers.filter_map(|place| part.ranked(place)).collect())
}
