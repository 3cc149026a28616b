//! Decides whether a message or a summary matches a query.

use memory_model::{EntryKind, LogEntry, Part, Role, Seq, SeqRange, Summary, Timestamp};

use super::pattern::Pattern;
use super::position::Position;
use super::snippet::Snippet;
use crate::calls::CallNames;
use crate::error::Result;
use crate::fallback::Fallback;
use crate::hits::{Hit, HitTarget};
use crate::query::{HitOrder, Query, SearchMode};
use crate::segment::Need;

/// A query that is ready to be compared with messages and summaries: its pattern and all filters.
#[derive(Debug, Clone)]
pub(crate) struct Matcher<'q> {
    query: &'q Query,
    pattern: Pattern,
    fallback: Option<Fallback>,
    echoes: bool,
}

impl<'q> Matcher<'q> {
    /// Prepares a query. In the mode `Prose`, a text matches if it contains any word of the pattern. The mode `Auto` is
    /// treated as `Literal`, the first mode that it tries.
    ///
    /// # Errors
    /// `Invalid` for an empty or too long pattern.
    pub(crate) fn new(query: &'q Query) -> Result<Self> {
        query.check()?;
        let (pattern, fallback) = Pattern::new(query);
        Ok(Self {
            query,
            pattern,
            fallback,
            echoes: query.searches_echoes(),
        })
    }

    /// Returns the replacement for the query's mode, if the pattern is not valid in this mode.
    pub(crate) fn fallback(&self) -> Option<&Fallback> {
        self.fallback.as_ref()
    }

    /// Returns the mode in which the pattern is interpreted: the mode of the query, or `Literal` if that mode is `Auto`
    /// or the pattern is not valid in it.
    pub(crate) fn mode(&self) -> SearchMode {
        match (&self.fallback, self.query.mode) {
            (Some(_), _) | (_, SearchMode::Auto) => SearchMode::Literal,
            (None, mode) => mode,
        }
    }

    /// Returns whether the hits of this query are ranked in the given order: always in the mode `Prose`, and in the
    /// mode `Words` in the order `Relevance`. A pattern without words is never ranked.
    pub(crate) fn ranks(&self, order: HitOrder) -> bool {
        match self.mode() {
            SearchMode::Prose => true,
            SearchMode::Words => order == HitOrder::Relevance,
            _ => false,
        }
    }

    /// Returns the condition for the index ([`Need`]) that every matching message and summary satisfies. Other messages
    /// may satisfy it too.
    pub(crate) fn need(&self) -> Need {
        self.pattern.need()
    }

    /// Returns whether a message satisfies all filters, whether or not it matches the pattern. Notes never do. `calls`
    /// contains the tool calls before the message.
    pub(crate) fn admits_message(&self, entry: &LogEntry, calls: &CallNames) -> bool {
        entry.kind != EntryKind::Note
            && self.admits_at(entry.seq, entry.role, entry.created_at)
            && (self.query.tools.is_empty() || calls.uses(entry, &self.query.tools))
    }

    /// Returns whether a message with this position, role and time satisfies all filters except the filter for tools.
    pub(crate) fn admits_at(&self, seq: Seq, role: Role, created_at: Timestamp) -> bool {
        self.query.scope.has_messages()
            && (self.query.roles.is_empty() || self.query.roles.contains(&role))
            && self.query.range.is_none_or(|range| range.contains(seq))
            && self.overlaps(created_at, created_at)
    }

    /// Returns the names of the tools to which the query restricts its search: only messages that call one of them, or
    /// have a result of one, can match. Empty if tools do not restrict the search.
    pub(crate) fn tools(&self) -> &[String] {
        &self.query.tools
    }

    /// Returns whether calls and results of memory tools (echoes) are searched: see [`Query::searches_echoes`].
    pub(crate) fn searches_echoes(&self) -> bool {
        self.echoes
    }

    /// Returns whether a filter depends on tool calls before the message that `calls` does not contain.
    pub(crate) fn asks_for_calls(&self, entry: &LogEntry, calls: &CallNames) -> bool {
        (!self.echoes || !self.query.tools.is_empty())
            && entry.kind != EntryKind::Note
            && self.admits_at(entry.seq, entry.role, entry.created_at)
            && calls.misses(entry)
            && self.in_parts(entry, |_| true).is_some()
    }

    /// Returns whether a summary satisfies all filters, whether or not it matches the pattern.
    pub(crate) fn admits_summary(&self, summary: &Summary) -> bool {
        self.admits_over(summary.range, (summary.earliest_at, summary.latest_at))
    }

    /// Returns whether a summary satisfies all filters. `covered` is the range of messages that it covers, and `times`
    /// are the earliest and the latest time of these messages.
    pub(crate) fn admits_over(&self, covered: SeqRange, times: (Timestamp, Timestamp)) -> bool {
        self.query.scope.has_summaries()
            && self.query.roles.is_empty()
            && self.query.tools.is_empty()
            && self
                .query
                .range
                .is_none_or(|range| range.intersect(&covered).is_some())
            && self.overlaps(times.0, times.1)
    }

    /// Returns a hit if the message matches the pattern and satisfies all filters. The search covers all readable text:
    /// texts, reasoning, calls, arguments and results. It covers echoes (calls and results of memory tools) only on
    /// request. Notes never match. `calls` contains the tool calls before the message.
    pub(crate) fn message(&self, entry: &LogEntry, calls: &CallNames) -> Option<Hit> {
        if !self.admits_message(entry, calls) {
            return None;
        }
        let snippet = self.in_message(entry, calls)?;
        Some(message_hit(entry, snippet))
    }

    /// Returns a hit for a message even if it does not match the pattern or the filters. The snippet shows the text
    /// around the match, or the beginning of the text if there is no match.
    pub(crate) fn show_message(&self, entry: &LogEntry, calls: &CallNames) -> Hit {
        let snippet = self.in_message(entry, calls).unwrap_or_else(|| {
            let mut head = None;
            for part in &entry.message.parts {
                if self.is_searched(entry, part, calls) {
                    part.visit_texts(&mut |text| {
                        head.get_or_insert_with(|| Snippet::head(&text, self.query.snippet_chars));
                    });
                }
            }
            head.unwrap_or_else(|| Snippet::head("", self.query.snippet_chars))
        });
        message_hit(entry, snippet)
    }

    /// Returns a hit if the summary matches the pattern and satisfies all filters.
    pub(crate) fn summary(&self, summary: &Summary) -> Option<Hit> {
        if !self.admits_summary(summary) {
            return None;
        }
        let snippet = self.in_summary(summary)?;
        Some(summary_hit(summary, snippet))
    }

    /// Returns a hit for a summary even if it does not match the pattern or the filters.
    pub(crate) fn show_summary(&self, summary: &Summary) -> Hit {
        let head = || Snippet::head(summary.text(), self.query.snippet_chars);
        let snippet = self.in_summary(summary).unwrap_or_else(head);
        summary_hit(summary, snippet)
    }

    fn is_searched(&self, entry: &LogEntry, part: &Part, calls: &CallNames) -> bool {
        self.echoes || !calls.is_echo(entry, part)
    }

    fn in_message(&self, entry: &LogEntry, calls: &CallNames) -> Option<Snippet> {
        self.in_parts(entry, |part| self.is_searched(entry, part, calls))
    }

    fn in_parts(&self, entry: &LogEntry, is_searched: impl Fn(&Part) -> bool) -> Option<Snippet> {
        let mut finder = self.pattern.finder(self.query.snippet_chars);
        let parts = entry.message.parts.iter();
        for part in parts.filter(|part| is_searched(part)) {
            part.visit_texts(&mut |text| finder.see(&text));
        }
        finder.finish()
    }

    fn in_summary(&self, summary: &Summary) -> Option<Snippet> {
        let mut finder = self.pattern.finder(self.query.snippet_chars);
        finder.see(summary.text());
        if let Some(messages) = &summary.messages {
            finder.see(&messages.decoded_strings());
        }
        finder.finish()
    }

    /// Returns whether the time from `earliest` to `latest`, both inclusive, overlaps the time limits of the query.
    fn overlaps(&self, earliest: Timestamp, latest: Timestamp) -> bool {
        self.query.since.is_none_or(|since| since <= latest)
            && self.query.until.is_none_or(|until| earliest < until)
    }
}

fn message_hit(entry: &LogEntry, snippet: Snippet) -> Hit {
    let target = HitTarget::Message {
        seq: entry.seq,
        external_id: entry.external_id.clone(),
        role: entry.role,
    };
    let mut hit = hit(target, snippet, entry.created_at);
    hit.name.clone_from(&entry.message.name);
    hit
}

fn summary_hit(summary: &Summary, snippet: Snippet) -> Hit {
    let target = HitTarget::Summary {
        id: summary.id.clone(),
        range: summary.range,
    };
    hit(target, snippet, summary.created_at)
}

fn hit(target: HitTarget, snippet: Snippet, created_at: Timestamp) -> Hit {
    let cursor = Position::of(&target).to_cursor();
    let mut hit = Hit::new(target, snippet.text, created_at, cursor);
    hit.matches = snippet.matches;
    hit
}
