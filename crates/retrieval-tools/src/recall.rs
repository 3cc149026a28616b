//! Arguments and answer of `recall`.

use std::fmt::Write as _;
use std::ops::Not;

use memory_model::{LogEntry, Role, Seq, SummaryId, Timestamp};
use memory_search::{Hit, HitTarget};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arguments::Arguments;
use crate::text::{Citation, behind, day_after, go_on, moment, on_one_line};

/// Default maximum number of tokens in an answer's text.
pub(crate) const DEFAULT_BUDGET: u64 = 2_000;

/// Arguments of [`Retrieval::recall`](crate::Retrieval::recall), the tool `memory_recall`: a query, or the position of
/// a message. The comments of the fields are also their descriptions for a model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RecallArgs {
    /// What to recall: a question or a few words. Give this or turn.
    pub query: Option<String>,
    /// The position of one message to recall. Give this or query.
    #[schemars(with = "Option<u32>")]
    pub turn: Option<Seq>,
    /// Maximum tokens of all passages; 2000 if not given.
    #[schemars(extend("default" = DEFAULT_BUDGET))]
    pub budget: u64,
    /// The cursor of an earlier answer, to go on after it; the other arguments stay the same.
    pub cursor: Option<String>,
}

impl Default for RecallArgs {
    fn default() -> Self {
        Self {
            query: None,
            turn: None,
            budget: DEFAULT_BUDGET,
            cursor: None,
        }
    }
}

impl RecallArgs {
    /// Creates arguments that request the passages for a question or a few words.
    pub fn query(query: impl Into<String>) -> Self {
        Self {
            query: Some(query.into()),
            ..Self::default()
        }
    }

    /// Creates arguments that request the message at a position.
    pub fn turn(turn: Seq) -> Self {
        Self {
            turn: Some(turn),
            ..Self::default()
        }
    }
}

impl Arguments for RecallArgs {
    const NAME: &'static str = "memory_recall";
    const TITLE: &'static str = "Recall what was said";
    const DESCRIPTION: &'static str = "Recall what was said about something: the passages of the whole conversation \
        that answer a question best, word for word and with their positions, within a number of tokens. Or one message \
        by its turn.";
}

impl From<&str> for RecallArgs {
    fn from(query: &str) -> Self {
        Self::query(query)
    }
}

/// Answer of [`Retrieval::recall`](crate::Retrieval::recall). Serializes to JSON for programs.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RecallAnswer {
    /// The query of the request. `None` if the request is for a position.
    pub query: Option<String>,
    /// The position in the request. `None` if the request is for a query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<Seq>,
    /// Note for the reader that the search index is damaged. `None` if no damage was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
    /// Number of tokens of all passages' texts. With the citations that [`to_text`](Self::to_text) adds, they have at
    /// most as many tokens as the request permits.
    pub tokens: u64,
    /// Whether this answer contains the last passages. A query ranks at most 256 messages.
    pub complete: bool,
    /// Cursor for the next passages, to pass in [`RecallArgs::cursor`]. `None` if the answer is complete. A cursor is
    /// valid only for the same conversation and the same query. Messages that are appended in the meantime are left
    /// out, but they may slightly change the order of the other passages.
    pub cursor: Option<String>,
    /// Description of the search that was made in place of the requested search. `None` if the requested search was
    /// made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// Whether the time limit of the call ended the search early. Better passages may then be missing.
    #[serde(skip_serializing_if = "Not::not")]
    pub stopped: bool,
    /// The passages that answer the query, the best first. For a request by position: the one message.
    pub passages: Vec<Passage>,
}

/// A passage of the conversation: verbatim text of a message or of a summary, with its source.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Passage {
    /// Position of the message that contains the passage. If the passage is from a summary: position of the first
    /// message that the summary covers.
    pub seq: Seq,
    /// Ids of the summaries that contain the message: first the summary that the view shows, then the summaries inside
    /// it, down to the lowest one. The view is set by [`Retrieval::with_view`](crate::Retrieval::with_view). Empty if
    /// the view shows the message itself, or if there is no view.
    pub path: Vec<SummaryId>,
    /// Id of the summary that contains the passage. Used only if a summary matches but none of its messages. `None` for
    /// a passage from a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_id: Option<SummaryId>,
    /// Role of the message's author. `None` for a passage from a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Id of the message in the application from which it was imported. `None` if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// Time at which the message was written, or at which the summary was made.
    #[serde(serialize_with = "moment")]
    pub created_at: Timestamp,
    /// Text of the passage, with `…` at each cut.
    pub text: String,
    /// Number of tokens of the passage's text.
    pub tokens: u64,
    /// Score of the passage. A higher score is a better match. 1 for a message that was requested by its position. 0
    /// for a neighbouring message that was added because the answer had room left.
    pub score: f64,
    /// Name of the message's author. `None` if the message has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Later messages with statements that contradict this passage, found by comparing words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<PassageChange>,
}

/// A later message that contradicts a passage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PassageChange {
    /// Position of the later message.
    pub seq: Seq,
    /// The statement of the later message that contradicts the passage.
    pub text: String,
}

impl Passage {
    /// Creates the passage of a search hit. Its path and its number of tokens are added later.
    pub(crate) fn new(hit: Hit, score: f64) -> Self {
        let (seq, summary_id, role, external_id) = match hit.target {
            HitTarget::Message {
                seq,
                external_id,
                role,
            } => (seq, None, Some(role), external_id),
            HitTarget::Summary { id, range } => (range.first, Some(id), None, None),
        };
        Self {
            seq,
            path: Vec::new(),
            summary_id,
            role,
            external_id,
            created_at: hit.created_at,
            text: hit.snippet,
            tokens: 0,
            score,
            name: hit.name,
            changed: Vec::new(),
        }
    }

    /// Creates a passage with all readable text of a message.
    pub(crate) fn of_entry(entry: LogEntry, path: Vec<SummaryId>, score: f64) -> Self {
        let mut texts = Vec::new();
        entry.visit_texts(&mut |text| {
            if !text.is_empty() || !texts.is_empty() {
                texts.push(text.into_owned());
            }
        });
        Self {
            seq: entry.seq,
            path,
            summary_id: None,
            role: Some(entry.role),
            text: texts.join("\n"),
            external_id: entry.message.external_id,
            created_at: entry.message.created_at,
            tokens: 0,
            score,
            name: entry.message.name,
            changed: Vec::new(),
        }
    }

    /// Returns the argument with which `expand` reads the whole message or summary: a pointer such as `message:12`, or
    /// the id of the summary.
    pub fn pointer(&self) -> String {
        match &self.summary_id {
            Some(id) => id.to_string(),
            None => format!("message:{}", self.seq),
        }
    }

    /// Returns the passage as text for a model: its citation, the later changes, and its text. `before` is the passage
    /// before it in the answer: a citation leaves out the parts of the date that are the same.
    pub(crate) fn to_text(&self, before: Option<&Passage>) -> String {
        let is_found = |passage: &Passage| passage.score > 0.0;
        let begins_beside = before.is_some_and(is_found) && !is_found(self);
        // The day on which a summary was made would be read as the day of its messages, so it is not shown.
        let before = before.filter(|before| before.summary_id.is_none());
        let before = before.map(|before| before.created_at).unwrap_or_default();
        let day = day_after(before, self.created_at);
        let mut out = String::from(if begins_beside {
            "Said beside these:\n"
        } else {
            ""
        });
        out += &match &self.summary_id {
            Some(id) => format!("summary {id} from [{}] on", self.seq),
            None => Citation {
                seq: self.seq,
                role: self.role,
                name: self.name.as_deref(),
                day,
            }
            .to_string(),
        };
        for (at, change) in self.changed.iter().enumerate() {
            let begin = if at == 0 { " (changed in" } else { "; in" };
            let _ = write!(
                out,
                "{begin} [{}]: {}",
                change.seq,
                on_one_line(&change.text)
            );
        }
        if !self.changed.is_empty() {
            out.push(')');
        }
        behind(&mut out, &self.text);
        out
    }
}

/// Returns the last line of an answer with passages.
pub(crate) fn ending(cursor: Option<&str>) -> String {
    let next = match cursor {
        None => "This is all that was found".to_owned(),
        Some(cursor) => go_on("There is more:", false, cursor),
    };
    format!(
        "{next}. [n] is message n; memory_expand with message:n reads on. Day and year are \
         told where they change.\n"
    )
}

impl RecallAnswer {
    /// Returns the notes before the passages. Empty if there are none.
    pub(crate) fn beginning(&self) -> String {
        let mut out = String::new();
        for note in self.note.into_iter().chain(self.fallback.as_deref()) {
            let _ = writeln!(out, "Note: {note}.");
        }
        if self.stopped {
            let _ = writeln!(
                out,
                "Note: the time of this call was over before all was searched; memory_grep with a cursor searches on."
            );
        }
        out
    }

    /// Returns the answer as text for a model. Each passage begins with its citation. Its text follows on the same line
    /// or on indented lines. The whole text has at most as many tokens as the request permits, unless that is too few
    /// for one citation.
    pub fn to_text(&self) -> String {
        let mut out = self.beginning();
        if self.passages.is_empty() {
            let so_far = if self.stopped { " so far" } else { "" };
            let _ = writeln!(out, "Nothing was found{so_far}.");
            return out;
        }
        let before = std::iter::once(None).chain(self.passages.iter().map(Some));
        let passages = self.passages.iter().zip(before);
        out.extend(passages.map(|(passage, before)| passage.to_text(before)));
        out.push_str(&ending(self.cursor.as_deref()));
        out
    }
}
