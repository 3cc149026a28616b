//! Which documents of a segment may match.

use crate::ranking::Record;
use crate::segment::{
    GROUP, Need, find, groups, places, records, retain_groups, tool_of, tools_prefix, unbroken_of,
    unbroken_prefix, with_prefix,
};

use super::cache::Handle;
use crate::Result;
use memory_store::IndexSegment;

/// Numbers of documents, rising.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Candidates {
    /// All of them.
    All,
    /// These.
    Some(Vec<u32>),
}

impl Candidates {
    /// These and others; both rise.
    pub(super) fn or(self, others: Vec<u32>) -> Self {
        match self {
            Candidates::All => Candidates::All,
            Candidates::Some(mut numbers) => {
                numbers.extend(others);
                numbers.sort_unstable();
                numbers.dedup();
                Candidates::Some(numbers)
            }
        }
    }

    /// Those that both have.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Candidates::All, one) | (one, Candidates::All) => one,
            (Candidates::Some(one), Candidates::Some(other)) => {
                Candidates::Some(common(vec![one, other]))
            }
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Candidates::Some(numbers) if numbers.is_empty())
    }

    /// The numbers, out of `documents`.
    pub(super) fn numbers(self, documents: u32) -> Vec<u32> {
        match self {
            Candidates::All => (0..documents).collect(),
            Candidates::Some(numbers) => numbers,
        }
    }
}

impl Handle<'_> {
    /// The documents of a segment that have what is needed.
    pub(super) async fn candidates(
        &self,
        segment: &IndexSegment,
        need: &Need,
    ) -> Result<Candidates> {
        Ok(match need {
            Need::Grams(keys) => {
                let chunks = self.chunks_of(segment, keys, true).await?;
                let mut entries = Vec::new();
                for (key, chunk) in keys.iter().zip(&chunks) {
                    let Some(chunk) = chunk else {
                        return Ok(Candidates::Some(Vec::new()));
                    };
                    match find(chunk, key)? {
                        Some(entry) => entries.push(entry),
                        None => return Ok(Candidates::Some(Vec::new())),
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
                Candidates::Some(of_groups(&left, segment.documents))
            }
            Need::GramPrefix(key) => {
                let list = self.places_with(segment, key, &|_| true).await?;
                Candidates::Some(of_groups(&list, segment.documents))
            }
            Need::Unbroken(least) => {
                let has = |key: &[u8]| unbroken_of(key).is_some_and(|chars| chars >= *least);
                Candidates::Some(self.places_with(segment, &unbroken_prefix(), &has).await?)
            }
            Need::Words(all) => {
                let mut lists = Vec::new();
                for any in all {
                    let mut list = Vec::new();
                    for key in any {
                        for chunk in self.chunks(segment, key, false).await? {
                            if let Some(entry) = find(&chunk, key)? {
                                list.extend(places(&entry)?);
                            }
                        }
                    }
                    if list.is_empty() {
                        return Ok(Candidates::Some(Vec::new()));
                    }
                    if any.len() > 1 {
                        list.sort_unstable();
                        list.dedup();
                    }
                    lists.push(list);
                }
                Candidates::Some(common(lists))
            }
            Need::SideBySide(sets) => self.side_by_side(segment, sets).await?,
            Need::All(needs) => {
                let mut all = Candidates::All;
                for need in needs {
                    all = all.and(Box::pin(self.candidates(segment, need)).await?);
                    if all.is_empty() {
                        break;
                    }
                }
                all
            }
            Need::Any(needs) => {
                let mut any = Candidates::Some(Vec::new());
                for need in needs {
                    match Box::pin(self.candidates(segment, need)).await? {
                        Candidates::Some(numbers) => any = any.or(numbers),
                        Candidates::All => return Ok(Candidates::All),
                    }
                }
                any
            }
            _ => Candidates::All,
        })
    }

    /// The documents of a segment that call a tool with such a name or have its result; rising.
    pub(super) async fn using(
        &self,
        segment: &IndexSegment,
        is_wanted: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<Vec<u32>> {
        let is_wanted = |key: &[u8]| tool_of(key).is_some_and(is_wanted);
        self.places_with(segment, &tools_prefix(), &is_wanted).await
    }

    /// The bare places under the keys that begin so and are wanted; rising.
    async fn places_with(
        &self,
        segment: &IndexSegment,
        prefix: &[u8],
        is_wanted: &(dyn Fn(&[u8]) -> bool + Sync),
    ) -> Result<Vec<u32>> {
        let mut found = Vec::new();
        for chunk in self.chunks(segment, prefix, true).await? {
            let mut entries = Vec::new();
            with_prefix(&chunk, prefix, &mut |key, entry| {
                if is_wanted(key) {
                    entries.push(entry);
                }
            })?;
            for entry in entries {
                found.extend(groups(&entry)?);
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// The records of a segment.
    pub(super) async fn records(&self, segment: &IndexSegment) -> Result<Vec<Record>> {
        let mut all = Vec::with_capacity(segment.documents as usize);
        for chunk in self.record_chunks(segment).await? {
            all.extend(records(&chunk)?);
        }
        Ok(all)
    }
}

/// The documents of some groups.
pub(super) fn of_groups(groups: &[u32], documents: u32) -> Vec<u32> {
    let of = |group: &u32| group * GROUP..(group.saturating_add(1) * GROUP).min(documents);
    groups.iter().flat_map(of).collect()
}

/// The numbers that all lists have; the lists rise.
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
