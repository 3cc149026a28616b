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

/// Maximum number of hits in an answer when a call sets none.
pub(crate) const DEFAULT_LIMIT: usize = 20;

/// Maximum number of messages that are shown before, and after, a found message.
pub(crate) const MAX_AROUND: usize = 5;

/// Length of a hit's snippet, in characters.
const SNIPPET_CHARS: usize = 500;

/// Arguments of [`Retrieval::grep`](crate::Retrieval::grep), the tool `memory_grep`.
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
    /// Whether each hit is shown with the latest message after it that contradicts it. This takes a second search, by
    /// relevance. Applies only in the order `Relevance` and without `echoes`. Default false; true in arguments from a
    /// model.
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

    /// The requested positions.
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

    /// The query, without its cursor.
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

    /// Whether a filter other than the scope excludes messages.
    pub(crate) fn is_filtered(&self) -> bool {
        !self.roles.is_empty()
            || !self.tools.is_empty()
            || self.first.is_some()
            || self.last.is_some()
            || self.since.is_some()
            || self.until.is_some()
    }

    /// Whether to look for later contradictions of the hits.
    pub(crate) fn shows_corrections(&self) -> bool {
        self.corrections && self.order == HitOrder::Relevance && !self.echoes
    }

    /// The question that a cursor is bound to.
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

/// Answer of [`Retrieval::grep`](crate::Retrieval::grep). It serializes to JSON for scripts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GrepAnswer {
    /// The text that was searched for.
    pub pattern: String,
    /// Search mode in the request: the way in which the pattern was to be read.
    pub mode: SearchMode,
    /// Name of the search strategy that found the hits, such as `literal-scan`.
    pub strategy: Cow<'static, str>,
    /// The kind of content that was searched: messages, summaries or both.
    pub scope: SearchScope,
    /// Search that replaced the requested one; `None` if it was not replaced.
    #[serde(serialize_with = "in_words", skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Fallback>,
    /// Note that the search index is damaged; `None` if no damage was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
    /// Whether this answer contains the last hits: there are no more after it.
    pub complete: bool,
    /// Cursor for the next hits, to pass in [`GrepArgs::cursor`]; `None` if the answer is complete. It is valid only
    /// for this session and the same search.
    pub cursor: Option<String>,
    /// Number of hits of a wider search that was made because this one has none; `None` if no wider search was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wider: Option<WiderSearch>,
    /// Number of matching messages that were excluded because they call memory tools or hold their results. Counted
    /// only if this search has no hits; `None` if no such message matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub echoes: Option<EchoCount>,
    /// Number of messages without a time that match the pattern and the other filters. `None` if the search has no time
    /// limits, or no such message matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undated: Option<UndatedCount>,
    /// Whether the time for the call ended before the search did. The answer may then have fewer hits than requested.
    #[serde(skip_serializing_if = "Not::not")]
    pub stopped: bool,
    /// The messages and summaries that were found, in the requested order.
    pub hits: Vec<GrepHit>,
}

/// Number of messages that a search excluded because they call these memory tools or hold their results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EchoCount {
    /// Number of excluded messages that contain the pattern.
    pub messages: usize,
    /// Whether all of them were counted; otherwise there are more.
    pub complete: bool,
}

/// Number of messages without a time that a search with time limits matched. `since` excludes such messages, and
/// `until` treats them as old.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UndatedCount {
    /// Number of messages without a time that contain the pattern.
    pub messages: usize,
    /// Whether all of them were counted; otherwise there are more.
    pub complete: bool,
    /// Whether the search excluded these messages because of `since`.
    pub left_out: bool,
}

impl UndatedCount {
    /// The line for a model.
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

/// A message close to a hit, shortened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NearMessage {
    /// Position of the message.
    pub seq: Seq,
    /// Role of the message's author.
    pub role: Role,
    /// Beginning of the message's text, or the text around the relevant words, with `…` at each cut.
    pub snippet: String,
    /// Time at which the message was written.
    #[serde(serialize_with = "moment")]
    pub created_at: Timestamp,
    /// Name of the message's author; `None` if the message has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl NearMessage {
    /// The lines for a model.
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

/// Number of hits of a search with a wider scope or without filters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WiderSearch {
    /// The kind of content that the wider search covered: messages, summaries or both.
    pub scope: SearchScope,
    /// Whether the wider search ignored the roles, tools, positions and times in the request.
    pub unfiltered: bool,
    /// Number of hits of the wider search.
    pub hits: usize,
    /// Whether all hits were counted; otherwise there are more.
    pub complete: bool,
}

// serde passes a reference.
#[allow(clippy::ref_option)]
fn in_words<S: Serializer>(fallback: &Option<Fallback>, serializer: S) -> Result<S::Ok, S::Error> {
    match fallback {
        Some(fallback) => serializer.collect_str(fallback),
        None => serializer.serialize_none(),
    }
}

/// Kind of object that a [`GrepHit`] points to.
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
    /// Id that the message has in the application that it was imported from; `None` if it has none, and for a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// Role of the message's author; `None` for a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Score of the match; higher is better. 0 if the strategy does not rank.
    pub score: f64,
    /// Text around the first match, with `…` at each cut.
    pub snippet: String,
    /// Time of the message, or time at which the summary was made.
    #[serde(serialize_with = "moment")]
    pub created_at: Timestamp,
    /// Messages directly before the hit, if requested. Messages that the answer shows already are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<NearMessage>,
    /// Messages directly after the hit, if requested. Messages that the answer shows already are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<NearMessage>,
    /// The latest message after the hit that contradicts it, judged by its words: see [`memory_search::Changes`].
    /// `None` if there is none, and in orders other than by relevance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub later: Option<NearMessage>,
    /// Name of the message's author; `None` for messages without one and for summaries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The argument of `expand` that reads the hit: `message:12`, or a summary's id.
    #[serde(skip)]
    pub(crate) cursor: String,
}

impl GrepHit {
    /// Returns the argument with which `expand` reads the hit: `message:12`, or a summary's id.
    pub fn pointer(&self) -> String {
        match (&self.summary_id, self.seq) {
            (Some(id), _) => id.to_string(),
            (None, seq) => format!("message:{}", seq.unwrap_or_default()),
        }
    }

    /// The lines for a model, without their number.
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
        if let Some(id) = &self.summary_id {
            let _ = write!(out, "summary {id}");
        }
        if let (Some(first), Some(last)) = (self.first, self.last) {
            let _ = write!(out, " of [{first}]-[{last}]{}", Day(self.created_at));
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

    /// The line with a number.
    pub(crate) fn line(&self) -> String {
        let mut line = String::from("100. ");
        self.write(&mut line);
        line
    }

    /// Shortens the snippet until it fits or is empty.
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

/// The marker before a message near a hit.
pub(crate) const BEFORE: &str = "before: ";
pub(crate) const AFTER: &str = "after: ";
pub(crate) const LATER: &str = "changed later: ";

/// Note of an answer when the search index is damaged.
pub(crate) const DAMAGED_INDEX: &str = "the search index is damaged: the messages were read instead, so no hit is missing; index the session again";

/// A scope in words.
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

    /// Keeps the first hits that fit in the room, at least one, which is shortened if necessary.
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
        room.spend(&self.to_text(), self);
        self.cursor = cursor;
        let mut left = room.clone();
        let held = hits.iter().take_while(|hit| left.take(&hit.line(), hit));
        let count = held.count().max(1);
        if count < hits.len() {
            hits.truncate(count);
            self.cursor = hits.last().map(|hit| hit.cursor.clone());
            (self.complete, self.stopped) = (false, false);
        }
        if let [only] = hits.as_mut_slice() {
            only.shorten(|hit| room.holds(&hit.line(), hit));
        }
        self.hits = hits;
    }

    /// Returns the answer as text for a model: the numbered hits, each with its citation and its snippet. Then follow
    /// the way in which the hits were found, and the cursor if there are more.
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
