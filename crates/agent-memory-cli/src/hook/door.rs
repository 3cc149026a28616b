//! State of a session between its events, in the database. It has no words of the conversation.

use std::path::PathBuf;

use agent_memory::model::{Clock as _, SystemClock};
use agent_memory::{RawJson, Session};
use serde::{Deserialize, Serialize};

use super::event::Event;

/// Time in which SessionStart follows a compaction that was answered, in milliseconds.
const FOLLOWS: u64 = 60_000;

/// Time in which two starts belong to one compaction, in milliseconds.
const TOGETHER: u64 = 10_000;

/// Key of the state of a session's hooks in the database.
const KEY: &str = "hook";

/// The part of a transcript that was imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Checkpoint {
    pub(super) path: PathBuf,
    /// Size of the part, in bytes.
    pub(super) bytes: u64,
    /// Hash of the last bytes of the part.
    pub(super) end: String,
    /// Id of the entry that the rest of the transcript follows, if the rest can be read alone.
    pub(super) last: Option<String>,
}

/// The place of the cut, and all that its text is made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rewriting {
    /// Id of the first message that stays.
    pub(super) first: String,
    /// Position of that message's first entry.
    pub(super) kept: u32,
    /// Version of the view, and the end of the log.
    pub(super) version: u64,
    pub(super) head: u32,
    pub(super) budget: u64,
    /// Number of the session's erasures. A further one leaves holes in the text.
    #[serde(default)]
    pub(super) erasures: u64,
}

/// State of a session between its events.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(default)]
struct Facts {
    /// The transcript, up to its last imported record.
    source: Option<Checkpoint>,
    /// Time of the last outline.
    card: Option<u64>,
    /// Time at which a compaction was answered that SessionStart will follow.
    replaced: Option<u64>,
    /// The rewriting of opencode's requests.
    rewriting: Option<Rewriting>,
}

/// State of the hooks of one session.
#[derive(Debug)]
pub(super) struct Door {
    facts: Facts,
    revision: u64,
}

impl Door {
    pub(super) async fn of(session: &Session) -> anyhow::Result<Self> {
        let store = session.memory().store();
        let state = store.state(session.id(), KEY).await?;
        Ok(Self {
            revision: state.as_ref().map_or(0, |state| state.revision),
            facts: state
                .and_then(|state| serde_json::from_str(state.value.as_str()).ok())
                .unwrap_or_default(),
        })
    }

    /// Changes the state. If another event changed it meanwhile, the change is made again.
    async fn change(
        &mut self,
        session: &Session,
        change: impl Fn(&mut Facts),
    ) -> anyhow::Result<()> {
        loop {
            change(&mut self.facts);
            let value = RawJson::from_value(&serde_json::to_value(&self.facts)?)?;
            let store = session.memory().store();
            match store
                .put_state(session.id(), KEY, self.revision, Some(&value))
                .await
            {
                Ok(revision) => {
                    self.revision = revision;
                    return Ok(());
                }
                Err(error) if error.kind() == agent_memory::store::ErrorKind::Stale => {
                    *self = Self::of(session).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(super) fn source(&self) -> Option<&Checkpoint> {
        self.facts.source.as_ref()
    }

    pub(super) async fn set_source(
        &mut self,
        session: &Session,
        source: Checkpoint,
    ) -> anyhow::Result<()> {
        self.change(session, |facts| facts.source = Some(source.clone()))
            .await
    }

    pub(super) fn rewriting(&self) -> Option<&Rewriting> {
        self.facts.rewriting.as_ref()
    }

    pub(super) async fn set_rewriting(
        &mut self,
        session: &Session,
        rewriting: Rewriting,
    ) -> anyhow::Result<()> {
        self.change(session, |facts| facts.rewriting = Some(rewriting.clone()))
            .await
    }

    /// Returns whether the agent has the outline already: in the messages that replaced a compaction, from the first of
    /// two starts, or in a resumed conversation that was not compacted since the last outline.
    pub(super) async fn has_card(
        &mut self,
        session: &Session,
        event: &Event,
    ) -> anyhow::Result<bool> {
        let now = now();
        let is_within = |at: Option<u64>, time| at.is_some_and(|at| now.saturating_sub(at) < time);
        if is_within(self.facts.replaced, FOLLOWS) {
            self.change(session, |facts| facts.replaced = None).await?;
            return Ok(true);
        }
        Ok(event.resumes_with_outlines() && self.facts.card.is_some()
            || event.starts_twice() && is_within(self.facts.card, TOGETHER))
    }

    pub(super) async fn give_card(&mut self, session: &Session) -> anyhow::Result<()> {
        let card = now();
        self.change(session, |facts| facts.card = Some(card)).await
    }

    /// Records that a compaction takes the outlines out of the agent's context.
    pub(super) async fn lose_card(&mut self, session: &Session) -> anyhow::Result<()> {
        match self.facts.card {
            Some(_) => self.change(session, |facts| facts.card = None).await,
            None => Ok(()),
        }
    }

    pub(super) async fn replaced(&mut self, session: &Session) -> anyhow::Result<()> {
        let at = now();
        self.change(session, |facts| facts.replaced = Some(at))
            .await
    }
}

/// Returns the milliseconds since 1970.
pub(super) fn now() -> u64 {
    u64::try_from(SystemClock.now().0 / 1_000).unwrap_or(0)
}
