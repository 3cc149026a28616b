//! What comes out: a context, and a receipt that says how it came about.

use std::fmt;

use memory_model::{Part, Role, Seq, SeqRange, SummaryId, TrimPolicyId};
use serde::Serialize;

/// A context: what to send to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// The messages, in order.
    pub messages: Vec<ContextMessage>,
    /// What they cost together, in tokens: the figure that the budget's limit was held against.
    pub tokens: u64,
    /// The budget, in tokens.
    pub budget: u64,
    /// How the context came about.
    pub receipt: Receipt,
}

/// One message of a context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContextMessage {
    /// Who speaks.
    pub role: Role,
    /// The participant's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it costs, in tokens.
    pub tokens: u64,
    /// Where it comes from.
    pub source: Source,
    /// The content.
    pub parts: Vec<Part>,
}

/// Where a message of a context comes from. Positions are inclusive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Source {
    /// The agent's identity.
    Identity,
    /// Messages of the log, verbatim. More than one where lines of one model response were joined.
    Message {
        /// First position.
        first: Seq,
        /// Last position.
        last: Seq,
    },
    /// Messages of the log, shortened; the receipt says how.
    Trimmed {
        /// First position.
        first: Seq,
        /// Last position.
        last: Seq,
    },
    /// A summary.
    Summary {
        /// First position that it covers.
        first: Seq,
        /// Last position that it covers.
        last: Seq,
        /// Which one.
        summary_id: SummaryId,
    },
    /// A remark that messages were left out by the view.
    Omitted {
        /// First position.
        first: Seq,
        /// Last position.
        last: Seq,
    },
}

impl Source {
    /// The messages that it stands for; `None` for the identity.
    pub fn range(&self) -> Option<SeqRange> {
        match self {
            Source::Identity => None,
            Source::Message { first, last }
            | Source::Trimmed { first, last }
            | Source::Summary { first, last, .. }
            | Source::Omitted { first, last } => SeqRange::new(*first, *last),
        }
    }
}

/// How a context came about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Receipt {
    /// What the whole view costs, in tokens.
    pub view_tokens: u64,
    /// What the cost of the messages and of the request were held against together, in tokens: the
    /// budget divided by an upper quantile of what real counts come to.
    pub limit: u64,
    /// What the identity costs, in tokens.
    pub identity_tokens: u64,
    /// What a request costs beside its messages, in tokens. The context's tokens are without it.
    pub request_tokens: u64,
    /// How many tokens of the oldest part the policy gave up; 0 when the whole view fits.
    pub stepped_tokens: u64,
    /// What was left out for the budget, in order; neighbours are one entry.
    pub dropped: Vec<Dropped>,
    /// The newest span or group that the budget did not take whole: the one that the stepping cut
    /// fell in, or the first misfit, or the newest group if even that was shortened. Its tokens are
    /// what it costs rendered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boundary: Option<Dropped>,
    /// What was shortened for the budget.
    pub degraded: Vec<Degradation>,
    /// Calls that had no result and were given a stub: those interrupted or still open.
    pub stubbed_calls: Vec<String>,
    /// Results that stand behind their calls and not in the log's order, because providers accept
    /// them nowhere else.
    pub moved_results: Vec<MovedResult>,
    /// Calls that have another id than in the log, because it was empty or taken by a call before
    /// them. Their results have it, too.
    pub renamed_calls: Vec<RenamedCall>,
    /// Trim policies of the view that are not known here; their messages were shown whole.
    pub unknown_trims: Vec<TrimPolicyId>,
}

/// A result that stands behind its call and not in the log's order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MovedResult {
    /// The position of the message that brought the result.
    pub from: Seq,
    /// The position of the message with the call, behind which the result stands.
    pub behind: Seq,
    /// The call's id, as it is in the log.
    pub call_id: String,
}

/// A call that has another id than in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RenamedCall {
    /// The position of the message with the call; of joined lines, the first.
    pub message: Seq,
    /// The id that it had.
    pub id: String,
    /// The id that it and its result have in the context.
    pub new_id: String,
}

/// Something that was left out for the budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// First position.
    pub first: Seq,
    /// Last position.
    pub last: Seq,
    /// What the view says that it costs, in tokens.
    pub tokens: u64,
}

/// Something that was shortened for the budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Degradation {
    /// First position.
    pub first: Seq,
    /// Last position.
    pub last: Seq,
    /// How.
    pub step: Step,
    /// What it cost before, in tokens.
    pub from_tokens: u64,
    /// What it costs now, in tokens.
    pub to_tokens: u64,
}

/// How something was shortened; later steps take more away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Tool results were replaced by stubs that point to them, oldest first; the newest stays.
    StubbedResults,
    /// The largest texts were clipped in the middle, with a pointer.
    Clipped,
    /// The whole group became one text.
    Text,
}

/// What kind of thing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Not even the newest group fits, however much it is shortened.
    BudgetTooSmall {
        /// The smallest budget that would do, in tokens.
        needed: u64,
    },
}

/// Why there is no context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub(crate) kind: ErrorKind,
    pub(crate) budget: u64,
}

impl Error {
    /// What kind of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ErrorKind::BudgetTooSmall { needed } = self.kind;
        write!(
            f,
            "a budget of {} tokens is too small: the newest messages need {needed} even when \
             shortened as far as possible",
            self.budget
        )
    }
}

impl std::error::Error for Error {}
