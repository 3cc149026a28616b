//! The properties of a document that an index keeps with its words.

use memory_model::{Role, Seq, SeqRange, SummaryId, Timestamp};

use super::document::Document;

/// The properties of a message or of a summary that an index keeps with its words.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    /// Position of the message. For a summary: position of the last message that it covers.
    pub seq: Seq,
    /// Role of the message's author. `None` for a summary.
    pub role: Option<Role>,
    /// Name of the message's author. `None` if the message has none, and for a summary.
    pub name: Option<String>,
    /// Time at which the message was written, or at which the summary was made.
    pub created_at: Timestamp,
    /// Number of words in the text.
    pub length: u32,
    /// Share of the text that consists of questions, from 0 to 1.
    pub question_share: f64,
    /// Whether the text contains a question mark.
    pub asks: bool,
    /// Whether the text is in the first person.
    pub first_person: bool,
    /// Whether the text names a time.
    pub names_time: bool,
    /// Whether the message consists only of echoes (calls and results of memory tools). Its words are then not indexed,
    /// and it is not ranked.
    pub is_echo: bool,
    /// Further properties of a summary; `None` for a message.
    pub summary: Option<SummaryRecord>,
}

impl Record {
    /// Returns the properties of a document. Its position and its number of words are not set.
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

/// Further properties of a summary that an index keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SummaryRecord {
    /// Id of the summary.
    pub id: SummaryId,
    /// Positions of the first and the last message that the summary covers.
    pub range: SeqRange,
    /// Earliest and latest time of the messages that the summary covers.
    pub times: (Timestamp, Timestamp),
}
