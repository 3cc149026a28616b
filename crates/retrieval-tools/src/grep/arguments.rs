//! Arguments of `grep`.

use memory_model::{Role, Seq, SeqRange, Timestamp};
use memory_search::{HitOrder, Query, SearchMode, SearchScope};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::arguments::Arguments;
use crate::error::Error;

/// Default maximum number of hits in an answer.
pub(crate) const DEFAULT_LIMIT: usize = 20;

/// Maximum number of neighbouring messages to show before a hit, and after a hit.
pub(crate) const MAX_AROUND: usize = 5;

/// Maximum length of a hit's snippet, in characters.
const SNIPPET_CHARS: usize = 500;

/// Arguments of [`Retrieval::grep`](crate::Retrieval::grep), the tool `memory_grep`. The comments of the fields are
/// also their descriptions for a model. A position is the number of a message in the conversation, from 1.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["pattern"]))]
pub struct GrepArgs {
    /// The text to find: a phrase, words, a question, or a regular expression (mode regex).
    pub pattern: String,
    /// How the pattern is read; auto if not given: literal, then words (all of them), then prose (any of them,
    /// best first).
    #[schemars(with = "String", extend("enum" = ["auto", "literal", "regex", "words", "prose"]))]
    pub mode: SearchMode,
    /// Whether upper case in the pattern counts; false if not given. For literal and regex.
    pub smart_case: bool,
    /// Where to look; both if not given.
    #[schemars(with = "String", extend("enum" = ["messages", "summaries", "both"]))]
    pub scope: SearchScope,
    /// Only messages of these roles; all if not given.
    #[schemars(with = "Vec<String>", extend("items" = {
        "enum": ["system", "user", "assistant", "tool"], "type": "string"
    }))]
    pub roles: Vec<Role>,
    /// Only messages that call this tool or hold its result; all if not given.
    #[serde(rename = "tool", deserialize_with = "one_tool")]
    #[schemars(with = "String")]
    pub tools: Vec<String>,
    /// Whether calls of these memory tools and their results are searched too; false if not given.
    pub echoes: bool,
    /// Number of messages to show before and after each hit; 0 if not given, at most 5.
    pub around: usize,
    /// Whether to show with each hit the latest message after it that contradicts it. This takes a second search,
    /// ranked by relevance. Applies only in the order `Relevance` and without `echoes`. Default false; true in the
    /// arguments of a model's call.
    #[serde(skip, default = "yes")]
    pub corrections: bool,
    /// Only messages from this position on.
    #[schemars(with = "Option<u32>")]
    pub first: Option<Seq>,
    /// Only messages up to this position, inclusive.
    #[schemars(with = "Option<u32>")]
    pub last: Option<Seq>,
    /// Only from this time on, such as 2026-02-08T09:16:00Z.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub since: Option<Timestamp>,
    /// Only before this time.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub until: Option<Timestamp>,
    /// Order of the hits; relevance if not given.
    #[schemars(with = "String", extend("enum" = ["relevance", "oldest", "newest"]))]
    pub order: HitOrder,
    /// Maximum number of hits; 20 if not given.
    #[schemars(extend("default" = DEFAULT_LIMIT))]
    pub limit: usize,
    /// The cursor of an earlier answer, to go on after it; the other arguments stay the same.
    pub cursor: Option<String>,
}

fn one_tool<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    String::deserialize(deserializer).map(|tool| vec![tool])
}

fn yes() -> bool {
    true
}

impl Default for GrepArgs {
    fn default() -> Self {
        Self {
            pattern: String::new(),
            mode: SearchMode::Auto,
            smart_case: false,
            scope: SearchScope::Both,
            roles: Vec::new(),
            tools: Vec::new(),
            echoes: false,
            around: 0,
            corrections: false,
            first: None,
            last: None,
            since: None,
            until: None,
            order: HitOrder::Relevance,
            limit: DEFAULT_LIMIT,
            cursor: None,
        }
    }
}

impl Arguments for GrepArgs {
    const NAME: &'static str = "memory_grep";
    const TITLE: &'static str = "Search the conversation";
    const DESCRIPTION: &'static str = "Search the whole conversation, also where it was summarized. By default for the \
        exact phrase, then for all of its words, then for any of them; the answer says which. Answers with numbered \
        hits: [n] for the message n, or a summary id (read more with memory_expand, message:n or the id), and a snippet.";
}

impl GrepArgs {
    /// Creates arguments that search messages and summaries for `pattern`.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            ..Self::default()
        }
    }

    /// Returns the requested range of positions. `None` if the arguments set neither `first` nor `last`.
    pub(crate) fn range(&self) -> crate::Result<Option<SeqRange>> {
        if self.first.is_none() && self.last.is_none() {
            return Ok(None);
        }
        let first = self.first.unwrap_or(Seq::FIRST).max(Seq::FIRST);
        let last = self.last.unwrap_or(Seq(u32::MAX));
        SeqRange::new(first, last).map(Some).ok_or_else(|| {
            Error::invalid(format!(
                "first is {first} and last is {last}: give the smaller number first; the first message is 1"
            ))
        })
    }

    /// Returns the search query for these arguments, without range and cursor.
    pub(crate) fn query(&self, limit: usize) -> Query {
        let mut query = Query::new(self.pattern.as_str())
            .with_mode(self.mode)
            .with_scope(self.scope)
            .with_roles(self.roles.clone())
            .with_order(self.order)
            .with_limit(limit)
            .with_snippet_chars(SNIPPET_CHARS);
        query.smart_case = self.smart_case;
        query.tools = self.tools.clone();
        query.echoes = self.echoes;
        query.since = self.since;
        query.until = self.until;
        query
    }

    /// Returns whether a filter other than the scope excludes messages.
    pub(crate) fn is_filtered(&self) -> bool {
        !self.roles.is_empty()
            || !self.tools.is_empty()
            || self.first.is_some()
            || self.last.is_some()
            || self.since.is_some()
            || self.until.is_some()
    }

    /// Returns whether later contradictions are shown with the hits.
    pub(crate) fn shows_corrections(&self) -> bool {
        self.corrections && self.order == HitOrder::Relevance && !self.echoes
    }

    /// Returns the text that identifies the search. A cursor is valid only for calls with the same text.
    pub(crate) fn question(&self) -> String {
        let asked = Self {
            limit: 0,
            around: 0,
            corrections: false,
            cursor: None,
            ..self.clone()
        };
        format!("{asked:?}")
    }
}

impl From<&str> for GrepArgs {
    fn from(pattern: &str) -> Self {
        Self::new(pattern)
    }
}
