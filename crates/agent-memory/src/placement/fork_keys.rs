//! Keys of the sessions in which forks are stored.

use memory_model::{Seq, SessionKey};
use memory_store::Conversation;
use message_formats::SessionLog;

use super::map::Map;
use super::source::{Place, renamed};
use crate::error::Result;
use crate::memory::Memory;

impl Memory {
    /// Returns the key of a fork at a position without entries, which stands for a session of which the rest was taken
    /// back, and the fork if it is stored.
    pub(super) async fn fork_back(
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
    pub(super) async fn fork_key(
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
