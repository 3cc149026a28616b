//! Import of other agents' transcripts.

use std::collections::BTreeMap;

use memory_model::{Accounting as _, EntryKind, Message, Seq, SessionKey, SpanBody};
use memory_store::Origin;
use message_formats::{SessionLog, SourceScope, SourceSummary, Transcript};
use serde::Serialize;

use crate::error::{Error, ErrorKind, Result};
use crate::ingest::IngestReport;
use crate::memory::Memory;
use crate::session::Session;
use crate::strategy::Strategy;
use crate::supplied;

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
    /// Importing a transcript again stores only its new entries. Where a program has put a summary in the place of messages
    /// that the session has, the summary is passed over: see [`Memory::import_summaries`].
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
            let ingested = match known_past(&session, log).await? {
                None => session.ingest_log(&log.messages, &log.earlier).await?,
                Some(summary) => {
                    let mut messages = log.messages.clone();
                    messages.remove(summary);
                    session.ingest_log(&messages, &log.earlier).await?
                }
            };
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

/// Summaries of a transcript that were published in a session's view of handoffs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SummaryImport {
    /// Key of the session.
    pub session: SessionKey,
    /// Number of summaries that were published.
    pub published: u64,
    /// Number of summaries that were passed over: the view has a summary of the same messages, what they stand for is
    /// not known, or they cost as much as what they stand for.
    pub passed_over: u64,
}

impl Memory {
    /// Publishes the summaries that a transcript holds, such as pi's compactions, as handoffs of its sessions, which
    /// [`Memory::import`] stored before. They are in the view of the strategy [`Handoff`](Strategy::Handoff), whatever
    /// strategy a session has, and unfold to the messages. Publishing them again does nothing.
    ///
    /// # Errors
    /// `NotFound` for a session that was not imported; or when the store fails.
    pub async fn import_summaries(&self, transcript: &Transcript) -> Result<Vec<SummaryImport>> {
        let mut imported = Vec::new();
        for log in transcript
            .sessions
            .iter()
            .filter(|log| !log.summaries.is_empty())
        {
            let session = self.get_session(log.key.clone()).await?;
            let mut report = SummaryImport {
                session: log.key.clone(),
                published: 0,
                passed_over: 0,
            };
            for summary in &log.summaries {
                match session.publish_imported(log, summary).await? {
                    true => report.published += 1,
                    false => report.passed_over += 1,
                }
            }
            imported.push(report);
        }
        Ok(imported)
    }
}

/// The index of a summary in the place of messages that the session has already; `None` where the source holds none.
async fn known_past(session: &Session, log: &SessionLog) -> Result<Option<usize>> {
    let Some(summary) = log.summaries.first() else {
        return Ok(None);
    };
    let holds = |message: &Message| {
        message.kind == EntryKind::Message && message.external_id.as_ref() == Some(&summary.entry)
    };
    let Some(index) = log.messages.iter().position(holds) else {
        return Ok(None);
    };
    if session.position(&summary.entry).await?.is_some() {
        return Ok(None);
    }
    let kept = session.first_known_after(log, &summary.entry).await?;
    Ok(kept.map(|_| index))
}

impl Session {
    /// Publishes a summary of the session's transcript. Returns whether it is in the view of handoffs now and was not before.
    async fn publish_imported(&self, log: &SessionLog, summary: &SourceSummary) -> Result<bool> {
        let kept_from = match &summary.scope {
            SourceScope::Before {
                kept_from: Some(id),
            } => self.position(id).await?,
            SourceScope::Before { kept_from: None } => match self.position(&summary.entry).await? {
                Some(entry) => Some(entry),
                None => self.first_known_after(log, &summary.entry).await?,
            },
            _ => None,
        };
        let Some(kept_from) = kept_from.filter(|seq| *seq > Seq::FIRST) else {
            return Ok(false);
        };
        let handoffs = self.clone().with_strategy(Strategy::Handoff);
        let is_covered = handoffs.spans().await?.iter().any(|span| {
            matches!(span.body, SpanBody::Summary { .. })
                && span.range.last.is_some_and(|last| last.next() >= kept_from)
        });
        if is_covered {
            return Ok(false);
        }
        let planner = self.memory().inner.planners.handoff();
        let details = summary.details.clone();
        let outcome = supplied::publish(self, planner, kept_from, &summary.text, details).await?;
        Ok(outcome.published.total() > 0)
    }

    /// The position of the first message that follows an entry of a transcript, if it is stored and something stands
    /// before it.
    async fn first_known_after(&self, log: &SessionLog, entry: &str) -> Result<Option<Seq>> {
        let mut behind = log
            .messages
            .iter()
            .skip_while(|message| message.external_id.as_deref() != Some(entry))
            .skip(1)
            .filter(|message| message.kind == EntryKind::Message);
        let Some(id) = behind.next().and_then(|next| next.external_id.as_deref()) else {
            return Ok(None);
        };
        let position = self.position(id).await?;
        Ok(position.filter(|seq| *seq > Seq::FIRST))
    }

    /// Returns the position of the entry with this external id.
    pub(crate) async fn position(&self, external_id: &str) -> Result<Option<memory_model::Seq>> {
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

#[cfg(feature = "sqlite")]
impl Memory {
    /// Imports all conversations of a plain database: one of the older memory engine, or one that
    /// [`Memory::export_sqlite`] wrote. Importing it again stores only its new messages. Of a fork the database holds what
    /// is its own; it becomes a session by itself. Summaries are not imported: a compaction makes them anew.
    ///
    /// # Errors
    /// `Invalid` for a database without these tables; or when it cannot be read, or the store fails.
    pub async fn import_sqlite(&self, path: &std::path::Path) -> Result<ImportReport> {
        let database = store_sqlite::read_plain(path).await?;
        let mut report = ImportReport::default();
        for (kind, count) in [
            ("summary", database.summaries),
            ("not_json", database.texts),
        ] {
            if count > 0 {
                report.skipped.insert(kind.to_owned(), count);
            }
        }
        for found in database.conversations {
            let session = self.session(found.key.clone()).await?;
            let ingested = session.ingest_import(&found.messages).await?;
            let is_new = ingested.inserted() == found.messages.len();
            if is_new && (found.title.is_some() || found.archived) {
                let patch = memory_store::ConversationPatch {
                    title: found.title,
                    archived: found.archived.then_some(true),
                    meta: None,
                };
                session.update(&patch).await?;
            }
            let is_note = |message: &&Message| message.kind == EntryKind::Note;
            let notes = found.messages.iter().filter(is_note).count() as u64;
            report.sessions.push(SessionImport {
                session: found.key,
                format: "sqlite".to_owned(),
                messages: found.messages.len() as u64 - notes,
                inserted: ingested.inserted() as u64,
                duplicates: ingested.duplicates() as u64,
                conflicts: ingested.conflicts() as u64,
                notes,
            });
        }
        Ok(report)
    }
}
