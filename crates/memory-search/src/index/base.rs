//! The records of what is indexed, in memory.

use crate::matching::Matcher;
use crate::ranking::{Corpus, Document, Record};
use memory_model::{ConversationId, LogEntry, Role, Seq, SeqRange, Summary, SummaryId, Timestamp};

use super::seal::Seal;
use memory_store::{IndexSegment, IndexedKind};

/// A document of a ranking.
#[derive(Debug)]
pub(super) enum Doc {
    Message {
        seq: Seq,
        role: Role,
        created_at: Timestamp,
    },
    Summary {
        id: SummaryId,
        range: SeqRange,
        times: (Timestamp, Timestamp),
    },
}

impl Doc {
    pub(super) fn of(record: &Record) -> Option<Self> {
        match (&record.summary, record.role) {
            (Some(summary), _) => Some(Doc::Summary {
                id: summary.id.clone(),
                range: summary.range,
                times: summary.times,
            }),
            (None, Some(role)) => Some(Doc::Message {
                seq: record.seq,
                role,
                created_at: record.created_at,
            }),
            (None, None) => None,
        }
    }

    pub(super) fn of_entry(entry: &LogEntry) -> Self {
        Doc::Message {
            seq: entry.seq,
            role: entry.role,
            created_at: entry.message.created_at,
        }
    }

    /// Position of a message; `None` for a summary.
    pub(super) fn seq(&self) -> Option<Seq> {
        match self {
            Doc::Message { seq, .. } => Some(*seq),
            Doc::Summary { .. } => None,
        }
    }

    pub(super) fn of_summary(summary: &Summary) -> Self {
        Doc::Summary {
            id: summary.id.clone(),
            range: summary.range,
            times: (summary.earliest_at, summary.latest_at),
        }
    }

    pub(super) fn is_admitted(&self, matcher: &Matcher) -> bool {
        match self {
            Doc::Message {
                seq,
                role,
                created_at,
            } => matcher.admits_at(*seq, *role, *created_at),
            Doc::Summary { range, times, .. } => matcher.admits_over(*range, *times),
        }
    }
}

/// A segment in a ranking: where its documents begin, and how many of them are seen.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) segment: IndexSegment,
    pub(super) begin: u32,
    pub(super) seen: u32,
    /// The numbers of those that are nothing but echoes; rising. They are not ranked.
    pub(super) echoes: Vec<u32>,
}

impl Part {
    /// The number in the ranking of the segment's document `place`; `None` where it is not ranked.
    pub(super) fn ranked(&self, place: u32) -> Option<u32> {
        let before = self.echoes.partition_point(|echo| *echo < place);
        let is_ranked = place < self.seen && self.echoes.get(before) != Some(&place);
        is_ranked.then(|| self.begin + place - before as u32)
    }
}

/// The records of what is indexed, ready to be ranked, and while a question is answered the words of what is not.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) conversation: ConversationId,
    pub(super) kind: IndexedKind,
    /// The segments with their seals, and the last position that is seen in each.
    pub(super) key: Vec<(u64, Option<Seal>, u32)>,
    pub(super) parts: Vec<Part>,
    pub(super) corpus: Corpus,
    pub(super) docs: Vec<Doc>,
}

/// A ranking of messages or of summaries.
pub(super) struct Ranking {
    pub(super) base: Base,
    /// What is not indexed: the last of the documents.
    pub(super) tail: Vec<Pending>,
}

impl Ranking {
    pub(super) fn new(base: Base) -> Self {
        Self {
            base,
            tail: Vec::new(),
        }
    }

    /// Number of documents that are indexed.
    pub(super) fn indexed(&self) -> usize {
        self.base.docs.len() - self.tail.len()
    }

    /// Adds a document that is not indexed.
    pub(super) fn add(&mut self, doc: Doc, document: &Document<'_>, pending: Pending) {
        self.base.corpus.add(document);
        self.base.docs.push(doc);
        self.tail.push(pending);
    }

    /// Returns what is kept for the next question.
    pub(super) fn into_base(mut self) -> Base {
        self.base.docs.truncate(self.indexed());
        self.base.docs.shrink_to_fit();
        self.base.corpus.reset();
        self.base
    }
}

/// A document that is not indexed.
pub(super) struct Pending {
    /// Whether it passes the filters.
    pub(super) admitted: bool,
    /// Whether it matches by itself.
    pub(super) matches: bool,
}

/// The number of a document, from how many are before it.
pub(super) fn number(before: usize) -> u32 {
    u32::try_from(before).unwrap_or(u32::MAX)
}
