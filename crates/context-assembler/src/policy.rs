//! The budget and the policy of an assembly.

use serde::{Deserialize, Serialize};
use token_estimate::SafetyFactor;

/// Maximum cost of a context, and optional limits of its pictures and bytes.
///
/// The budget is in real tokens, but the cost of a context is an estimate. The estimate is compared with the budget's
/// [`limit`](Budget::limit): the budget divided by a [`SafetyFactor`] of at least 1.
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
    /// Creates a budget of `tokens` tokens for the whole context: the last messages, the identity and placeholders
    /// count too. Unless a safety factor is set, the estimator's safety factor is used.
    pub fn tokens(tokens: u64) -> Self {
        Self {
            tokens,
            safety_factor: None,
            pictures: None,
            bytes: None,
        }
    }

    /// Sets the maximum number of pictures in a context; `None` sets no limit. A remark replaces each older picture.
    /// Providers refuse requests with too many pictures.
    #[must_use]
    pub fn with_pictures(self, most: impl Into<Option<usize>>) -> Self {
        Self {
            pictures: most.into(),
            ..self
        }
    }

    /// Sets the maximum size of a context in bytes; `None` sets no limit. The size is counted for the parts of the
    /// messages as JSON, with pictures and files in Base64. Fields that a provider's format adds are not counted. If a
    /// context is larger, remarks first replace its oldest pictures and files; then its texts are shortened.
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

    /// Returns the maximum size in bytes; `None` if there is no limit.
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

    /// The budget with this factor unless one is set.
    pub(crate) fn or_safety_factor(self, factor: SafetyFactor) -> Self {
        match self.safety_factor {
            Some(_) => self,
            None => self.with_safety_factor(factor),
        }
    }

    /// Returns the smallest budget, in real tokens, of which the limit is at least `limit` estimated tokens with the
    /// same safety factor.
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

/// Rule that selects which part of a view a context shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AssemblyPolicy {
    /// Number of steps into which a budget is divided. If a view costs too much, whole steps are removed from it, so
    /// that the beginning of the context rarely changes and a provider's prompt cache stays valid. Default 4: a quarter
    /// of the budget at a time. With 0 there are no steps, and a context shows as much as fits.
    pub steps: u64,
    /// Number of last messages that are always included whole, even if they exceed the budget. Older groups and
    /// summaries are then included whole if they fit, latest first. Default `None`: the budget is never exceeded, and
    /// content is shortened before it is left out.
    pub whole_tail: Option<usize>,
}

impl Default for AssemblyPolicy {
    fn default() -> Self {
        Self {
            steps: 4,
            whole_tail: None,
        }
    }
}

impl AssemblyPolicy {
    /// Returns the policy for a context that is used only once, such as one for a person or for the start of another
    /// agent. It shows as much as fits, because no later context shares its beginning.
    pub fn once() -> Self {
        Self {
            steps: 0,
            ..Self::default()
        }
    }
}

/// Limits of the part of a view that an assembly must read. See [`AssemblyPolicy::input_limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputLimits {
    /// Maximum number of summaries that are needed, counted from the latest.
    pub summaries: u64,
    /// Total cost of summaries, in tokens, up to which summaries of summaries are replaced by their children. It is 0
    /// if the policy has steps, because these keep the beginning of the context.
    pub unfolded_tokens: u64,
    /// Cost of the messages without a summary that are needed, in tokens, counted from the latest message. The group of
    /// messages that holds the last of these tokens is needed whole.
    pub message_tokens: u64,
    /// Maximum number of tokens that a single message adds to `message_tokens`. A context shows no more of it.
    pub tokens_per_message: u64,
}

/// Least cost of a summary's headline, in tokens, by which the number of summaries is limited.
const LEAST_HEADLINE: u64 = 40;

/// Cost of the latest messages that are needed at any budget, in tokens: omitted ones are shown as digests.
const MESSAGES_FOR_DIGESTS: u64 = 20_000;

impl AssemblyPolicy {
    /// Returns limits of the part of a view that [`assemble`](crate::assemble()) needs. The rest may be
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
        // Steps are counted from the start of the view. One step more than fits is needed, because a response of joined
        // lines costs less rendered than recorded.
        let step = step_size(room, self.steps);
        let steps = view_tokens.saturating_sub(room).div_ceil(step);
        let unneeded = steps.saturating_sub(1).saturating_mul(step);
        InputLimits {
            summaries: room / LEAST_HEADLINE + 1,
            unfolded_tokens: match self.steps {
                0 => filled_part(room),
                _ => 0,
            },
            message_tokens: view_tokens
                .saturating_sub(unneeded)
                .max(MESSAGES_FOR_DIGESTS),
            tokens_per_message: large_share(room),
        }
    }
}

/// Limits on the summaries of a context without steps, if messages fill the rest of the room: sixteenths of the room,
/// and tokens in addition. A small room is used mostly for summaries, a large one for messages.
const FILLED: [(u64, u64); 3] = [(15, 0), (11, 250), (5, 1_500)];

/// Tokens of the summaries in a context without steps, if messages fill the rest of the room.
pub(crate) fn filled_part(room: u64) -> u64 {
    let parts = FILLED.map(|(sixteenths, tokens)| room / 16 * sixteenths + tokens);
    parts.into_iter().min().unwrap_or(0)
}

/// Part of the room that a group may cost: a quarter.
const LARGE_SHARE: u64 = 4;

/// Limit to which every group can be shortened, in tokens.
pub(crate) const ABOVE_EVERY_FLOOR: u64 = 1_000;

/// Tokens that a single group may cost if other messages need the rest of the room.
pub(crate) fn large_share(room: u64) -> u64 {
    (room / LARGE_SHARE).max(ABOVE_EVERY_FLOOR)
}

/// The size of a step, in tokens.
pub(crate) fn step_size(room: u64, steps: u64) -> u64 {
    room.checked_div(steps).unwrap_or(1).max(1)
}
