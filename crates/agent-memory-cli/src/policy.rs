//! The compaction policy from the command line and the configuration file.

use agent_memory::{
    Builder, DagPolicy, HandoffPolicy, Strategy,
    compaction::{Trigger, WindowUse},
};

use crate::args::Policy;
use crate::config::Config;
use crate::error::{Failure, Kind};

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

    /// Returns an error for the first option that has no effect with a strategy.
    pub(crate) fn check(&self, strategy: Strategy) -> Result<(), Failure> {
        use Strategy::{Dag, Handoff};
        let options: [(_, _, &[Strategy]); 3] = [
            ("--fresh-tail", self.fresh_tail.is_some(), &[Dag, Handoff]),
            ("--leaf-messages", self.leaf_messages.is_some(), &[Dag]),
            ("--leaf-tokens", self.leaf_tokens.is_some(), &[Dag]),
        ];
        for (option, is_given, strategies) in options {
            if is_given && !strategies.contains(&strategy) {
                let others = strategies.iter().map(|other| format!("--strategy {other}"));
                let others = others.collect::<Vec<_>>().join(" or ");
                let text = format!("{option} has no effect with the strategy {strategy}");
                let hint = format!("leave it out, or give {others}");
                return Err(Failure::new(Kind::Usage, text).hint(hint));
            }
        }
        Ok(())
    }

    /// Applies the options and a configuration file to a builder. `default` is the policy of the DAG planner without
    /// options.
    pub(crate) fn apply(
        &self,
        mut builder: Builder,
        default: DagPolicy,
        config: &Config,
    ) -> Builder {
        let mut turns = config.tables().turns.clone().unwrap_or_default();
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
        let tables = config.tables();
        let handoff = tables.handoff.map(HandoffPolicy::from);
        if let Some(policy) = &tables.context {
            builder = builder.assembly(policy.clone());
        }
        let dag = self.dag(tables.dag.clone().unwrap_or(default));
        if let Some(policy) = &tables.blocks {
            builder = builder.blocks(policy.clone());
        }
        // The last strategy is the one of sessions without a strategy of their own.
        let builder = builder.handoff(handoff.unwrap_or_default());
        builder.dag(dag).turns(turns)
    }

    /// Returns whether a session of this size crosses the threshold: the share of the window, or the number of tokens in
    /// the configuration file. Returns true without a threshold.
    pub(crate) fn is_due(&self, usage: &WindowUse, config: &Config) -> bool {
        let trigger = match self.threshold {
            Some(of_window) => Trigger::Fraction { of_window },
            None => config.turns().map_or(Trigger::Never, |policy| policy.hard),
        };
        trigger == Trigger::Never || trigger.fires(usage)
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
        let of = |tokens| WindowUse {
            tokens,
            window: 10_000,
            ..WindowUse::default()
        };
        let is_due = |tokens| policy.is_due(&of(tokens), &Config::default());
        assert!(!is_due(5_000) && is_due(5_001));
        assert!(Policy::default().is_due(&WindowUse::default(), &Config::default()));
    }
}
