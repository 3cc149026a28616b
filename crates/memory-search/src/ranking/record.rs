//! The properties of a document that are kept with its words.

use memory_model::{Role, Seq, SeqRange, SummaryId, Timestamp};

use super::document::Document;

/// The properties of a message or of a summary that an index keeps with its words.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    /// Position of the message; of a summary, its last message.
    pub seq: Seq,
    /// The message's role; `None` for a summary.
    pub role: Option<Role>,
    /// Name of the participant.
    pub name: Option<String>,
    /// Time of the message or of the summary.
    pub created_at: Timestamp,
    /// Number of words.
    pub length: u32,
    /// The part of the text that is questions, from 0 to 1.
    pub question_share: f64,
    /// Whether the text asks something.
    pub asks: bool,
    /// Whether the text is in the first person.
    pub first_person: bool,
    /// Whether the text names a time.
    pub names_time: bool,
    /// Whether the message consists of echoes only. It then has no words and is not ranked.
    pub is_echo: bool,
    /// Further properties of a summary.
    pub summary: Option<SummaryRecord>,
}

impl Record {
    /// The properties of a document by itself: without its position and its number of words.
    pub(crate) fn of(document: &Document<'_>) -> Self {
        let (first_person, names_time) = document.traits();
        Self {
            seq: Seq::NONE,
            role: document.role,
            name: document.name.map(str::to_owned),
            created_at: document.created_at,
            length: 0,
            question_share: document.question_share(),
            asks: document.asks(),
            first_person,
            names_time,
            is_echo: false,
            summary: None,
        }
    }
}

/// The properties that an index keeps of a summary alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SummaryRecord {
    /// The summary's id.
    pub id: SummaryId,
    /// The messages that it covers.
    pub range: SeqRange,
    /// Times of the earliest and of the latest of them.
    pub times: (Timestamp, Timestamp),
}
