//! Hits of `grep`, with the messages near them.

use std::fmt::Write as _;

use memory_model::{Role, Seq, SummaryId, Timestamp};
use memory_search::{Hit, HitTarget};
use serde::Serialize;

use crate::room::longest;
use crate::text::{Citation, Day, behind, moment};

/// Label before a message that precedes a hit.
pub(crate) const BEFORE: &str = "before: ";
pub(crate) const AFTER: &str = "after: ";
pub(crate) const LATER: &str = "changed later: ";

/// A shortened message that is shown with a hit: a neighbour of the hit, or a later message that contradicts it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NearMessage {
    /// Position of the message in the log.
    pub seq: Seq,
    /// Role of the message's author.
    pub role: Role,
    /// Beginning of the message's text, or the excerpt that contradicts the hit, with `…` at each cut.
    pub snippet: String,
    /// Time at which the message was written.
    #[serde(serialize_with = "moment")]
    pub created_at: Timestamp,
    /// Name of the message's author; `None` if the message has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl NearMessage {
    /// Returns the lines for a model, with `label` before them.
    pub(crate) fn line(&self, label: &str) -> String {
        let mut out = label.to_owned();
        let citation = Citation {
            seq: self.seq,
            role: Some(self.role),
            name: self.name.as_deref(),
            day: Day(self.created_at).to_string(),
        };
        let _ = write!(out, "{citation}");
        behind(&mut out, &self.snippet);
        out
    }
}

/// Kind of a [`GrepHit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HitKind {
    /// The hit is a message.
    Message,
    /// The hit is a summary.
    Summary,
}

/// A message or summary that `grep` found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GrepHit {
    /// Whether the hit is a message or a summary.
    pub kind: HitKind,
    /// Position of the message; `None` for a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    /// Id of the summary; `None` for a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_id: Option<SummaryId>,
    /// Position of the first message that the summary covers; `None` for a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Seq>,
    /// Position of the last message that the summary covers, inclusive; `None` for a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Seq>,
    /// Id of the message in the application from which it was imported. `None` if it has none, and for a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// Role of the message's author; `None` for a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Score of the match. A higher score is a better match. 0 if the search does not rank its hits.
    pub score: f64,
    /// Excerpt of the text around the first match, with `…` at each cut.
    pub snippet: String,
    /// Time at which the message was written, or at which the summary was made.
    #[serde(serialize_with = "moment")]
    pub created_at: Timestamp,
    /// The messages directly before the hit, if the request sets `around`. Messages that the answer already shows are
    /// left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<NearMessage>,
    /// The messages directly after the hit, if the request sets `around`. Messages that the answer already shows are
    /// left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<NearMessage>,
    /// The latest message after the hit that contradicts it, found by comparing words: see [`memory_search::Changes`].
    /// `None` if no such message was found, or if the request did not ask for one
    /// ([`GrepArgs::corrections`](crate::GrepArgs::corrections)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub later: Option<NearMessage>,
    /// Name of the message's author. `None` for a message without a name, and for a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Cursor that continues the search after this hit.
    #[serde(skip)]
    pub(crate) cursor: String,
}

impl GrepHit {
    /// Returns the argument with which `expand` reads this hit: a pointer such as `message:12`, or the id of the
    /// summary.
    pub fn pointer(&self) -> String {
        match (&self.summary_id, self.seq) {
            (Some(id), _) => id.to_string(),
            (None, seq) => format!("message:{}", seq.unwrap_or_default()),
        }
    }

    /// Writes the lines of the hit for a model, without its number.
    pub(crate) fn write(&self, out: &mut String) {
        if let Some(seq) = self.seq {
            let citation = Citation {
                seq,
                role: self.role,
                name: self.name.as_deref(),
                day: Day(self.created_at).to_string(),
            };
            let _ = write!(out, "{citation}");
        }
        // The day on which a summary was made would be read as the day of its messages.
        if let Some(id) = &self.summary_id {
            let _ = write!(out, "summary {id}");
        }
        if let (Some(first), Some(last)) = (self.first, self.last) {
            let _ = write!(out, " of [{first}]-[{last}]");
        }
        behind(out, &self.snippet);
        for (label, messages) in [(BEFORE, &self.before), (AFTER, &self.after)] {
            messages
                .iter()
                .for_each(|near| out.push_str(&near.line(label)));
        }
        if let Some(later) = &self.later {
            out.push_str(&later.line(LATER));
        }
    }

    /// Returns the lines of the hit with a placeholder for its number.
    pub(crate) fn line(&self) -> String {
        let mut line = String::from("100. ");
        self.write(&mut line);
        line
    }

    /// Shortens the snippet until the hit fits. The snippet becomes empty if no part of it fits.
    pub(crate) fn shorten(&mut self, fits: impl Fn(&Self) -> bool) {
        if fits(self) {
            return;
        }
        let snippet = std::mem::take(&mut self.snippet);
        let end = longest(&snippet, |cut| {
            self.snippet = format!("{cut}…");
            fits(self)
        });
        self.snippet = match end {
            0 => String::new(),
            end => format!("{}…", snippet.get(..end).unwrap_or_default()),
        };
    }
}

impl From<Hit> for GrepHit {
    fn from(hit: Hit) -> Self {
        let mut out = Self {
            kind: HitKind::Message,
            seq: None,
            summary_id: None,
            first: None,
            last: None,
            external_id: None,
            role: None,
            score: hit.score,
            snippet: hit.snippet,
            created_at: hit.created_at,
            before: Vec::new(),
            after: Vec::new(),
            later: None,
            name: hit.name,
            cursor: hit.cursor,
        };
        match hit.target {
            HitTarget::Message {
                seq,
                external_id,
                role,
            } => {
                out.seq = Some(seq);
                out.external_id = external_id;
                out.role = Some(role);
            }
            HitTarget::Summary { id, range } => {
                out.kind = HitKind::Summary;
                out.summary_id = Some(id);
                out.first = Some(range.first);
                out.last = Some(range.last);
            }
        }
        out
    }
}
