//! Arguments and answer of `grep`.

mod arguments;
mod hits;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Not;

use memory_search::{Fallback, Hits, SearchMode, SearchScope};
use serde::{Serialize, Serializer};

pub use self::arguments::GrepArgs;
pub(crate) use self::arguments::{DEFAULT_LIMIT, MAX_AROUND};
pub(crate) use self::hits::{AFTER, BEFORE, LATER};
pub use self::hits::{GrepHit, HitKind, NearMessage};
use crate::room::Room;
use crate::text::go_on;

/// Answer of [`Retrieval::grep`](crate::Retrieval::grep). Serializes to JSON for programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GrepAnswer {
    /// The pattern of the request.
    pub pattern: String,
    /// The search mode of the request: the way in which the pattern is interpreted.
    pub mode: SearchMode,
    /// Name of the search method that found the hits, such as `literal-scan`.
    pub strategy: Cow<'static, str>,
    /// Kind of content that was searched: messages, summaries or both.
    pub scope: SearchScope,
    /// Kind of the search that was made in place of the requested search. `None` if the requested search was made.
    #[serde(serialize_with = "in_words", skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Fallback>,
    /// Note for the reader that the search index is damaged. `None` if no damage was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
    /// Whether this is the last answer: `true` if no more hits follow.
    pub complete: bool,
    /// Cursor for the next hits, to pass in [`GrepArgs::cursor`]. `None` if the answer is complete. A cursor is valid
    /// only for the same conversation and the same search.
    pub cursor: Option<String>,
    /// Result of a wider search, made only if this search has no hits and is restricted by a scope or filters. `None`
    /// if no wider search was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wider: Option<WiderSearch>,
    /// Number of messages that match, but were excluded because they are calls or results of the memory tools. Counted
    /// only if this search has no hits. `None` if no such message matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub echoes: Option<EchoCount>,
    /// Number of messages without a known time that match the pattern and the other filters. `None` if the request has
    /// no time limits or has a cursor, or if no such message matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undated: Option<UndatedCount>,
    /// Whether the time limit of the call ended the search early. The answer may then have fewer hits than requested.
    #[serde(skip_serializing_if = "Not::not")]
    pub stopped: bool,
    /// The messages and summaries that were found, in the requested order.
    pub hits: Vec<GrepHit>,
}

/// Number of matching messages that a search excluded because they are calls or results of the memory tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EchoCount {
    /// Number of excluded messages that match the pattern. At least this number if `complete` is `false`.
    pub messages: usize,
    /// Whether all excluded messages were counted. If `false`, there may be more.
    pub complete: bool,
}

/// Number of messages without a known time that match a search with time limits. The limit `since` excludes such
/// messages. The limit `until` treats them as old messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UndatedCount {
    /// Number of messages without a known time that match the pattern. At least this number if `complete` is `false`.
    pub messages: usize,
    /// Whether all of these messages were counted. If `false`, there may be more.
    pub complete: bool,
    /// Whether the limit `since` excluded these messages from the hits.
    pub left_out: bool,
}

impl UndatedCount {
    /// Writes the line about these messages for a model.
    fn write(&self, out: &mut String) {
        let (more, fate) = (
            if self.complete { "" } else { " or more" },
            match self.left_out {
                true => "left out by since",
                false => "taken for old ones by until",
            },
        );
        let _ = writeln!(
            out,
            "Without a time: {}{more} messages, {fate}.",
            self.messages
        );
    }
}

/// Result of a wider search, which helps to choose a new search if the requested one has no hits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WiderSearch {
    /// Kind of content that the wider search covered: messages, summaries or both.
    pub scope: SearchScope,
    /// Whether the wider search ignored the roles, tools, positions and times of the request.
    pub unfiltered: bool,
    /// Number of hits of the wider search. At least this number if `complete` is `false`.
    pub hits: usize,
    /// Whether all hits were counted. If `false`, there may be more.
    pub complete: bool,
}

// serde passes the field by reference.
#[allow(clippy::ref_option)]
fn in_words<S: Serializer>(fallback: &Option<Fallback>, serializer: S) -> Result<S::Ok, S::Error> {
    match fallback {
        Some(fallback) => serializer.collect_str(fallback),
        None => serializer.serialize_none(),
    }
}

/// Note of an answer if the search index is damaged.
pub(crate) const DAMAGED_INDEX: &str = "the search index is damaged: the messages were read instead, so no hit is missing; index the session again";

/// Returns a scope in words.
fn words(scope: SearchScope) -> &'static str {
    match scope {
        SearchScope::Messages => "messages",
        SearchScope::Summaries => "summaries",
        _ => "messages and summaries",
    }
}

impl GrepAnswer {
    pub(crate) fn new(args: &GrepArgs, hits: Hits) -> Self {
        Self {
            pattern: args.pattern.clone(),
            mode: args.mode,
            strategy: hits.strategy,
            scope: hits.scope,
            fallback: hits.fallback,
            note: hits.index_damaged.then_some(DAMAGED_INDEX),
            complete: hits.complete,
            cursor: hits.cursor,
            wider: None,
            echoes: None,
            undated: None,
            stopped: hits.stopped,
            hits: hits.hits.into_iter().map(GrepHit::from).collect(),
        }
    }

    /// Keeps the first hits that fit in the room, at least one. If only one hit is kept, it is shortened until it fits.
    pub(crate) fn fit(&mut self, mut room: Room<'_>) {
        let mut hits = std::mem::take(&mut self.hits);
        let cursor = self.cursor.clone();
        // The text around the hits, with the longest possible cursor.
        let cursors = hits.iter().map(|hit| &hit.cursor).chain(&cursor);
        self.cursor = cursors.max_by_key(|cursor| cursor.len()).cloned();
        self.hits.extend(hits.first().map(|hit| GrepHit {
            snippet: String::new(),
            ..hit.clone()
        }));
        room.spend(&self.to_text());
        self.cursor = cursor;
        let mut left = room.clone();
        let held = hits.iter().take_while(|hit| left.take(&hit.line()));
        let count = held.count().max(1);
        if count < hits.len() {
            hits.truncate(count);
            self.cursor = hits.last().map(|hit| hit.cursor.clone());
            (self.complete, self.stopped) = (false, false);
        }
        if let [only] = hits.as_mut_slice() {
            only.shorten(|hit| room.holds(&hit.line()));
        }
        self.hits = hits;
    }

    /// Returns the answer as text for a model: the numbered hits, each with its citation and its snippet. A last line
    /// gives the search method, and the cursor if there are more hits.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        if let Some(note) = self.note {
            let _ = writeln!(out, "Note: {note}.");
        }
        // Without hits, it does not matter which mode was tried last.
        let is_told = |fallback: &&Fallback| !self.hits.is_empty() || fallback.is_of_pattern();
        if let Some(fallback) = self.fallback.as_ref().filter(is_told) {
            let _ = writeln!(out, "Note: {fallback}.");
        }
        if let (true, Some(cursor)) = (self.hits.is_empty(), &self.cursor) {
            let _ = writeln!(out, "No matches so far. {}.", go_on("", true, cursor));
            return out;
        }
        if self.hits.is_empty() {
            out.push_str("No matches found.\n");
            if let Some(wider) = &self.wider {
                let more = if wider.complete { "" } else { " or more" };
                let _ = write!(out, "0 in {}; {}{more}", self.scope.as_str(), wider.hits);
                let _ = write!(out, " in {}", wider.scope.as_str());
                if wider.unfiltered {
                    out.push_str(" without roles, tools, positions and times");
                }
                out.push_str(".\n");
            }
            if let Some(echoes) = self.echoes {
                let more = if echoes.complete { "" } else { " or more" };
                let _ = write!(
                    out,
                    "Left out: {}{more} calls and results of",
                    echoes.messages
                );
                out.push_str(" the memory tools themselves; echoes true searches them too.\n");
            }
            if let Some(undated) = &self.undated {
                undated.write(&mut out);
            }
            return out;
        }
        for (index, hit) in self.hits.iter().enumerate() {
            let _ = write!(out, "{}. ", index + 1);
            hit.write(&mut out);
        }
        match &self.cursor {
            None => out.push_str("These are all matches"),
            Some(cursor) => out.push_str(&go_on("There are more:", self.stopped, cursor)),
        }
        let _ = writeln!(
            out,
            ". Searched: {}, by {}. [n] is message n.",
            words(self.scope),
            self.strategy
        );
        if let Some(undated) = &self.undated {
            undated.write(&mut out);
        }
        out
    }
}
