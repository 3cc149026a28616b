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

/// Arguments of `recall`: a query or a turn.
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
    /// Arguments that recall passages for a query.
    pub fn query(query: impl Into<String>) -> Self {
        Self {
            query: Some(query.into()),
            ..Self::default()
        }
    }

    /// Arguments that recall one message by its position.
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

/// Answer of `recall`. It serializes to JSON for scripts.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RecallAnswer {
    /// The query; `None` if a message was recalled by its turn.
    pub query: Option<String>,
    /// The requested turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<Seq>,
    /// Note that the search index is damaged; `None` if no damage was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
    /// Cost of the passages' texts, in tokens; with their citations ([`Self::to_text`]) at most the budget.
    pub tokens: u64,
    /// Whether these are all passages of the ranked messages, of which there are at most 256.
    pub complete: bool,
    /// Cursor for the rest; `None` if complete. It is bound to this session and query. Later messages are excluded;
    /// they may change the order of the others a little.
    pub cursor: Option<String>,
    /// Fallback that the search used, in words; `None` if it used none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// Whether the time of the call ended before the whole search: better passages may be missing.
    #[serde(skip_serializing_if = "Not::not")]
    pub stopped: bool,
    /// The passages, the best first.
    pub passages: Vec<Passage>,
}

/// A passage with its citation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Passage {
    /// Position of the message; for words that only a summary has, of its first message.
    pub seq: Seq,
    /// The summaries that lead to the message, from the view's top down; empty for a message that the view shows.
    pub path: Vec<SummaryId>,
    /// Set if only this summary has the words: the passage is its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_id: Option<SummaryId>,
    /// The message's role; `None` for a summary's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The source's id of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// Time of the message, or of the summary's creation.
    #[serde(serialize_with = "moment")]
    pub created_at: Timestamp,
    /// The text, with `…` where it was cut.
    pub text: String,
    /// Cost of the text, in tokens.
    pub tokens: u64,
    /// Score of the passage; higher is better. 1 for a message by its turn, 0 for a neighbour of a passage that fills
    /// the room.
    pub score: f64,
    /// Name of the message's author, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Statements of later messages that change this one, judged by their words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<PassageChange>,
}

/// A later message that contradicts a passage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PassageChange {
    /// Position of the message.
    pub seq: Seq,
    /// Its statement.
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

    /// The argument of `expand` that reads all of it: `message:12`, or a summary's id.
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

    /// The answer as text for a model. Each passage begins with its citation, and its text is on the same line or on
    /// indented ones. It costs at most the budget, unless the budget is below one citation.
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
