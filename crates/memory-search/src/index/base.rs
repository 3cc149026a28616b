//! The records of what is indexed, in memory.

use crate::matching::{Matcher, Position};
use crate::ranking::{Corpus, Document, Record};
use memory_model::{ConversationId, LogEntry, Role, Seq, SeqRange, Summary, SummaryId, Timestamp};

use super::seal::Seal;
use memory_store::{IndexSegment, IndexedKind};

/// Bytes of texts that are not indexed whose words are kept from one question to the next.
const MOST_KEPT_BYTES: usize = 1 << 20;

/// A document of a ranking.
#[derive(Debug, Clone, PartialEq, Eq)]
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

    pub(super) fn position(&self) -> Position {
        match self {
            Doc::Message { seq, .. } => Position::Message(*seq),
            Doc::Summary { id, .. } => Position::Summary(id.clone()),
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
    pub(super) begin: usize,
    pub(super) seen: u32,
    /// The numbers of those that are nothing but echoes; rising. They are not ranked.
    pub(super) echoes: Vec<u32>,
}

impl Part {
    /// The number in the ranking of the segment's document `place`; `None` where it is not ranked.
    pub(super) fn ranked(&self, place: u32) -> Option<usize> {
        let before = self.echoes.partition_point(|echo| *echo < place);
        let is_ranked = place < self.seen && self.echoes.get(before) != Some(&place);
        is_ranked.then(|| self.begin + place as usize - before)
    }
}

/// The texts of a document that is not indexed, whose words a corpus has. They stay in memory until the next question is
/// asked, which tells by them whether the words are still right.
#[derive(Debug)]
pub(super) struct Texts {
    name: Option<String>,
    created_at: Timestamp,
    texts: Vec<String>,
}

impl Texts {
    fn of(document: &Document<'_>) -> Self {
        let texts = document.texts.iter();
        Self {
            name: document.name.map(str::to_owned),
            created_at: document.created_at,
            texts: texts.map(|text| text.clone().into_owned()).collect(),
        }
    }

    fn are_of(&self, document: &Document<'_>) -> bool {
        self.name.as_deref() == document.name
            && self.created_at == document.created_at
            && self.texts == document.texts
    }
}

/// The records of what is indexed, ready to be ranked, and the words of what is not.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) conversation: ConversationId,
    pub(super) kind: IndexedKind,
    /// The segments with their seals, and the last position that is seen in each.
    pub(super) key: Vec<(u64, Option<Seal>, u32)>,
    pub(super) parts: Vec<Part>,
    pub(super) corpus: Corpus,
    pub(super) docs: Vec<Doc>,
    /// The last of the documents: those that are not indexed. `None` for one whose words are not kept for the next
    /// question.
    pub(super) unindexed: Vec<Option<Texts>>,
}

impl Base {
    /// Number of documents that are indexed.
    pub(super) fn indexed(&self) -> usize {
        self.docs.len() - self.unindexed.len()
    }

    /// Forgets all but the first `count` of the documents that are not indexed; all of them where the corpus has grown
    /// large.
    fn reset(&mut self, count: usize) {
        let indexed = self.indexed();
        self.corpus.reset(indexed + count);
        self.docs.truncate(self.corpus.len());
        self.unindexed.truncate(self.docs.len() - indexed);
    }

    /// Forgets what is not kept for the next question. Until then the corpus is not large, and [`reset`](Self::reset)
    /// forgets no more than it is told.
    pub(super) fn shrink(&mut self) {
        let kept = self.unindexed.iter().take_while(|texts| texts.is_some());
        self.reset(kept.count());
        self.docs.shrink_to_fit();
        self.unindexed.shrink_to_fit();
    }
}

/// A ranking of messages or of summaries.
pub(super) struct Ranking {
    pub(super) base: Base,
    /// What is not indexed.
    pub(super) tail: Vec<Pending>,
    /// Bytes of the texts in it.
    bytes: usize,
}

impl Ranking {
    pub(super) fn new(base: Base) -> Self {
        Self {
            base,
            tail: Vec::new(),
            bytes: 0,
        }
    }

    /// Number of documents that are indexed.
    pub(super) fn indexed(&self) -> usize {
        self.base.indexed()
    }

    /// Adds a document that is not indexed. Its words are read, unless the last question left them here.
    pub(super) fn add(&mut self, doc: Doc, document: &Document<'_>, pending: Pending) {
        let (base, at) = (&mut self.base, self.tail.len());
        let indexed = base.indexed();
        let known = base.unindexed.get(at).zip(base.docs.get(indexed + at));
        let is_known = known.is_some_and(|(texts, known)| {
            *known == doc && texts.as_ref().is_some_and(|texts| texts.are_of(document))
        });
        let bytes = document.texts.iter().map(|text| text.len());
        self.bytes += bytes.sum::<usize>();
        if !is_known {
            if base.unindexed.len() > at {
                base.reset(at);
            }
            debug_assert_eq!(base.unindexed.len(), at);
            base.corpus.add(document);
            base.docs.push(doc);
            let is_kept = indexed > 0 && self.bytes <= MOST_KEPT_BYTES;
            base.unindexed.push(is_kept.then(|| Texts::of(document)));
        }
        self.tail.push(pending);
    }

    /// Forgets documents that were left here and were not added: others see more of the log.
    pub(super) fn finish(mut self) -> Self {
        if self.base.unindexed.len() > self.tail.len() {
            self.base.reset(self.tail.len());
        }
        debug_assert_eq!(self.base.unindexed.len(), self.tail.len());
        self
    }
}

/// A document that is not indexed.
pub(super) struct Pending {
    /// Whether it passes the filters.
    pub(super) admitted: bool,
    /// Whether it matches by itself.
    pub(super) matches: bool,
}
