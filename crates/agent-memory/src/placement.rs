//! Placement of a transcript's conversations: the stored sessions that they continue, and the forks that they become.
//!
//! A format reads a source in file order, so that the conversations of a growing source are stable. The store may
//! arrange them differently: it keeps the branch that it stored first, and another source with the same beginning may
//! have been imported in between. This module matches the branches of a source with the stored branches. A branch
//! continues the session that has the branch's last known entry, if no entry of another branch follows that entry.
//! Otherwise it becomes a fork after that entry. The active branch is placed first: in a store that does not know the
//! source, it becomes the session, and the abandoned branches become forks.

mod arrange;
mod by_place;
mod fork_keys;
mod map;
mod reserved;
mod source;
mod stored_branches;
mod target;
mod unnamed;

use std::borrow::Cow;

use memory_model::{Seq, SessionKey};
use memory_store::{Conversation, ConversationRef, Origin as StoredOrigin};
use message_formats::{EntryHead, Origin, SessionLog, Transcript};

use crate::error::Result;
use crate::in_use::InUse;
use crate::memory::Memory;
use crate::session::Session;
pub(crate) use by_place::ByPlace;
use map::Moves;
use reserved::refuse_reserved;
pub use reserved::take_reserved;
use source::families;

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
}
