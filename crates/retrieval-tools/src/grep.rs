//! Arguments and answer of `grep`.

use std::borrow::Cow;
use std::fmt::Write as _;

use memory_model::{Role, Seq, SummaryId, Timestamp};
use memory_search::{Hit, HitTarget, Hits, SearchScope};
use serde::Serialize;

use crate::text::{quoted, rfc3339, short};

/// Maximum number of hits in an answer when a call sets none.
pub const DEFAULT_LIMIT: usize = 20;

/// Arguments of `grep`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrepArgs {
    /// The text to find, literally, whatever its case. No character has a special meaning.
    pub pattern: String,
    /// What is searched; messages and summaries by default.
    pub scope: SearchScope,
    /// Maximum number of hits; 0 stands for [`DEFAULT_LIMIT`].
    pub limit: usize,
    /// The cursor of an incomplete answer to the same pattern and scope in the same session.
    pub cursor: Option<String>,
}

impl GrepArgs {
    /// Arguments for a pattern in messages and summaries, with the default limit.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            scope: SearchScope::Both,
            limit: DEFAULT_LIMIT,
            cursor: None,
        }
    }

    /// Sets what is searched.
    pub fn with_scope(mut self, scope: SearchScope) -> Self {
        self.scope = scope;
        self
    }

    /// Sets the maximum number of hits; 0 stands for [`DEFAULT_LIMIT`].
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Continues an incomplete answer.
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

impl From<&String> for GrepArgs {
    fn from(pattern: &String) -> Self {
        Self::new(pattern)
    }
}

/// Answer of `grep`. It serializes to the JSON that scripts rely on.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GrepAnswer {
    /// The pattern.
    pub pattern: String,
    /// Name of the strategy that found the hits.
    pub strategy: Cow<'static, str>,
    /// What was searched.
    pub scope: SearchScope,
    /// Whether there are no further hits.
    pub complete: bool,
    /// Where to continue; `None` when complete. It is bound to this session, pattern and scope.
    pub cursor: Option<String>,
    /// The hits, in the order of the search.
    pub hits: Vec<GrepHit>,
}

/// Kind of a hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HitKind {
    /// A message.
    Message,
    /// A summary.
    Summary,
}

/// One hit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GrepHit {
    /// Whether it is a message or a summary.
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
    /// A message's role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// How well it matches; higher is better. 0 where the strategy does not rank.
    pub score: f64,
    /// The text around the first match, with `…` where it was cut.
    pub snippet: String,
    /// When the message was said or the summary was made.
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
            score: hit.score,
            snippet: hit.snippet,
            created_at: hit.created_at,
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
