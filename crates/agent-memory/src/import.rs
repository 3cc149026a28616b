//! Taking over transcripts of other agents.

use std::collections::BTreeMap;

use memory_model::{Accounting as _, SessionKey};
use memory_store::Origin;
use message_formats::{SessionLog, Transcript};
use serde::Serialize;

use crate::error::{Error, ErrorKind, Result};
use crate::memory::Memory;
use crate::session::{Ingested, Session};

/// What importing one transcript did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// The sessions, in the order of the file.
    pub sessions: Vec<SessionImport>,
    /// Lines that were not taken over, by kind.
    pub skipped: BTreeMap<String, u64>,
}

/// What importing one session did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionImport {
    /// The session.
    pub session: SessionKey,
    /// The transcript's format.
    pub format: String,
    /// Messages of the session in the file.
    pub messages: u64,
    /// Entries, notes included, that were stored.
    pub inserted: u64,
    /// Entries that were there already.
    pub duplicates: u64,
    /// Entries that were refused: another entry has their id.
    pub conflicts: u64,
    /// Notes of the session in the file.
    pub notes: u64,
}

impl Imported {
    /// The session that a command on the whole file is about: the first that stands alone.
    pub fn main(&self, transcript: &Transcript) -> Option<&SessionKey> {
        let root = transcript
            .sessions
            .iter()
            .find(|session| session.origin == message_formats::Origin::Root)
            .or(transcript.sessions.first())?;
        self.sessions
            .iter()
            .map(|s| &s.session)
            .find(|key| **key == root.key)
    }
}

impl Memory {
    /// Takes over a transcript: every session of it, forks and sub-agents linked to their parents.
    /// What was imported before is not stored again, and a file that has grown adds only what is
    /// new.
    ///
    /// # Errors
    /// When the store fails; sessions that were imported before the failure stay, and importing
    /// again goes on where it stopped.
    pub async fn import(&self, transcript: &Transcript) -> Result<Imported> {
        let mut imported = Imported {
            sessions: Vec::new(),
            skipped: transcript.report.skipped.clone(),
        };
        for log in &transcript.sessions {
            let session = self.open_log(log).await?;
            let ingested = session.ingest_all(&log.messages).await?;
            imported.sessions.push(report(transcript, log, &ingested));
        }
        Ok(imported)
    }

    /// Opens the session of a log as an import does, linked to the session that it comes from, but
    /// without storing its messages.
    ///
    /// # Errors
    /// When the store fails, or when the log branches off a session that is not there.
    pub async fn open_log(&self, log: &SessionLog) -> Result<Session> {
        let mut estimator = self.inner.estimator.id();
        let origin = match &log.origin {
            message_formats::Origin::Fork { parent, after } => {
                let parent = self.existing(parent.clone()).await?;
                let at = match after {
                    None => memory_model::Seq::NONE,
                    Some(after) => parent.position(after).await?.ok_or_else(|| {
                        Error::new(
                            ErrorKind::Invalid,
                            format!(
                                "{} branches off after {after}, which is not in {}",
                                log.key,
                                parent.key()
                            ),
                        )
                    })?,
                };
                estimator = parent.accounting().estimator_id();
                Origin::Fork {
                    parent: parent.id(),
                    at,
                }
            }
            // A sub-agent's own file may come without its parent.
            message_formats::Origin::Spawn {
                parent,
                call,
                after,
            } => match self.find(parent.clone()).await? {
                None => Origin::Root,
                Some(parent) => {
                    let at = match after {
                        None => None,
                        Some(after) => parent.position(after).await?,
                    };
                    let at = at.unwrap_or(memory_model::Seq::NONE);
                    Origin::Spawn {
                        parent: parent.id(),
                        at,
                        call: call.clone(),
                    }
                }
            },
            _ => Origin::Root,
        };
        self.open(log.key.clone(), origin, estimator).await
    }
}

impl Session {
    /// The position of the entry with this external id.
    async fn position(&self, external_id: &str) -> Result<Option<memory_model::Seq>> {
        let ids = [external_id.to_owned()];
        let found = self.memory().inner.store.find(self.id(), &ids).await?;
        Ok(found.first().copied().flatten())
    }
}

fn report(transcript: &Transcript, log: &SessionLog, ingested: &Ingested) -> SessionImport {
    let notes = log.notes() as u64;
    SessionImport {
        session: log.key.clone(),
        format: transcript.format.clone(),
        messages: log.messages.len() as u64 - notes,
        inserted: ingested.inserted() as u64,
        duplicates: ingested.duplicates() as u64 + log.duplicates,
        conflicts: ingested.conflicts() as u64,
        notes,
    }
}
