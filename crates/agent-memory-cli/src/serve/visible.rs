//! The sessions that clients can use.

use std::path::Path;

use agent_memory::model::ConversationId;
use agent_memory::store::ConversationFilter;
use agent_memory::store::{Conversation, Origin, SessionInfo};
use agent_memory::{Memory, Session, SessionKey};

use crate::app::App;
use crate::scope::{self, Members, Project};

/// The sessions that clients can use: the named ones and their forks, or all of a project.
pub(super) struct Visible {
    named: Vec<(ConversationId, SessionKey)>,
    project: Project,
}

impl Visible {
    pub(super) async fn new(
        app: &App,
        memory: &Memory,
        names: &[String],
        folder: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let mut named = Vec::new();
        for name in names {
            let session = app.session(memory, name).await?;
            named.push((session.id(), session.key().clone()));
        }
        Ok(Self {
            named,
            project: app.project(folder)?,
        })
    }

    /// Returns whether clients can use a session. `members` are those of the project.
    async fn has(
        &self,
        memory: &Memory,
        members: &mut Members<'_>,
        session: &Conversation,
    ) -> anyhow::Result<bool> {
        if self.named.is_empty() {
            // The notes of other tools are archived.
            return Ok(!session.archived && members.has(session));
        }
        let mut one = session.clone();
        loop {
            if self.named.iter().any(|(id, _)| *id == one.id) {
                return Ok(true);
            }
            let Origin::Fork { parent, .. } = one.origin else {
                return Ok(false);
            };
            let mut filter = ConversationFilter::default();
            filter.archived = true;
            filter.family = Some(one.family);
            let family = memory.sessions(&filter).await?;
            let found = family
                .into_iter()
                .find(|found| found.conversation.id == parent);
            match found {
                Some(found) => one = found.conversation,
                None => return Ok(false),
            }
        }
    }

    /// Returns the session with this key, if clients can use it.
    pub(super) async fn find(&self, memory: &Memory, key: &str) -> anyhow::Result<Option<Session>> {
        let Some(session) = memory.find_session(key).await? else {
            return Ok(None);
        };
        let info = session.info().await?;
        let mut members = self.project.members();
        let is_visible = self.has(memory, &mut members, &info.conversation).await?;
        Ok(is_visible.then_some(session))
    }

    /// Returns all sessions that clients can use, archived ones too.
    pub(super) async fn all(&self, memory: &Memory) -> anyhow::Result<Vec<SessionInfo>> {
        let mut filter = ConversationFilter::default();
        filter.archived = true;
        let mut all = Vec::new();
        let mut members = self.project.members();
        for info in memory.sessions(&filter).await? {
            if self.has(memory, &mut members, &info.conversation).await? {
                all.push(info);
            }
        }
        Ok(all)
    }

    /// Returns the session with this key. Creates it if no session has the key and clients can use new sessions.
    /// `None` if clients cannot use it.
    pub(super) async fn open(&self, memory: &Memory, key: &str) -> anyhow::Result<Option<Session>> {
        if memory.find_session(key).await?.is_some() || !self.named.is_empty() {
            return self.find(memory, key).await;
        }
        let session = memory.session(key).await?;
        if let Some(folder) = self.project.folder() {
            scope::set_folder(&session, &folder).await?;
        }
        Ok(Some(session))
    }

    /// Returns the key of the only session that clients can use by name.
    pub(super) fn only(&self) -> Option<&SessionKey> {
        match self.named.as_slice() {
            [(_, key)] => Some(key),
            _ => None,
        }
    }

    /// Returns whether clients can use new sessions.
    pub(super) fn takes_new(&self) -> bool {
        self.named.is_empty()
    }

    /// Returns a text that differs between projects.
    pub(super) fn label(&self) -> String {
        let folder = self.project.folder();
        folder.map_or_else(String::new, |folder| folder.to_string_lossy().into_owned())
    }
}
