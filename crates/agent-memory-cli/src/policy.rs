//! The compaction policy from the command line.

use agent_memory::{
    Builder, DagPolicy, TurnPolicy,
    compaction::{Trigger, WindowUse},
};

use crate::args::Policy;

impl Policy {
    /// Returns the policy of the DAG planner: `policy` with the options of the command line.
    fn dag(&self, mut policy: DagPolicy) -> DagPolicy {
        if let Some(messages) = self.leaf_messages {
            policy.leaf_min_messages = messages;
        }
        if let Some(tokens) = self.leaf_tokens {
            policy.max_source_tokens = Some(tokens);
        }
        policy
    }

    /// Applies the options to a builder. `default` is the policy of the DAG planner without options.
    pub(crate) fn apply(&self, mut builder: Builder, default: DagPolicy) -> Builder {
        let mut turns = TurnPolicy::default();
        if let Some(messages) = self.fresh_tail {
            builder = builder.fresh_tail(messages);
        }
        if let Some(of_window) = self.threshold {
            turns.hard = Trigger::Fraction { of_window };
            // Summaries are prefetched above two thirds of the threshold, as in the default policy.
            turns.soft = Trigger::Fraction {
                of_window: of_window * 2.0 / 3.0,
            };
        }
        builder.dag(self.dag(default)).turns(turns)
    }

    /// Returns whether a context of `tokens` tokens crosses the threshold in this window. Returns true without a
    /// threshold or without a window.
    pub(crate) fn is_due(&self, tokens: u64, window: Option<u64>) -> bool {
        let (Some(of_window), Some(window)) = (self.threshold, window) else {
            return true;
        };
        Trigger::Fraction { of_window }.fires(&WindowUse {
            tokens,
            window,
            system_tokens: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_override_the_default() {
        let default = || DagPolicy::for_window(32_000);
        assert_eq!(Policy::default().dag(default()), default());
        let changed = Policy {
            leaf_messages: Some(4),
            leaf_tokens: Some(5_000),
            ..Policy::default()
        };
        let policy = changed.dag(default());
        assert_eq!(policy.leaf_min_messages, 4);
        assert_eq!(policy.max_source_tokens, Some(5_000));
        assert_eq!(policy.condensed_max, default().condensed_max);
    }

    #[test]
    fn the_threshold_is_exclusive() {
        let policy = Policy {
            threshold: Some(0.5),
            ..Policy::default()
        };
        assert!(!policy.is_due(5_000, Some(10_000)));
        assert!(policy.is_due(5_001, Some(10_000)));
        assert!(policy.is_due(0, None) && Policy::default().is_due(0, Some(10_000)));
    }
}
