//! A context, and the receipt of its assembly.

use std::fmt;

use memory_model::{Message, Part, Role, Seq, SeqRange, SummaryId, TrimPolicyId};
#[cfg(feature = "providers")]
use message_formats::providers::{self, Provider};
use serde::Serialize;

/// Messages to send to a model, with a receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Context {
    /// The messages, in order.
    pub messages: Vec<ContextMessage>,
    /// Cost of the messages, in tokens: the figure that is compared with the budget's limit.
    pub tokens: u64,
    /// The budget, in tokens.
    pub budget: u64,
    /// Receipt of the assembly.
    pub receipt: Receipt,
}

impl Context {
    /// Returns the messages without their costs and origins, to be converted into a provider's shape.
    pub fn to_messages(&self) -> Vec<Message> {
        let message = |message: &ContextMessage| Message {
            name: message.name.clone(),
            ..Message::new(message.role, message.parts.clone())
        };
        self.messages.iter().map(message).collect()
    }

    /// Returns the position of a request that the user still waits for and that the context does not show, because the
    /// budget is too small; `None` if it shows all of them.
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

    /// Returns how the newest group of messages was shortened for the budget; `None` if it is whole.
    pub fn degraded_tail(&self) -> Option<&Degradation> {
        let ranges = self.messages.iter().map(|message| message.source.range());
        let newest = ranges.flatten().map(|range| range.last).max()?;
        self.receipt
            .degraded
            .last()
            .filter(|group| group.last >= newest)
    }

    /// Returns the number of messages at the beginning that an earlier context begins with too: a provider's prompt cache holds
    /// as far as them.
    pub fn shared_prefix(&self, earlier: &Context) -> usize {
        let pairs = self.messages.iter().zip(&earlier.messages);
        pairs.take_while(|(now, then)| now == then).count()
    }
}

/// Requests in the shapes of providers: see [`message_formats::providers`].
#[cfg(feature = "providers")]
impl Context {
    /// Returns the `messages` of an OpenAI chat completion.
    pub fn to_openai(&self) -> Vec<serde_json::Value> {
        providers::openai::write(&self.to_messages())
    }

    /// Returns the `instructions` and the `input` of an OpenAI response.
    pub fn to_responses(&self) -> (Option<String>, Vec<serde_json::Value>) {
        providers::responses::write(&self.to_messages())
    }

    /// Returns the `system` and the `messages` of an Anthropic request.
    pub fn to_anthropic(&self) -> (Option<serde_json::Value>, Vec<serde_json::Value>) {
        providers::anthropic::write(&self.to_messages())
    }

    /// Returns the `systemInstruction` and the `contents` of a Gemini request.
    pub fn to_gemini(&self) -> (Option<serde_json::Value>, Vec<serde_json::Value>) {
        providers::gemini::write(&self.to_messages())
    }

    /// Returns the request's fields that hold the messages, in a provider's shape.
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
    /// Name of the participant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Cost of the message, in tokens.
    pub tokens: u64,
    /// Origin of the message.
    pub source: MessageOrigin,
    /// Content of the message.
    pub parts: Vec<Part>,
}

impl ContextMessage {
    /// Creates a message without a name. Its cost is 0 until it is counted.
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

/// Origin of a message of a context. Positions are inclusive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum MessageOrigin {
    /// The agent's identity.
    Identity,
    /// The application's system prompt.
    System,
    /// Messages of the log, verbatim. More than one if lines of one model response were joined.
    Message {
        /// First position.
        first: Seq,
        /// Last position.
        last: Seq,
    },
    /// Messages of the log, shortened; the receipt has the ways.
    Trimmed {
        /// First position.
        first: Seq,
        /// Last position.
        last: Seq,
    },
    /// Messages of the log that an earlier message also covers.
    Quoted {
        /// First position.
        first: Seq,
        /// Last position.
        last: Seq,
    },
    /// The state of the conversation.
    State {
        /// First position that it describes.
        first: Seq,
        /// Last position that it describes.
        last: Seq,
    },
    /// A summary.
    Summary {
        /// First position that the summary covers.
        first: Seq,
        /// Last position that the summary covers.
        last: Seq,
        /// Id of the summary.
        summary_id: SummaryId,
    },
    /// A remark that the view omits messages.
    Omitted {
        /// First position.
        first: Seq,
        /// Last position.
        last: Seq,
    },
}

impl MessageOrigin {
    /// Returns the positions of the messages that the message replaces; `None` for the identity, the system prompt, and
    /// messages that another one covers.
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

/// Record of an assembly.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Receipt {
    /// Cost of the whole view, in tokens.
    pub view_tokens: u64,
    /// Maximum estimated cost of the messages and the request together, in tokens: the budget divided
    /// by the safety factor.
    pub limit: u64,
    /// Cost of the application's system prompt, in tokens.
    #[serde(skip_serializing_if = "is_zero")]
    pub system_tokens: u64,
    /// Cost of the identity, in tokens.
    pub identity_tokens: u64,
    /// Cost of a request in addition to its messages, in tokens, tools included; not part of the context's tokens.
    pub request_tokens: u64,
    /// Cost of the definitions of tools, in tokens.
    #[serde(skip_serializing_if = "is_zero")]
    pub tools_tokens: u64,
    /// Tokens by which the policy shortened summaries and dropped the oldest messages in steps; 0 if the whole view
    /// fits. The beginning of a context changes only together with this figure.
    pub stepped_tokens: u64,
    /// Summaries that were shortened for the budget, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shortened: Vec<ShortenedSummary>,
    /// Ranges that were left out for the budget, in order; neighbours are one entry.
    pub dropped: Vec<Dropped>,
    /// The latest span or group that is not included whole: the one that a step cuts, the first that does not fit, or
    /// the latest group if it was shortened. Its tokens are its rendered cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boundary: Option<Dropped>,
    /// Ranges that were shortened for the budget.
    pub degraded: Vec<Degradation>,
    /// Ids of the interrupted and open calls that got a stub as their result.
    pub stubbed_calls: Vec<String>,
    /// Results that were moved to directly follow their calls, as providers require.
    pub moved_results: Vec<MovedResult>,
    /// Calls that got another id, with their results, because their id was empty or used by an earlier call.
    pub renamed_calls: Vec<RenamedCall>,
    /// Positions of the requests that the user still waits for.
    #[serde(skip)]
    pub(crate) requested: Vec<Seq>,
    /// Number of pictures and files that were left out for the budget's limits of pictures and bytes.
    #[serde(skip_serializing_if = "is_none")]
    pub media_left_out: usize,
    /// Trim policies of the view that this build does not know; their messages are shown whole.
    pub unknown_trims: Vec<TrimPolicyId>,
}

fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

/// A result that was moved after its call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MovedResult {
    /// Position of the message that holds the result in the log.
    pub from: Seq,
    /// Position of the message with the call.
    pub after: Seq,
    /// Id of the call in the log.
    pub call_id: String,
}

/// A call that got another id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RenamedCall {
    /// Position of the message with the call; of joined lines, the first.
    pub message: Seq,
    /// Id in the log.
    pub id: String,
    /// Id of the call and its result in the context.
    pub new_id: String,
}

/// A range that was left out for the budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Dropped {
    /// First position.
    pub first: Seq,
    /// Last position.
    pub last: Seq,
    /// Cost that the view records, in tokens.
    pub tokens: u64,
}

/// A summary that was shortened for the budget: a form of its most important lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ShortenedSummary {
    /// Id of the summary.
    pub summary_id: SummaryId,
    /// First position that the summary covers.
    pub first: Seq,
    /// Last position that the summary covers.
    pub last: Seq,
    /// Number of lines that are shown.
    pub lines: usize,
    /// Number of lines of the summary.
    pub of_lines: usize,
    /// Cost of the whole summary, in tokens.
    pub from_tokens: u64,
    /// Cost of the shown form, in tokens.
    pub to_tokens: u64,
}

/// A range that was shortened for the budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Degradation {
    /// First position.
    pub first: Seq,
    /// Last position.
    pub last: Seq,
    /// Step that shortened it.
    pub step: DegradationStep,
    /// Cost before, in tokens.
    pub from_tokens: u64,
    /// Cost after, in tokens.
    pub to_tokens: u64,
}

/// Ways of shortening a group; each drops more than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DegradationStep {
    /// Tool results were replaced by stubs that point to them, oldest first; the latest stays.
    StubbedResults,
    /// The largest texts were clipped in the middle, with a pointer.
    Clipped,
    /// The whole group became one text.
    Text,
    /// Neighbouring groups became one text: a pointer to them, and the beginnings of their messages as far
    /// as the budget allows.
    Digest,
}

/// Kind of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Even the fully shortened latest group does not fit.
    BudgetTooSmall {
        /// Smallest sufficient budget, in tokens.
        needed: u64,
    },
    /// The budget's limit of bytes is too small for the preamble and the latest group.
    TooFewBytes {
        /// Bytes of the smallest context that was tried.
        needed: u64,
    },
}

/// Error returned when no context can be assembled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub(crate) kind: ErrorKind,
    /// The limit, in tokens or bytes.
    pub(crate) budget: u64,
    /// Cost of a request in addition to the view, in tokens.
    pub(crate) fixed: u64,
}

impl Error {
    /// Returns the kind of the error.
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
