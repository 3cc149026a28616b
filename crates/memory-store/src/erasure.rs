//! Data types for an erasure: the request, the report of affected entries, and the record.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::{
    ConversationId, Part, Seq, SeqRange, SessionKey, Summary, SummaryId, Timestamp,
};

use crate::error::{Error, ErrorKind, Result};
use crate::types::Conversation;

/// Text that replaces erased words, in an erased summary and in an erased message that cost at least 8 tokens. A
/// cheaper message gets no text, so that an erasure never raises the cost of a message.
pub const ERASED: &str = "[erased]";

/// Prefix of the keys of small values that store prepared work. An erasure removes the values with this prefix, and
/// also drafts.
pub const PREPARED: &str = "prepared/";

/// Minimum cost of a message, in tokens, that [`ERASED`] replaces. The text [`ERASED`] costs no more than this.
const ERASED_FROM: u64 = 8;

/// A request to erase words of a conversation for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Erase {
    /// Positions of the entries to erase, inclusive, as numbered in the conversation. `None` erases the conversation's
    /// whole own log, title, metadata and small values.
    pub range: Option<SeqRange>,
    /// Reason for the erasure. The store keeps the reason for ever, so it should not repeat the erased words.
    pub reason: String,
    /// Whether to only report the effects of the erasure and change no data.
    pub dry_run: bool,
    /// Time of the erasure, recorded by the store.
    pub now: Timestamp,
}

impl Erase {
    /// Creates a request to erase the entries of a range, including entries that are shared with forks.
    pub fn range(range: SeqRange, reason: impl Into<String>, now: Timestamp) -> Self {
        Self {
            range: Some(range),
            reason: reason.into(),
            dry_run: false,
            now,
        }
    }

    /// Creates a request to erase the conversation's own log and to archive the conversation. The part of the log that
    /// a fork shares with its parent is not erased.
    pub fn all(reason: impl Into<String>, now: Timestamp) -> Self {
        Self {
            range: None,
            reason: reason.into(),
            dry_run: false,
            now,
        }
    }

    /// Sets whether to only report the effects of the erasure and change no data.
    pub fn with_dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }
}

/// A range of positions in one conversation that an erasure affects.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErasedRange {
    /// Number of the conversation in its store.
    pub conversation: ConversationId,
    /// Session key of the conversation.
    pub key: SessionKey,
    /// Positions in the conversation, inclusive.
    pub range: SeqRange,
}

impl ErasedRange {
    /// Creates a range of positions in a conversation.
    pub fn new(conversation: ConversationId, key: SessionKey, range: SeqRange) -> Self {
        Self {
            conversation,
            key,
            range,
        }
    }
}

/// Report of an erasure or of a dry run. A dry run only reports what an erasure would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Erased {
    /// The entries to erase, as ranges of the logs that own them.
    pub logs: Vec<ErasedRange>,
    /// Conversations that show some of the entries to erase: the owners of the logs, and their forks. Each has the
    /// range of positions that it shows.
    pub seen_by: Vec<ErasedRange>,
    /// Number of entries to erase. Entries that were erased earlier are not counted.
    pub entries: u64,
    /// Number of summaries to erase, because they were made from these entries, in all conversations of `seen_by`.
    /// Summaries that were erased earlier are not counted.
    pub summaries: u64,
    /// Number of jobs (units of work, such as a summary to write) to delete with their prepared work, in all
    /// conversations of `seen_by`.
    pub drafts: u64,
    /// Logs with copies of the entries. Copies are not erased. A copy is an entry with the same hash: the same message
    /// was stored a second time, for example under another session's key. Each range goes from the first copy to the
    /// last.
    pub copies: Vec<ErasedRange>,
}

/// Record of an erasure of entries, as one conversation sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Erasure {
    /// Positions of the erased entries, inclusive, as numbered in the conversation.
    pub range: SeqRange,
    /// Time of the erasure.
    pub at: Timestamp,
    /// Reason that the caller gave for the erasure.
    pub reason: String,
}

impl Erasure {
    /// Creates a record of an erasure.
    pub fn new(range: SeqRange, at: Timestamp, reason: impl Into<String>) -> Self {
        Self {
            range,
            at,
            reason: reason.into(),
        }
    }
}

/// Recorded erasures of all entries and summaries that a conversation sees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Erasures {
    /// Erasures of entries, sorted by position and then by time. Their ranges may overlap.
    pub entries: Vec<Erasure>,
    /// Ids of the summaries whose words were erased.
    pub summaries: BTreeSet<SummaryId>,
}

impl Erasures {
    /// Creates the list of erasures, and sorts `entries` by position and then by time.
    pub fn new(mut entries: Vec<Erasure>, summaries: BTreeSet<SummaryId>) -> Self {
        entries.sort_by_key(|erasure| (erasure.range.first, erasure.range.last, erasure.at));
        Self { entries, summaries }
    }

    /// Returns whether the words of the entry at a position were erased.
    pub fn covers(&self, seq: Seq) -> bool {
        self.entries
            .iter()
            .any(|erasure| erasure.range.contains(seq))
    }
}

/// Returns the message parts that replace the words of an erased entry. `tokens` is the cost of the entry before the
/// erasure.
pub fn erased_parts(tokens: u64) -> Vec<Part> {
    match tokens >= ERASED_FROM {
        true => vec![Part::text(ERASED)],
        false => Vec::new(),
    }
}

/// Finds the logs and the conversations that an erasure affects. `family` contains all conversations of the same
/// family, including `conversation`. The counts in the returned report are 0.
///
/// # Errors
/// `Invalid` if the range ends beyond the end of the log, or if the reason is empty.
pub fn plan_erasure(
    conversation: &Conversation,
    family: &[Conversation],
    erase: &Erase,
) -> Result<Erased> {
    let Conversation { key, head, .. } = conversation;
    let invalid = |message: String| Err(Error::new(ErrorKind::Invalid, message));
    if erase.reason.trim().is_empty() {
        return invalid(format!("an erasure of {key} needs a reason: give one"));
    }
    let range = match erase.range {
        Some(range) if range.last > *head => {
            return invalid(format!(
                "cannot erase entries {range} of {key}, which ends at {head}: give a range within 1-{head}"
            ));
        }
        Some(range) => Some(range),
        None => SeqRange::new(conversation.own_first(), *head),
    };
    let mut erased = Erased::default();
    let Some(range) = range else {
        return Ok(erased);
    };
    for segment in &conversation.segments {
        let shown = segment.up_to(*head);
        let part = shown.and_then(|shown| shown.intersect(&range));
        let source = family.iter().find(|member| member.id == segment.source);
        if let (Some(range), Some(source)) = (part, source) {
            erased.logs.push(ErasedRange {
                conversation: source.id,
                key: source.key.clone(),
                range,
            });
        }
    }
    for member in family {
        let shown = |log: &ErasedRange| {
            let mut segments = member.segments.iter();
            let own = segments.find(|segment| segment.source == log.conversation)?;
            own.up_to(member.head)?.intersect(&log.range)
        };
        // A fork shares the beginning of a log, so it shows one contiguous part of a range.
        let parts: Vec<SeqRange> = erased.logs.iter().filter_map(shown).collect();
        if let (Some(first), Some(last)) = (parts.first(), parts.last())
            && let Some(range) = SeqRange::new(first.first, last.last)
        {
            erased.seen_by.push(ErasedRange {
                conversation: member.id,
                key: member.key.clone(),
                range,
            });
        }
    }
    Ok(erased)
}

/// Returns the ids of the summaries to erase, each with the conversation that made the summary. A summary is erased if
/// it covers an erased entry, has it among its sources, or was made from such a summary, directly or through others. `made` contains the
/// summaries that each conversation made.
pub fn summaries_to_erase(
    seen_by: &[ErasedRange],
    made: &BTreeMap<ConversationId, Vec<Summary>>,
) -> Vec<(ConversationId, SummaryId)> {
    let mut named: BTreeSet<&SummaryId> = BTreeSet::new();
    let mut found = BTreeSet::new();
    // Forks with the same entries make summaries with the same ids. A summary is made from those of its own conversation
    // if there are such, and otherwise from those of an ancestor.
    let own: BTreeSet<(ConversationId, &SummaryId)> = made
        .iter()
        .flat_map(|(conversation, made)| made.iter().map(|one| (*conversation, &one.id)))
        .collect();
    loop {
        let before = found.len();
        for seen in seen_by {
            for summary in made.get(&seen.conversation).into_iter().flatten() {
                let mut below = summary.sources.iter().chain(&summary.children);
                let touched = summary.range.intersect(&seen.range).is_some()
                    || below.any(|one| {
                        one.range().intersect(&seen.range).is_some()
                            || one.summary().is_some_and(|id| {
                                match own.contains(&(seen.conversation, id)) {
                                    true => found.contains(&(seen.conversation, id)),
                                    false => named.contains(id),
                                }
                            })
                    });
                if touched {
                    named.insert(&summary.id);
                    found.insert((seen.conversation, &summary.id));
                }
            }
        }
        // A summary may be made from a summary of another conversation, so the search repeats until no more are found.
        if found.len() == before {
            let found = found.into_iter();
            return found.map(|(made_by, id)| (made_by, id.clone())).collect();
        }
    }
}
