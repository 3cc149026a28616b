//! The stored and new branches of one conversation, and the positions of a transcript's records in them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use memory_model::{ConversationId, EntryKind, Seq, SessionKey};
use memory_store::{Conversation, Origin as StoredOrigin};
use message_formats::{Origin, SessionBuilder, SessionLog};

use super::source::{Place, own_id};

/// A session that an import writes: its branch, and the records of the source that become its entries.
pub(super) struct Row {
    pub(super) target: usize,
    /// Records that become entries of the session. Each record of the source is in one row only.
    pub(super) places: Vec<Place>,
    /// Indices of the source's conversations that end in this session.
    pub(super) logs: Vec<usize>,
}

impl Row {
    pub(super) fn log(&self, family: &[&SessionLog], map: &Map) -> SessionLog {
        let branch = map.branch(self.target);
        let origin = match (&branch.stored, branch.parent) {
            // A stored branch keeps its origin.
            (Some(_), _) => Origin::Root,
            (None, Some((parent, _))) => Origin::Fork {
                parent: map.branch(parent).key.clone(),
                after: branch.after.clone(),
            },
            (None, None) => family
                .first()
                .map_or(Origin::Root, |log| log.origin.clone()),
        };
        let mut log = SessionBuilder::new(origin).finish(branch.key.clone());
        for place in &self.places {
            if let Some(source) = family.get(place.log) {
                log.push_entry(source, place.at);
            }
        }
        for (index, source) in family.iter().enumerate() {
            let own = self.places.iter().filter(|place| place.log == index);
            let told: HashSet<&str> = own.filter_map(|place| place.id(family)).collect();
            let summaries = source.summaries.iter();
            let summaries = summaries.filter(|one| told.contains(one.entry.as_str()));
            log.summaries.extend(summaries.cloned());
            if self.logs.contains(&index) {
                log.duplicates += source.duplicates;
                log.in_use |= source.in_use;
            }
            log.linked |= source.linked;
        }
        log
    }
}

/// Stored and new branches of one conversation.
#[derive(Debug)]
pub(super) struct Map {
    /// The conversation's key.
    pub(super) key: SessionKey,
    /// Branches. A parent comes before its forks.
    pub(super) branches: Vec<Branch>,
    /// Index of the branch that has the conversation's key.
    pub(super) base: usize,
    /// Indices of the branches that contain an entry after their shared part, by the entry's external id.
    pub(super) owners: HashMap<String, Vec<usize>>,
}

#[derive(Debug)]
pub(super) struct Branch {
    pub(super) key: SessionKey,
    /// Index of the parent branch, and the last position that both branches share; `None` for a root.
    pub(super) parent: Option<(usize, Seq)>,
    /// External id of the entry at the last shared position.
    pub(super) after: Option<String>,
    /// Positions of the entries after the shared part, by external id. For a stored root, only entries that are also in
    /// the source.
    pub(super) own: BTreeMap<String, Seq>,
    pub(super) head: Seq,
    /// The stored conversation, and the last position of its log; `None` for a branch that is to be created.
    pub(super) stored: Option<(ConversationId, Seq)>,
}

impl Branch {
    pub(super) fn root(key: SessionKey) -> Self {
        Self {
            key,
            parent: None,
            after: None,
            own: BTreeMap::new(),
            head: Seq::NONE,
            stored: None,
        }
    }

    pub(super) fn shared(&self) -> Seq {
        self.parent.map_or(Seq::NONE, |(_, at)| at)
    }

    /// Returns the last position of the branch's log before this import appends entries.
    pub(super) fn stored_head(&self) -> Seq {
        self.stored.map_or(self.shared(), |(_, head)| head)
    }
}

impl Map {
    pub(super) fn new(key: SessionKey) -> Self {
        Self {
            key,
            branches: Vec::new(),
            base: 0,
            owners: HashMap::new(),
        }
    }

    pub(super) fn branch(&self, index: usize) -> &Branch {
        &self.branches[index]
    }

    pub(super) fn add(&mut self, branch: Branch) -> usize {
        let index = self.branches.len();
        for id in branch.own.keys() {
            self.owners.entry(id.clone()).or_default().push(index);
        }
        self.branches.push(branch);
        index
    }

    pub(super) fn append(&mut self, index: usize, id: String) {
        let Some(branch) = self.branches.get_mut(index) else {
            return;
        };
        branch.head = branch.head.next();
        branch.own.insert(id.clone(), branch.head);
        self.owners.entry(id).or_default().push(index);
    }

    /// Returns whether the store has an entry of this conversation.
    pub(super) fn knows(&self, log: &SessionLog) -> bool {
        let mut ids = log.heads().filter_map(|head| own_id(&head));
        ids.any(|id| self.owners.contains_key(id))
    }

    /// Returns whether a record is a note without an id that another branch has. The note belongs to no branch in
    /// particular, and is kept once.
    pub(super) fn has_elsewhere(
        &self,
        index: usize,
        place: &Place,
        family: &[&SessionLog],
    ) -> bool {
        place.head(family).is_some_and(|head| {
            let id = head.id.unwrap_or_default();
            head.kind == EntryKind::Note
                && own_id(&head).is_none()
                && self.owners.contains_key(id)
                && self.position(index, id).is_none()
        })
    }

    pub(super) fn root_of(&self, mut index: usize) -> usize {
        while let Some((parent, _)) = self.branch(index).parent {
            index = parent;
        }
        index
    }

    /// Returns the branch that contains an entry after its shared part, and the entry's position. Searches the branch
    /// `index` and its parents.
    pub(super) fn shown_by(&self, mut index: usize, id: &str) -> Option<(usize, Seq)> {
        let mut until = Seq(u32::MAX);
        loop {
            let branch = self.branch(index);
            if let Some(seq) = branch.own.get(id)
                && *seq <= until
            {
                return Some((index, *seq));
            }
            let (parent, at) = branch.parent?;
            until = until.min(at);
            index = parent;
        }
    }

    pub(super) fn position(&self, index: usize, id: &str) -> Option<Seq> {
        self.shown_by(index, id).map(|(_, seq)| seq)
    }

    /// Returns the branch that contains an entry after its shared part, and the entry's position. Of several branches,
    /// returns the branch that shows the most of the records `places`.
    pub(super) fn owner(
        &self,
        id: &str,
        places: &[Place],
        family: &[&SessionLog],
        key: &SessionKey,
    ) -> (usize, Seq) {
        let owners = self.owners.get(id).map_or(&[][..], Vec::as_slice);
        let shows = |index: usize| {
            let ids = places.iter().filter_map(|place| place.id(family));
            ids.filter(|id| self.position(index, id).is_some()).count()
        };
        let best = match owners {
            [one] => *one,
            many => {
                let many = many.iter().rev().copied();
                many.max_by_key(|index| (shows(*index), self.branch(*index).key == *key))
                    .unwrap_or(self.base)
            }
        };
        (best, self.position(best, id).unwrap_or(Seq::NONE))
    }

    /// Returns the branch that has an entry directly after a position of a branch: that branch itself, or a fork there.
    pub(super) fn follower(&self, (branch, at): (usize, Seq), id: &str) -> Option<usize> {
        let owners = self.owners.get(id)?.iter().copied();
        let mut owners = owners.filter(|owner| self.position(*owner, id) == Some(at.next()));
        owners.find(|owner| *owner == branch || self.branch(*owner).parent == Some((branch, at)))
    }

    pub(super) fn is_empty_fork(&self, stored: &Conversation, branch: usize, at: Seq) -> bool {
        let parent = self.branch(branch).stored.map(|(id, _)| id);
        let begins = match stored.origin {
            StoredOrigin::Fork { parent, at } => Some((parent, at)),
            _ => None,
        };
        stored.head == at && parent.is_some_and(|parent| begins == Some((parent, at)))
    }
}

/// New keys of a transcript's conversations. They are needed to link sub-agents to their parents.
#[derive(Debug, Default)]
pub(super) struct Moves {
    /// New key of a conversation, by its key in the source.
    pub(super) keys: HashMap<SessionKey, SessionKey>,
    /// For each conversation, by its key in the source: the index of its map in `maps`, and the branch in which it
    /// ends.
    pub(super) ends: HashMap<SessionKey, (usize, usize)>,
    pub(super) maps: Vec<Map>,
}

impl Moves {
    pub(super) fn note(&mut self, family: &[&SessionLog], rows: &[Row], map: Map) {
        for row in rows {
            for log in row.logs.iter().filter_map(|index| family.get(*index)) {
                self.ends
                    .insert(log.key.clone(), (self.maps.len(), row.target));
            }
        }
        self.maps.push(map);
    }

    /// Replaces the parent's key in a sub-agent's conversation by the parent's key in the store.
    pub(super) fn relink(&self, log: &mut Cow<'_, SessionLog>) {
        let Origin::Spawn { parent, after, .. } = &log.origin else {
            return;
        };
        let arranged = self.ends.get(parent).and_then(|(map, end)| {
            let map = self.maps.get(*map)?;
            let owner = after.as_deref().and_then(|after| map.shown_by(*end, after));
            Some(
                map.branch(owner.map_or(*end, |(owner, _)| owner))
                    .key
                    .clone(),
            )
        });
        let key = arranged.or_else(|| self.keys.get(parent).cloned());
        if let Some(key) = key.filter(|key| key != parent)
            && let Origin::Spawn { parent, .. } = &mut log.to_mut().origin
        {
            *parent = key;
        }
    }
}
