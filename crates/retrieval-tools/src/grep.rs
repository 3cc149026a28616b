//! Arguments and answer of `grep`.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Not;

use memory_model::{Role, Seq, SeqRange, SummaryId, Timestamp};
use memory_search::{Fallback, Hit, HitOrder, HitTarget, Hits, Query, SearchMode, SearchScope};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::arguments::Arguments;
use crate::error::Error;
use crate::room::{Room, longest};
use crate::text::{Citation, Day, behind, go_on, moment};

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

/// A shortened message that is shown with a hit: a neighbour of the hit, or a later message that contradicts it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NearMessage {
    /// Position of the message in the log.
    pub seq: Seq,
    /// Role of the message's author.
    pub role: Role,
    /// Beginning of the message's text, or the excerpt that contradicts the hit, with `…` at each cut.
    pub snippet: String,
    /// Time at which the message was written.
    #[serde(serialize_with = "moment")]
    pub created_at: Timestamp,
    /// Name of the message's author; `None` if the message has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl NearMessage {
    /// Returns the lines for a model, with `label` before them.
    pub(crate) fn line(&self, label: &str) -> String {
        let mut out = label.to_owned();
        let citation = Citation {
            seq: self.seq,
            role: Some(self.role),
            name: self.name.as_deref(),
            day: Day(self.created_at).to_string(),
        };
        let _ = write!(out, "{citation}");
        behind(&mut out, &self.snippet);
        out
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

/// Kind of a [`GrepHit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HitKind {
    /// The hit is a message.
    Message,
    /// The hit is a summary.
    Summary,
}

/// A message or summary that `grep` found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GrepHit {
    /// Whether the hit is a message or a summary.
    pub kind: HitKind,
    /// Position of the message; `None` for a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    /// Id of the summary; `None` for a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_id: Option<SummaryId>,
    /// Position of the first message that the summary covers; `None` for a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Seq>,
    /// Position of the last message that the summary covers, inclusive; `None` for a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Seq>,
    /// Id of the message in the application from which it was imported. `None` if it has none, and for a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// Role of the message's author; `None` for a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Score of the match. A higher score is a better match. 0 if the search does not rank its hits.
    pub score: f64,
    /// Excerpt of the text around the first match, with `…` at each cut.
    pub snippet: String,
    /// Time at which the message was written, or at which the summary was made.
    #[serde(serialize_with = "moment")]
    pub created_at: Timestamp,
    /// The messages directly before the hit, if the request sets `around`. Messages that the answer already shows are
    /// left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<NearMessage>,
    /// The messages directly after the hit, if the request sets `around`. Messages that the answer already shows are
    /// left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<NearMessage>,
    /// The latest message after the hit that contradicts it, found by comparing words: see [`memory_search::Changes`].
    /// `None` if no such message was found, or if the request did not ask for one ([`GrepArgs::corrections`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub later: Option<NearMessage>,
    /// Name of the message's author. `None` for a message without a name, and for a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Cursor that continues the search after this hit.
    #[serde(skip)]
    pub(crate) cursor: String,
}

impl GrepHit {
    /// Returns the argument with which `expand` reads this hit: a pointer such as `message:12`, or the id of the
    /// summary.
    pub fn pointer(&self) -> String {
        match (&self.summary_id, self.seq) {
            (Some(id), _) => id.to_string(),
            (None, seq) => format!("message:{}", seq.unwrap_or_default()),
        }
    }

    /// Writes the lines of the hit for a model, without its number.
    pub(crate) fn write(&self, out: &mut String) {
        if let Some(seq) = self.seq {
            let citation = Citation {
                seq,
                role: self.role,
                name: self.name.as_deref(),
                day: Day(self.created_at).to_string(),
            };
            let _ = write!(out, "{citation}");
        }
        // The day on which a summary was made would be read as the day of its messages.
        if let Some(id) = &self.summary_id {
            let _ = write!(out, "summary {id}");
        }
        if let (Some(first), Some(last)) = (self.first, self.last) {
            let _ = write!(out, " of [{first}]-[{last}]");
        }
        behind(out, &self.snippet);
        for (label, messages) in [(BEFORE, &self.before), (AFTER, &self.after)] {
            messages
                .iter()
                .for_each(|near| out.push_str(&near.line(label)));
        }
        if let Some(later) = &self.later {
            out.push_str(&later.line(LATER));
        }
    }

    /// Returns the lines of the hit with a placeholder for its number.
    pub(crate) fn line(&self) -> String {
        let mut line = String::from("100. ");
        self.write(&mut line);
        line
    }

    /// Shortens the snippet until the hit fits. The snippet becomes empty if no part of it fits.
    pub(crate) fn shorten(&mut self, fits: impl Fn(&Self) -> bool) {
        if fits(self) {
            return;
        }
        let snippet = std::mem::take(&mut self.snippet);
        let end = longest(&snippet, |cut| {
            self.snippet = format!("{cut}…");
            fits(self)
        });
        self.snippet = match end {
            0 => String::new(),
            end => format!("{}…", snippet.get(..end).unwrap_or_default()),
        };
    }
}

/// Label before a message that precedes a hit.
pub(crate) const BEFORE: &str = "before: ";
pub(crate) const AFTER: &str = "after: ";
pub(crate) const LATER: &str = "changed later: ";

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
            before: Vec::new(),
            after: Vec::new(),
            later: None,
            name: hit.name,
            cursor: hit.cursor,
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
