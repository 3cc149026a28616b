//! Selects the documents of an index segment that may match a pattern.

use crate::ranking::Record;
use crate::segment::{
    GROUP, Need, find, groups, places, records, retain_groups, tool_key, tool_of, unbroken_of,
    unbroken_prefix, with_prefix,
};

use super::cache::Handle;
use crate::Result;
use memory_store::IndexSegment;

/// Numbers, in ascending order, of the documents that may match. `None` if all may match.
pub(super) type Candidates = Option<Vec<u32>>;

/// Returns the numbers that are in at least one of two sets.
pub(super) fn either(one: Candidates, other: Candidates) -> Candidates {
    let mut numbers = one?;
    numbers.extend(other?);
    numbers.sort_unstable();
    numbers.dedup();
    Some(numbers)
}

/// Returns the numbers that are in both of two sets.
pub(super) fn both(one: Candidates, other: Candidates) -> Candidates {
    match (one, other) {
        (None, one) | (one, None) => one,
        (Some(one), Some(other)) => Some(common(vec![one, other])),
    }
}

/// Returns the numbers of the candidates. If all documents may match, returns all numbers below `documents`.
pub(super) fn numbers(candidates: Candidates, documents: u32) -> Vec<u32> {
    candidates.unwrap_or_else(|| (0..documents).collect())
}

impl Handle<'_> {
    /// Returns the documents of a segment that may satisfy a condition.
    pub(super) async fn candidates(
        &self,
        segment: &IndexSegment,
        need: &Need,
    ) -> Result<Candidates> {
        Ok(match need {
            Need::Grams(keys) => Some(self.with_grams(segment, keys).await?),
            Need::GramPrefix(key) => {
                let list = self.places_with(segment, key, &|_| true).await?;
                Some(of_groups(&list, segment.documents))
            }
            Need::Unbroken(least) => {
                let has = |key: &[u8]| unbroken_of(key).is_some_and(|chars| chars >= *least);
                Some(self.places_with(segment, &unbroken_prefix(), &has).await?)
            }
            Need::Words(all) => Some(self.with_words(segment, all).await?),
            Need::SideBySide(sets) => self.side_by_side(segment, sets).await?,
            Need::All(needs) => {
                let mut all = None;
                for need in needs {
                    all = both(all, Box::pin(self.candidates(segment, need)).await?);
                    if all.as_ref().is_some_and(Vec::is_empty) {
                        break;
                    }
                }
                all
            }
            Need::Any(needs) => {
                let mut any = Some(Vec::new());
                for need in needs {
                    any = either(any, Box::pin(self.candidates(segment, need)).await?);
                    if any.is_none() {
                        break;
                    }
                }
                any
            }
            Need::Nothing => None,
        })
    }

    /// Returns the documents of a segment, in ascending order, in groups with all of these runs of characters.
    async fn with_grams(&self, segment: &IndexSegment, keys: &[Vec<u8>]) -> Result<Vec<u32>> {
        let chunks = self.chunks_of(segment, keys, true).await?;
        let mut entries = Vec::new();
        for (key, chunk) in keys.iter().zip(&chunks) {
            let Some(chunk) = chunk else {
                return Ok(Vec::new());
            };
            match find(chunk, key)? {
                Some(entry) => entries.push(entry),
                None => return Ok(Vec::new()),
            }
        }
        entries.sort_by_key(|entry| entry.count);
        let mut entries = entries.iter();
        let mut left = match entries.next() {
            Some(rarest) => groups(rarest)?,
            None => Vec::new(),
        };
        for entry in entries {
            if left.is_empty() {
                break;
            }
            retain_groups(entry, &mut left)?;
        }
        Ok(of_groups(&left, segment.documents))
    }

    /// Returns the documents of a segment, in ascending order, that have one word of each of these lists.
    async fn with_words(&self, segment: &IndexSegment, all: &[Vec<Vec<u8>>]) -> Result<Vec<u32>> {
        let mut lists = Vec::new();
        for any in all {
            let mut list = Vec::new();
            let chunks = self.chunks_of(segment, any, true).await?;
            for (key, chunk) in any.iter().zip(chunks) {
                if let Some(chunk) = chunk
                    && let Some(entry) = find(&chunk, key)?
                {
                    list.extend(places(&entry)?);
                }
            }
            if list.is_empty() {
                return Ok(Vec::new());
            }
            if any.len() > 1 {
                list.sort_unstable();
                list.dedup();
            }
            lists.push(list);
        }
        Ok(common(lists))
    }

    /// Returns the documents of a segment, in ascending order, that call a tool with a wanted name or contain a result
    /// of one.
    pub(super) async fn using(
        &self,
        segment: &IndexSegment,
        is_wanted: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<Vec<u32>> {
        let is_wanted = |key: &[u8]| tool_of(key).is_some_and(is_wanted);
        self.places_with(segment, &tool_key(""), &is_wanted).await
    }

    /// Returns the places listed under all wanted keys with this prefix, in ascending order. The lists contain only
    /// places, without counts.
    async fn places_with(
        &self,
        segment: &IndexSegment,
        prefix: &[u8],
        is_wanted: &(dyn Fn(&[u8]) -> bool + Sync),
    ) -> Result<Vec<u32>> {
        let mut found = Vec::new();
        let chunks = self.chunks_among(segment, prefix, &|_, _| true, usize::MAX);
        for chunk in chunks.await?.unwrap_or_default() {
            let mut entries = Vec::new();
            with_prefix(&chunk, prefix, &mut |key, entry| {
                entries.extend(is_wanted(key).then_some(entry));
                usize::MAX
            })?;
            for entry in entries {
                found.extend(groups(&entry)?);
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Returns the records of all documents in a segment.
    pub(super) async fn records(&self, segment: &IndexSegment) -> Result<Vec<Record>> {
        let mut all = Vec::with_capacity(segment.documents as usize);
        for chunk in self.record_chunks(segment).await? {
            all.extend(records(&chunk)?);
        }
        Ok(all)
    }
}

/// Returns the numbers of the documents in some groups.
pub(super) fn of_groups(groups: &[u32], documents: u32) -> Vec<u32> {
    let of = |group: &u32| group * GROUP..(group.saturating_add(1) * GROUP).min(documents);
    groups.iter().flat_map(of).collect()
}

/// Returns the numbers that are in all lists. The lists must be in ascending order.
pub(super) fn common(mut lists: Vec<Vec<u32>>) -> Vec<u32> {
    lists.sort_by_key(Vec::len);
    let mut lists = lists.into_iter();
    let mut left = lists.next().unwrap_or_default();
    for list in lists {
        if left.len() * 16 < list.len() {
            left.retain(|number| list.binary_search(number).is_ok());
        } else {
            let mut rest = list.into_iter().peekable();
            left.retain(|number| {
                while rest.next_if(|other| other < number).is_some() {}
                rest.peek() == Some(number)
            });
        }
    }
    left
}
