//! What `grep` is asked and what it answers.

use std::fmt::Write as _;

use memory_model::{Role, Seq, SummaryId, Timestamp};
use memory_store::{Found, Hit, Hits, Scope};
use serde::Serialize;

use crate::text::{quoted, rfc3339, short};

/// How many hits an answer has at most when nothing is said: 20 (anna's default).
pub const DEFAULT_LIMIT: usize = 20;

/// What to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrepArgs {
    /// The text to find, literally, whatever its case. No character has a special meaning.
    pub pattern: String,
    /// Where to look; both by default.
    pub scope: Scope,
    /// At most so many hits in all; 0 stands for [`DEFAULT_LIMIT`].
    pub limit: usize,
    /// The cursor of an incomplete answer to the same pattern and scope in the same session, to go
    /// on after it.
    pub cursor: Option<String>,
}

impl GrepArgs {
    /// Looks for `pattern` in messages and summaries, at most 20 hits.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            scope: Scope::Both,
            limit: DEFAULT_LIMIT,
            cursor: None,
        }
    }

    /// Sets where to look.
    pub fn with_scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Sets the largest number of hits; 0 stands for [`DEFAULT_LIMIT`].
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Goes on after an incomplete answer.
    pub fn with_cursor(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }
}

impl From<&GrepArgs> for GrepArgs {
    fn from(args: &GrepArgs) -> Self {
        args.clone()
    }
}

impl From<&str> for GrepArgs {
    fn from(pattern: &str) -> Self {
        Self::new(pattern)
    }
}

/// What `grep` found. It serialises to the JSON that scripts rely on.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GrepAnswer {
    /// What was looked for.
    pub pattern: String,
    /// How the search was done.
    pub strategy: &'static str,
    /// Where it looked.
    pub scope: Scope,
    /// Whether these are all hits from the cursor on.
    pub complete: bool,
    /// Where to go on when they are not; it belongs to this session, pattern and scope.
    pub cursor: Option<String>,
    /// Messages in log order, then summaries in the order of their making.
    pub hits: Vec<GrepHit>,
}

/// What a hit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HitKind {
    /// A message.
    Message,
    /// A summary.
    Summary,
}

/// One find.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GrepHit {
    /// What was found.
    pub kind: HitKind,
    /// A message's position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    /// A summary's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_id: Option<SummaryId>,
    /// The first message that a summary covers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Seq>,
    /// The last message that a summary covers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Seq>,
    /// The source's own id of a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// Who said a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// How well it matches; 0 where the strategy does not rank (anna's relevance).
    pub score: f64,
    /// The text around the first match, with `…` where it was cut.
    pub snippet: String,
    /// When it was said or made.
    #[serde(serialize_with = "rfc3339")]
    pub created_at: Timestamp,
}

impl GrepAnswer {
    pub(crate) fn new(pattern: String, hits: Hits, cursor: Option<String>) -> Self {
        Self {
            pattern,
            strategy: hits.strategy,
            scope: hits.scope,
            complete: hits.complete,
            cursor,
            hits: hits.hits.into_iter().map(GrepHit::from).collect(),
        }
    }

    /// The answer as a model reads it: one numbered line a hit, each snippet in quotes with its
    /// line breaks escaped, and how to go on when there is more.
    pub fn to_text(&self) -> String {
        if self.hits.is_empty() {
            return "No matches found.\n".to_owned();
        }
        let mut out = String::new();
        for (index, hit) in self.hits.iter().enumerate() {
            let _ = write!(out, "{}. ", index + 1);
            if let Some(seq) = hit.seq {
                let _ = write!(out, "message:{seq}");
            }
            if let Some(role) = hit.role {
                let _ = write!(out, " {role}");
            }
            if let Some(id) = &hit.summary_id {
                let _ = write!(out, "summary {id}");
            }
            if let (Some(first), Some(last)) = (hit.first, hit.last) {
                let _ = write!(out, " of messages:{first}-{last}");
            }
            let _ = writeln!(out, " {} {}", hit.created_at, quoted(&hit.snippet));
        }
        match &self.cursor {
            None => out.push_str("These are all matches.\n"),
            Some(cursor) => {
                let _ = writeln!(
                    out,
                    "There are more: repeat the call with cursor {}.",
                    short(cursor)
                );
            }
        }
        out
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
            score: 0.0,
            snippet: hit.snippet,
            created_at: hit.created_at,
        };
        match hit.found {
            Found::Message {
                seq,
                external_id,
                role,
            } => {
                out.seq = Some(seq);
                out.external_id = external_id;
                out.role = Some(role);
            }
            Found::Summary { id, range } => {
                out.kind = HitKind::Summary;
                out.summary_id = Some(id);
                out.first = Some(range.first);
                out.last = Some(range.last);
            }
        }
        out
    }
}
