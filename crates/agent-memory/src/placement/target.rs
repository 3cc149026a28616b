//! The branch that continues a conversation of a source: a stored one, or a new fork.

use std::collections::HashSet;

use memory_model::{EntryKind, Seq, SeqRange};
use memory_store::ConversationRef;
use message_formats::SessionLog;

use super::map::{Branch, Map};
use super::source::{Place, is_linked, is_ordered, own_id, renamed};
use crate::error::Result;
use crate::memory::Memory;
use crate::session::Session;

/// A conversation of a source with its forks.
pub(super) struct Source<'a> {
    pub(super) family: &'a [&'a SessionLog],
    /// Ids of the records: see [`ids_of`].
    pub(super) records: HashSet<&'a str>,
    /// Whether the store has a record with an id of its own.
    pub(super) is_known: bool,
    /// Whether a later state of the source was imported before.
    pub(super) is_older: bool,
}

impl<'a> Source<'a> {
    /// Returns the branch with the last known record of a conversation, the record's position, and its id. Without a known
    /// record, the position is the end of the session that the conversation continues, or the beginning of a root.
    fn past(
        &self,
        map: &mut Map,
        index: usize,
        places: &[Place],
        is_first: bool,
    ) -> (usize, Seq, Option<&'a str>) {
        let id_at = |place: &Place| place.id(self.family);
        let shown: HashSet<&str> = places.iter().filter_map(id_at).collect();
        let known = |id: &&str| map.owners.contains_key(*id);
        let latest = || places.iter().rev();
        let own = latest().filter_map(|place| own_id(&place.head(self.family)?));
        // Generated ids tell the place of a fork if another branch has entries in the store, or was placed before.
        let mut others = self.records.iter().filter(|id| !shown.contains(*id));
        let is_fork = !is_first || others.any(known);
        let found = { own }.find(known).or_else(|| {
            let ids = latest().filter(|_| is_fork).filter_map(id_at);
            { ids }.find(known)
        });
        let Some(found) = found else {
            let (branch, at) = match map.branches.is_empty() {
                true => (map.add(Branch::root(map.key.clone())), Seq::NONE),
                false if is_fork || self.is_known => (map.root_of(map.base), Seq::NONE),
                // A source that shares no entry with the session that it names continues that session.
                false => (map.base, map.branch(map.base).head),
            };
            return (branch, at, None);
        };
        let key = self.family.get(index).map_or(&map.key, |log| &log.key);
        let (mut branch, mut at) = map.owner(found, places, self.family, key);
        // Records with generated ids may follow the last known record.
        let mut last = found;
        let behind = places.iter().filter_map(id_at);
        for id in behind.skip_while(|id| *id != found).skip(1) {
            let Some(next) = map.follower((branch, at), id) else {
                break;
            };
            (branch, at, last) = (next, at.next(), id);
        }
        (branch, at, Some(last))
    }
}

/// Returns the ids of a source's records. Where records name what they follow, a note without an id belongs to no branch
/// in particular, and is left out.
pub(super) fn ids_of<'a>(family: &[&'a SessionLog]) -> HashSet<&'a str> {
    let records = family.iter().flat_map(|log| {
        let heads = log.heads();
        heads
            .filter(|head| !log.linked || head.kind == EntryKind::Message || own_id(head).is_some())
    });
    records.filter_map(|head| head.id).collect()
}

impl Memory {
    /// Returns the branch that continues one conversation of the source, a new one if there is none. `is_first` is whether
    /// no other conversation of the source was placed before.
    pub(super) async fn target(
        &self,
        map: &mut Map,
        source: &Source<'_>,
        index: usize,
        places: &[Place],
        is_first: bool,
    ) -> Result<usize> {
        let (branch, at, last) = source.past(map, index, places, is_first);
        let Source {
            family,
            records,
            is_older,
            ..
        } = source;
        let log = family.get(index);
        let id_at = |place: &Place| place.id(family);
        let shown: HashSet<&str> = places.iter().filter_map(id_at).collect();
        let is_new = |map: &Map, branch: usize, place: &Place| {
            id_at(place).is_some_and(|id| map.position(branch, id).is_none())
                && !map.has_elsewhere(branch, place, family)
        };
        let has_new = places.iter().any(|place| is_new(map, branch, place));
        // A source with all entries of the branch in use lacks those that were taken back.
        let is_whole = log.is_some_and(|log| log.whole && log.in_use) && !is_older;
        let is_back = is_whole && self.is_taken_back(map.branch(branch), at, &shown).await?;
        if !has_new && !is_back {
            return Ok(branch);
        }
        let head = map.branch(branch).head;
        let known = places.iter().filter_map(id_at);
        let behind = known.filter(|id| map.position(branch, id).is_some_and(|seq| seq > at));
        // A copy is a session of its own, even if it continues at the end of the session that it was copied from.
        let name = &map.branch(branch).key;
        let is_copy = log.is_some_and(|log| {
            log.copied_from.as_ref() == Some(name)
                || log.is_separate && renamed(&log.key, family, &map.key) != *name
        });
        let is_end = behind.count() as u64 == u64::from(head.0.saturating_sub(at.0));
        let is_left = map.branch(branch).own.iter().any(|(id, seq)| {
            let id = id.as_str();
            *seq > at && records.contains(id) && !shown.contains(id)
        });
        let is_end = !is_copy
            && !is_left
            && !is_back
            && (is_end || self.is_still_shown(map.branch(branch), at).await?);
        if is_end {
            return Ok(branch);
        }
        // Only the branch in use goes on where the rest was taken back.
        let back = match is_whole {
            true => Some(self.fork_back(map, (branch, at), last).await?),
            false => None,
        };
        let (key, stored) = match back {
            Some((_, Some(stored))) => (stored.key.clone(), Some(stored)),
            Some((free, None)) if !has_new => (free, None),
            _ => {
                self.fork_key(map, family, index, places, (branch, at))
                    .await?
            }
        };
        Ok(map.add(Branch {
            parent: Some((branch, at)),
            after: last.filter(|_| at > Seq::NONE).map(str::to_owned),
            head: at,
            stored: stored.map(|stored| (stored.id, stored.head)),
            ..Branch::root(key)
        }))
    }

    /// Returns whether a stored branch shows messages behind a position that its source does not show any more.
    async fn is_taken_back(&self, branch: &Branch, at: Seq, shown: &HashSet<&str>) -> Result<bool> {
        let Some((id, head)) = branch.stored else {
            return Ok(false);
        };
        let conversation = ConversationRef::Id(id);
        let Some(stored) = self.inner.store.conversation(&conversation).await? else {
            return Ok(false);
        };
        let session = Session::bind(self, stored)?;
        let mut rest = SeqRange::new(at.next(), head);
        while let Some(range) = rest {
            let page = session.entries_in(range).await?;
            let mut ids = page.items.iter().filter(|entry| is_ordered(entry));
            if ids.any(|entry| {
                !entry
                    .external_id
                    .as_deref()
                    .is_some_and(|id| shown.contains(id))
            }) {
                return Ok(true);
            }
            rest = page.next;
        }
        Ok(false)
    }

    /// Returns whether only entries of an application, which are not linked, follow a position of a stored branch.
    async fn is_still_shown(&self, branch: &Branch, at: Seq) -> Result<bool> {
        let stored = branch.stored.filter(|(_, stored)| *stored == branch.head);
        let Some((id, _)) = stored else {
            return Ok(false);
        };
        let conversation = ConversationRef::Id(id);
        match self.inner.store.conversation(&conversation).await? {
            Some(one) => Ok(!Session::bind(self, one)?.is_left_behind(at).await?),
            None => Ok(false),
        }
    }
}

impl Session {
    /// Returns whether linked entries of a transcript follow a position. A source without these entries has diverged
    /// from the session. Entries that an application appended do not count.
    pub(super) async fn is_left_behind(&self, at: Seq) -> Result<bool> {
        let mut rest = SeqRange::new(at.next(), self.info().await?.conversation.head);
        while let Some(range) = rest {
            let page = self.entries_in(range).await?;
            if page.items.iter().any(is_linked) {
                return Ok(true);
            }
            rest = page.next;
        }
        Ok(false)
    }
}
