//! Arguments, policy and answer of `recall`.

use std::fmt::Write as _;

use memory_model::{Role, Seq, SummaryId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::grep::is_false;
use crate::text::{Moment, fenced, moment, short};

/// Maximum tokens of an answer, as a model reads it, when a call sets none.
pub const DEFAULT_BUDGET: u64 = 2_000;

/// Arguments of `recall`: a query or a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecallArgs {
    /// What to recall: a question or a few words.
    pub query: Option<String>,
    /// The position of one message to recall.
    pub turn: Option<Seq>,
    /// Maximum tokens of the answer as a model reads it, citations with it; 0 stands for [`DEFAULT_BUDGET`].
    /// An answer has at least one passage: where a budget does not hold its citation, without its words.
    pub budget: u64,
    /// The cursor of an incomplete answer to the same query in the same session.
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
    /// Arguments that recall what answers a query.
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

    /// Sets the maximum tokens of the answer as a model reads it, citations with it; 0 stands for [`DEFAULT_BUDGET`].
    pub fn with_budget(mut self, tokens: u64) -> Self {
        self.budget = tokens;
        self
    }

    /// Continues an incomplete answer.
    pub fn with_cursor(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }
}

impl From<&RecallArgs> for RecallArgs {
    fn from(args: &RecallArgs) -> Self {
        args.clone()
    }
}

impl From<&str> for RecallArgs {
    fn from(query: &str) -> Self {
        Self::query(query)
    }
}

/// How `recall` ranks passages, and how long they are.
///
/// A message's score is that of the search, from 0 to 1 of the best. A message with the exact words of the
/// query gets `exact` on top. The sum is multiplied by `1 + lineage · s`, where `s` is the score of the best
/// summary above it from 0 to 1, and by `1 + recency · p`, where `p` is its place in the log from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RecallPolicy {
    /// Maximum number of messages that are ranked; 128.
    pub candidates: usize,
    /// Maximum number of passages in an answer; no limit.
    pub passages: usize,
    /// Maximum length of a passage that a query finds, in characters; 1,200.
    pub passage_chars: usize,
    /// Maximum length of a message that is recalled by its turn, in characters; no limit but the budget.
    pub turn_chars: usize,
    /// Weight of the exact words of the query; 0.5.
    pub exact: f64,
    /// Weight of the summaries above a message; 0.25.
    pub lineage: f64,
    /// Weight of a message's place in the log; 0.1.
    pub recency: f64,
}

impl Default for RecallPolicy {
    fn default() -> Self {
        Self {
            candidates: 128,
            passages: usize::MAX,
            passage_chars: 1_200,
            turn_chars: usize::MAX,
            exact: 0.5,
            lineage: 0.25,
            recency: 0.1,
        }
    }
}

impl RecallPolicy {
    /// The preset `koda`: 10 passages of 200 characters, and the first 2,000 characters of a message by its
    /// turn.
    pub fn koda() -> Self {
        Self {
            passages: 10,
            passage_chars: 200,
            turn_chars: 2_000,
            ..Self::default()
        }
    }
}

/// Answer of `recall`. It serializes to the JSON that scripts rely on.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RecallAnswer {
    /// The query; `None` when a message was recalled by its turn.
    pub query: Option<String>,
    /// The turn that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<Seq>,
    /// Note that the search index is damaged; `None` when no damage was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
    /// Cost of the passages' words, in tokens; with their citations ([`Self::to_text`]) at most the budget.
    pub tokens: u64,
    /// Whether these are all passages among the messages that were ranked
    /// ([`RecallPolicy::candidates`]).
    pub complete: bool,
    /// Where to continue; `None` when complete. It is bound to this session and query. Messages that are said
    /// meanwhile are left out; they may change the order of the others a little.
    pub cursor: Option<String>,
    /// Fallback that the search used, in words; `None` when it used none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// Whether the time of the call was over before all was searched: better passages may be missing.
    #[serde(skip_serializing_if = "is_false")]
    pub stopped: bool,
    /// The passages, the best first.
    pub passages: Vec<Passage>,
}

/// A passage with its citation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Passage {
    /// Position of the message; for words that only a summary has, of the first message that it covers.
    pub seq: Seq,
    /// The summaries that lead to the message, from the view's top down; empty for a message that the view
    /// shows itself.
    pub path: Vec<SummaryId>,
    /// Set where only this summary has the words: the passage is its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_id: Option<SummaryId>,
    /// The message's role; `None` for a summary's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The source's own id of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// When the message was said or the summary was made.
    #[serde(serialize_with = "moment")]
    pub created_at: Timestamp,
    /// The words, with `…` where they were cut.
    pub text: String,
    /// Cost of the words, in tokens.
    pub tokens: u64,
    /// How well the passage answers the query; higher is better. 1 for a message by its turn.
    pub score: f64,
}

impl Passage {
    /// What `expand` takes to read all of it: `message:12`, or a summary's id.
    pub fn pointer(&self) -> String {
        match &self.summary_id {
            Some(id) => id.to_string(),
            None => format!("message:{}", self.seq),
        }
    }

    /// The citation, then the words between fence lines that they cannot contain.
    pub(crate) fn to_text(&self) -> String {
        let mut out = self.pointer();
        if let Some(role) = self.role {
            let _ = write!(out, " {role}");
        }
        let _ = write!(out, "{}", Moment(self.created_at));
        if !self.path.is_empty() {
            let path: Vec<&str> = self.path.iter().map(SummaryId::as_str).collect();
            let _ = write!(out, ", in {}", path.join(" > "));
        }
        out.push('\n');
        fenced(&mut out, &self.text);
        out
    }
}

/// What an answer with passages ends with.
pub(crate) fn ending(cursor: Option<&str>) -> String {
    let mut out = String::new();
    match cursor {
        None => out.push_str("This is all that was found.\n"),
        Some(cursor) => {
            let cursor = short(cursor);
            let _ = writeln!(out, "There is more: repeat the call with cursor {cursor}.");
        }
    }
    out.push_str("To read more around a passage, call memory_expand with message:SEQ.\n");
    out
}

/// The line of a note.
pub(crate) fn note_line(note: &str) -> String {
    format!("Note: {note}.\n")
}

impl RecallAnswer {
    /// Returns the notes before the passages; empty when there are none.
    pub(crate) fn beginning(&self) -> String {
        let mut out = self.note.map(note_line).unwrap_or_default();
        if let Some(fallback) = &self.fallback {
            let _ = writeln!(out, "Note: {fallback}.");
        }
        if self.stopped {
            let _ = writeln!(
                out,
                "Note: the time of this call was over before all was searched; memory_grep with a cursor searches on."
            );
        }
        out
    }

    /// The answer as a model reads it. All words are between fence lines that they cannot contain. It costs at most
    /// the budget, unless this does not hold the citation of one passage.
    pub fn to_text(&self) -> String {
        let mut out = self.beginning();
        if self.passages.is_empty() {
            let so_far = if self.stopped { " so far" } else { "" };
            let _ = writeln!(out, "Nothing was found{so_far}.");
            return out;
        }
        out.extend(self.passages.iter().map(Passage::to_text));
        out.push_str(&ending(self.cursor.as_deref()));
        out
    }
}
