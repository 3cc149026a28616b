//! A context, and the receipt of its assembly.

use std::collections::BTreeMap;
use std::fmt;

use memory_model::{Message, Part, RawJson, Role, Seq, SeqRange, SummaryId, TrimPolicyId};
use serde::Serialize;

/// Messages to send to a model, with a receipt that records how they were chosen and changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Context {
    /// The messages to send, in order.
    pub messages: Vec<ContextMessage>,
    /// Estimated cost of the messages, in tokens. Together with the request's overhead it is at most
    /// [`Receipt::limit`], unless the policy has a [`whole_tail`](crate::AssemblyPolicy::whole_tail).
    pub tokens: u64,
    /// Budget for which the context was assembled, in tokens.
    pub budget: u64,
    /// Record of everything that was shortened, left out or changed in this context.
    pub receipt: Receipt,
}

impl Context {
    /// Returns the messages without their costs and origins, for conversion into a provider's format.
    pub fn to_messages(&self) -> Vec<Message> {
        let message = |message: &ContextMessage| Message {
            name: message.name.clone(),
            meta: message.meta(),
            ..Message::new(message.role, message.parts.clone())
        };
        self.messages.iter().map(message).collect()
    }

    /// Returns the position of a user's request that still has no answer and that the context does not show because the
    /// budget is too small. `None` if the context shows all open requests.
    pub fn dropped_request(&self) -> Option<Seq> {
        let covers = |first: Seq, last: Seq, seq: Seq| first <= seq && seq <= last;
        let is_shown = |seq: Seq| {
            let digested = self.receipt.degraded.iter().any(|group| {
                group.step == DegradationStep::Digest && covers(group.first, group.last, seq)
            });
            let verbatim = |message: &ContextMessage| match message.source {
                MessageOrigin::Message { first, last }
                | MessageOrigin::Trimmed { first, last }
                | MessageOrigin::Quoted { first, last } => covers(first, last, seq),
                _ => false,
            };
            !digested && self.messages.iter().any(verbatim)
        };
        let mut requested = self.receipt.requested.iter().copied();
        requested.find(|seq| !is_shown(*seq))
    }

    /// Returns how the latest group of messages was shortened for the budget. `None` if the group is shown whole.
    pub fn degraded_tail(&self) -> Option<&Degradation> {
        let ranges = self.messages.iter().map(|message| message.source.range());
        let newest = ranges.flatten().map(|range| range.last).max()?;
        self.receipt
            .degraded
            .last()
            .filter(|group| group.last >= newest)
    }

    /// Returns the number of messages at the beginning that are the same in this context and an earlier one. A
    /// provider's prompt cache can reuse these messages.
    pub fn shared_prefix(&self, earlier: &Context) -> usize {
        let pairs = self.messages.iter().zip(&earlier.messages);
        pairs.take_while(|(now, then)| now == then).count()
    }
}

/// One message of a context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ContextMessage {
    /// Author of the message.
    pub role: Role,
    /// Name of the participant who wrote the message. `None` if the participant has no name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Cost of the message, in tokens.
    pub tokens: u64,
    /// Origin of the message in the view (the compacted log) or the preamble.
    pub source: MessageOrigin,
    /// Content of the message.
    pub parts: Vec<Part>,
    /// Phases of what an assistant says, such as `commentary`, by the index of the part. A provider that gives them
    /// wants them back.
    #[serde(skip)]
    pub phases: BTreeMap<usize, String>,
}

impl ContextMessage {
    /// Returns the phases as the meta of a message that came from a provider.
    fn meta(&self) -> Option<RawJson> {
        let phases = self.phases.iter();
        let blocks: BTreeMap<String, BTreeMap<&str, &str>> = phases
            .map(|(at, phase)| (at.to_string(), BTreeMap::from([("phase", phase.as_str())])))
            .collect();
        let meta = BTreeMap::from([("blocks", blocks)]);
        (!self.phases.is_empty()).then(|| RawJson::from_value(&meta).ok())?
    }

    /// Creates a message without a participant's name. Its cost is 0 tokens until the caller sets it.
    pub fn new(role: Role, source: MessageOrigin, parts: Vec<Part>) -> Self {
        Self {
            role,
            name: None,
            tokens: 0,
            source,
            parts,
            phases: BTreeMap::new(),
        }
    }
}

/// Origin of a context's message in the view (the compacted log) or the preamble. Positions are positions in the log,
/// inclusive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum MessageOrigin {
    /// Text about the agent itself, from [`Preamble::identity`](crate::Preamble).
    Identity,
    /// The application's system prompt.
    System,
    /// Messages of the log, shown unchanged. More than one message if the messages of one model response were joined.
    Message {
        /// Position of the first of these messages.
        first: Seq,
        /// Position of the last of these messages.
        last: Seq,
    },
    /// Messages of the log, shown shortened. [`Receipt::degraded`] lists the ones that were shortened for the budget.
    Trimmed {
        /// Position of the first shortened message.
        first: Seq,
        /// Position of the last shortened message.
        last: Seq,
    },
    /// Messages of the log, shown in addition to a summary that covers them.
    Quoted {
        /// Position of the first quoted message.
        first: Seq,
        /// Position of the last quoted message.
        last: Seq,
    },
    /// A description of the current state of the conversation.
    State {
        /// Position of the first message that the description covers.
        first: Seq,
        /// Position of the last message that the description covers.
        last: Seq,
    },
    /// A summary of messages of the log.
    Summary {
        /// Position of the first message that the summary covers.
        first: Seq,
        /// Position of the last message that the summary covers.
        last: Seq,
        /// Id of the summary.
        summary_id: SummaryId,
    },
    /// A remark that messages are left out by the context or its view.
    Omitted {
        /// Position of the first message that is left out.
        first: Seq,
        /// Position of the last message that is left out.
        last: Seq,
    },
}

impl MessageOrigin {
    /// Returns the positions of the messages in the log that this message shows or replaces. Returns `None` for the
    /// identity, the system prompt and the state. Also returns `None` for quoted messages, because a summary covers the
    /// same positions.
    pub fn range(&self) -> Option<SeqRange> {
        match self {
            MessageOrigin::Identity
            | MessageOrigin::System
            | MessageOrigin::State { .. }
            | MessageOrigin::Quoted { .. } => None,
            MessageOrigin::Message { first, last }
            | MessageOrigin::Trimmed { first, last }
            | MessageOrigin::Summary { first, last, .. }
            | MessageOrigin::Omitted { first, last } => SeqRange::new(*first, *last),
        }
    }
}

/// Record of an assembly: the costs of its parts, and everything that was shortened, left out or changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Receipt {
    /// Cost of the whole view (the compacted form of the log), in tokens.
    pub view_tokens: u64,
    /// Maximum estimated cost of the messages together with the request's overhead, in tokens. It is the budget divided
    /// by the safety factor.
    pub limit: u64,
    /// Cost of the application's system prompt, in tokens.
    #[serde(skip_serializing_if = "is_zero")]
    pub system_tokens: u64,
    /// Cost of the text about the agent itself, in tokens.
    pub identity_tokens: u64,
    /// Cost of a request in addition to its messages, in tokens. Includes the definitions of tools. Not part of
    /// [`Context::tokens`].
    pub request_tokens: u64,
    /// Cost of the tool definitions sent with the request, in tokens.
    #[serde(skip_serializing_if = "is_zero")]
    pub tools_tokens: u64,
    /// Number of tokens that were removed from the view (the compacted log) in whole steps: by shortening summaries and
    /// by leaving out the oldest messages. 0 if the whole view fits. While this number stays the same, the beginning of
    /// the context does not change.
    pub stepped_tokens: u64,
    /// Summaries that were shortened for the budget, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shortened: Vec<ShortenedSummary>,
    /// Ranges of messages that were left out for the budget, in order. Neighbouring ranges are combined.
    pub dropped: Vec<Dropped>,
    /// Latest part of the view (the compacted log) that the context leaves out or shortens. A summary in a shorter form
    /// counts as whole. `tokens` is the cost of the rendered part. `None` if every part is shown whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boundary: Option<Dropped>,
    /// Ranges of messages that were shortened for the budget, and how.
    pub degraded: Vec<Degradation>,
    /// Ids of the tool calls that got a stub as their result, because the log has no result for them, or only a late
    /// result.
    pub stubbed_calls: Vec<String>,
    /// Tool results that were moved to directly follow their calls, as providers require.
    pub moved_results: Vec<MovedResult>,
    /// Tool calls that got a new id because their id was empty or used by an earlier call. Their results have the new
    /// id too.
    pub renamed_calls: Vec<RenamedCall>,
    /// Positions of the messages of the user's latest request, while it has no final answer: see
    /// [`AssemblyInput::requested`](crate::AssemblyInput::requested).
    #[serde(skip)]
    pub(crate) requested: Vec<Seq>,
    /// Number of pictures and files that were left out because of the budget's limits on pictures and bytes.
    #[serde(skip_serializing_if = "is_none")]
    pub media_left_out: usize,
    /// Trim policies (rules for shortening messages) of the view (the compacted log) that this build does not know.
    /// Their messages are shown whole.
    pub unknown_trims: Vec<TrimPolicyId>,
}

fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

/// A tool result that was moved to directly follow the message with its call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MovedResult {
    /// Position in the log of the message that contains the tool result.
    pub from: Seq,
    /// Position in the log of the message that contains the tool call. In the context, the result follows this message.
    pub after: Seq,
    /// Id of the tool call in the log.
    pub call_id: String,
}

/// A tool call that got a new id in the context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RenamedCall {
    /// Position in the log of the message that contains the tool call. If messages of a response were joined, the
    /// position of the first one.
    pub message: Seq,
    /// Id of the tool call in the log.
    pub id: String,
    /// Id of the tool call and its result in the context.
    pub new_id: String,
}

/// A range of messages that was left out, or only partly shown, for the budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Dropped {
    /// Position of the first message that was left out.
    pub first: Seq,
    /// Position of the last message that was left out.
    pub last: Seq,
    /// Cost of the range, in tokens. In [`Receipt::dropped`] the cost recorded in the view (the compacted log), in
    /// [`Receipt::boundary`] the rendered cost.
    pub tokens: u64,
}

/// A summary that was shortened for the budget to its most important lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ShortenedSummary {
    /// Id of the shortened summary.
    pub summary_id: SummaryId,
    /// Position of the first message that the summary covers.
    pub first: Seq,
    /// Position of the last message that the summary covers.
    pub last: Seq,
    /// Number of lines that the context shows.
    pub lines: usize,
    /// Number of lines of the whole summary.
    pub of_lines: usize,
    /// Cost of the whole summary, in tokens.
    pub from_tokens: u64,
    /// Cost of the shown lines, in tokens.
    pub to_tokens: u64,
}

/// A range of messages that was shortened for the budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Degradation {
    /// Position of the first shortened message.
    pub first: Seq,
    /// Position of the last shortened message.
    pub last: Seq,
    /// Way in which the range was shortened.
    pub step: DegradationStep,
    /// Cost of the range before it was shortened, in tokens.
    pub from_tokens: u64,
    /// Cost of the range after it was shortened, in tokens.
    pub to_tokens: u64,
}

/// Way of shortening a group of messages. Each way removes more than the ways before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DegradationStep {
    /// Tool results were replaced by stubs, oldest first. A stub has a pointer to the whole result. The latest result
    /// is kept.
    StubbedResults,
    /// The middle of the largest texts was replaced by a pointer to the whole text.
    Clipped,
    /// All messages of the group became one text.
    Text,
    /// Neighbouring groups became one text. It has a pointer to the groups, and as much of the beginnings of their
    /// messages as the budget allows.
    Digest,
}

/// Kind of an [`Error`], with the budget or size that would be enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The latest group of messages exceeds the budget, even if it is shortened as far as possible.
    BudgetTooSmall {
        /// Smallest sufficient budget, in tokens.
        needed: u64,
    },
    /// The preamble and the latest group of messages exceed the budget's maximum size.
    TooFewBytes {
        /// Size of the smallest context that was tried, in bytes.
        needed: u64,
    },
}

/// Error returned if no context fits the budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub(crate) kind: ErrorKind,
    /// The exceeded limit, in tokens or bytes.
    pub(crate) budget: u64,
    /// Cost of the preamble and the request's overhead, in tokens.
    pub(crate) fixed: u64,
}

impl Error {
    /// Returns the kind of the error, with the budget or size that would be enough.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ErrorKind::BudgetTooSmall { needed } => write!(
                f,
                "a budget of {} tokens is too small: {needed} are needed, {} of them for the request, the system \
                 prompt, the identity and the tools, and the rest for the latest messages, fully shortened",
                self.budget, self.fixed
            ),
            ErrorKind::TooFewBytes { needed } => write!(
                f,
                "a budget of {} bytes is too small: the beginning of the context and the fully shortened latest messages need {needed}",
                self.budget
            ),
        }
    }
}

impl std::error::Error for Error {}
