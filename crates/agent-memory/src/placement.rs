//! Placement of a transcript's conversations: the stored sessions that they continue, and the forks that they become.
//!
//! A format reads a source in file order, so that the conversations of a growing source are stable. The store may
//! arrange them differently: it keeps the branch that it stored first, and another source with the same beginning may
//! have been imported in between. This module matches the branches of a source with the stored branches. A branch
//! continues the session that has the branch's last known entry, if no entry of another branch follows that entry.
//! Otherwise it becomes a fork after that entry. The active branch is placed first: in a store that does not know the
//! source, it becomes the session, and the abandoned branches become forks.

mod by_place;
mod map;
mod source;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use memory_model::{ConversationId, EntryKind, Seq, SeqRange, SessionKey};
use memory_store::{
    Conversation, ConversationFilter, ConversationRef, Origin as StoredOrigin, read_conversations,
};
use message_formats::{EntryHead, Origin, SessionLog, Transcript};

use crate::error::{Error, ErrorKind, Result};
use crate::in_use::InUse;
use crate::memory::Memory;
use crate::session::Session;
pub(crate) use by_place::ByPlace;
use map::{Branch, Map, Moves, Row};
use source::{Place, course, families, is_linked, is_ordered, own_id, renamed};

/// The conversations of a transcript, with the sessions of the store that receive them.
#[derive(Debug)]
pub(crate) struct Placement<'a> {
    pub(crate) logs: Vec<PlacedLog<'a>>,
    /// Key of the transcript's main session: the active branch of the first conversation that is not a sub-agent's.
    pub(crate) main: Option<SessionKey>,
    /// For each family: the session with the conversation's name, and the one in which it goes on.
    pub(crate) in_use: Vec<(SessionKey, InUse)>,
}

/// A conversation of a transcript, with its key in the store.
#[derive(Debug, Clone)]
pub(crate) struct PlacedLog<'a> {
    pub(crate) log: Cow<'a, SessionLog>,
    /// Position at which the session's log must end before an append; `None` for any position.
    pub(crate) head: Option<Seq>,
    /// Records that only their place tells from equal ones.
    pub(crate) by_place: ByPlace,
}

impl<'a> PlacedLog<'a> {
    fn as_it_is(log: &'a SessionLog) -> Self {
        Self {
            log: Cow::Borrowed(log),
            head: None,
            by_place: ByPlace::default(),
        }
    }

    /// Returns the external id under which a record of the conversation is stored.
    pub(crate) fn id(&self, at: usize) -> Option<&str> {
        self.by_place.id(&self.log, at)
    }
}

impl Memory {
    /// Returns the placement of a transcript's conversations. Does not write to the store.
    pub(crate) async fn place<'a>(&self, transcript: &'a Transcript) -> Result<Placement<'a>> {
        let logs = &transcript.sessions;
        refuse_reserved(logs)?;
        let mut placed = Vec::with_capacity(logs.len());
        let mut main = None;
        let mut in_use = Vec::new();
        let mut moved = Moves::default();
        for family in families(logs) {
            let Some(root) = family.first().copied() else {
                continue;
            };
            let copied = self.copied_from(root).await?;
            let is_copy = copied.is_some();
            let key = match copied {
                Some(parent) => parent,
                None if root.named => root.key.clone(),
                None => self.key_of(&family).await?,
            };
            let mut arranged = match root.linked || family.len() > 1 {
                true => self.arrange(&family, &key, &mut moved).await?,
                false => vec![self.single(root, &key).await?],
            };
            if key != root.key && !is_copy {
                moved.keys.insert(root.key.clone(), key);
            }
            for one in &mut arranged {
                moved.relink(&mut one.log);
            }
            let is_main = main.is_none() && !matches!(root.origin, Origin::Spawn { .. });
            let used = arranged.iter().find(|placed| placed.log.in_use);
            if let Some(used) = used.or(arranged.first()) {
                if is_main {
                    main = Some(used.log.key.clone());
                }
                let owner = used.log.stands_for.clone();
                let owner = owner.unwrap_or_else(|| used.log.key.clone());
                let session = used.log.key.clone();
                let since = used.log.since;
                in_use.push((owner, InUse { session, since }));
            }
            placed.extend(arranged);
        }
        let main = main.or_else(|| {
            placed
                .first()
                .map(|one: &PlacedLog<'_>| one.log.key.clone())
        });
        Ok(Placement {
            logs: placed,
            main,
            in_use,
        })
    }

    /// Returns the key of the stored session that a conversation was copied from. `None` if it is not a copy, if that
    /// session is not stored, or if an earlier import stored the conversation without it.
    async fn copied_from(&self, log: &SessionLog) -> Result<Option<SessionKey>> {
        let Some(parent) = log
            .copied_from
            .as_ref()
            .filter(|parent| **parent != log.key)
        else {
            return Ok(None);
        };
        let own = self.stored(&log.key).await?;
        let is_alone = own.is_some_and(|own| !matches!(own.origin, StoredOrigin::Fork { .. }));
        let parent = self.stored(parent).await?.filter(|_| !is_alone);
        Ok(parent.map(|parent| parent.key))
    }

    /// Returns the placement of a conversation without branches.
    async fn single<'a>(&self, log: &'a SessionLog, key: &SessionKey) -> Result<PlacedLog<'a>> {
        let mut placed = PlacedLog::as_it_is(log);
        // Linked records name their predecessors, which place them.
        let is_made = |head: EntryHead<'_>| head.id.is_some_and(message_formats::is_made_id);
        let is_made = !log.linked && log.heads().any(is_made);
        if log.named && !is_made {
            return Ok(placed);
        }
        if *key != log.key {
            placed.log.to_mut().key = key.clone();
        }
        let stored = self.stored(key).await?;
        placed.head = Some(stored.as_ref().map_or(Seq::NONE, |stored| stored.head));
        let Some(stored) = stored.filter(|stored| is_made && stored.head > Seq::NONE) else {
            placed.by_place = match log.linked {
                false => ByPlace::of_first(log),
                true => ByPlace::default(),
            };
            return Ok(placed);
        };
        let head = stored.head;
        placed.by_place = Session::bind(self, stored)?.recognize(log, head).await?;
        Ok(placed)
    }

    async fn stored(&self, key: &SessionKey) -> Result<Option<Conversation>> {
        let key = ConversationRef::Key(key.clone());
        Ok(self.inner.store.conversation(&key).await?)
    }

    /// Returns the key for a conversation without a name in its source. It is the key of the stored session that
    /// shares the most entries with the conversation, if one of the two is a prefix of the other, or else a new key.
    async fn key_of(&self, family: &[&SessionLog]) -> Result<SessionKey> {
        let Some(root) = family.first() else {
            return Ok(SessionKey::new(""));
        };
        let courses: Vec<Vec<Place>> = (0..family.len())
            .map(|index| course(family, index))
            .collect();
        let (best, free) = self.best_of(&root.key, family, &courses).await?;
        if let Some(best) = best {
            return Ok(best);
        }
        for other in &root.other_keys {
            if let (Some(best), _) = self.best_of(other, family, &courses).await? {
                return Ok(best);
            }
        }
        Ok(free)
    }

    /// Returns the key of the session that shares the most entries with a conversation, of those with keys that were made
    /// from one record, and the first of these keys that is free.
    async fn best_of(
        &self,
        made: &SessionKey,
        family: &[&SessionLog],
        courses: &[Vec<Place>],
    ) -> Result<(Option<SessionKey>, SessionKey)> {
        let mut best: Option<(usize, SessionKey)> = None;
        let mut key = made.clone();
        let mut number = 1_u64;
        while let Some(stored) = self.stored(&key).await? {
            let session = Session::bind(self, stored)?;
            if let Some(shared) = session.agreement(family, courses).await?
                && best.as_ref().is_none_or(|(most, _)| shared > *most)
            {
                best = Some((shared, key));
            }
            number += 1;
            key = SessionKey::new(format!("{made}-{number}"));
        }
        Ok((best.map(|(_, best)| best), key))
    }

    /// Matches a conversation and its forks with the stored session of this key and the stored forks.
    async fn arrange<'a>(
        &self,
        family: &[&'a SessionLog],
        key: &SessionKey,
        moved: &mut Moves,
    ) -> Result<Vec<PlacedLog<'a>>> {
        let stored = self.stored(key).await?;
        if let [log] = family {
            let Some(stored) = &stored else {
                let mut placed = self.single(log, key).await?;
                placed.head = Some(Seq::NONE);
                return Ok(vec![placed]);
            };
            if *key == log.key
                && !log.whole
                && let Some(head) = self.goes_on(log, stored).await?
            {
                let mut placed = self.single(log, key).await?;
                placed.head = Some(head);
                return Ok(vec![placed]);
            }
        }
        let known = match &stored {
            Some(stored) => self.stored_in_use(stored.id).await?,
            None => None,
        };
        let mut map = match stored {
            None => Map::new(key.clone()),
            Some(stored) => self.map_of(family, key, stored).await?,
        };
        let in_use = family.iter().position(|log| log.in_use).unwrap_or(0);
        let since = family.get(in_use).and_then(|log| log.since);
        let is_older = known.is_some_and(|known| known.since > since);
        let source = Source {
            family,
            records: ids_of(family),
            is_known: family.iter().any(|log| map.knows(log)),
            is_older,
        };
        // Of branches with files of their own, the oldest keeps the name, whichever is imported first.
        let first = match family.iter().any(|log| log.is_separate) {
            true => 0,
            false => in_use,
        };
        let others = (0..family.len()).filter(|index| *index != first);
        let mut rows: Vec<Row> = Vec::new();
        let mut told: HashSet<Place> = HashSet::new();
        for index in std::iter::once(first).chain(others) {
            let places = course(family, index);
            let target = self
                .target(&mut map, &source, index, &places, rows.is_empty())
                .await?;
            let mut new: Vec<Place> = Vec::new();
            for place in places {
                if !told.insert(place) || map.has_elsewhere(target, &place, family) {
                    continue;
                }
                // A damaged source may have an id twice; the second record is no entry.
                if let Some(id) = place.id(family)
                    && map.position(target, id).is_none()
                {
                    map.append(target, id.to_owned());
                }
                new.push(place);
            }
            match rows.iter_mut().find(|row| row.target == target) {
                Some(row) => {
                    row.places.extend(new);
                    row.logs.push(index);
                }
                None => rows.push(Row {
                    target,
                    places: new,
                    logs: vec![index],
                }),
            }
        }
        let target_of = |key: &SessionKey| {
            let index = family.iter().position(|log| log.key == *key)?;
            let row = rows.iter().find(|row| row.logs.contains(&index))?;
            Some(map.branch(row.target).key.clone())
        };
        let placed = rows.iter().map(|row| {
            let mut log = row.log(family, &map);
            if let Some(used) = family.get(in_use).filter(|_| log.in_use) {
                let replaced = used.stands_for.as_ref();
                log.since = used.since;
                log.stands_for = match (replaced, used.is_separate) {
                    // The conversation's own name stays with the session that has it, whichever branch is in that.
                    (Some(replaced), _) if *replaced == map.key => Some(map.key.clone()),
                    (Some(replaced), _) => target_of(replaced).or_else(|| Some(replaced.clone())),
                    (None, true) => None,
                    (None, false) => used.whole.then(|| map.key.clone()),
                };
            }
            PlacedLog {
                log: Cow::Owned(log),
                head: Some(map.branch(row.target).stored_head()),
                by_place: ByPlace::default(),
            }
        });
        let placed = placed.collect();
        moved.note(family, &rows, map);
        Ok(placed)
    }

    /// Returns the last position of a stored session that a source without forks continues. Returns `None` if other
    /// entries follow the source's last known entry in the session.
    async fn goes_on(&self, log: &SessionLog, stored: &Conversation) -> Result<Option<Seq>> {
        let session = Session::bind(self, stored.clone())?;
        let store = &self.inner.store;
        if let Some(last) = log.heads().rev().find_map(|head| own_id(&head)) {
            let known = store.find(stored.id, &[last.to_owned()]).await?;
            if known.first().is_some_and(Option::is_some) {
                return Ok(Some(stored.head));
            }
        }
        let named = || log.heads().filter(|head| head.id.is_some());
        let ids = named().filter_map(|head| head.id.map(str::to_owned));
        let ids: Vec<String> = ids.collect();
        let positions = store.find(stored.id, &ids).await?;
        let last = named()
            .zip(&positions)
            .filter(|(head, _)| own_id(head).is_some())
            .filter_map(|(_, position)| *position)
            .max();
        let Some(last) = last else {
            return Ok(Some(stored.head));
        };
        let behind = positions
            .iter()
            .flatten()
            .filter(|seq| **seq > last)
            .count() as u64;
        let is_end = behind == u64::from(stored.head.0.saturating_sub(last.0))
            || !session.is_left_behind(last).await?;
        Ok(is_end.then_some(stored.head))
    }

    /// Reads the stored branches of a session: the root of its forks, and all forks of that root.
    async fn map_of(
        &self,
        family: &[&SessionLog],
        key: &SessionKey,
        stored: Conversation,
    ) -> Result<Map> {
        let store = &self.inner.store;
        let mut filter = ConversationFilter::default();
        filter.archived = true;
        filter.family = Some(stored.family);
        let members = read_conversations(&**store, &filter).await?;
        let by_id: HashMap<ConversationId, &Conversation> =
            members.iter().map(|member| (member.id, member)).collect();
        let fork_root = |mut id: ConversationId| {
            while let Some(StoredOrigin::Fork { parent, .. }) =
                by_id.get(&id).map(|member| &member.origin)
            {
                id = *parent;
            }
            id
        };
        let root = fork_root(stored.id);
        let mut map = Map::new(key.clone());
        let mut index_of: HashMap<ConversationId, usize> = HashMap::new();
        for member in members.iter().filter(|member| fork_root(member.id) == root) {
            let parent = match &member.origin {
                StoredOrigin::Fork { parent, at } => {
                    index_of.get(parent).map(|parent| (*parent, *at))
                }
                _ => None,
            };
            let mut branch = Branch {
                parent,
                head: member.head,
                stored: Some((member.id, member.head)),
                ..Branch::root(member.key.clone())
            };
            let shared = branch.shared();
            if parent.is_none() {
                let heads = family.iter().flat_map(|log| log.heads());
                let ids = heads.filter_map(|head| head.id.map(str::to_owned));
                let mut ids: Vec<String> = ids.collect();
                ids.sort_unstable();
                ids.dedup();
                let positions = store.find(member.id, &ids).await?;
                let known = ids.into_iter().zip(positions);
                branch.own = known.filter_map(|(id, seq)| Some((id, seq?))).collect();
            } else {
                let session = Session::bind(self, member.clone())?;
                let mut rest = SeqRange::new(shared.next(), member.head);
                while let Some(range) = rest {
                    let page = session.entries_in(range).await?;
                    for entry in page.items {
                        if let Some(id) = entry.message.external_id {
                            branch.own.insert(id, entry.seq);
                        }
                    }
                    rest = page.next;
                }
            }
            index_of.insert(member.id, map.branches.len());
            map.add(branch);
        }
        map.base = index_of.get(&stored.id).copied().unwrap_or(0);
        Ok(map)
    }

    /// Returns the branch that continues one conversation of the source, a new one if there is none. `is_first` is whether
    /// no other conversation of the source was placed before.
    async fn target(
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
            && (is_end
                || match map.branch(branch).stored {
                    Some((id, stored)) if stored == head => {
                        let conversation = ConversationRef::Id(id);
                        match self.inner.store.conversation(&conversation).await? {
                            Some(one) => !Session::bind(self, one)?.is_left_behind(at).await?,
                            None => false,
                        }
                    }
                    _ => false,
                });
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

    /// Returns the key of a fork at a position without entries, which stands for a session of which the rest was taken
    /// back, and the fork if it is stored.
    async fn fork_back(
        &self,
        map: &Map,
        (branch, at): (usize, Seq),
        last: Option<&str>,
    ) -> Result<(SessionKey, Option<Conversation>)> {
        let base = format!("{}/{}-back", map.key, last.unwrap_or("begin"));
        for number in 1_u64.. {
            let key = match number {
                1 => SessionKey::new(base.as_str()),
                _ => SessionKey::new(format!("{base}-{number}")),
            };
            match self.stored(&key).await? {
                None => return Ok((key, None)),
                Some(stored) if map.is_empty_fork(&stored, branch, at) => {
                    return Ok((key, Some(stored)));
                }
                Some(_) => {}
            }
        }
        Ok((SessionKey::new(base), None))
    }

    /// Returns a key for a fork after position `at` of a branch, and the stored conversation with that key if it is an
    /// empty fork at the same position.
    async fn fork_key(
        &self,
        map: &Map,
        family: &[&SessionLog],
        index: usize,
        places: &[Place],
        (branch, at): (usize, Seq),
    ) -> Result<(SessionKey, Option<Conversation>)> {
        let shown = |id: &str| map.position(branch, id).is_some_and(|seq| seq <= at);
        let new = |place: &&Place| place.id(family).is_some_and(|id| !shown(id));
        let begins = places.iter().find(new);
        let mut wanted: Vec<SessionKey> = Vec::new();
        // A copy has a name of its own.
        let copy = family.get(index).filter(|log| log.copied_from.is_some());
        wanted.extend(copy.map(|log| log.key.clone()));
        // The key of the source's branch that begins here.
        let named = begins.and_then(|begins| {
            let log = family.get(begins.log)?;
            (begins.at == 0 && begins.log > 0).then(|| renamed(&log.key, family, &map.key))
        });
        wanted.extend(named);
        // The session key that the source uses by now, if its entries after the shared prefix use it.
        if family.get(index).is_some_and(|log| log.in_use) {
            let mut later = places.iter().filter(new).filter_map(|place| {
                let log = family.get(place.log)?;
                let id = place.id(family)?;
                let later = log.later_keys.iter().find(|(entry, _)| entry == id)?;
                Some(later.1.clone())
            });
            wanted.extend(later.next_back());
        }
        let first = begins
            .and_then(|begins| begins.id(family))
            .unwrap_or("fork");
        let base = format!("{}/{first}", map.key);
        wanted.push(SessionKey::new(base.as_str()));
        for number in 2_u64.. {
            for key in wanted.drain(..) {
                if map
                    .branches
                    .iter()
                    .any(|known| known.key == key && known.stored.is_none())
                {
                    continue;
                }
                match self.stored(&key).await? {
                    None => return Ok((key, None)),
                    // A fork that was created without any messages.
                    Some(stored) if map.is_empty_fork(&stored, branch, at) => {
                        return Ok((key, Some(stored)));
                    }
                    Some(_) => {}
                }
            }
            wanted.push(SessionKey::new(format!("{base}-{number}")));
        }
        Ok((SessionKey::new(base), None))
    }
}

/// Returns the session that only the memory writes to, if a conversation names one in any place.
fn reserved(log: &SessionLog) -> Option<&SessionKey> {
    let parent = match &log.origin {
        Origin::Fork { parent, .. } | Origin::Spawn { parent, .. } => Some(parent),
        _ => None,
    };
    let later = log.later_keys.iter().map(|(_, key)| key);
    let others = parent.into_iter().chain(&log.copied_from).chain(later);
    { std::iter::once(&log.key).chain(others) }.find(|key| key.is_reserved())
}

/// Takes the conversations that name a [reserved](SessionKey::RESERVED) session out of a transcript, and returns the keys
/// that they name. With them [`Memory::import`] refuses the whole transcript.
pub fn take_reserved(transcript: &mut Transcript) -> Vec<SessionKey> {
    let mut taken = Vec::new();
    transcript.sessions.retain(|log| {
        taken.extend(reserved(log).cloned());
        reserved(log).is_none()
    });
    taken
}

/// Fails if a transcript names a session that only the memory writes to, in any place of a conversation.
fn refuse_reserved(logs: &[SessionLog]) -> Result<()> {
    match logs.iter().find_map(reserved) {
        None => Ok(()),
        Some(key) => Err(Error::new(
            ErrorKind::Invalid,
            format!(
                "the transcript names the session {key}: keys that begin with {} are the memory's own, so give it \
                 another name",
                SessionKey::RESERVED
            ),
        )),
    }
}

/// A conversation of a source with its forks.
struct Source<'a> {
    family: &'a [&'a SessionLog],
    /// Ids of the records: see [`ids_of`].
    records: HashSet<&'a str>,
    /// Whether the store has a record with an id of its own.
    is_known: bool,
    /// Whether a later state of the source was imported before.
    is_older: bool,
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
fn ids_of<'a>(family: &[&'a SessionLog]) -> HashSet<&'a str> {
    let records = family.iter().flat_map(|log| {
        let heads = log.heads();
        heads
            .filter(|head| !log.linked || head.kind == EntryKind::Message || own_id(head).is_some())
    });
    records.filter_map(|head| head.id).collect()
}

impl Session {
    /// Compares the session's log with all courses of a source, the sequences of entries that its conversations show.
    /// Returns the largest number of entries that the log shares with a course, if one of the two is a prefix of the
    /// other. Returns `None` if all courses differ from the log.
    async fn agreement(
        &self,
        family: &[&SessionLog],
        courses: &[Vec<Place>],
    ) -> Result<Option<usize>> {
        let mut alive: Vec<(usize, &[Place])> =
            courses.iter().map(|places| (0, &**places)).collect();
        let mut best = None;
        let mut rest = self.info().await?.conversation.range();
        while let Some(range) = rest {
            let page = self.entries_in(range).await?;
            for entry in &page.items {
                let mut still = Vec::with_capacity(alive.len());
                for (shared, places) in alive {
                    match places.split_first() {
                        Some((place, behind)) if place.is(family, entry)? => {
                            still.push((shared + 1, behind));
                        }
                        Some(_) => {}
                        // The course is a prefix of the log.
                        None => best = best.max(Some(shared)),
                    }
                }
                alive = still;
            }
            rest = page.next.filter(|_| !alive.is_empty());
        }
        // The log is a prefix of the course.
        let whole = alive.iter().map(|(shared, _)| *shared).max();
        Ok(best.max(whole))
    }

    /// Returns whether linked entries of a transcript follow a position. A source without these entries has diverged
    /// from the session. Entries that an application appended do not count.
    async fn is_left_behind(&self, at: Seq) -> Result<bool> {
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
