//! Import of other agents' transcripts.

use std::collections::BTreeMap;

use memory_model::{Accounting as _, SessionKey};
use memory_store::Origin;
use message_formats::{SessionLog, Transcript};
use serde::Serialize;

use crate::error::{Error, ErrorKind, Result};
use crate::ingest::IngestReport;
use crate::memory::Memory;
use crate::session::Session;

/// Report of importing one transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ImportReport {
    /// Imported sessions, in the order of the file.
    pub sessions: Vec<SessionImport>,
    /// Number of lines that were not imported, by kind.
    pub skipped: BTreeMap<String, u64>,
}

/// Report of importing one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionImport {
    /// Key of the session.
    pub session: SessionKey,
    /// Format of the transcript.
    pub format: String,
    /// Number of the session's messages in the file, without notes.
    pub messages: u64,
    /// Number of entries that were stored, notes included.
    pub inserted: u64,
    /// Number of entries that were stored before.
    pub duplicates: u64,
    /// Number of entries that were refused, because another entry has their external id.
    pub conflicts: u64,
    /// Number of the session's notes in the file.
    pub notes: u64,
}

impl ImportReport {
    /// Returns the key of the transcript's main session: the first that is not a fork or a
    /// sub-agent.
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
    /// Imports all sessions of a transcript, with forks and sub-agents linked to their parents.
    /// Importing a transcript again stores only its new entries.
    ///
    /// # Errors
    /// `Invalid` when a session forks off a message that its parent does not have; or when the store
    /// fails. Sessions that were imported before the error stay, and importing again continues.
    pub async fn import(&self, transcript: &Transcript) -> Result<ImportReport> {
        let mut imported = ImportReport {
            sessions: Vec::new(),
            skipped: transcript.report.skipped.clone(),
        };
        for log in &transcript.sessions {
            let session = self.open_log(log).await?;
            let ingested = session.ingest_import(&log.messages).await?;
            imported.sessions.push(report(transcript, log, &ingested));
        }
        Ok(imported)
    }

    /// Opens the session of a transcript's log, linked to its parent, without storing its messages.
    ///
    /// # Errors
    /// `NotFound` when the log forks off a session that does not exist; `Invalid` when it forks off a
    /// message that its parent does not have; or when the store fails.
    pub async fn open_log(&self, log: &SessionLog) -> Result<Session> {
        let mut estimator = self.inner.estimator.id();
        let origin = match &log.origin {
            message_formats::Origin::Fork { parent, after } => {
                let parent = self.get_session(parent.clone()).await?;
                let at = match after {
                    None => memory_model::Seq::NONE,
                    Some(after) => parent.position(after).await?.ok_or_else(|| {
                        Error::new(
                            ErrorKind::Invalid,
                            format!(
                                "the session {} forks off after the message {after}, which the session {} \
                                 does not have: import the parent first",
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
            // A sub-agent's file may be imported without its parent.
            message_formats::Origin::Spawn {
                parent,
                call,
                after,
            } => match self.find_session(parent.clone()).await? {
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
    /// Returns the position of the entry with this external id.
    async fn position(&self, external_id: &str) -> Result<Option<memory_model::Seq>> {
        let ids = [external_id.to_owned()];
        let positions = self.memory().inner.store.find(self.id(), &ids).await?;
        Ok(positions.first().copied().flatten())
    }
}

fn report(transcript: &Transcript, log: &SessionLog, ingested: &IngestReport) -> SessionImport {
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
