//! The documents of a ranking, with the records of the indexed ones in memory.

use crate::matching::{Matcher, Position};
use crate::ranking::{Corpus, Document, Record};
use memory_model::{ConversationId, LogEntry, Role, Seq, SeqRange, Summary, SummaryId, Timestamp};

use super::cache::Handle;
use super::seal::Seal;
use crate::Result;
use memory_store::{IndexSegment, IndexedKind};

/// Maximum size of the unindexed texts with words that are kept for the next question, in bytes.
const MOST_KEPT_BYTES: usize = 1 << 20;

/// A message or summary in a ranking.
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

    /// Returns the position of a message. `None` for a summary.
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

    pub(super) fn is_admitted(&self, matcher: &Matcher<'_>) -> bool {
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

/// An index segment in a ranking: the number of its first ranked document, and the number of its documents that the
/// conversation sees.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) segment: IndexSegment,
    pub(super) begin: usize,
    pub(super) seen: u32,
    /// Numbers, in ascending order, of the documents that consist only of echoes (calls and results of memory tools).
    /// They are not ranked.
    pub(super) echoes: Vec<u32>,
}

impl Part {
    /// Returns the number in the ranking of the segment's document `place`. `None` if this document is not ranked.
    pub(super) fn ranked(&self, place: u32) -> Option<usize> {
        let before = self.echoes.partition_point(|echo| *echo < place);
        let is_ranked = place < self.seen && self.echoes.get(before) != Some(&place);
        is_ranked.then(|| self.begin + place as usize - before)
    }
}

/// The texts of an unindexed document with words in a corpus. They stay in memory until the next question, which
/// compares them with the current texts to check whether the words are still correct.
#[derive(Debug)]
struct Texts {
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

/// A document that is not indexed.
#[derive(Debug)]
pub(super) struct Pending {
    /// Whether the document satisfies the filters.
    pub(super) admitted: bool,
    /// Whether the text of the document itself matches the pattern. Always `false` in the mode `Prose`.
    pub(super) matches: bool,
    /// The texts of the document. `None` if its words are not kept for the next question.
    texts: Option<Texts>,
}

/// The documents of a ranking of messages or of summaries. Indexed documents are kept as records, the others with all
/// their words.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) conversation: ConversationId,
    pub(super) kind: IndexedKind,
    /// The id and seal of each segment, and the last position in it that the conversation sees.
    pub(super) key: Vec<(u64, Option<Seal>, u32)>,
    pub(super) parts: Vec<Part>,
    pub(super) corpus: Corpus,
    pub(super) docs: Vec<Doc>,
    /// The documents that are not indexed, which are the last ones in `docs`.
    pub(super) tail: Vec<Pending>,
    /// Number of documents in `tail` that the current question has added.
    pub(super) added: usize,
    /// Size of the texts of these documents, in bytes.
    bytes: usize,
}

impl Base {
    /// Reads the documents of some index segments. Each segment comes with the last position or number that the
    /// conversation sees.
    pub(super) async fn read(
        handle: &Handle<'_>,
        conversation: ConversationId,
        kind: IndexedKind,
        key: Vec<(u64, Option<Seal>, u32)>,
        parts: Vec<(IndexSegment, u32)>,
    ) -> Result<Self> {
        let mut base = Self {
            conversation,
            kind,
            key,
            parts: Vec::new(),
            corpus: Corpus::new(),
            docs: Vec::new(),
            tail: Vec::new(),
            added: 0,
            bytes: 0,
        };
        for (segment, last) in parts {
            let begin = base.docs.len();
            let (mut seen, mut echoes) = (0, Vec::new());
            for (number, record) in (segment.first..).zip(handle.records(&segment).await?) {
                let is_seen = match kind {
                    IndexedKind::Messages | IndexedKind::States => record.seq.0 <= last,
                    IndexedKind::Summaries => number <= last,
                };
                if let Some(doc) = Doc::of(&record).filter(|_| is_seen) {
                    match record.is_echo {
                        true => echoes.push(seen),
                        false => {
                            base.corpus.add_record(&record);
                            base.docs.push(doc);
                        }
                    }
                    seen += 1;
                }
            }
            base.parts.push(Part {
                segment,
                begin,
                seen,
                echoes,
            });
        }
        Ok(base)
    }

    /// Returns the number of indexed documents.
    pub(super) fn indexed(&self) -> usize {
        self.docs.len() - self.tail.len()
    }

    /// Removes all unindexed documents except the first `count`. If the corpus is too large, removes all unindexed
    /// documents.
    fn reset(&mut self, count: usize) {
        let indexed = self.indexed();
        self.corpus.reset(indexed + count);
        self.docs.truncate(self.corpus.len());
        self.tail.truncate(self.docs.len() - indexed);
    }

    /// Adds an unindexed document. Reads its words, unless they are kept from the last question.
    pub(super) fn add(&mut self, doc: Doc, document: &Document<'_>, admitted: bool, matches: bool) {
        let (indexed, at) = (self.indexed(), self.added);
        let bytes = document.texts.iter().map(|text| text.len());
        self.bytes += bytes.sum::<usize>();
        self.added += 1;
        if self.docs.get(indexed + at) == Some(&doc)
            && let Some(known) = self.tail.get_mut(at)
            && known
                .texts
                .as_ref()
                .is_some_and(|texts| texts.are_of(document))
        {
            (known.admitted, known.matches) = (admitted, matches);
            return;
        }
        if self.tail.len() > at {
            self.reset(at);
        }
        debug_assert_eq!(self.tail.len(), at);
        self.corpus.add(document);
        self.docs.push(doc);
        let is_kept = indexed > 0 && self.bytes <= MOST_KEPT_BYTES;
        self.tail.push(Pending {
            admitted,
            matches,
            texts: is_kept.then(|| Texts::of(document)),
        });
    }

    /// Removes unindexed documents that are kept from the last question, but were not added by this one, which sees
    /// less of the log.
    pub(super) fn finish(&mut self) {
        if self.tail.len() > self.added {
            self.reset(self.added);
        }
        debug_assert_eq!(self.tail.len(), self.added);
    }

    /// Removes words that are not kept for the next question. The corpus is not too large afterwards, so
    /// [`reset`](Self::reset) then removes only the requested documents.
    pub(super) fn shrink(&mut self) {
        let kept = self.tail.iter().take_while(|one| one.texts.is_some());
        self.reset(kept.count());
        self.docs.shrink_to_fit();
        self.tail.shrink_to_fit();
        (self.added, self.bytes) = (0, 0);
    }
}
