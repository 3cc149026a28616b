//! Lookup of families, which are kept in memory.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

use memory_model::ConversationId;
use memory_store::implementors::no_conversation;
use memory_store::{Conversation, ConversationRef, Result};

use super::SqlStore;
use crate::directory;
use crate::executor::{Database, Executor};
use crate::family::Family;

/// Maximum number of conversations with a family in memory, at about 50 bytes each.
const REMEMBERED: usize = 1 << 18;

impl<D: Database> SqlStore<D> {
    /// Returns the family of a conversation, as SQL statements name it. Runs no SQL statement if the family is in memory
    /// or the database has no column for it, otherwise one.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist and the database has a column for the family.
    pub(super) async fn family(
        &self,
        on: &mut impl Executor,
        id: ConversationId,
    ) -> Result<Family> {
        if !D::BY_FAMILY {
            return Ok(Family::ANY);
        }
        let known = self.known_families().get(&id).copied();
        match known {
            Some(known) => Ok(known),
            None => {
                let found = self.place(on, &ConversationRef::Id(id)).await?;
                Ok(found.ok_or_else(|| no_conversation(id))?.1)
            }
        }
    }

    /// Looks a conversation up in the directory. Returns its number and its family.
    pub(super) async fn place(
        &self,
        on: &mut impl Executor,
        which: &ConversationRef,
    ) -> Result<Option<(ConversationId, Family)>> {
        let Some(row) = on.first(&directory::find(which)).await? else {
            return Ok(None);
        };
        let (id, root) = directory::place(&row)?;
        let family = Family::of(root);
        self.remember_family(id, family);
        Ok(Some((id, family)))
    }

    /// Returns the family of a conversation that is already read.
    pub(super) fn family_of(&self, info: &Conversation) -> Family {
        match D::BY_FAMILY {
            true => Family::of(info.family),
            false => Family::ANY,
        }
    }

    pub(super) fn remember_family(&self, id: ConversationId, family: Family) {
        let mut families = self.known_families();
        if families.len() >= REMEMBERED {
            families.clear();
        }
        families.insert(id, family);
    }

    fn known_families(&self) -> MutexGuard<'_, BTreeMap<ConversationId, Family>> {
        self.families.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a transaction in which no other connection writes to the family of a conversation. Also returns the
    /// family.
    ///
    /// # Errors
    /// The errors of [`Self::family`] and [`Database::begin`].
    pub(super) async fn begin_in<'a>(
        &'a self,
        writer: &'a mut D::Writer<'_>,
        id: ConversationId,
    ) -> Result<(D::Transaction<'a>, Family)> {
        let family = self.family(writer, id).await?;
        Ok((self.database.begin(writer, family).await?, family))
    }
}
