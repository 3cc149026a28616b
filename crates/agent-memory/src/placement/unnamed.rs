//! The stored session of a conversation that has no name in its source.

use memory_model::SessionKey;
use message_formats::SessionLog;

use super::source::{Place, course};
use crate::error::Result;
use crate::memory::Memory;
use crate::session::Session;

impl Memory {
    /// Returns the key for a conversation without a name in its source. It is the key of the stored session that
    /// shares the most entries with the conversation, if one of the two is a prefix of the other, or else a new key.
    pub(super) async fn key_of(&self, family: &[&SessionLog]) -> Result<SessionKey> {
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
}
