//! Matches a conversation and its forks with the stored branches.

use std::borrow::Cow;
use std::collections::HashSet;

use memory_model::{Seq, SessionKey};
use memory_store::Conversation;
use message_formats::SessionLog;

use super::map::{Map, Moves, Row};
use super::source::{Place, course, own_id};
use super::target::{Source, ids_of};
use super::{ByPlace, PlacedLog};
use crate::error::Result;
use crate::memory::Memory;
use crate::session::Session;

impl Memory {
    /// Matches a conversation and its forks with the stored session of this key and the stored forks.
    pub(super) async fn arrange<'a>(
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
        let rows = self.rows(&mut map, &source, first).await?;
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

    /// Distributes the records of a source over the branches that continue its conversations. The conversation `first`
    /// comes before the others.
    async fn rows(&self, map: &mut Map, source: &Source<'_>, first: usize) -> Result<Vec<Row>> {
        let family = source.family;
        let others = (0..family.len()).filter(|index| *index != first);
        let mut rows: Vec<Row> = Vec::new();
        let mut told: HashSet<Place> = HashSet::new();
        for index in std::iter::once(first).chain(others) {
            let places = course(family, index);
            let target = self
                .target(map, source, index, &places, rows.is_empty())
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
        Ok(rows)
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
}
