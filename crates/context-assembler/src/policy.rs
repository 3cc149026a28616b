//! The budget and the policy of an assembly.

use serde::{Deserialize, Serialize};
use token_estimate::SafetyFactor;

/// Maximum cost of a context.
///
/// The budget is in real tokens, and costs are estimates. Estimates are therefore compared with the
/// budget's [`limit`](Budget::limit): the budget divided by a [`SafetyFactor`] of at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    safety_factor: Option<SafetyFactor>,
}

impl Budget {
    /// Creates a hard budget in tokens: tail, identity and placeholders count too. Its factor is the
    /// estimator's, unless one is set.
    pub fn tokens(tokens: u64) -> Self {
        Self {
            tokens,
            safety_factor: None,
        }
    }

    /// Sets the factor; one below 1 is raised to 1.
    #[must_use]
    pub fn with_safety_factor(self, factor: SafetyFactor) -> Self {
        Self {
            safety_factor: Some(factor.max(SafetyFactor::ONE)),
            ..self
        }
    }

    /// The budget in tokens.
    pub fn get(self) -> u64 {
        self.tokens
    }

    /// The factor, if one is set.
    pub fn safety_factor(self) -> Option<SafetyFactor> {
        self.safety_factor
    }

    /// Maximum estimated cost, in tokens: the budget divided by the factor, rounded down.
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

    /// Smallest budget, in tokens, whose limit by the same factor is at least `limit` tokens: the
    /// upper bound of the real tokens of an estimate.
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

/// Rule for what is left out when a view costs more than the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Eviction {
    /// Leaves out the oldest part, in steps of `budget / steps` tokens, so that the start of the
    /// context changes rarely and a provider's prompt cache holds.
    Stepped {
        /// Number of steps in a budget: 4 drops a quarter at a time. 0 counts as 1.
        #[serde(default = "four")]
        steps: u64,
    },
    /// Takes spans and groups newest first, up to the first one that does not fit. The start of the
    /// context changes with almost every message.
    NewestUntilFull,
    /// Takes spans and groups newest first and skips each one that does not fit. Reads the whole
    /// view.
    NewestThatFit,
}

fn four() -> u64 {
    4
}

impl Default for Eviction {
    fn default() -> Self {
        Self::Stepped { steps: four() }
    }
}

/// Rule for what a context takes from a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
#[must_use]
pub struct AssemblyPolicy {
    /// Rule for what is left out when the view costs more than the budget.
    pub eviction: Eviction,
    /// Number of the newest messages that are always included whole, even over the budget. Default
    /// `None`: the budget is hard, and a group that is too large for it is shortened.
    pub whole_tail: Option<usize>,
    /// Whether summaries are shortened before any is left out, and dropped messages are shown as digests.
    /// Applies to [`Eviction::Stepped`] without a `whole_tail`. Default `true`.
    pub shorten_summaries: bool,
}

impl Default for AssemblyPolicy {
    fn default() -> Self {
        Self {
            eviction: Eviction::default(),
            whole_tail: None,
            shorten_summaries: true,
        }
    }
}

/// Limits on the part of a view that an assembly needs. See [`AssemblyPolicy::input_limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputLimits {
    /// Number of summaries, newest first.
    pub summaries: u64,
    /// Cost of messages that no summary stands for, newest first, in tokens. The group that holds the
    /// last of these tokens is needed whole.
    pub message_tokens: u64,
}

/// Least cost of a summary's headline, in tokens, by which the number of summaries is limited.
const LEAST_HEADLINE: u64 = 40;

/// Cost of the newest messages that are needed whatever the budget, in tokens: those that are left out are
/// shown as digests.
const MESSAGES_FOR_DIGESTS: u64 = 20_000;

impl AssemblyPolicy {
    /// Returns the preset anna: the last 20 messages whole, then newest first up to the first span or
    /// group that does not fit. Its contexts may exceed the budget.
    pub fn anna() -> Self {
        Self {
            eviction: Eviction::NewestUntilFull,
            whole_tail: Some(20),
            shorten_summaries: false,
        }
    }

    /// Whether some of the newest messages are always included whole.
    pub fn keeps_tail(&self) -> bool {
        self.whole_tail.is_some()
    }

    /// Maximum number of messages that are always included whole; `None` where the policy keeps none so.
    pub fn most_tail_messages(&self) -> Option<usize> {
        self.whole_tail
    }

    /// Sets the rule for what is left out.
    pub fn with_eviction(mut self, eviction: Eviction) -> Self {
        self.eviction = eviction;
        self
    }

    /// Sets the number of the newest messages that are always included whole, even over the budget.
    pub fn with_whole_tail(mut self, messages: Option<usize>) -> Self {
        self.whole_tail = messages;
        self
    }

    /// Sets whether summaries are shortened before any is left out.
    pub fn with_shorten_summaries(mut self, on: bool) -> Self {
        self.shorten_summaries = on;
        self
    }

    /// The number of steps in a budget, where summaries are shortened.
    pub(crate) fn shortening_steps(&self) -> Option<u64> {
        match self.eviction {
            Eviction::Stepped { steps } if self.shorten_summaries && !self.keeps_tail() => {
                Some(steps)
            }
            _ => None,
        }
    }

    /// Returns the limits on what [`assemble`](crate::assemble()) needs of a view where summaries are
    /// shortened: older summaries than `summaries` cannot be shown, and older messages than
    /// `message_tokens` are [`Item::Unread`](crate::Item). `None` where the policy does not shorten
    /// summaries: then the view is needed from [`first_needed_token`](Self::first_needed_token) on.
    ///
    /// `view_tokens` is the cost of the view and `fixed` the cost before it (an identity), in tokens.
    pub fn input_limits(
        &self,
        view_tokens: u64,
        fixed: u64,
        budget: Budget,
    ) -> Option<InputLimits> {
        self.shortening_steps()?;
        let needed = view_tokens
            - self
                .first_needed_token(view_tokens, fixed, budget)
                .min(view_tokens);
        let room = budget.limit().saturating_sub(fixed);
        Some(InputLimits {
            summaries: room / LEAST_HEADLINE + 1,
            message_tokens: needed.max(MESSAGES_FOR_DIGESTS),
        })
    }

    /// Returns the token, counted from the view's start, from which on [`assemble`](crate::assemble())
    /// needs the view, beginning with the span or group that holds the token. 0 is the whole view,
    /// spans without cost included.
    ///
    /// It lies a step before the part that fits, because a response whose lines are joined costs less
    /// rendered than recorded. `assemble` also needs the messages of a `whole_tail`, wherever they
    /// begin.
    ///
    /// `view_tokens` is the cost of the view and `fixed` the cost before it (an identity), in tokens.
    pub fn first_needed_token(&self, view_tokens: u64, fixed: u64, budget: Budget) -> u64 {
        let room = budget.limit().saturating_sub(fixed);
        if view_tokens <= room {
            return 0;
        }
        let misses = view_tokens - room;
        match self.eviction {
            Eviction::Stepped { steps } => {
                let step = step_size(room, steps);
                misses.div_ceil(step).saturating_sub(1).saturating_mul(step)
            }
            // One token more, so that the first misfit is seen.
            Eviction::NewestUntilFull => {
                misses.saturating_sub(step_size(room, four()).saturating_add(1))
            }
            Eviction::NewestThatFit => 0,
        }
    }
}

/// The size of a step, in tokens.
pub(crate) fn step_size(room: u64, steps: u64) -> u64 {
    (room / steps.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn a_limit_is_within_the_budget_and_the_budget_that_is_needed_suffices(
            tokens in prop_oneof![0..100_000_u64, any::<u64>()],
            thousandths in 0..5_000_u32,
        ) {
            let factor = SafetyFactor::from_thousandths(thousandths);
            let budget = Budget::tokens(tokens).with_safety_factor(factor);
            prop_assert!(budget.limit() <= tokens);
            let needed = budget.tokens_needed_for(tokens);
            prop_assume!(needed < u64::MAX);
            let limit = |tokens| Budget::tokens(tokens).with_safety_factor(factor).limit();
            prop_assert!(limit(needed) >= tokens);
            prop_assert!(needed == 0 || limit(needed - 1) < tokens);
        }
    }

    #[test]
    fn a_budget_survives_serde_whole() {
        for budget in [
            Budget::tokens(7),
            Budget::tokens(9).with_safety_factor(SafetyFactor::new(1.25)),
        ] {
            let json = serde_json::to_string(&budget).unwrap();
            let back: Budget = serde_json::from_str(&json).unwrap();
            assert_eq!((back, back.limit()), (budget, budget.limit()), "{json}");
        }
        serde_json::from_str::<Budget>(r#"{"tokens":7,"factor":1.25}"#).unwrap_err();
    }

    #[test]
    fn a_factor_that_is_set_stays() {
        let (budget, factor) = (Budget::tokens(1_000), SafetyFactor::new(1.25));
        assert_eq!(
            (budget.limit(), budget.or_safety_factor(factor).limit()),
            (1_000, 800)
        );
        let set = budget.with_safety_factor(SafetyFactor::new(0.9));
        assert_eq!(
            (set.safety_factor(), set.or_safety_factor(factor).limit()),
            (Some(SafetyFactor::ONE), 1_000)
        );
    }
}
