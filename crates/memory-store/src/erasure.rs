//! Erasure as data: the request, the affected entries, and the record.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::{
    ConversationId, Part, Seq, SeqRange, SessionKey, Summary, SummaryId, Timestamp,
};

use crate::error::{Error, ErrorKind, Result};
use crate::types::Conversation;

/// Text that replaces erased words: in an erased summary, and in an erased message that cost at least 8 tokens. A
/// cheaper message gets no text, so that an erasure never raises its cost.
pub const ERASED: &str = "[erased]";

/// Prefix of the keys of small values that hold prepared work. An erasure removes these values, as it removes drafts.
pub const PREPARED: &str = "prepared/";

/// Minimum cost of a message, in tokens, at which [`ERASED`] costs no more than the message.
const ERASED_FROM: u64 = 8;

/// A request to erase words for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Erase {
    /// Positions of the entries to erase, inclusive, as the conversation sees them. `None` erases the conversation's
    /// own log with its title, metadata and small values.
    pub range: Option<SeqRange>,
    /// Reason for the erasure. The store keeps it for ever, so it should not repeat the erased words.
    pub reason: String,
    /// Whether to report the effects of the erasure without carrying it out.
    pub dry_run: bool,
    /// Time of the erasure, which the store records.
    pub now: Timestamp,
}

impl Erase {
    /// Creates a request to erase the entries of a range, including entries that forks share.
    pub fn range(range: SeqRange, reason: impl Into<String>, now: Timestamp) -> Self {
        Self {
            range: Some(range),
            reason: reason.into(),
            dry_run: false,
            now,
        }
    }

    /// Creates a request to erase a conversation's own log and archive the conversation. The part of the log that it
    /// shares with its parent is not erased.
    pub fn all(reason: impl Into<String>, now: Timestamp) -> Self {
        Self {
            range: None,
            reason: reason.into(),
            dry_run: false,
            now,
        }
    }

    /// Sets whether to report the effects of the erasure without carrying it out.
    pub fn with_dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }
}

/// A range of positions in one conversation that an erasure concerns.
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

/// Report of an erasure, or of a dry run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Erased {
    /// Logs that hold the entries to erase, each with the positions of these entries.
    pub logs: Vec<ErasedRange>,
    /// Conversations that show some of these entries: the owners of the logs, and their forks.
    pub seen_by: Vec<ErasedRange>,
    /// Number of entries with words left to erase.
    pub entries: u64,
    /// Number of summaries of these entries, in all these conversations, with words left to erase.
    pub summaries: u64,
    /// Number of jobs of these conversations that lose their prepared work.
    pub drafts: u64,
    /// Logs with copies of the entries, which are not erased: entries of the same hash, because the same message was
    /// stored under another session's key. Each range goes from the first copy to the last.
    pub copies: Vec<ErasedRange>,
}

/// Record of an erasure of entries.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Erasure {
    /// Positions of the erased entries, inclusive, as the conversation sees them.
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

/// Recorded erasures in everything that a conversation sees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Erasures {
    /// Erasures of entries, by position and then time. Their ranges may overlap.
    pub entries: Vec<Erasure>,
    /// Ids of the summaries with erased words.
    pub summaries: BTreeSet<SummaryId>,
}

impl Erasures {
    /// Creates a list of erasures; sorts `entries` by position and then time.
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

/// Returns the parts that replace the words of an erased entry; `tokens` is the cost that the entry had.
pub fn erased_parts(tokens: u64) -> Vec<Part> {
    match tokens >= ERASED_FROM {
        true => vec![Part::text(ERASED)],
        false => Vec::new(),
    }
}

/// Finds the logs and the conversations that an erasure concerns. `family` are all conversations of the conversation's
/// family. The counts in the report are 0.
///
/// # Errors
/// `Invalid` if the range ends beyond the head of the log, or the reason is empty.
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

/// Returns the summaries to erase, each with the conversation that made it: every summary that covers an erased entry,
/// or is derived from such a summary, directly or not. `made` are the summaries that each conversation made.
pub fn summaries_to_erase(
    seen_by: &[ErasedRange],
    made: &BTreeMap<ConversationId, Vec<Summary>>,
) -> Vec<(ConversationId, SummaryId)> {
    let mut named: BTreeSet<&SummaryId> = BTreeSet::new();
    let mut found = BTreeSet::new();
    loop {
        let before = found.len();
        for seen in seen_by {
            for summary in made.get(&seen.conversation).into_iter().flatten() {
                let mut below = summary.sources.iter().chain(&summary.children);
                let touched = summary.range.intersect(&seen.range).is_some()
                    || below.any(|one| {
                        one.range().intersect(&seen.range).is_some()
                            || one.summary().is_some_and(|id| named.contains(id))
                    });
                if touched {
                    named.insert(&summary.id);
                    found.insert((seen.conversation, summary.id.clone()));
                }
            }
        }
        // A summary may be made from one that another conversation has.
        if found.len() == before {
            return found.into_iter().collect();
        }
    }
}
