//! When and how sessions are compacted, from the command line.

use agent_memory::{AssemblyPolicy, Builder, DagPolicy, Trigger, TurnPolicy, WindowUse};

use crate::args::{Policy, Preset};

impl Policy {
    /// The planner's policy: the preset's, or `usual`, with what was given beside it.
    fn dag(&self, usual: DagPolicy) -> DagPolicy {
        let mut policy = match self.preset {
            Some(Preset::Anna) => DagPolicy::anna(),
            Some(Preset::Default) | None => usual,
        };
        if let Some(messages) = self.fresh_tail {
            policy.fresh_tail.messages = messages;
        }
        if let Some(messages) = self.leaf_messages {
            policy.leaf_min_messages = messages;
        }
        if let Some(tokens) = self.leaf_tokens {
            policy.max_source_tokens = Some(tokens);
        }
        policy
    }

    /// Sets what was asked for; `usual` is the planner's policy without it.
    pub(crate) fn apply(&self, mut builder: Builder, usual: DagPolicy) -> Builder {
        let mut turns = TurnPolicy::default();
        if let Some(Preset::Anna) = self.preset {
            turns = TurnPolicy::anna();
            let mut assembly = AssemblyPolicy::anna();
            if self.fresh_tail.is_some() {
                assembly = assembly.with_whole_tail(self.fresh_tail);
            }
            builder = builder.assembly(assembly);
        }
        if let Some(of_window) = self.threshold {
            turns.hard = Trigger::Fraction { of_window };
            // Summaries are made ahead from two thirds of the threshold on, as by default.
            if let Trigger::Fraction { .. } = turns.soft {
                turns.soft = Trigger::Fraction {
                    of_window: of_window * 2.0 / 3.0,
                };
            }
        }
        builder.dag(self.dag(usual)).turns(turns)
    }

    /// Whether a context of this many tokens is reason to compact for a model with this window.
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
    fn options_change_what_the_preset_says() {
        let usual = || DagPolicy::for_window(32_000);
        assert_eq!(Policy::default().dag(usual()), usual());
        let anna = Policy {
            preset: Some(Preset::Anna),
            ..Policy::default()
        };
        assert_eq!(anna.dag(usual()), DagPolicy::anna());
        let changed = Policy {
            fresh_tail: Some(3),
            leaf_messages: Some(4),
            leaf_tokens: Some(5_000),
            ..anna
        };
        let policy = changed.dag(usual());
        assert_eq!(policy.fresh_tail.messages, 3);
        assert_eq!(policy.leaf_min_messages, 4);
        assert_eq!(policy.max_source_tokens, Some(5_000));
        assert_eq!(policy.condensed_max, DagPolicy::anna().condensed_max);
    }

    #[test]
    fn the_threshold_has_its_edge() {
        let policy = Policy {
            threshold: Some(0.5),
            ..Policy::default()
        };
        assert!(!policy.is_due(5_000, Some(10_000)));
        assert!(policy.is_due(5_001, Some(10_000)));
        assert!(policy.is_due(0, None) && Policy::default().is_due(0, Some(10_000)));
    }
}
