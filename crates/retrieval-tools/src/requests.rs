//! Arguments and answer of `requests`, and lists of messages.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Not;

use memory_model::conventions::request;
use memory_model::{LogEntry, Role, Seq, SeqRange, Timestamp};
use memory_search::SearchStop;
use memory_store::{LogRead, Order};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arguments::Arguments;
use crate::error::Result;
use crate::retrieval::Retrieval;
use crate::room::{Room, longest};
use crate::text::{Citation, Moment, behind, go_on, moment};

/// Default maximum number of messages in an answer.
pub(crate) const DEFAULT_LIMIT: usize = 10;

/// Arguments of [`Retrieval::requests`], the tool `memory_requests`. The comments of the fields are also their
/// descriptions for a model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RequestsArgs {
    /// Maximum number of messages; 10 if not given.
    #[schemars(extend("default" = DEFAULT_LIMIT))]
    pub limit: usize,
    /// The cursor of an earlier answer, to go on after it; the other arguments stay the same.
    pub cursor: Option<String>,
}

impl Default for RequestsArgs {
    fn default() -> Self {
        Self {
            limit: DEFAULT_LIMIT,
            cursor: None,
        }
    }
}

impl Arguments for RequestsArgs {
    const NAME: &'static str = "memory_requests";
    const TITLE: &'static str = "Read what the user asked for";
    const DESCRIPTION: &'static str = "Read the user's own messages word for word, the last one first, with their \
        positions and times: what was asked, corrected and decided. Results of tools and texts of programs are left out.";
}

/// Answer of [`Retrieval::requests`]. Serializes to JSON for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RequestsAnswer {
    /// Whether this answer reaches the first message, so that no more follow.
    pub complete: bool,
    /// Cursor for the earlier messages, to pass in [`RequestsArgs::cursor`]. `None` if the answer is complete.
    pub cursor: Option<String>,
    /// Whether the time limit of the call ended the reading early.
    #[serde(skip_serializing_if = "Not::not")]
    pub stopped: bool,
    /// The user's messages, the last one first.
    pub requests: Vec<ListedMessage>,
}

impl RequestsAnswer {
    /// Returns the answer as text for a model.
    pub fn to_text(&self) -> String {
        let mut out: String = self.requests.iter().map(ListedMessage::line).collect();
        let end = match (&self.cursor, self.requests.is_empty()) {
            (Some(cursor), _) => go_on("There are earlier ones:", self.stopped, cursor),
            (None, true) => "The user has said nothing here".to_owned(),
            (None, false) => "There are no earlier ones".to_owned(),
        };
        let _ = writeln!(
            out,
            "{end}. [n] is message n; memory_expand with message:n reads all of it."
        );
        out
    }
}

/// A message in a list, with some of its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ListedMessage {
    /// Position of the message in the log.
    pub seq: Seq,
    /// Role of the message's author.
    pub role: Role,
    /// Name of the message's author; `None` if the message has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Time at which the message was written.
    #[serde(serialize_with = "moment")]
    pub created_at: Timestamp,
    /// Text of the message, with `…` at its end if it was cut.
    pub text: String,
}

impl ListedMessage {
    /// Returns the message as text for a model: its citation and its text.
    fn line(&self) -> String {
        let citation = Citation {
            seq: self.seq,
            role: Some(self.role),
            name: self.name.as_deref(),
            day: Moment(self.created_at).to_string(),
        };
        let mut out = citation.to_string();
        behind(&mut out, &self.text);
        out
    }
}

/// Names of the called tools, by the ids of the calls.
pub(crate) type Calls = BTreeMap<String, String>;

/// A list of messages in progress.
#[derive(Debug)]
pub(crate) struct List<'a> {
    pub(crate) order: Order,
    pub(crate) limit: usize,
    pub(crate) room: Room<'a>,
    pub(crate) messages: Vec<ListedMessage>,
    /// Whether the time limit of the call ended the reading early.
    pub(crate) stopped: bool,
}

impl List<'_> {
    /// Adds a message if it fits. The first one is cut if needed. Returns whether it was added.
    fn add(&mut self, mut message: ListedMessage) -> bool {
        if self.messages.len() >= self.limit {
            return false;
        }
        if self.messages.is_empty() && !self.room.holds(&message.line()) {
            let whole = std::mem::take(&mut message.text);
            let end = longest(&whole, |cut| {
                message.text = format!("{cut}…");
                self.room.holds(&message.line())
            });
            message.text = format!("{}…", whole.get(..end).unwrap_or_default());
            self.room.spend(&message.line());
        } else if !self.room.take(&message.line()) {
            return false;
        }
        self.messages.push(message);
        true
    }

    /// Returns the lines of the messages, for a model.
    pub(crate) fn lines(&self) -> String {
        self.messages.iter().map(ListedMessage::line).collect()
    }
}

impl Retrieval {
    /// Returns the user's own messages, the last one first: what a person typed, without results of tools and without
    /// the texts that programs add. The agent's conventions ([`with_conventions`](Self::with_conventions)) tell them
    /// apart.
    ///
    /// # Errors
    /// `Invalid` for a cursor of another request. Also the errors of the store.
    pub async fn requests(&self, args: RequestsArgs) -> Result<RequestsAnswer> {
        let limits = self.limits();
        let most = limits.answer_tokens.max(1);
        let spending = self.grant.begin(RequestsArgs::NAME, most)?;
        let question = "requests";
        let position = self.position(question, args.cursor.as_deref(), listed_at);
        let position = position.await?;
        let mut answer = RequestsAnswer {
            complete: false,
            cursor: Some("q1000000@01234567".to_owned()),
            stopped: true,
            requests: Vec::new(),
        };
        let mut list = List {
            order: Order::NewestFirst,
            limit: match args.limit {
                0 => DEFAULT_LIMIT,
                limit => limit.min(limits.hits.max(1)),
            },
            room: self.room(spending.taken),
            messages: Vec::new(),
            stopped: false,
        };
        list.room.spend(&answer.to_text());
        let conventions = &*self.conventions;
        let typed = |entry: &LogEntry, _: &Calls| request(&entry.message, conventions);
        let seen = self.visible().await?;
        let next = self.list(&mut list, seen, position, &typed).await?;
        (answer.stopped, answer.requests) = (list.stopped, list.messages);
        answer.complete = next.is_none();
        answer.cursor = self.list_cursor(question, next).await?;
        spending.end(self.accounting.text(&answer.to_text()));
        Ok(answer)
    }

    /// Adds the messages of a range to a list, in its order, from the position `from` on. `text_of` returns the text
    /// for the list, or `None` to leave a message out. It gets the tools of the calls in the messages that were read
    /// together with the message. Returns the position of the rest, if there is one.
    pub(crate) async fn list(
        &self,
        list: &mut List<'_>,
        range: Option<SeqRange>,
        from: Option<Seq>,
        text_of: &(dyn Fn(&LogEntry, &Calls) -> Option<String> + Sync),
    ) -> Result<Option<Seq>> {
        let mut rest = range.and_then(|range| match (from, list.order) {
            (None, _) => Some(range),
            (Some(from), Order::OldestFirst) => SeqRange::new(from.max(range.first), range.last),
            (Some(from), Order::NewestFirst) => SeqRange::new(range.first, from.min(range.last)),
        });
        let mut calls = Calls::new();
        while let Some(range) = rest {
            let mut read = LogRead::new(range);
            read.order = list.order;
            let page = self.store.read(self.conversation, &read).await?;
            for call in page.items.iter().flat_map(|entry| entry.tool_calls()) {
                calls.insert(call.id.to_owned(), call.name.to_owned());
            }
            for entry in page.items {
                let Some(text) = text_of(&entry, &calls) else {
                    continue;
                };
                let seq = entry.seq;
                let listed = ListedMessage {
                    seq,
                    role: entry.role,
                    name: entry.message.name,
                    created_at: entry.message.created_at,
                    text,
                };
                if !list.add(listed) {
                    return Ok(Some(seq));
                }
            }
            rest = page.next;
            if let Some(rest) = rest
                && self.stop.as_ref().is_some_and(SearchStop::is_over)
            {
                list.stopped = true;
                return Ok(Some(match list.order {
                    Order::OldestFirst => rest.first,
                    Order::NewestFirst => rest.last,
                }));
            }
        }
        Ok(None)
    }

    /// Returns the cursor for the rest of a list.
    pub(crate) async fn list_cursor(
        &self,
        question: &str,
        next: Option<Seq>,
    ) -> Result<Option<String>> {
        Ok(match next {
            Some(next) => Some(self.binding(question).await?.cursor(&format!("q{next}"))),
            None => None,
        })
    }
}

/// Reads the position in the cursor of a list.
pub(crate) fn listed_at(text: &str) -> Option<Seq> {
    text.strip_prefix('q')?.parse().ok().map(Seq)
}
