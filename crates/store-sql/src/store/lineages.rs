//! Lookup of lineages, which are kept in memory.

use std::sync::PoisonError;

use memory_model::ConversationId;
use memory_store::implementors::no_conversation;
use memory_store::{Conversation, Error, ErrorKind, Origin, Result};

use super::SqlStore;
use super::lineage::{Ancestor, Lineage};
use crate::conversation as sql;
use crate::executor::{Database, Executor};

impl<D: Database> SqlStore<D> {
    /// Returns the lineage of a conversation: the conversation and its ancestors by forks. Runs no SQL statement if the
    /// lineage is in memory, otherwise one.
    pub(super) async fn lineage(
        &self,
        on: &mut impl Executor,
        id: ConversationId,
    ) -> Result<Lineage> {
        if let Some(known) = self.known_lineage(id) {
            return Ok(known);
        }
        let family = self.family(on, id).await?;
        let mut lineage = Vec::new();
        let mut next = Some(id);
        for row in on.all(&sql::lineage(family, id.0)).await? {
            let (id, fork) = sql::ancestor(&row)?;
            if next != Some(id) {
                break;
            }
            if let Some((parent, _)) = fork
                && parent >= id
            {
                let message = format!("conversation {id}: its parent is younger");
                return Err(Error::new(ErrorKind::Corrupt, message));
            }
            next = fork.map(|(parent, _)| parent);
            lineage.push(Ancestor { id, fork });
        }
        if lineage.is_empty() {
            return Err(no_conversation(id));
        }
        let lineage = Lineage::new(lineage);
        self.remember_lineage(id, &lineage);
        Ok(lineage)
    }

    /// Returns the lineage (the ancestors by forks) of a conversation with a row that is already read. Runs an SQL
    /// statement only for a fork, and only if the lineage of its parent is not in memory.
    pub(super) async fn lineage_of(
        &self,
        on: &mut impl Executor,
        found: &Conversation,
    ) -> Result<Lineage> {
        if let Some(known) = self.known_lineage(found.id) {
            return Ok(known);
        }
        if D::BY_FAMILY {
            for id in found.origin.parent().into_iter().chain([found.id]) {
                self.remember_family(id, self.family_of(found));
            }
        }
        let lineage = match found.origin {
            Origin::Fork { parent, at } if parent < found.id => {
                match self.lineage(on, parent).await {
                    Ok(parent) => parent.fork(found.id, at),
                    // A fork remains readable if its parent is missing.
                    Err(error) if error.kind() == ErrorKind::NotFound => Lineage::new([Ancestor {
                        id: found.id,
                        fork: Some((parent, at)),
                    }]),
                    Err(error) => return Err(error),
                }
            }
            Origin::Fork { .. } => {
                let message = format!("conversation {}: its parent is younger", found.id);
                return Err(Error::new(ErrorKind::Corrupt, message));
            }
            Origin::Root | Origin::Spawn { .. } => Lineage::alone(found.id),
        };
        self.remember_lineage(found.id, &lineage);
        Ok(lineage)
    }

    pub(super) fn known_lineage(&self, id: ConversationId) -> Option<Lineage> {
        let lineages = self.lineages.lock().unwrap_or_else(PoisonError::into_inner);
        lineages.get(id)
    }

    fn remember_lineage(&self, id: ConversationId, lineage: &Lineage) {
        let mut lineages = self.lineages.lock().unwrap_or_else(PoisonError::into_inner);
        lineages.put(id, lineage);
    }
}
