//! Decides whether a message or a summary is a hit.

use memory_model::{EntryKind, LogEntry, Role, SeqRange, Summary, Timestamp};

use super::snippet::Snippet;
use crate::error::{Error, ErrorKind, Result};
use crate::fold::fold_case;
use crate::hits::{Hit, HitTarget};
use crate::query::{Query, SearchMode, SearchScope};

/// A query ready to be held against messages and summaries: the pattern with all filters.
///
/// It supports [`SearchMode::Literal`].
#[derive(Debug, Clone)]
pub struct Matcher {
    /// The pattern, folded.
    pattern: String,
    scope: SearchScope,
    roles: Vec<Role>,
    range: Option<SeqRange>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    snippet_chars: usize,
}

impl Matcher {
    /// Prepares a query.
    ///
    /// # Errors
    /// `Invalid` for an empty pattern; `Unsupported` for a mode other than `Literal`.
    pub fn new(query: &Query) -> Result<Self> {
        query.check()?;
        if query.mode != SearchMode::Literal {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "this search does not support the mode `{}`: use `{}`, or set up an index \
                     that supports it",
                    query.mode.as_str(),
                    SearchMode::Literal.as_str()
                ),
            ));
        }
        Ok(Self {
            pattern: fold_case(&query.pattern),
            scope: query.scope,
            roles: query.roles.clone(),
            range: query.range,
            since: query.since,
            until: query.until,
            snippet_chars: query.snippet_chars,
        })
    }

    /// Returns a hit when the message matches the pattern and passes the filters. Every readable
    /// text is searched: calls, arguments, results, reasoning. Notes are never found.
    pub fn message(&self, entry: &LogEntry) -> Option<Hit> {
        let passes = self.scope.has_messages()
            && entry.kind != EntryKind::Note
            && (self.roles.is_empty() || self.roles.contains(&entry.role))
            && self.range.is_none_or(|range| range.contains(entry.seq))
            && self.overlaps(entry.created_at, entry.created_at);
        if !passes {
            return None;
        }
        let mut found = None;
        entry.visit_texts(&mut |text| {
            if found.is_none() {
                found = self.find(&text);
            }
        });
        let target = HitTarget::Message {
            seq: entry.seq,
            external_id: entry.external_id.clone(),
            role: entry.role,
        };
        found.map(|snippet| hit(target, snippet, entry.created_at))
    }

    /// Returns a hit when the summary matches the pattern and passes the filters.
    pub fn summary(&self, summary: &Summary) -> Option<Hit> {
        let passes = self.scope.has_summaries()
            && self.roles.is_empty()
            && self
                .range
                .is_none_or(|range| range.intersect(&summary.range).is_some())
            && self.overlaps(summary.earliest_at, summary.latest_at);
        if !passes {
            return None;
        }
        let snippet = self.find(summary.text()).or_else(|| {
            let messages = summary.messages.as_ref()?;
            self.find(&messages.decoded_strings())
        })?;
        let target = HitTarget::Summary {
            id: summary.id.clone(),
            range: summary.range,
        };
        Some(hit(target, snippet, summary.created_at))
    }

    /// Whether the time from `earliest` to `latest`, both inclusive, is partly in the query's.
    fn overlaps(&self, earliest: Timestamp, latest: Timestamp) -> bool {
        self.since.is_none_or(|since| since <= latest)
            && self.until.is_none_or(|until| earliest < until)
    }

    fn find(&self, text: &str) -> Option<Snippet> {
        Snippet::find(text, &self.pattern, self.snippet_chars)
    }
}

fn hit(target: HitTarget, snippet: Snippet, created_at: Timestamp) -> Hit {
    let mut hit = Hit::new(target, snippet.text, created_at);
    hit.matches = snippet.matches;
    hit
}
