//! The request of each session: the messages that the user typed since the turn before ended.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use memory_model::conventions::AgentConventions;
use memory_model::{ConversationId, EntryKind, Message, Part, Role, Seq};

/// Number of sessions that are remembered.
const REMEMBERED: usize = 1_024;
/// Maximum number of messages of a request.
const MOST: usize = 4;
/// Characters of a message below which it may be an answer, which needs its question.
const ANSWER: usize = 60;

/// A message, as far as requests go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// The user typed this many characters.
    Request(usize),
    /// The assistant ended its turn.
    Reply,
    /// Anything else.
    Other,
}

impl Said {
    pub(crate) fn of(message: &Message, conventions: &dyn AgentConventions) -> Self {
        match message.role {
            _ if message.kind == EntryKind::Note => Self::Other,
            Role::User => typed(message, conventions).map_or(Self::Other, Self::Request),
            Role::Assistant if ends_turn(message) => Self::Reply,
            _ => Self::Other,
        }
    }
}

/// The request of a log that ends at `head`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) head: Seq,
    /// Erasures of the log when it was read.
    pub(crate) erasures: u64,
    /// Positions of its messages, rising. The question that a short answer answers comes first.
    pub(crate) messages: Vec<Seq>,
    /// The reply that ended the turn, if it has ended.
    pub(crate) reply: Option<Seq>,
    /// Cost of the largest message of the log, or more, in tokens.
    pub(crate) largest: u64,
    /// Largest room that the whole log does not fit into, as far as is known, in tokens.
    pub(crate) outgrown: u64,
}

impl Request {
    /// Takes the next message of the log.
    pub(crate) fn add(&mut self, seq: Seq, said: Said, tokens: u64) {
        self.head = seq;
        self.largest = self.largest.max(tokens);
        match said {
            Said::Request(chars) => {
                if let Some(reply) = self.reply.take() {
                    self.messages.clear();
                    self.messages.extend((chars < ANSWER).then_some(reply));
                }
                if self.messages.len() == MOST {
                    self.messages.remove(0);
                }
                self.messages.push(seq);
            }
            Said::Reply => self.reply = Some(seq),
            Said::Other => {}
        }
    }
}

/// The requests of the sessions in use.
#[derive(Debug, Default)]
pub(crate) struct Requests(Mutex<BTreeMap<ConversationId, Request>>);

impl Requests {
    pub(crate) fn known(&self, id: ConversationId) -> Option<Request> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&id).cloned()
    }

    pub(crate) fn remember(&self, id: ConversationId, request: Request) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REMEMBERED && !all.contains_key(&id) {
            all.clear();
        }
        all.insert(id, request);
    }

    /// Records that a session's whole log does not fit into `room` tokens.
    pub(crate) fn outgrown(&self, id: ConversationId, room: u64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(request) = all.get_mut(&id) {
            request.outgrown = request.outgrown.max(room);
        }
    }

    /// Takes a message that was appended, if it follows the last one that is known.
    pub(crate) fn appended(&self, id: ConversationId, seq: Seq, said: Said, tokens: u64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get_mut(&id) {
            Some(request) if request.head.next() == seq => request.add(seq, said, tokens),
            None if seq == Seq::FIRST => {
                drop(all);
                let mut request = Request::default();
                request.add(seq, said, tokens);
                self.remember(id, request);
            }
            _ => {}
        }
    }
}

/// Number of characters that a person typed; `None` for a message that asks for nothing.
fn typed(message: &Message, conventions: &dyn AgentConventions) -> Option<usize> {
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let said = texts.collect::<Vec<_>>().join("\n");
    let text = conventions.user_text(&said, message.meta.as_ref());
    let typed = text.typed.trim();
    let is_mark = !typed.contains('\n')
        && (typed.starts_with('[') && typed.ends_with(']')
            || typed.starts_with('/') && !typed.contains(' '));
    let asks = !text.is_document && !is_mark && typed.chars().any(char::is_alphanumeric);
    asks.then(|| typed.chars().count())
}

/// Whether the assistant says something and calls nothing.
fn ends_turn(message: &Message) -> bool {
    let calls = |part: &Part| matches!(part, Part::ToolCall { .. });
    let says = |part: &Part| matches!(part, Part::Text { text } if !text.trim().is_empty());
    message.parts.iter().any(says) && !message.parts.iter().any(calls)
}
