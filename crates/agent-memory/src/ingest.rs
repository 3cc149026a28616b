//! Appending messages to a session's log.

use memory_model::{Accounting as _, Message, Seq, SeqRange, SessionKey, Timestamp};
use memory_store::{Append, AppendAt, EntryOutcome, NewEntry};

use crate::error::{Error, ErrorKind, Result};
use crate::requests::Said;
use crate::session::Session;

/// Error kind of an append if the log does not end at the expected position.
#[cfg(feature = "import")]
const HEAD_MOVED: ErrorKind = ErrorKind::Store(memory_store::ErrorKind::HeadMoved);

/// Report of appending messages to a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "messages whose external id belongs to another message were not stored: see `conflicts`"]
#[non_exhaustive]
pub struct IngestReport {
    /// Outcome for each message, in the order of the messages.
    pub outcomes: Vec<EntryOutcome>,
    /// Position of the log's last entry after the messages were appended.
    pub head: Seq,
}

impl IngestReport {
    /// Returns the number of messages that were appended.
    pub fn inserted(&self) -> usize {
        self.count(|outcome| matches!(outcome, EntryOutcome::Inserted(_)))
    }

    /// Returns the number of messages that were not appended because they are already stored.
    pub fn duplicates(&self) -> usize {
        self.count(|outcome| matches!(outcome, EntryOutcome::Duplicate(_)))
    }

    /// Returns the number of messages that were not appended because a different message has their external id.
    pub fn conflicts(&self) -> usize {
        self.count(|outcome| matches!(outcome, EntryOutcome::Conflict(_)))
    }

    fn count(&self, is: impl Fn(&EntryOutcome) -> bool) -> usize {
        self.outcomes.iter().filter(|outcome| is(outcome)).count()
    }
}

impl Session {
    /// Appends a message to the log. If the message has no time, it gets the current time of the memory's clock.
    ///
    /// If an equal message with the same external id is already stored, the message is a duplicate and is not stored
    /// again. Times are compared only if both messages were given one.
    ///
    /// # Errors
    /// `Conflict` if a different message is stored with the same external id, and `Store` if the store fails. The log
    /// is then unchanged.
    pub async fn ingest(&self, message: Message) -> Result<EntryOutcome> {
        let outcomes = self.ingest_all(vec![message]).await?;
        outcomes.first().copied().ok_or_else(|| {
            let message = format!("the session {} stored no message", self.key());
            Error::new(ErrorKind::Invalid, message)
        })
    }

    /// Appends messages. A conflict is an error, but all messages without a conflict are stored.
    pub(crate) async fn ingest_all(&self, messages: Vec<Message>) -> Result<Vec<EntryOutcome>> {
        let ids: Vec<_> = messages.iter().map(|one| one.external_id.clone()).collect();
        let outcomes = self.ingest_batch(messages).await?.outcomes;
        for (outcome, id) in outcomes.iter().zip(ids) {
            if let EntryOutcome::Conflict(position) = outcome {
                return Err(Error::new(
                    ErrorKind::Conflict,
                    format!(
                        "the session {} has another message with the external id {} at position {position}: \
                         give this message a different id",
                        self.key(),
                        id.unwrap_or_default()
                    ),
                ));
            }
        }
        Ok(outcomes)
    }

    /// Appends messages to the log in order, in one transaction. A message is left out if a different message is stored
    /// with its external id: see [`IngestReport::conflicts`].
    ///
    /// # Errors
    /// `Invalid` if the parts of a message nest deeper than [`MAX_PART_DEPTH`](memory_model::MAX_PART_DEPTH), and
    /// `Store` if the store fails. The log is then unchanged.
    pub async fn ingest_batch(&self, messages: Vec<Message>) -> Result<IngestReport> {
        refuse_deep_parts(self.key(), &messages)?;
        let now = self.memory().inner.clock.now();
        let entries = messages
            .into_iter()
            .map(|mut message| {
                let clocked = message.created_at == Timestamp::default();
                if clocked {
                    message.created_at = now;
                }
                NewEntry {
                    tokens: self.accounting().message(&message),
                    message,
                    clocked,
                }
            })
            .collect();
        self.append(entries, AppendAt::Any, now).await
    }

    /// Appends imported messages unchanged, in one transaction. If `head` is given, the log must still end there. Returns
    /// `None` if another append changed the end of the log.
    #[cfg(feature = "import")]
    pub(crate) async fn ingest_import(
        &self,
        messages: Vec<Message>,
        head: Option<Seq>,
    ) -> Result<Option<IngestReport>> {
        let entries = messages.into_iter().map(|message| NewEntry {
            tokens: self.accounting().message(&message),
            message,
            clocked: false,
        });
        let now = self.memory().inner.clock.now();
        let at = head.map_or(AppendAt::Any, AppendAt::Head);
        match self.append(entries.collect(), at, now).await {
            Err(error) if error.kind() == HEAD_MOVED => Ok(None),
            appended => appended.map(Some),
        }
    }

    /// Appends entries in one transaction.
    async fn append(
        &self,
        entries: Vec<NewEntry>,
        at: AppendAt,
        now: Timestamp,
    ) -> Result<IngestReport> {
        let append = Append {
            at,
            estimator: self.accounting().estimator_id(),
            entries,
            now,
        };
        let mut appended = self.memory().inner.store.append(self.id(), &append).await?;
        self.recognize_values(&append.entries, &mut appended.outcomes)
            .await?;
        let inner = &self.memory().inner;
        for (entry, outcome) in append.entries.iter().zip(&appended.outcomes) {
            if let EntryOutcome::Inserted(seq) = outcome {
                let said = Said::of(&entry.message, &*inner.conventions);
                inner.requests.appended(self.id(), *seq, said, entry.tokens);
            }
        }
        let stored = appended.outcomes.len() as u32;
        self.index_after(appended.head.0.saturating_sub(stored), appended.head.0)
            .await;
        self.embed_cheaply().await;
        Ok(IngestReport {
            outcomes: appended.outcomes,
            head: appended.head,
        })
    }
}

impl Session {
    /// Turns conflicts into duplicates where the stored entry has the same values: JSON that another program wrote with
    /// other white space, another order of keys or other escapes is the same message. Times are compared only if both
    /// messages have one.
    async fn recognize_values(
        &self,
        entries: &[NewEntry],
        outcomes: &mut [EntryOutcome],
    ) -> Result<()> {
        for (entry, outcome) in entries.iter().zip(outcomes) {
            let EntryOutcome::Conflict(seq) = *outcome else {
                continue;
            };
            let stored = match SeqRange::new(seq, seq) {
                Some(range) => self.entries_in(range).await?.items.pop(),
                None => None,
            };
            let is_same = stored.is_some_and(|stored| {
                let times = (stored.created_at, entry.message.created_at);
                let is_missing = entry.clocked || !times.0.is_known() || !times.1.is_known();
                (is_missing || times.0 == times.1) && stored.has_same_values(&entry.message)
            });
            if is_same {
                *outcome = EntryOutcome::Duplicate(seq);
            }
        }
        Ok(())
    }
}

/// Returns an error if the parts of a message nest too deeply to be read back unchanged.
fn refuse_deep_parts(key: &SessionKey, messages: &[Message]) -> Result<()> {
    match messages.iter().position(Message::nests_too_deeply) {
        None => Ok(()),
        Some(index) => Err(Error::new(
            ErrorKind::Invalid,
            format!(
                "message {} of {} for the session {key} nests its parts deeper than {} levels: write \
                 the inner tool results as text",
                index + 1,
                messages.len(),
                memory_model::MAX_PART_DEPTH
            ),
        )),
    }
}
