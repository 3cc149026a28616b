//! Settings of an assembly: the budget and the policy.

use std::num::NonZeroU64;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use token_estimate::SafetyFactor;

/// Maximum cost of a context, with optional limits on its pictures and bytes.
///
/// The budget is in real tokens, but the cost of a context is an estimate. So the estimate is compared with the
/// [`limit`](Budget::limit), which is the budget divided by a [`SafetyFactor`] of at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    safety_factor: Option<SafetyFactor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pictures: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

impl Budget {
    /// Creates a budget of `tokens` real tokens for the whole context, including the identity and placeholders. Unless
    /// a safety factor is set, the estimator's safety factor is used.
    pub fn tokens(tokens: u64) -> Self {
        Self {
            tokens,
            safety_factor: None,
            pictures: None,
            bytes: None,
        }
    }

    /// Sets the maximum number of pictures in a context. `None` sets no limit. Remarks replace the oldest pictures
    /// beyond the limit. Use it for providers that refuse requests with too many pictures.
    #[must_use]
    pub fn with_pictures(self, most: impl Into<Option<usize>>) -> Self {
        Self {
            pictures: most.into(),
            ..self
        }
    }

    /// Sets the maximum size of a context, in bytes. `None` sets no limit. The size is the length of the messages'
    /// parts as JSON, with pictures and files in Base64, without additional fields of a provider's format. In a larger
    /// context, remarks first replace the oldest pictures and files, and then the texts are shortened.
    #[must_use]
    pub fn with_bytes(self, most: impl Into<Option<u64>>) -> Self {
        Self {
            bytes: most.into(),
            ..self
        }
    }

    /// Returns the maximum number of pictures; `None` if there is no limit.
    pub fn pictures(self) -> Option<usize> {
        self.pictures
    }

    /// Returns the maximum size, in bytes; `None` if there is no limit.
    pub fn bytes(self) -> Option<u64> {
        self.bytes
    }

    /// Sets the safety factor. A factor below 1 is raised to 1.
    #[must_use]
    pub fn with_safety_factor(self, factor: SafetyFactor) -> Self {
        Self {
            safety_factor: Some(factor.max(SafetyFactor::ONE)),
            ..self
        }
    }

    /// Returns the budget, in real tokens.
    pub fn get(self) -> u64 {
        self.tokens
    }

    /// Returns the safety factor; `None` if none was set.
    pub fn safety_factor(self) -> Option<SafetyFactor> {
        self.safety_factor
    }

    /// Returns the maximum estimated cost of a context, in tokens: the budget divided by the safety factor, rounded
    /// down.
    pub fn limit(self) -> u64 {
        self.factor().divide(self.tokens)
    }

    /// Returns the budget with this safety factor, unless one is already set.
    pub(crate) fn or_safety_factor(self, factor: SafetyFactor) -> Self {
        match self.safety_factor {
            Some(_) => self,
            None => self.with_safety_factor(factor),
        }
    }

    /// Returns the smallest budget, in real tokens, with a [`limit`](Self::limit) of at least `limit` estimated tokens.
    /// Uses this budget's safety factor.
    pub fn tokens_needed_for(self, limit: u64) -> u64 {
        self.factor().multiply(limit)
    }

    fn factor(self) -> SafetyFactor {
        let factor = self.safety_factor.unwrap_or(SafetyFactor::ONE);
        factor.max(SafetyFactor::ONE)
    }
}

impl From<u64> for Budget {
    fn from(tokens: u64) -> Self {
        Self::tokens(tokens)
    }
}

/// How a context is used: alone, or as one of the contexts of a live session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The context is used alone and only once, for example by a person or at the start of another agent. It shows as
    /// much as fits, because no later context shares its beginning.
    Once,
    /// The context is one of many contexts of a live session. If a view costs too much, content is removed in whole
    /// steps, so that the beginning of the context rarely changes and a provider's prompt cache stays valid.
    Live {
        /// Number of steps into which a budget is divided. With 4, a quarter of the budget is removed at a time. A step
        /// is at least one token.
        steps: NonZeroU64,
    },
}

impl Form {
    /// Returns whether the context belongs to a live session, so that it changes only in steps.
    pub fn is_live(self) -> bool {
        matches!(self, Self::Live { .. })
    }

    /// Returns the size of a step, in tokens. It is 1 for a context that is used once.
    pub(crate) fn step_size(self, room: u64) -> u64 {
        match self {
            Self::Once => 1,
            Self::Live { steps } => (room / steps).max(1),
        }
    }
}

/// Writes a form as its number of steps. It is 0 for a context that is used once.
fn write_form<S: Serializer>(form: &Form, to: S) -> Result<S::Ok, S::Error> {
    let steps = match form {
        Form::Once => 0,
        Form::Live { steps } => steps.get(),
    };
    to.serialize_u64(steps)
}

fn read_form<'de, D: Deserializer<'de>>(from: D) -> Result<Form, D::Error> {
    let steps = NonZeroU64::new(u64::deserialize(from)?);
    Ok(steps.map_or(Form::Once, |steps| Form::Live { steps }))
}

/// Default number of steps.
const STEPS: NonZeroU64 = NonZeroU64::new(4).unwrap();

/// Rules for the selection of a view's content for a context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AssemblyPolicy {
    /// How the context is used. Default [`Live`](Form::Live) with 4 steps. In serialized policies it is the number
    /// `steps`, with 0 for [`Once`](Form::Once).
    #[serde(
        rename = "steps",
        serialize_with = "write_form",
        deserialize_with = "read_form"
    )]
    pub form: Form,
    /// Number of last messages that are always included whole, even if they exceed the budget. Earlier messages and
    /// summaries are then included whole if they fit, latest first. With `None`, the default, the budget is never
    /// exceeded, and content is shortened before it is left out.
    pub whole_tail: Option<usize>,
    /// Whether a message of the assistant acknowledges each summary, so that summaries read as a part of the
    /// conversation. Default false. The budget includes these messages. An acknowledgement is left out if the assistant
    /// speaks next anyway, and after a summary that consists of messages.
    pub acknowledge_summaries: bool,
}

impl Default for AssemblyPolicy {
    fn default() -> Self {
        Self {
            form: Form::Live { steps: STEPS },
            whole_tail: None,
            acknowledge_summaries: false,
        }
    }
}

impl AssemblyPolicy {
    /// Returns the policy for a context that is used only once, such as a context for a person or for the start of
    /// another agent. See [`Form::Once`].
    pub fn once() -> Self {
        Self {
            form: Form::Once,
            ..Self::default()
        }
    }
}

/// Limits of the part of a view that must be read for an assembly. See [`AssemblyPolicy::input_limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputLimits {
    /// Maximum number of needed summaries, counted from the latest one.
    pub summaries: u64,
    /// Total cost of summaries, in tokens, up to which a summary of summaries should be replaced by the summaries from
    /// which it was made. 0 in a live session, so that the beginning of the context stays the same.
    pub unfolded_tokens: u64,
    /// Cost of the needed messages without a summary, in tokens, counted back from the latest message. The group of
    /// messages in which this cost is reached is needed as a whole.
    pub message_tokens: u64,
    /// Maximum number of tokens that a single message adds to `message_tokens`. A context does not show more of a
    /// message.
    pub tokens_per_message: u64,
}

/// Assumed minimum cost of a summary's headline, in tokens. It limits the number of needed summaries.
const LEAST_HEADLINE: u64 = 40;

/// Minimum cost of the latest messages that are needed with any budget, in tokens. Messages that do not fit are shown
/// as digests.
const MESSAGES_FOR_DIGESTS: u64 = 20_000;

impl AssemblyPolicy {
    /// Returns limits of the part of a view that [`assemble`](crate::assemble()) needs. The rest may be passed as
    /// [`Item::Unread`](crate::Item). With [`whole_tail`](Self::whole_tail) the whole view is needed.
    ///
    /// `view_tokens` is the cost of the view, and `fixed` is the cost of the preamble before it, in tokens.
    pub fn input_limits(&self, view_tokens: u64, fixed: u64, budget: Budget) -> InputLimits {
        if self.whole_tail.is_some() {
            return InputLimits {
                summaries: u64::MAX,
                unfolded_tokens: 0,
                message_tokens: u64::MAX,
                tokens_per_message: u64::MAX,
            };
        }
        let room = budget.limit().saturating_sub(fixed);
        // Steps are counted from the beginning of the view. One step more than fits is needed, because rendering joins
        // the messages of a response, which then cost less than recorded.
        let step = self.form.step_size(room);
        let steps = view_tokens.saturating_sub(room).div_ceil(step);
        let unneeded = steps.saturating_sub(1).saturating_mul(step);
        InputLimits {
            summaries: room / LEAST_HEADLINE + 1,
            unfolded_tokens: match self.form {
                Form::Once => filled_part(room),
                Form::Live { .. } => 0,
            },
            message_tokens: view_tokens
                .saturating_sub(unneeded)
                .max(MESSAGES_FOR_DIGESTS),
            tokens_per_message: large_share(room),
        }
    }
}

/// Limits on the cost of the summaries in a context that is used once, if messages fill the rest of the room. Each limit
/// is a number of sixteenths of the room, plus a number of tokens. The smallest one applies, so a small room is mostly for
/// summaries and a large one for messages.
const FILLED: [(u64, u64); 3] = [(15, 0), (11, 250), (5, 1_500)];

/// Returns the number of tokens for the summaries in a context that is used once, if messages fill the rest of the room.
pub(crate) fn filled_part(room: u64) -> u64 {
    let parts = FILLED.map(|(sixteenths, tokens)| room / 16 * sixteenths + tokens);
    parts.into_iter().min().unwrap_or(0)
}

/// Divisor for the maximum cost of a single group of messages: a quarter of the room.
const LARGE_SHARE: u64 = 4;

/// Limit to which every group of messages can be shortened, in tokens.
pub(crate) const ABOVE_EVERY_FLOOR: u64 = 1_000;

/// Returns the maximum cost of a single group of messages if other messages need the rest of the room, in tokens.
pub(crate) fn large_share(room: u64) -> u64 {
    (room / LARGE_SHARE).max(ABOVE_EVERY_FLOOR)
}
