//! Opening, looking up and changing conversations.

use std::borrow::Cow;

use memory_model::{ConversationId, Hash, Timestamp};
use memory_store::implementors::{conversation_hash, created, family_hash, no_conversation};
use memory_store::{
    Conversation, ConversationFilter, ConversationPatch, ConversationRef, Error, ErrorKind,
    NewConversation, Origin, Page, Result,
};

use super::SqlStore;
use super::log::Log;
use super::pages::{one_more, page};
use super::running::running_at;
use crate::conversation as sql;
use crate::directory;
use crate::executor::{Database, Executor};
use crate::family::Family;
use crate::row::Columns;

/// Largest number of a conversation. A larger number does not fit into a row's key.
const MAX_CONVERSATION: i64 = i32::MAX as i64;

impl<D: Database> SqlStore<D> {
    /// Reads a conversation by number, with its segments.
    pub(super) async fn get(
        &self,
        on: &mut impl Executor,
        id: ConversationId,
    ) -> Result<Conversation> {
        self.look_up(on, &ConversationRef::Id(id))
            .await?
            .ok_or_else(|| no_conversation(id))
    }

    pub(super) async fn look_up(
        &self,
        on: &mut impl Executor,
        which: &ConversationRef,
    ) -> Result<Option<Conversation>> {
        let (which, family) = match (D::BY_FAMILY, which) {
            (false, _) => (Cow::Borrowed(which), Family::ANY),
            (true, ConversationRef::Id(id)) => match self.family(on, *id).await {
                Ok(family) => (Cow::Borrowed(which), family),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            },
            (true, ConversationRef::Key(_)) => match self.place(on, which).await? {
                Some((id, family)) => (Cow::Owned(ConversationRef::Id(id)), family),
                None => return Ok(None),
            },
        };
        match on.first(&sql::find(family, &which)).await? {
            Some(row) => Ok(Some(self.found(on, &row).await?)),
            None => Ok(None),
        }
    }

    /// Returns the conversation in a row of [`sql::find`], with its segments.
    pub(super) async fn found(
        &self,
        on: &mut impl Executor,
        row: &impl Columns,
    ) -> Result<Conversation> {
        let mut found = sql::conversation(row)?;
        found.segments = self.lineage_of(on, &found).await?.segments();
        Ok(found)
    }

    pub(super) async fn open_conversation(&self, new: &NewConversation) -> Result<Conversation> {
        let which = ConversationRef::Key(new.key.clone());
        // An existing conversation, the common case, is found without a write lock.
        let mut reader = self.database.read().await?;
        if let Some(found) = self.look_up(&mut reader, &which).await? {
            return Ok(found);
        }
        drop(reader);
        let mut writer = self.database.write().await?;
        let mut tx = match new.origin.parent() {
            Some(parent) => self.begin_in(&mut writer, parent).await?.0,
            None => self.database.begin(&mut writer, Family::ANY).await?,
        };
        self.database.lock_directory(&mut tx).await?;
        let on = &mut tx;
        if let Some(found) = self.look_up(on, &which).await? {
            return Ok(found);
        }
        let last = match D::BY_FAMILY {
            true => directory::last_number(),
            false => sql::last_number(),
        };
        let last = match on.first(&last).await? {
            Some(row) => row.opt_int(0)?.unwrap_or(0),
            None => 0,
        };
        if last >= MAX_CONVERSATION {
            let message = "the database has the maximum number of conversations: open another file";
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let id = ConversationId(crate::to_u32("conversation", last + 1)?);
        let parent = match new.origin.parent() {
            Some(parent) => Some(self.get(on, parent).await?),
            None => None,
        };
        let mut conversation = created(new, id, parent.as_ref())?;
        let forked = match (&new.origin, &parent) {
            (Origin::Fork { at, .. }, Some(parent)) => Some((parent, *at)),
            _ => None,
        };
        if let Some((parent, at)) = forked {
            let log = Log::new(self.family_of(parent), parent);
            let tokens = running_at(on, &log, &[at]).await?;
            conversation.tokens = tokens.first().copied().unwrap_or(0);
        }
        on.run(&sql::insert(&conversation)?).await?;
        if D::BY_FAMILY {
            on.run(&directory::insert(&conversation)?).await?;
        }
        join_family(on, &conversation).await?;
        if let Some((parent, at)) = forked {
            self.inherit_views(on, parent, &conversation, at, new.now)
                .await?;
        }
        self.database.commit(tx).await?;
        Ok(conversation)
    }

    pub(super) async fn list_conversations(
        &self,
        filter: &ConversationFilter,
        after: Option<ConversationId>,
        limit: usize,
    ) -> Result<Page<Conversation, ConversationId>> {
        let mut reader = self.database.read().await?;
        let on = &mut reader;
        let rows = on.all(&sql::list(filter, after, one_more(limit))).await?;
        let found: Vec<Conversation> = rows.iter().map(sql::conversation).collect::<Result<_>>()?;
        let mut page = page(found, limit, |conversation: &Conversation| conversation.id);
        for found in &mut page.items {
            found.segments = self.lineage_of(on, found).await?.segments();
        }
        Ok(page)
    }

    pub(super) async fn patch(
        &self,
        id: ConversationId,
        patch: &ConversationPatch,
        now: Timestamp,
    ) -> Result<Conversation> {
        let mut writer = self.database.write().await?;
        let (mut tx, family) = self.begin_in(&mut writer, id).await?;
        tx.run(&sql::patch(family, id.0, patch, now)).await?;
        let found = self.get(&mut tx, id).await?;
        let record = conversation_hash(&found);
        tx.run(&sql::set_record(family, id.0, record)).await?;
        self.database.commit(tx).await?;
        Ok(found)
    }
}

/// Adds a new conversation to the stored record of its family: the number of members and the hash over their session
/// keys.
async fn join_family(on: &mut impl Executor, new: &Conversation) -> Result<()> {
    if new.family == new.id {
        let hash = family_hash(Hash::ZERO, new.id, &new.key);
        on.run(&sql::insert_family(new.family.0, hash)?).await?;
        return Ok(());
    }
    let row = on.first(&sql::family(new.family.0)).await?.ok_or_else(|| {
        let message = format!(
            "the family of conversation {} has no record: restore a backup",
            new.family
        );
        Error::new(ErrorKind::Corrupt, message)
    })?;
    let before = crate::to_hash("family", &row.bytes(1)?)?;
    let hash = family_hash(before, new.id, &new.key);
    on.run(&sql::extend_family(new.family.0, hash)).await?;
    Ok(())
}
