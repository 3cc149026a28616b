//! Arguments, policy and answer of `recall`.

use std::fmt::Write as _;
use std::ops::Not;

use memory_model::{LogEntry, Role, Seq, SummaryId, Timestamp};
use memory_search::{Hit, HitTarget};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arguments::Arguments;
use crate::text::{Citation, behind, day_after, go_on, moment, on_one_line};

/// Default of the maximum tokens of an answer as text for a model.
pub(crate) const DEFAULT_BUDGET: u64 = 2_000;

/// Arguments of [`Retrieval::recall`](crate::Retrieval::recall), the tool `memory_recall`: a query, or the position of
/// a message.
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
    /// Creates arguments that recall the passages for a query.
    pub fn query(query: impl Into<String>) -> Self {
        Self {
            query: Some(query.into()),
            ..Self::default()
        }
    }

    /// Creates arguments that recall the message at a position.
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

/// Answer of [`Retrieval::recall`](crate::Retrieval::recall). It serializes to JSON for scripts.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RecallAnswer {
    /// The query in the request; `None` for a request by position.
    pub query: Option<String>,
    /// Position of the message in the request; `None` for a request by query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<Seq>,
    /// Note that the search index is damaged; `None` if no damage was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
    /// Cost of the passages' texts, in tokens. Together with the citations in [`Self::to_text`] they cost at most the
    /// budget.
    pub tokens: u64,
    /// Whether this answer contains the last passages of the ranked messages. At most 256 messages are ranked.
    pub complete: bool,
    /// Cursor for the next passages, to pass in [`RecallArgs::cursor`]; `None` if the answer is complete. It is valid
    /// only for this session and the same query. Messages appended meanwhile are excluded, but may slightly change the
    /// order of the others.
    pub cursor: Option<String>,
    /// Description of the search that replaced the requested one; `None` if it was not replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// Whether the time for the call ended before the search did. Better passages may then be missing.
    #[serde(skip_serializing_if = "Not::not")]
    pub stopped: bool,
    /// Passages that answer the query, the best first; or the one message that was requested.
    pub passages: Vec<Passage>,
}

/// A passage of the conversation, with the data to cite it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Passage {
    /// Position of the message that contains the passage. For a passage from a summary: position of the first message
    /// that the summary covers.
    pub seq: Seq,
    /// Ids of the summaries that lead from the view down to the message, the top one first. Empty for a message that
    /// the view shows itself.
    pub path: Vec<SummaryId>,
    /// Id of the summary that the passage was taken from, if no message but only this summary matches; `None` for a
    /// passage from a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_id: Option<SummaryId>,
    /// Role of the message's author; `None` for a passage from a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Id that the message has in the application that it was imported from; `None` if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// Time of the message, or time at which the summary was made.
    #[serde(serialize_with = "moment")]
    pub created_at: Timestamp,
    /// Text of the passage, with `…` at each cut.
    pub text: String,
    /// Cost of the passage's text, in tokens.
    pub tokens: u64,
    /// Score of the passage; higher is better. 1 for a message requested by its position; 0 for a neighbour of a
    /// passage that was added to use the rest of the budget.
    pub score: f64,
    /// Name of the message's author; `None` if the message has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Statements in later messages that change a statement of this passage, judged by their words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<PassageChange>,
}

/// A later message that contradicts a passage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PassageChange {
    /// Position of the message that contradicts the passage.
    pub seq: Seq,
    /// The statement in that message.
    pub text: String,
}

impl Passage {
    /// The text of a hit. Its position in the view and its cost are not known yet.
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

    /// All readable text of a message.
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

    /// Returns the argument with which `expand` reads the whole message or summary: `message:12`, or a summary's id.
    pub fn pointer(&self) -> String {
        match &self.summary_id {
            Some(id) => id.to_string(),
            None => format!("message:{}", self.seq),
        }
    }

    /// The citation after another passage's citation, the later changes, and the text.
    pub(crate) fn to_text(&self, before: Option<&Passage>) -> String {
        let is_found = |passage: &Passage| passage.score > 0.0;
        let begins_beside = before.is_some_and(is_found) && !is_found(self);
        let before = before.map(|before| before.created_at).unwrap_or_default();
        let day = day_after(before, self.created_at);
        let mut out = String::from(if begins_beside {
            "Said beside these:\n"
        } else {
            ""
        });
        out += &match &self.summary_id {
            Some(id) => format!("summary {id} from [{}] on{day}", self.seq),
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

/// The end of an answer with passages.
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
    /// Returns the notes before the passages; empty when there are none.
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

    /// Returns the answer as text for a model. Each passage begins with its citation; its text follows on the same line
    /// or on indented lines. The text costs at most the budget, unless the budget is too small for one citation.
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
