//! Import of other agents' transcripts.

use std::collections::{BTreeMap, HashMap};

use compaction_plan::CompactionResult;
use compaction_runner::CancellationToken;
use memory_model::{Accounting as _, EntryKind, RawJson, Seq, SessionKey, SpanBody};
use memory_store::{
    Conversation, ConversationFilter, ConversationPatch, EntryOutcome, Origin, read_conversations,
};
use message_formats::{EntryHead, MadeId, SessionLog, SourceScope, SourceSummary, Transcript};
use serde::Serialize;

use crate::error::{Error, ErrorKind, Result, unreadable};
use crate::ingest::IngestReport;
use crate::memory::Memory;
use crate::placement::PlacedLog;
use crate::session::Session;
use crate::strategy::Strategy;

/// Maximum number of imported messages that are appended in one transaction.
const BATCH: usize = 256;

/// Maximum number of attempts to import a transcript while other processes append to its sessions.
const ATTEMPTS: u32 = 64;

/// Report of importing one transcript: the sessions, and the lines that were skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ImportReport {
    /// Reports of the imported sessions, in the order of the file. If a conversation has forks, its active branch comes
    /// first.
    pub sessions: Vec<SessionImport>,
    /// Key of the transcript's main session: the active branch of its first conversation that does not belong to a
    /// sub-agent. `None` if there is none.
    pub main: Option<SessionKey>,
    /// Number of lines that were not imported, by kind.
    pub skipped: BTreeMap<String, u64>,
}

/// Report of importing one session of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionImport {
    /// Key of the session in this memory.
    pub session: SessionKey,
    /// Name of the transcript's format.
    pub format: String,
    /// Number of messages of the session in the file, without notes.
    pub messages: u64,
    /// Number of entries that this import stored, including notes.
    pub inserted: u64,
    /// Number of entries that had been stored by an earlier import.
    pub duplicates: u64,
    /// Number of duplicates with erased words. Importing does not restore the words.
    pub erased: u64,
    /// Number of entries that were not stored because a different entry has their external id.
    pub conflicts: u64,
    /// Number of notes of the session in the file. A note is an entry that is never sent to a model.
    pub notes: u64,
    /// Whether the session is archived. Lists of sessions do not show an archived session, so its new entries are
    /// hidden too.
    pub archived: bool,
    /// Messages without an id and a time that were not stored because they equal stored ones. They are known if the
    /// source begins as the session does, or if a beginning of the source was imported before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<KnownRun>,
}

/// Neighbouring messages of a source that equal neighbouring entries of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KnownRun {
    /// Number of the first message among the records of the session in the source, counted from 1.
    pub record: u64,
    /// Position of the entry that equals the first message.
    pub seq: Seq,
    /// Number of messages.
    pub count: u64,
}

/// A stored session that a transcript continues: see [`Memory::session_of`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StoredSession {
    /// The stored session that the transcript continues.
    pub session: Session,
    /// Number of the transcript's entries that the store does not have yet.
    pub new_entries: u64,
}

impl Memory {
    /// Imports all sessions of a transcript, with forks and sub-agents linked to their parents. Importing a transcript
    /// again stores only its new entries. A session without metadata gets `{"folder":…}`, the folder in which its agent
    /// worked, if the transcript names it.
    ///
    /// - A session that has a name in the transcript continues the stored session with that name. If its entries link
    ///   to their predecessors and differ from the stored session after a common beginning, the later entries become a
    ///   fork.
    /// - If the store does not have the transcript, the active branch becomes the session with that name. The
    ///   abandoned branches become its forks.
    /// - If a session with a name goes on in a fork, because turns that are stored were taken back, the session keeps a
    ///   note of it: see [`Session::in_use`].
    /// - A session without a name continues the stored session that begins with the same entry, if one of the two logs
    ///   is a prefix of the other. Otherwise it becomes a new session.
    ///
    /// A summary in the transcript is skipped if the session has the summarized messages: see
    /// [`Memory::import_summaries`].
    ///
    /// # Errors
    /// `Invalid` if a session forks off a message that its parent does not have, or if the transcript names a session
    /// with a [reserved](SessionKey::RESERVED) key, of which nothing is stored then; and `Store` if the store fails, or if
    /// other processes appended to a session during each of 64 attempts. Sessions that were imported before the error
    /// stay, and another import continues after them.
    pub async fn import(&self, transcript: &Transcript) -> Result<ImportReport> {
        let mut inserted: HashMap<SessionKey, u64> = HashMap::new();
        let mut attempts = 0;
        loop {
            let placement = self.place(transcript).await?;
            let mut imported = ImportReport {
                sessions: Vec::new(),
                main: placement.main,
                skipped: transcript.report.skipped.clone(),
            };
            let mut changed: Option<SessionKey> = None;
            for placed in &placement.logs {
                let log = &*placed.log;
                let session = self.open_log(log).await?;
                session.record_first(&placed.by_place).await?;
                let known = known_past(&session, log).await?;
                let (ingested, is_all) = session.ingest_log(placed, known).await?;
                let mut one = report(transcript, placed, &ingested);
                session.look_at_erasures(&mut one, &ingested).await?;
                session.record_folder().await?;
                let earlier = inserted.entry(log.key.clone()).or_default();
                let new = one.inserted;
                one.duplicates = one.duplicates.saturating_sub(*earlier);
                one.inserted += *earlier;
                *earlier += new;
                imported.sessions.push(one);
                if !is_all {
                    changed = Some(log.key.clone());
                    break;
                }
            }
            // Another process appended to a session, so the stored log may now differ from the transcript.
            let Some(key) = changed else {
                for (owner, in_use) in placement.in_use {
                    self.record_in_use(&owner, in_use).await?;
                }
                return Ok(imported);
            };
            attempts += 1;
            if attempts == ATTEMPTS {
                return Err(Error::new(
                    ErrorKind::Store(memory_store::ErrorKind::HeadMoved),
                    format!("another process appends to the session {key}: import again later"),
                ));
            }
        }
    }

    /// Imports the end of a transcript that was read with
    /// [`Formats::read_appended`](message_formats::Formats::read_appended). Returns `None` without writing if its
    /// session is not stored or has one of its entries: import the whole transcript then.
    ///
    /// # Errors
    /// The errors of [`Memory::import`].
    pub async fn import_appended(&self, mut end: Transcript) -> Result<Option<ImportReport>> {
        let [log] = end.sessions.as_mut_slice() else {
            return Ok(None);
        };
        let Some(session) = self.find_session(log.key.clone()).await? else {
            return Ok(None);
        };
        // Messages in an overflow cannot be numbered.
        if log.messages.len() < log.len() {
            return Ok(None);
        }
        // Records without ids are numbered through all branches.
        let is_made = |head: EntryHead<'_>| head.id.is_some_and(message_formats::is_made_id);
        if log.heads().any(is_made) && session.has_branches().await? {
            return Ok(None);
        }
        session.number(log).await?;
        let ids: Vec<String> = log
            .heads()
            .filter_map(|head| head.id.map(str::to_owned))
            .collect();
        let known = self.inner.store.find(session.id(), &ids).await?;
        match ids.len() == log.len() && known.iter().all(Option::is_none) {
            true => self.import(&end).await.map(Some),
            false => Ok(None),
        }
    }

    /// Returns the stored session that the transcript's main session would continue; `None` if an import would create a
    /// new session. Does not write to the store.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn session_of(&self, transcript: &Transcript) -> Result<Option<StoredSession>> {
        let placement = self.place(transcript).await?;
        let Some(main) = placement.main else {
            return Ok(None);
        };
        let Some(session) = self.find_session(main).await? else {
            return Ok(None);
        };
        let mut ids: Vec<String> = Vec::new();
        let logs = placement.logs.iter();
        for placed in logs.filter(|placed| placed.log.key == *session.key()) {
            let new = (0..placed.log.len()).filter(|at| !placed.by_place.has(*at));
            ids.extend(new.filter_map(|at| placed.id(at).map(str::to_owned)));
        }
        let found = self.inner.store.find(session.id(), &ids).await?;
        let new_entries = found.iter().filter(|seq| seq.is_none()).count() as u64;
        Ok(Some(StoredSession {
            session,
            new_entries,
        }))
    }

    /// Opens the session of one log of a transcript and links it to its parent. Does not store the log's messages.
    ///
    /// # Errors
    /// `NotFound` if the log forks off a session that does not exist, `Invalid` if it forks off a message that its
    /// parent does not have, and `Store` if the store fails.
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
            message_formats::Origin::Spawn {
                parent,
                call,
                after,
            } => {
                // A sub-agent's file may be imported before its parent's, which continues this empty session.
                let parent = match self.find_session(parent.clone()).await? {
                    Some(parent) => parent,
                    None => {
                        let root = Origin::Root;
                        self.open_conversation(parent.clone(), root, estimator.clone())
                            .await?
                    }
                };
                let at = match after {
                    None => None,
                    Some(after) => parent.position(after).await?,
                };
                Origin::Spawn {
                    parent: parent.id(),
                    at: at.unwrap_or(memory_model::Seq::NONE),
                    call: call.clone(),
                }
            }
            _ => Origin::Root,
        };
        self.open_conversation(log.key.clone(), origin, estimator)
            .await
    }
}

/// Report of publishing one session's summaries from a transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SummaryImport {
    /// Key of the session that has the summaries.
    pub session: SessionKey,
    /// Number of summaries that were published in the session's handoff view.
    pub published: u64,
    /// Number of summaries that were skipped. A summary is skipped if the view (the compacted log) already has a
    /// summary of the same messages, if its messages are not known, or if it costs as much as its messages.
    pub passed_over: u64,
}

impl Memory {
    /// Publishes the summaries of a transcript as handoffs of its sessions. The sessions must have been stored by
    /// [`Memory::import`]. The summaries appear in the view of [`Strategy::Handoff`], even if a session has another
    /// strategy. They can be expanded to the original messages. Publishing them again has no effect.
    ///
    /// # Errors
    /// `NotFound` if a session was not imported, and `Store` if the store fails.
    pub async fn import_summaries(&self, transcript: &Transcript) -> Result<Vec<SummaryImport>> {
        let mut imported = Vec::new();
        let placement = self.place(transcript).await?;
        let logs = placement.logs.iter().map(|placed| &*placed.log);
        for log in logs.filter(|log| !log.summaries.is_empty()) {
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

/// Returns the index of the log's first summary if the session already has the summarized messages, and not the
/// summary; otherwise `None`.
pub(crate) async fn known_past(session: &Session, log: &SessionLog) -> Result<Option<usize>> {
    let Some(summary) = log.summaries.first() else {
        return Ok(None);
    };
    let holds = |head: EntryHead<'_>| {
        head.kind == EntryKind::Message && head.id == Some(summary.entry.as_str())
    };
    let Some(index) = log.heads().position(holds) else {
        return Ok(None);
    };
    if session.position(&summary.entry).await?.is_some() {
        return Ok(None);
    }
    let kept = session.first_known_after(log, &summary.entry).await?;
    Ok(kept.map(|_| index))
}

impl Session {
    /// Appends the entries of a transcript, in transactions of [`BATCH`] messages. `left_out` is the index of an entry
    /// that is not appended. If the placement has a head, the log must still end there. Returns a report, and `false` if
    /// another append changed the end of the log, so that the report does not cover all messages.
    async fn ingest_log(
        &self,
        placed: &PlacedLog<'_>,
        left_out: Option<usize>,
    ) -> Result<(IngestReport, bool)> {
        let (log, mut head) = (&*placed.log, placed.head);
        let by_place = &placed.by_place;
        let mut places = (0..log.len()).filter(|at| Some(*at) != left_out && !by_place.has(*at));
        let mut all = IngestReport::default();
        let known = by_place.known.values().chain(by_place.rewritten.values());
        let known = known.copied();
        all.outcomes.extend(known.map(EntryOutcome::Duplicate));
        loop {
            let mut messages = Vec::new();
            for at in places.by_ref().take(BATCH) {
                let entry = log.entry(at).map_err(|error| unreadable(log, &error))?;
                if let Some(entry) = entry {
                    let mut message = entry.into_owned();
                    message.external_id = placed.id(at).map(str::to_owned);
                    messages.push(message);
                }
            }
            if messages.is_empty() {
                return Ok((all, true));
            }
            let Some(appended) = self.ingest_import(messages, head).await? else {
                return Ok((all, false));
            };
            head = head.map(|_| appended.head);
            all.outcomes.extend(appended.outcomes);
            all.head = appended.head;
        }
    }

    /// Gives records without ids of a transcript's end the numbers that they have in the whole transcript: equal records
    /// are numbered from 1.
    async fn number(&self, log: &mut SessionLog) -> Result<()> {
        let mut earlier: HashMap<String, u64> = HashMap::new();
        for message in &mut log.messages {
            let made = message.external_id.as_deref().and_then(MadeId::parse);
            let Some(mut made) = made else {
                continue;
            };
            let count = match earlier.get(made.hash) {
                Some(count) => *count,
                None => {
                    let count = self.count_made(made.hash).await?;
                    earlier.insert(made.hash.to_owned(), count);
                    count
                }
            };
            made.number += count;
            message.external_id = Some(made.to_string());
        }
        Ok(())
    }

    /// Returns whether the session is a fork or has forks.
    async fn has_branches(&self) -> Result<bool> {
        let mut filter = ConversationFilter::default();
        (filter.archived, filter.family) = (true, Some(self.info().await?.conversation.family));
        let family = read_conversations(&*self.memory().inner.store, &filter).await?;
        let forked = |one: &Conversation| matches!(one.origin, Origin::Fork { .. });
        Ok(family.iter().any(forked))
    }

    /// Returns the number of stored entries with an id that was made from the text with this hash. The ids are numbered
    /// from 1, without gaps.
    async fn count_made(&self, hash: &str) -> Result<u64> {
        let store = &self.memory().inner.store;
        let (mut known, mut unknown) = (0_u64, u64::from(u32::MAX));
        while unknown.saturating_sub(known) > 1 {
            // The first round looks at powers of two, the others at eight numbers in between.
            let width = (unknown - known).div_ceil(8);
            let probes: Vec<u64> = match known == 0 && unknown > 1 << 20 {
                true => (0..32).map(|power| 1 << power).collect(),
                false => (1..=8)
                    .map(|n| known + n * width)
                    .filter(|n| *n < unknown)
                    .collect(),
            };
            let ids: Vec<String> = probes
                .iter()
                .map(|n| MadeId::new(hash, *n).to_string())
                .collect();
            let found = store.find(self.id(), &ids).await?;
            let found = probes.iter().zip(found);
            for (number, position) in found {
                match position {
                    Some(_) => known = known.max(*number),
                    None => unknown = unknown.min(*number),
                }
            }
        }
        Ok(known)
    }

    /// Publishes a summary of the session's transcript in the handoff view. Returns whether the summary was published.
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
        let kept_from = kept_from.filter(|seq| *seq > Seq::FIRST);
        let Some(kept_from) = kept_from.filter(|_| !summary.text.trim().is_empty()) else {
            return Ok(false);
        };
        // The summary may repeat erased words.
        let erasures = self.erasures().await?;
        if erasures
            .entries
            .iter()
            .any(|erasure| erasure.range.first < kept_from)
        {
            return Ok(false);
        }
        let handoffs = self.clone().with_strategy(Strategy::Handoff);
        let is_covered = handoffs.spans().await?.iter().any(|span| {
            matches!(span.body, SpanBody::Summary { .. })
                && span.range.last.is_some_and(|last| last.next() >= kept_from)
        });
        if is_covered {
            return Ok(false);
        }
        let mut result = CompactionResult::new(&*summary.text, kept_from);
        result.details.clone_from(&summary.details);
        let compaction = handoffs.compaction(CancellationToken::new());
        let outcome = compaction.publish_result(&result).await?;
        Ok(outcome.published.total() > 0)
    }

    /// Records the folder in which the session's agent worked, if the session has no metadata and its first entries name
    /// the folder.
    async fn record_folder(&self) -> Result<()> {
        if self.info().await?.conversation.meta.is_some() {
            return Ok(());
        }
        let folder = self.folder().await?;
        if folder.is_empty() {
            return Ok(());
        }
        let patch = ConversationPatch {
            meta: Some(RawJson::from_value(&serde_json::json!({"folder": folder}))?),
            ..ConversationPatch::default()
        };
        self.update(&patch).await.map(drop)
    }

    /// Adds the number of erased duplicates, and whether the session is archived, to the report.
    async fn look_at_erasures(
        &self,
        report: &mut SessionImport,
        ingested: &IngestReport,
    ) -> Result<()> {
        let conversation = self.info().await?.conversation;
        report.archived = conversation.archived;
        if conversation.erasures > 0 && report.duplicates > 0 {
            let erasures = self.erasures().await?;
            let is_erased = |outcome: &&EntryOutcome| match outcome {
                EntryOutcome::Duplicate(seq) => erasures.covers(*seq),
                _ => false,
            };
            report.erased = ingested.outcomes.iter().filter(is_erased).count() as u64;
        }
        Ok(())
    }

    /// Returns the stored position of the first message after an entry of a transcript; `None` if the message is not
    /// stored or is the first of the log.
    async fn first_known_after(&self, log: &SessionLog, entry: &str) -> Result<Option<Seq>> {
        let mut behind = log
            .heads()
            .skip_while(|head| head.id != Some(entry))
            .skip(1)
            .filter(|head| head.kind == EntryKind::Message);
        let Some(id) = behind.next().and_then(|next| next.id) else {
            return Ok(None);
        };
        let position = self.position(id).await?;
        Ok(position.filter(|seq| *seq > Seq::FIRST))
    }

    /// Returns the position of the entry with this external id; `None` if there is no such entry.
    pub(crate) async fn position(&self, external_id: &str) -> Result<Option<memory_model::Seq>> {
        let ids = [external_id.to_owned()];
        let positions = self.memory().inner.store.find(self.id(), &ids).await?;
        Ok(positions.first().copied().flatten())
    }
}

fn report(
    transcript: &Transcript,
    placed: &PlacedLog<'_>,
    ingested: &IngestReport,
) -> SessionImport {
    let log = &*placed.log;
    let notes = log.notes() as u64;
    SessionImport {
        session: log.key.clone(),
        format: transcript.format.clone(),
        messages: log.len() as u64 - notes,
        inserted: ingested.inserted() as u64,
        duplicates: ingested.duplicates() as u64 + log.duplicates,
        erased: 0,
        conflicts: ingested.conflicts() as u64,
        notes,
        archived: false,
        known: known_runs(&placed.by_place.known),
    }
}

/// Joins the records that equal neighbouring entries.
fn known_runs(known: &BTreeMap<usize, Seq>) -> Vec<KnownRun> {
    let mut runs: Vec<KnownRun> = Vec::new();
    for (at, seq) in known {
        let record = *at as u64 + 1;
        match runs.last_mut() {
            Some(run)
                if run.record + run.count == record
                    && u64::from(run.seq.0) + run.count == u64::from(seq.0) =>
            {
                run.count += 1;
            }
            _ => runs.push(KnownRun {
                record,
                seq: *seq,
                count: 1,
            }),
        }
    }
    runs
}
