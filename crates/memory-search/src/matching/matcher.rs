//! Decides whether a message or a summary is a hit.

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

/// A query that is ready to be compared with messages and summaries: the pattern with all filters.
#[derive(Debug, Clone)]
pub(crate) struct Matcher<'q> {
    query: &'q Query,
    pattern: Pattern,
    fallback: Option<Fallback>,
    echoes: bool,
}

impl<'q> Matcher<'q> {
    /// Prepares a query. `Prose` matches texts with any word of the pattern; `Auto` is read as `Literal`, the first
    /// mode that it tries.
    ///
    /// # Errors
    /// `Invalid` for an empty pattern.
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

    /// The replacement for the pattern, if it cannot be read in the query's mode.
    pub(crate) fn fallback(&self) -> Option<&Fallback> {
        self.fallback.as_ref()
    }

    /// The mode in which the pattern is read: the query's, or `Literal` if that is impossible.
    pub(crate) fn mode(&self) -> SearchMode {
        match (&self.fallback, self.query.mode) {
            (Some(_), _) | (_, SearchMode::Auto) => SearchMode::Literal,
            (None, mode) => mode,
        }
    }

    /// Whether a query in this order is answered by a ranking: in the mode `Prose`, and in the mode `Words` when the
    /// order is by relevance. A pattern without words is not.
    pub(crate) fn ranks(&self, order: HitOrder) -> bool {
        match self.mode() {
            SearchMode::Prose => true,
            SearchMode::Words => order == HitOrder::Relevance,
            _ => false,
        }
    }

    /// Returns the condition of an index that every matching message and summary meets. Others may meet it too.
    pub(crate) fn need(&self) -> Need {
        self.pattern.need()
    }

    /// Whether a message passes the filters; the pattern does not count. Notes never do. `calls` has the calls before
    /// it.
    pub(crate) fn admits_message(&self, entry: &LogEntry, calls: &CallNames) -> bool {
        entry.kind != EntryKind::Note
            && self.admits_at(entry.seq, entry.role, entry.created_at)
            && (self.query.tools.is_empty() || calls.uses(entry, &self.query.tools))
    }

    /// Whether a message at this position, of this role and time passes the filters but that on tools.
    pub(crate) fn admits_at(&self, seq: Seq, role: Role, created_at: Timestamp) -> bool {
        self.query.scope.has_messages()
            && (self.query.roles.is_empty() || self.query.roles.contains(&role))
            && self.query.range.is_none_or(|range| range.contains(seq))
            && self.overlaps(created_at, created_at)
    }

    /// The tools of the filter; empty for all.
    pub(crate) fn tools(&self) -> &[String] {
        &self.query.tools
    }

    /// Whether echoes are searched: see [`Query::searches_echoes`].
    pub(crate) fn searches_echoes(&self) -> bool {
        self.echoes
    }

    /// Whether the filters depend on calls before a message that `calls` does not have.
    pub(crate) fn asks_for_calls(&self, entry: &LogEntry, calls: &CallNames) -> bool {
        (!self.echoes || !self.query.tools.is_empty())
            && entry.kind != EntryKind::Note
            && self.admits_at(entry.seq, entry.role, entry.created_at)
            && calls.misses(entry)
            && self.in_parts(entry, |_| true).is_some()
    }

    /// Whether a summary passes the filters; the pattern does not count.
    pub(crate) fn admits_summary(&self, summary: &Summary) -> bool {
        self.admits_over(summary.range, (summary.earliest_at, summary.latest_at))
    }

    /// Whether a summary of these messages, of which the earliest and the latest are of these times, passes
    /// the filters.
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

    /// Returns a hit when the message matches the pattern and passes the filters. Every readable
    /// text is searched: calls, arguments, results, reasoning; echoes only on demand. Notes are never
    /// found. `calls` has the calls before the message.
    pub(crate) fn message(&self, entry: &LogEntry, calls: &CallNames) -> Option<Hit> {
        if !self.admits_message(entry, calls) {
            return None;
        }
        let snippet = self.in_message(entry, calls)?;
        Some(message_hit(entry, snippet))
    }

    /// Returns a hit for a message, whether or not it matches and passes the filters: with the text around the match,
    /// or with its beginning if there is no match.
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

    /// Returns a hit when the summary matches the pattern and passes the filters.
    pub(crate) fn summary(&self, summary: &Summary) -> Option<Hit> {
        if !self.admits_summary(summary) {
            return None;
        }
        let snippet = self.in_summary(summary)?;
        Some(summary_hit(summary, snippet))
    }

    /// Returns a hit for a summary, as [`Matcher::show_message`] does for a message.
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

    /// Whether the time from `earliest` to `latest`, both inclusive, is partly in the query's.
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
