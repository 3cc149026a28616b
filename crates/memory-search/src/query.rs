//! The query: a pattern, how it is read, filters, an order, a limit.

use std::borrow::Cow;

use memory_model::conventions::is_memory_tool;
use memory_model::{Role, SeqRange, Timestamp};
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::fallback::{Fallback, MAX_PATTERN_CHARS};
use crate::stop::SearchStop;

/// Interpretation of a pattern.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SearchMode {
    /// The pattern occurs in the text, in any case and normal form. No character has a special meaning. Every search
    /// supports this mode.
    #[default]
    Literal,
    /// The pattern is a regular expression, in the syntax of the crate `regex`, that matches somewhere
    /// in the text. Case and normal forms are ignored, and `^` and `$` match at line breaks. A pattern that is not a
    /// regular expression is searched for literally, and the answer says so.
    Regex,
    /// Every word of the pattern occurs in one of the texts as a whole word, in any form and order. A
    /// pattern without words is searched for literally, and the answer says so.
    Words,
    /// The pattern is a question or a description; hits are ranked by how well they answer it. A hit has a word of the
    /// pattern, or is close to a message that has one. With an embedder, messages of nearly the same meaning are hits
    /// too.
    Prose,
    /// The pattern is read as `Literal`; if that has no hits, as `Words`; if that has none either, as `Prose`. The
    /// answer says which it was. A pattern that is too long for the first two is read as `Prose` at once.
    Auto,
}

impl SearchMode {
    /// The mode's name.
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

/// Scope of a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SearchScope {
    /// Messages only.
    Messages,
    /// Summaries only.
    Summaries,
    /// Messages and summaries.
    #[default]
    Both,
}

impl SearchScope {
    /// The scope's name.
    pub fn as_str(self) -> &'static str {
        match self {
            SearchScope::Messages => "messages",
            SearchScope::Summaries => "summaries",
            SearchScope::Both => "both",
        }
    }

    /// Whether messages are searched.
    pub fn has_messages(self) -> bool {
        self != SearchScope::Summaries
    }

    /// Whether summaries are searched.
    pub fn has_summaries(self) -> bool {
        self != SearchScope::Messages
    }
}

/// Order of the hits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HitOrder {
    /// Highest score first. A search that does not rank answers as for [`HitOrder::Oldest`].
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
/// Filters narrow each other: a hit passes all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Query {
    /// The text to find. An empty pattern is refused, and so is one of more than [`MAX_PATTERN_CHARS`] characters. In
    /// the modes `Prose` and `Auto` the beginning of a longer pattern is used instead, and the answer says so.
    pub pattern: String,
    /// Interpretation of the pattern.
    pub mode: SearchMode,
    /// Whether a pattern with an upper-case letter matches in that case alone. Applies to the modes `Literal` and
    /// `Regex`; words match in any case.
    pub smart_case: bool,
    /// Scope of the search.
    pub scope: SearchScope,
    /// Finds only messages of these roles; empty for all. Summaries have no role and are found
    /// only while this is empty.
    pub roles: Vec<Role>,
    /// Finds only messages that call one of these tools or have its result, by the tool's own name, with or without a
    /// server's name before it ([`names_tool`]), in either normal form; empty for all. Summaries are found only while
    /// this is empty.
    ///
    /// [`names_tool`]: memory_model::conventions::names_tool
    pub tools: Vec<String>,
    /// Whether echoes are searched too: calls of this memory's own tools and their results, which repeat earlier
    /// messages. False by default. A filter on such a tool always searches them.
    pub echoes: bool,
    /// Finds only messages at these positions, and summaries that cover one of them.
    pub range: Option<SeqRange>,
    /// Finds only messages from this time on, and summaries that cover messages from it on.
    pub since: Option<Timestamp>,
    /// Finds only messages before this time, and summaries that cover messages before it.
    pub until: Option<Timestamp>,
    /// Order of the hits.
    pub order: HitOrder,
    /// Maximum number of hits; 0 counts as 1.
    pub limit: usize,
    /// Cursor of an earlier answer to the same query; only the limit may differ.
    pub cursor: Option<String>,
    /// Length of a hit's snippet, in characters; 0 counts as 1.
    pub snippet_chars: usize,
    /// Condition that ends the search early; `None` for none.
    pub stop: Option<SearchStop>,
}

impl Query {
    /// A query for a literal pattern, with default settings.
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

    /// Whether the pattern has more than [`MAX_PATTERN_CHARS`] characters.
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

    /// Whether the time of the search is over.
    pub fn is_over(&self) -> bool {
        self.stop.as_ref().is_some_and(SearchStop::is_over)
    }

    /// Sets the stop that ends the search early.
    #[must_use]
    pub fn with_stop(mut self, stop: SearchStop) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Sets the interpretation of the pattern.
    #[must_use]
    pub fn with_mode(mut self, mode: SearchMode) -> Self {
        self.mode = mode;
        self
    }

    /// Makes case significant if the pattern has an upper-case letter.
    #[must_use]
    pub fn with_smart_case(mut self) -> Self {
        self.smart_case = true;
        self
    }

    /// Sets the scope of the search.
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

    /// Sets the tools; only messages that call one of them or have its result are found.
    #[must_use]
    pub fn with_tools<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.tools = tools.into_iter().map(Into::into).collect();
        self
    }

    /// Searches calls of this memory's own tools and their results too.
    #[must_use]
    pub fn with_echoes(mut self) -> Self {
        self.echoes = true;
        self
    }

    /// Whether echoes are searched: on demand, or because one of this memory's own tools is asked for.
    pub fn searches_echoes(&self) -> bool {
        self.echoes || self.tools.iter().any(|tool| is_memory_tool(tool))
    }

    /// Sets the positions to search.
    #[must_use]
    pub fn with_range(mut self, range: SeqRange) -> Self {
        self.range = Some(range);
        self
    }

    /// Sets the earliest time, inclusive.
    #[must_use]
    pub fn with_since(mut self, since: Timestamp) -> Self {
        self.since = Some(since);
        self
    }

    /// Sets the latest time, exclusive.
    #[must_use]
    pub fn with_until(mut self, until: Timestamp) -> Self {
        self.until = Some(until);
        self
    }

    /// Sets the order of the hits.
    #[must_use]
    pub fn with_order(mut self, order: HitOrder) -> Self {
        self.order = order;
        self
    }

    /// Sets the maximum number of hits.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Continues an earlier answer.
    #[must_use]
    pub fn with_cursor(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }

    /// Sets the length of snippets, in characters.
    #[must_use]
    pub fn with_snippet_chars(mut self, chars: usize) -> Self {
        self.snippet_chars = chars;
        self
    }
}
