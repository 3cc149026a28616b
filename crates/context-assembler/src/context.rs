//! A context, and the receipt of its assembly.

use std::fmt;

use memory_model::{Message, Part, Role, Seq, SeqRange, SummaryId, TrimPolicyId};
#[cfg(feature = "providers")]
use message_formats::providers::{self, Provider};
use serde::Serialize;

/// Messages to send to a model, with a receipt that records how they were assembled.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Context {
    /// The messages to send, in order.
    pub messages: Vec<ContextMessage>,
    /// Estimated cost of the messages, in tokens. This is the number that is compared with the budget's limit.
    pub tokens: u64,
    /// Budget for which the context was assembled, in tokens.
    pub budget: u64,
    /// Record of everything that was shortened, left out or changed for this context.
    pub receipt: Receipt,
}

impl Context {
    /// Returns the messages without their costs and origins, for conversion into a provider's format.
    pub fn to_messages(&self) -> Vec<Message> {
        let message = |message: &ContextMessage| Message {
            name: message.name.clone(),
            ..Message::new(message.role, message.parts.clone())
        };
        self.messages.iter().map(message).collect()
    }

    /// Returns the position of a request that the user still waits for and that the context does not show, because the
    /// budget is too small; `None` if the context shows all such requests.
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

    /// Returns how the latest group of messages was shortened for the budget; `None` if it is shown whole.
    pub fn degraded_tail(&self) -> Option<&Degradation> {
        let ranges = self.messages.iter().map(|message| message.source.range());
        let newest = ranges.flatten().map(|range| range.last).max()?;
        self.receipt
            .degraded
            .last()
            .filter(|group| group.last >= newest)
    }

    /// Returns the number of messages that this context and an earlier one have in common at their beginning. A
    /// provider's prompt cache can reuse these messages.
    pub fn shared_prefix(&self, earlier: &Context) -> usize {
        let pairs = self.messages.iter().zip(&earlier.messages);
        pairs.take_while(|(now, then)| now == then).count()
    }
}

/// Requests in the shapes of providers: see [`message_formats::providers`].
#[cfg(feature = "providers")]
impl Context {
    /// Returns the value of `messages` for an OpenAI chat completion.
    pub fn to_openai(&self) -> Vec<serde_json::Value> {
        providers::openai::write(&self.to_messages())
    }

    /// Returns the values of `instructions` and `input` for an OpenAI response.
    pub fn to_responses(&self) -> (Option<String>, Vec<serde_json::Value>) {
        providers::responses::write(&self.to_messages())
    }

    /// Returns the values of `system` and `messages` for an Anthropic request.
    pub fn to_anthropic(&self) -> (Option<serde_json::Value>, Vec<serde_json::Value>) {
        providers::anthropic::write(&self.to_messages())
    }

    /// Returns the values of `systemInstruction` and `contents` for a Gemini request.
    pub fn to_gemini(&self) -> (Option<serde_json::Value>, Vec<serde_json::Value>) {
        providers::gemini::write(&self.to_messages())
    }

    /// Returns the fields of a provider's request that hold the messages, by their names.
    pub fn to_request(&self, provider: Provider) -> serde_json::Map<String, serde_json::Value> {
        provider.request(&self.to_messages())
    }
}

/// One message of a context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ContextMessage {
    /// Author of the message.
    pub role: Role,
    /// Name of the participant who wrote the message; `None` if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Cost of the message, in tokens.
    pub tokens: u64,
    /// Part of the view or preamble from which the message was made.
    pub source: MessageOrigin,
    /// Content of the message.
    pub parts: Vec<Part>,
}

impl ContextMessage {
    /// Creates a message without a participant's name. Its cost is 0 tokens until it is counted.
    pub fn new(role: Role, source: MessageOrigin, parts: Vec<Part>) -> Self {
        Self {
            role,
            name: None,
            tokens: 0,
            source,
            parts,
        }
    }
}

/// Part of the view or preamble from which a message of a context was made. Positions are positions in the log,
/// inclusive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum MessageOrigin {
    /// The text of the agent's identity.
    Identity,
    /// The application's system prompt.
    System,
    /// Messages of the log, unchanged. They are more than one if the lines of one model response were joined.
    Message {
        /// Position of the first message of the log.
        first: Seq,
        /// Position of the last message of the log.
        last: Seq,
    },
    /// Messages of the log, shortened. [`Receipt::degraded`] lists how they were shortened for the budget.
    Trimmed {
        /// Position of the first shortened message of the log.
        first: Seq,
        /// Position of the last shortened message of the log.
        last: Seq,
    },
    /// Messages of the log, shown in addition to a summary that covers them.
    Quoted {
        /// Position of the first quoted message of the log.
        first: Seq,
        /// Position of the last quoted message of the log.
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
    /// A remark that the context or its view leaves out messages.
    Omitted {
        /// Position of the first message that is left out.
        first: Seq,
        /// Position of the last message that is left out.
        last: Seq,
    },
}

impl MessageOrigin {
    /// Returns the positions of the log's messages that this message shows or replaces. `None` for the identity, the
    /// system prompt and the state, and for quoted messages, which a summary also covers.
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
    /// Cost of the whole view from which the context was assembled, in tokens.
    pub view_tokens: u64,
    /// Maximum estimated cost of the messages and the request's overhead together, in tokens: the budget divided by the
    /// safety factor.
    pub limit: u64,
    /// Cost of the application's system prompt, in tokens.
    #[serde(skip_serializing_if = "is_zero")]
    pub system_tokens: u64,
    /// Cost of the agent's identity, in tokens.
    pub identity_tokens: u64,
    /// Cost that a request adds to its messages, in tokens, including the definitions of tools. It is not part of
    /// [`Context::tokens`].
    pub request_tokens: u64,
    /// Cost of the definitions of tools that are sent with the request, in tokens.
    #[serde(skip_serializing_if = "is_zero")]
    pub tools_tokens: u64,
    /// Number of tokens that the policy's steps removed from the beginning of the view, by shortening summaries and
    /// leaving out the oldest messages; 0 if the whole view fits. The beginning of a context changes only when this
    /// number changes.
    pub stepped_tokens: u64,
    /// Summaries that were shortened for the budget, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shortened: Vec<ShortenedSummary>,
    /// Ranges of messages that were left out for the budget, in order. Neighbouring ranges are one entry.
    pub dropped: Vec<Dropped>,
    /// The latest span or group of messages that is not shown whole: the one that a step cuts, the first that does not
    /// fit, or the latest group if it was shortened. Its `tokens` are its cost as rendered. `None` if everything is
    /// shown whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boundary: Option<Dropped>,
    /// Ranges of messages that were shortened for the budget, with the way of shortening.
    pub degraded: Vec<Degradation>,
    /// Ids of the tool calls that got a stub as their result, because they were interrupted or are still open.
    pub stubbed_calls: Vec<String>,
    /// Tool results that were moved to directly follow their calls, as providers require.
    pub moved_results: Vec<MovedResult>,
    /// Tool calls that got another id, together with their results, because their id was empty or used by an earlier
    /// call.
    pub renamed_calls: Vec<RenamedCall>,
    /// Positions of the requests that the user still waits for.
    #[serde(skip)]
    pub(crate) requested: Vec<Seq>,
    /// Number of pictures and files that were left out because of the budget's limits of pictures and bytes.
    #[serde(skip_serializing_if = "is_none")]
    pub media_left_out: usize,
    /// Trim policies that the view uses and this build does not know. The messages are shown whole.
    pub unknown_trims: Vec<TrimPolicyId>,
}

fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

/// A tool result that was moved to the place after its call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MovedResult {
    /// Position in the log of the message that holds the result.
    pub from: Seq,
    /// Position in the log of the message that holds the tool call. The context shows the result after that message.
    pub after: Seq,
    /// Id of the tool call, as the log has it.
    pub call_id: String,
}

/// A tool call that got another id in the context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RenamedCall {
    /// Position in the log of the message that holds the tool call. If lines were joined, the position of the first
    /// line.
    pub message: Seq,
    /// Id of the tool call, as the log has it.
    pub id: String,
    /// Id of the tool call and its result in the context.
    pub new_id: String,
}

/// A range of messages that was left out for the budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Dropped {
    /// Position of the first message that was left out.
    pub first: Seq,
    /// Position of the last message that was left out.
    pub last: Seq,
    /// Cost of the range as the view records it, in tokens.
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

/// Way of shortening a group of messages. Each way removes more than the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DegradationStep {
    /// Tool results were replaced by stubs that refer to them, oldest first. The latest result stays.
    StubbedResults,
    /// The largest texts were shortened in the middle, with a pointer to the whole text.
    Clipped,
    /// All messages of the group became one text.
    Text,
    /// Neighbouring groups became one text: a pointer to the groups, and as much of the beginnings of their messages as
    /// the budget allows.
    Digest,
}

/// Kind of an [`Error`], with the size that would suffice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The latest group of messages does not fit, even if it is shortened as far as possible.
    BudgetTooSmall {
        /// Smallest sufficient budget, in tokens.
        needed: u64,
    },
    /// The preamble and the latest group of messages need more bytes than the budget allows.
    TooFewBytes {
        /// Size of the smallest context that was tried, in bytes.
        needed: u64,
    },
}

/// Error returned if no context fits the budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub(crate) kind: ErrorKind,
    /// The limit, in tokens or bytes.
    pub(crate) budget: u64,
    /// Cost of a request in addition to the view, in tokens.
    pub(crate) fixed: u64,
}

impl Error {
    /// Returns the kind of the error, with the size that would suffice.
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
