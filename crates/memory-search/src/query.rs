//! The query: a pattern, how it is read, filters, an order, a limit.

use std::borrow::Cow;

use memory_model::conventions::is_memory_tool;
use memory_model::{Role, SeqRange, Timestamp};
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::fallback::{Fallback, MAX_PATTERN_CHARS};
use crate::stop::SearchStop;

/// The way in which a search reads a pattern.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SearchMode {
    /// The pattern is text: a hit contains it, in any case and Unicode normal form. No character has a special meaning.
    /// Every search supports this mode.
    #[default]
    Literal,
    /// The pattern is a regular expression, in the syntax of the crate `regex`, that matches somewhere in a hit's text.
    /// Case and normal forms are ignored, and `^` and `$` match at line breaks. A pattern that is not a regular
    /// expression is searched for literally, and the answer says so.
    Regex,
    /// The pattern is a list of words: a hit contains all of them as whole words, in any form and order. A pattern
    /// without words is searched for literally, and the answer says so.
    Words,
    /// The pattern is a question or a description; hits are ranked by how well they answer the question. A hit has a
    /// word of the pattern, or is close to a message that has one. With an embedder, messages of nearly the same
    /// meaning are hits too.
    Prose,
    /// The pattern is read as `Literal`; if that has no hits, as `Words`; if that has none either, as `Prose`. The
    /// answer says which mode had hits. A pattern that is too long for the first two modes is read as `Prose` at once.
    Auto,
}

impl SearchMode {
    /// Returns the mode's name in lower case, such as `literal`.
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
    /// Returns the scope's name in lower case, such as `messages`.
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
    /// Hits with the highest scores first. A search that does not rank uses the order [`HitOrder::Oldest`].
    #[default]
    Relevance,
    /// Messages in the order of the log, then summaries in the order in which they were made.
    Oldest,
    /// Messages in the reverse order of the log, then summaries in the reverse order in which they were made.
    Newest,
}

/// A search query. The defaults find a literal pattern in messages and summaries, in at most 20
/// hits with snippets of 500 characters.
///
/// The fields `scope`, `roles`, `tools`, `range`, `since` and `until` are filters. Every hit passes all filters.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Query {
    /// The text to search for. An empty pattern is refused, and so is one of more than [`MAX_PATTERN_CHARS`]
    /// characters. In the modes `Prose` and `Auto` the beginning of a longer pattern is used instead, and the answer
    /// says so.
    pub pattern: String,
    /// The way in which the pattern is read.
    pub mode: SearchMode,
    /// Whether the search is case-sensitive if the pattern contains an upper-case letter. Applies to the modes
    /// `Literal` and `Regex`; words always match in any case. Default false.
    pub smart_case: bool,
    /// The kind of content to search: messages, summaries or both.
    pub scope: SearchScope,
    /// Roles of the messages to find; empty for all. Summaries have no role and are found only if this is empty.
    pub roles: Vec<Role>,
    /// Names of tools: only messages that call one of them or hold its result are found. Empty for all messages. A name
    /// matches with or without the name of the tool's server before it ([`names_tool`]), in any Unicode normal form.
    /// Summaries are found only if this is empty.
    ///
    /// [`names_tool`]: memory_model::conventions::names_tool
    pub tools: Vec<String>,
    /// Whether to search calls of this memory's own tools and their results (echoes), which repeat earlier messages.
    /// Default false. Echoes are always searched if [`tools`](Self::tools) names one of these tools.
    pub echoes: bool,
    /// Positions to search: only messages at these positions and summaries that cover one of them are found. `None` for
    /// all positions.
    pub range: Option<SeqRange>,
    /// Earliest time, inclusive: only messages from this time on and summaries that cover such messages are found.
    /// `None` for no limit.
    pub since: Option<Timestamp>,
    /// Latest time, exclusive: only messages before this time and summaries that cover such messages are found. `None`
    /// for no limit.
    pub until: Option<Timestamp>,
    /// Order of the hits in an answer.
    pub order: HitOrder,
    /// Maximum number of hits in an answer; 0 counts as 1.
    pub limit: usize,
    /// Cursor from an earlier answer: the search continues after it. The other fields except `limit` must be the same
    /// as in the earlier query. `None` starts at the first hit.
    pub cursor: Option<String>,
    /// Maximum length of a hit's snippet, in characters; 0 counts as 1.
    pub snippet_chars: usize,
    /// Condition that ends the search early; `None` to search to the end.
    pub stop: Option<SearchStop>,
}

impl Query {
    /// Creates a query for a literal pattern, with default settings.
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

    /// Checks the conditions that all searches have in common.
    ///
    /// # Errors
    /// `Invalid` for an empty pattern, and for one of more than [`MAX_PATTERN_CHARS`] characters in the modes
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

    /// Returns the byte offset of the first character of the pattern beyond the maximum; `None` if the pattern is short
    /// enough.
    fn long_at(&self) -> Option<usize> {
        // A character takes at least a byte.
        let may_be_long = self.pattern.len() > MAX_PATTERN_CHARS;
        let mut chars = may_be_long.then(|| self.pattern.char_indices())?;
        chars.nth(MAX_PATTERN_CHARS).map(|(at, _)| at)
    }

    /// [Checks](Self::check) the query and returns it. In the mode `Prose` a pattern that is too long is cut to its
    /// beginning, and the fallback says so.
    ///
    /// # Errors
    /// As [`check`](Self::check).
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

    /// Returns whether [`stop`](Self::stop) says that the search must end now; `false` without a stop.
    pub fn is_over(&self) -> bool {
        self.stop.as_ref().is_some_and(SearchStop::is_over)
    }

    /// Sets the condition that ends the search early.
    #[must_use]
    pub fn with_stop(mut self, stop: SearchStop) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Sets the way in which the pattern is read.
    #[must_use]
    pub fn with_mode(mut self, mode: SearchMode) -> Self {
        self.mode = mode;
        self
    }

    /// Makes the search case-sensitive if the pattern contains an upper-case letter.
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

    /// Sets the roles of the messages to find.
    #[must_use]
    pub fn with_roles(mut self, roles: impl Into<Vec<Role>>) -> Self {
        self.roles = roles.into();
        self
    }

    /// Sets the names of tools: only messages that call one of them or hold its result are found.
    #[must_use]
    pub fn with_tools<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.tools = tools.into_iter().map(Into::into).collect();
        self
    }

    /// Includes calls of this memory's own tools and their results in the search.
    #[must_use]
    pub fn with_echoes(mut self) -> Self {
        self.echoes = true;
        self
    }

    /// Returns whether calls of this memory's own tools and their results are searched: because `echoes` is set, or
    /// because `tools` names one of these tools.
    pub fn searches_echoes(&self) -> bool {
        self.echoes || self.tools.iter().any(|tool| is_memory_tool(tool))
    }

    /// Sets the positions to search: only messages at them and summaries that cover one of them are found.
    #[must_use]
    pub fn with_range(mut self, range: SeqRange) -> Self {
        self.range = Some(range);
        self
    }

    /// Sets the earliest time, inclusive, of the messages to find.
    #[must_use]
    pub fn with_since(mut self, since: Timestamp) -> Self {
        self.since = Some(since);
        self
    }

    /// Sets the latest time, exclusive, of the messages to find.
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

    /// Sets the maximum number of hits in an answer.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the cursor from an earlier answer, so that the search continues after it.
    #[must_use]
    pub fn with_cursor(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }

    /// Sets the maximum length of a snippet, in characters.
    #[must_use]
    pub fn with_snippet_chars(mut self, chars: usize) -> Self {
        self.snippet_chars = chars;
        self
    }
}
