//! The running request of each session: the messages that the user typed since the last completed turn.

use memory_model::conventions::{AgentConventions, request};
use memory_model::{ConversationId, EntryKind, Message, Part, Role, Seq};

use crate::per_session::PerSession;

/// Maximum number of messages that a request keeps. Older ones are dropped.
const MOST: usize = 4;
/// Length in characters. A shorter message of the user may answer a question, so the assistant's reply before it
/// becomes part of the request.
const ANSWER: usize = 60;

/// Part of a message in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// The user typed a request. The value is its number of characters.
    Request(usize),
    /// The assistant ended its turn with a text.
    Reply,
    /// Any other entry, such as a tool call, a result or a note.
    Other,
}

impl Said {
    pub(crate) fn of(message: &Message, conventions: &dyn AgentConventions) -> Self {
        match message.role {
            _ if message.kind == EntryKind::Note => Self::Other,
            Role::User => request(message, conventions)
                .map_or(Self::Other, |typed| Self::Request(typed.chars().count())),
            Role::Assistant if ends_turn(message) => Self::Reply,
            _ => Self::Other,
        }
    }
}

/// The running request of a log up to position `head`: the messages that the user typed since the last completed turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) head: Seq,
    /// Number of erasures of the log when the request was read.
    pub(crate) erasures: u64,
    /// Positions of the request's messages, ascending. If the user's first message is short, it may be an answer, and
    /// the assistant's reply before it is included.
    pub(crate) messages: Vec<Seq>,
    /// Position of the reply that ended the turn; `None` while the turn is running.
    pub(crate) reply: Option<Seq>,
    /// Upper bound of the cost of the largest message of the log, in tokens.
    pub(crate) largest: u64,
    /// Largest room, in tokens, for which the whole log was found to be too large.
    pub(crate) outgrown: u64,
}

impl Request {
    /// Adds the next message of the log, which costs `tokens`.
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

/// A cache of the sessions' running requests.
#[derive(Debug, Default)]
pub(crate) struct Requests(PerSession<Request>);

impl Requests {
    pub(crate) fn known(&self, id: ConversationId) -> Option<Request> {
        self.0.lock().get(&id).cloned()
    }

    pub(crate) fn remember(&self, id: ConversationId, request: Request) {
        self.0.remember(id, request);
    }

    /// Records that a session's whole log does not fit into `room` tokens.
    pub(crate) fn outgrown(&self, id: ConversationId, room: u64) {
        let mut all = self.0.lock();
        if let Some(request) = all.get_mut(&id) {
            request.outgrown = request.outgrown.max(room);
        }
    }

    /// Adds an appended message to the cached request, if it follows the request's last known message.
    pub(crate) fn appended(&self, id: ConversationId, seq: Seq, said: Said, tokens: u64) {
        let mut all = self.0.lock();
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

/// Returns whether a message has text and no tool call.
fn ends_turn(message: &Message) -> bool {
    let calls = |part: &Part| matches!(part, Part::ToolCall { .. });
    let says = |part: &Part| matches!(part, Part::Text { text } if !text.trim().is_empty());
    message.parts.iter().any(says) && !message.parts.iter().any(calls)
}
