//! The sessions that clients can use.

use std::path::Path;

use agent_memory::model::ConversationId;
use agent_memory::store::ConversationFilter;
use agent_memory::store::{Conversation, Origin, SessionInfo};
use agent_memory::{Memory, Session, SessionKey};

use super::refusal::Refusal;
use crate::app::App;
use crate::output::one_line;
use crate::scope::{self, Members, Project};

/// Maximum length of the key of a new session, in bytes.
const LONGEST_KEY: usize = 512;

/// Fails for a key that a new session should not have.
fn check_key(key: &str) -> Result<(), Refusal> {
    let refused = |text: String| {
        Err(Refusal::invalid(text).hint("name it with letters, digits and signs on one line"))
    };
    if key.trim().is_empty() {
        return refused("the key of the session is empty".to_owned());
    }
    if key.len() > LONGEST_KEY {
        return refused(format!(
            "the key of the session has more than {LONGEST_KEY} bytes"
        ));
    }
    match key != one_line(key) {
        true => refused("the key of the session has control characters".to_owned()),
        false => Ok(()),
    }
}

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
        if session.key.is_reserved() {
            return Ok(false);
        }
        if self.named.is_empty() {
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

    /// Returns the session with this key. Creates it if no session has the key and clients can use new sessions. Fails if
    /// clients cannot use it.
    pub(super) async fn open(&self, memory: &Memory, key: &str) -> Result<Session, Refusal> {
        let is_known = memory.find_session(key).await?.is_some();
        if is_known || !self.named.is_empty() || SessionKey::from(key).is_reserved() {
            let found = self.find(memory, key).await?;
            return found.ok_or_else(|| Refusal::no_session(key));
        }
        check_key(key)?;
        let session = memory.session(key).await?;
        if let Some(folder) = self.project.folder() {
            scope::set_folder(&session, &folder).await?;
        }
        Ok(session)
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
