//! The query of a search: a pattern with its mode, filters, an order and a limit.

use std::borrow::Cow;

use memory_model::conventions::is_memory_tool;
use memory_model::{Role, SeqRange, Timestamp};
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::fallback::{Fallback, MAX_PATTERN_CHARS};
use crate::stop::SearchStop;

/// Way in which a search interprets the pattern of a [`Query`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SearchMode {
    /// The pattern is plain text, without special characters. A hit contains this text. By default, case and Unicode
    /// normal form are ignored. Every search supports this mode.
    #[default]
    Literal,
    /// The pattern is a regular expression in the syntax of the crate `regex`. A hit contains a match. By default, case
    /// and Unicode normal form are ignored. `^` and `$` match at line breaks. A pattern that is not a valid regular
    /// expression is searched for literally, and [`Hits::fallback`](crate::Hits::fallback) reports this.
    Regex,
    /// The pattern is a list of words. A hit contains each of them as a whole word, in any order and grammatical form:
    /// `fails` matches `failed`. A pattern without words is searched for literally, and
    /// [`Hits::fallback`](crate::Hits::fallback) reports this.
    Words,
    /// The pattern is a question or a description. Hits are ranked by how well they answer the question. A hit contains
    /// a word of the pattern, or is close to a message that contains one. With an [`Embedder`](crate::Embedder),
    /// messages of nearly the same meaning are hits too.
    Prose,
    /// The search tries the modes `Literal`, `Words` and `Prose` in this order, until a mode has hits.
    /// [`Hits::fallback`](crate::Hits::fallback) reports the mode with hits. A pattern that is too long for the first
    /// two modes is read as `Prose` at once.
    Auto,
}

impl SearchMode {
    /// Returns the name of the mode in lower case, such as `literal`.
    pub fn as_str(self) -> &'static str {
        match self {
            SearchMode::Literal => "literal",
            SearchMode::Regex => "regex",
            SearchMode::Words => "words",
            SearchMode::Prose => "prose",
            SearchMode::Auto => "auto",
        }
    }
}

/// Kind of content that is searched: messages, summaries or both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SearchScope {
    /// Only messages are searched.
    Messages,
    /// Only summaries are searched.
    Summaries,
    /// Messages and summaries are searched.
    #[default]
    Both,
}

impl SearchScope {
    /// Returns the name of the scope in lower case, such as `messages`.
    pub fn as_str(self) -> &'static str {
        match self {
            SearchScope::Messages => "messages",
            SearchScope::Summaries => "summaries",
            SearchScope::Both => "both",
        }
    }

    /// Returns whether the scope includes messages.
    pub fn has_messages(self) -> bool {
        self != SearchScope::Summaries
    }

    /// Returns whether the scope includes summaries.
    pub fn has_summaries(self) -> bool {
        self != SearchScope::Messages
    }
}

/// Order of the hits in an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HitOrder {
    /// Best match first, by [`Hit::score`](crate::Hit::score). A search that does not rank its hits uses the order
    /// `Oldest`.
    #[default]
    Relevance,
    /// Messages in the order of the log, then summaries in the order of their creation.
    Oldest,
    /// Messages in the reverse order of the log, then summaries in the reverse order of their creation.
    Newest,
}

/// A search query. By default, it finds a literal pattern in messages and summaries, and the answer contains at most 20
/// hits with snippets of at most 500 characters.
///
/// The fields `scope`, `roles`, `tools`, `range`, `since` and `until` are filters. Every hit satisfies all filters.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Query {
    /// Text, words, question or regular expression to search for. An empty pattern is an error. In the modes `Literal`,
    /// `Regex` and `Words`, a pattern of more than [`MAX_PATTERN_CHARS`] characters is an error. In the modes `Prose`
    /// and `Auto`, the search uses only the beginning of a longer pattern, and
    /// [`Hits::fallback`](crate::Hits::fallback) reports this.
    pub pattern: String,
    /// Way in which the pattern is interpreted, for example as plain text or as a regular expression.
    pub mode: SearchMode,
    /// Whether the search distinguishes upper and lower case if the pattern contains an upper-case letter. Applies only
    /// to the modes `Literal` and `Regex`. Default false.
    pub smart_case: bool,
    /// Kind of content to search: messages, summaries or both.
    pub scope: SearchScope,
    /// Roles of the messages to find. Empty for all roles. A non-empty list excludes all summaries, because summaries
    /// have no role.
    pub roles: Vec<Role>,
    /// Names of tools. The search finds only messages that call one of these tools or contain a result of one. Empty
    /// for all messages. A name matches in any Unicode normal form, with or without the name of the tool's server
    /// before it ([`names_tool`]). A non-empty list excludes all summaries.
    ///
    /// [`names_tool`]: memory_model::conventions::names_tool
    pub tools: Vec<String>,
    /// Whether to search the calls and results of this memory's own tools, such as `memory_grep`. They repeat earlier
    /// messages and are therefore called echoes. Default false. Echoes are always searched if [`tools`](Self::tools)
    /// contains one of these tools.
    pub echoes: bool,
    /// Positions of the log to search. The search finds only messages at these positions, and summaries that cover at
    /// least one of them. `None` for all positions.
    pub range: Option<SeqRange>,
    /// Earliest time, inclusive. The search finds only messages from this time on, and summaries that cover at least
    /// one of them. `None` for no limit.
    pub since: Option<Timestamp>,
    /// Latest time, exclusive. The search finds only messages before this time, and summaries that cover at least one
    /// of them. `None` for no limit.
    pub until: Option<Timestamp>,
    /// Order of the hits in an answer.
    pub order: HitOrder,
    /// Maximum number of hits in an answer. 0 counts as 1.
    pub limit: usize,
    /// Cursor from an earlier answer, after which the search continues. All other fields except `limit` must have the
    /// same values as in the earlier query. `None` starts at the first hit.
    pub cursor: Option<String>,
    /// Maximum length of a hit's snippet, in characters. 0 counts as 1.
    pub snippet_chars: usize,
    /// Condition that ends the search early, such as a deadline. `None` to search to the end.
    pub stop: Option<SearchStop>,
}

impl Query {
    /// Creates a query that searches for a literal pattern, with default settings.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            mode: SearchMode::default(),
            smart_case: false,
            scope: SearchScope::default(),
            roles: Vec::new(),
            tools: Vec::new(),
            echoes: false,
            range: None,
            since: None,
            until: None,
            order: HitOrder::default(),
            limit: 20,
            cursor: None,
            snippet_chars: 500,
            stop: None,
        }
    }

    /// Checks that the pattern is not empty, and not too long for the query's mode.
    ///
    /// # Errors
    /// `Invalid` for an empty pattern, and for a pattern of more than [`MAX_PATTERN_CHARS`] characters in the modes
    /// `Literal`, `Regex` and `Words`.
    pub(crate) fn check(&self) -> Result<()> {
        if self.pattern.is_empty() {
            return Err(Error::new(
                ErrorKind::Invalid,
                "the pattern is empty: give some text to find",
            ));
        }
        if self.has_long_pattern() && !matches!(self.mode, SearchMode::Prose | SearchMode::Auto) {
            let message = format!(
                "the pattern has {} characters, and at most {MAX_PATTERN_CHARS} are searched for: give a shorter part \
                 of it, or search for it in the mode `{}`",
                self.pattern.chars().count(),
                SearchMode::Prose.as_str(),
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        Ok(())
    }

    /// Returns whether the pattern has more than [`MAX_PATTERN_CHARS`] characters.
    pub fn has_long_pattern(&self) -> bool {
        self.long_at().is_some()
    }

    /// Returns the byte offset of the first character beyond the maximum length. `None` if the pattern is not too long.
    fn long_at(&self) -> Option<usize> {
        // Each character takes at least one byte.
        let may_be_long = self.pattern.len() > MAX_PATTERN_CHARS;
        let mut chars = may_be_long.then(|| self.pattern.char_indices())?;
        chars.nth(MAX_PATTERN_CHARS).map(|(at, _)| at)
    }

    /// [Checks](Self::check) the query and returns it. In the mode `Prose`, a pattern that is too long is cut to the
    /// maximum length. The returned [`Fallback`] reports the cut.
    ///
    /// # Errors
    /// The errors of [`check`](Self::check).
    pub(crate) fn bounded(&self) -> Result<(Cow<'_, Self>, Option<Fallback>)> {
        self.check()?;
        let Some(end) = self.long_at().filter(|_| self.mode == SearchMode::Prose) else {
            return Ok((Cow::Borrowed(self), None));
        };
        let chars = self.pattern.chars().count();
        let mut query = self.clone();
        query.pattern.truncate(end);
        Ok((Cow::Owned(query), Some(Fallback::LongPattern { chars })))
    }

    /// Returns whether the condition in [`stop`](Self::stop) is true, so that the search must end now. Returns `false`
    /// if there is no condition.
    pub fn is_over(&self) -> bool {
        self.stop.as_ref().is_some_and(SearchStop::is_over)
    }

    /// Sets the condition that ends the search early.
    #[must_use]
    pub fn with_stop(mut self, stop: SearchStop) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Sets the way in which the pattern is interpreted.
    #[must_use]
    pub fn with_mode(mut self, mode: SearchMode) -> Self {
        self.mode = mode;
        self
    }

    /// Makes the search distinguish upper and lower case if the pattern contains an upper-case letter.
    #[must_use]
    pub fn with_smart_case(mut self) -> Self {
        self.smart_case = true;
        self
    }

    /// Sets the kind of content to search: messages, summaries or both.
    #[must_use]
    pub fn with_scope(mut self, scope: SearchScope) -> Self {
        self.scope = scope;
        self
    }

    /// Restricts the search to messages of these roles. An empty list removes the restriction.
    #[must_use]
    pub fn with_roles(mut self, roles: impl Into<Vec<Role>>) -> Self {
        self.roles = roles.into();
        self
    }

    /// Restricts the search to messages that call one of these tools or contain a result of one. An empty list removes
    /// the restriction.
    #[must_use]
    pub fn with_tools<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.tools = tools.into_iter().map(Into::into).collect();
        self
    }

    /// Includes the calls and results of this memory's own tools in the search.
    #[must_use]
    pub fn with_echoes(mut self) -> Self {
        self.echoes = true;
        self
    }

    /// Returns whether the search covers the calls and results of this memory's own tools. This is so if
    /// [`echoes`](Self::echoes) is set, or if [`tools`](Self::tools) contains one of these tools.
    pub fn searches_echoes(&self) -> bool {
        self.echoes || self.tools.iter().any(|tool| is_memory_tool(tool))
    }

    /// Restricts the search to messages at these positions and summaries that cover at least one of them.
    #[must_use]
    pub fn with_range(mut self, range: SeqRange) -> Self {
        self.range = Some(range);
        self
    }

    /// Restricts the search to messages from this time on, and summaries that cover at least one of them.
    #[must_use]
    pub fn with_since(mut self, since: Timestamp) -> Self {
        self.since = Some(since);
        self
    }

    /// Restricts the search to messages before this time, and summaries that cover at least one of them.
    #[must_use]
    pub fn with_until(mut self, until: Timestamp) -> Self {
        self.until = Some(until);
        self
    }

    /// Sets the order of the hits in an answer.
    #[must_use]
    pub fn with_order(mut self, order: HitOrder) -> Self {
        self.order = order;
        self
    }

    /// Sets the maximum number of hits in an answer. 0 counts as 1.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Sets a cursor from an earlier answer. The search continues after this cursor.
    #[must_use]
    pub fn with_cursor(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }

    /// Sets the maximum length of a hit's snippet, in characters. 0 counts as 1.
    #[must_use]
    pub fn with_snippet_chars(mut self, chars: usize) -> Self {
        self.snippet_chars = chars;
        self
    }
}
