//! Limits of a run of an agent loop.

use std::fmt;
use std::time::Duration;

use memory_model::Timestamp;
use serde::{Deserialize, Serialize};

/// Limits of one run. Reaching one ends the run before its next turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ExecutionLimits {
    /// Maximum number of turns. Default 50.
    pub max_turns: usize,
    /// Maximum number of tokens, in and out, over all turns. Default 1,000,000.
    pub max_total_tokens: u64,
    /// Maximum duration. Default 10 minutes.
    pub max_duration: Duration,
    /// Maximum cost in US dollars; `None` for no limit. Default: none.
    pub max_cost: Option<f64>,
}

impl Default for ExecutionLimits {
    fn default() -> Self {
        Self {
            max_turns: 50,
            max_total_tokens: 1_000_000,
            max_duration: Duration::from_secs(600),
            max_cost: None,
        }
    }
}

/// The limit that a run reached, with what was used and what was allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum LimitReached {
    /// Number of turns.
    Turns(usize, usize),
    /// Number of tokens.
    Tokens(u64, u64),
    /// Duration.
    Duration(Duration, Duration),
    /// Cost in US dollars.
    Cost(f64, f64),
}

impl fmt::Display for LimitReached {
    /// The message that ends a run, such as `[Agent stopped: 50 of 50 turns are used]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[Agent stopped: ")?;
        match self {
            Self::Turns(used, most) => write!(f, "{used} of {most} turns are used]"),
            Self::Tokens(used, most) => write!(f, "{used} of {most} tokens are used]"),
            Self::Duration(used, most) => {
                write!(
                    f,
                    "{} of {} seconds are over]",
                    used.as_secs(),
                    most.as_secs()
                )
            }
            Self::Cost(used, most) => write!(f, "{used:.4} of {most:.4} dollars are spent]"),
        }
    }
}

/// Holds a run against its limits. Time is an argument.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutionTracker {
    limits: ExecutionLimits,
    started_at: Timestamp,
    turns: usize,
    tokens: u64,
    cost: f64,
}

impl ExecutionTracker {
    /// Creates the tracker of a run that begins now.
    pub fn new(limits: ExecutionLimits, now: Timestamp) -> Self {
        Self {
            limits,
            started_at: now,
            turns: 0,
            tokens: 0,
            cost: 0.0,
        }
    }

    /// Counts a turn and its tokens, in and out.
    pub fn record_turn(&mut self, tokens: u64) {
        self.turns += 1;
        self.tokens = self.tokens.saturating_add(tokens);
    }

    /// Adds to the cost, in US dollars.
    pub fn record_cost(&mut self, dollars: f64) {
        self.cost += dollars;
    }

    /// Returns the first limit that is reached; `None` while the run may go on.
    pub fn check(&self, now: Timestamp) -> Option<LimitReached> {
        let limits = &self.limits;
        let micros = now.0.saturating_sub(self.started_at.0);
        let elapsed = Duration::from_micros(u64::try_from(micros).unwrap_or(0));
        if self.turns >= limits.max_turns {
            return Some(LimitReached::Turns(self.turns, limits.max_turns));
        }
        if self.tokens >= limits.max_total_tokens {
            return Some(LimitReached::Tokens(self.tokens, limits.max_total_tokens));
        }
        if elapsed >= limits.max_duration {
            return Some(LimitReached::Duration(elapsed, limits.max_duration));
        }
        let most = limits.max_cost.filter(|most| self.cost >= *most);
        most.map(|most| LimitReached::Cost(self.cost, most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(1_000_000);

    fn tracker(limits: ExecutionLimits) -> ExecutionTracker {
        ExecutionTracker::new(limits, START)
    }

    #[test]
    fn each_limit_ends_a_run() {
        let mut turns = tracker(ExecutionLimits {
            max_turns: 2,
            ..ExecutionLimits::default()
        });
        turns.record_turn(10);
        assert_eq!(turns.check(START), None);
        turns.record_turn(10);
        let reached = turns.check(START).unwrap();
        assert_eq!(reached, LimitReached::Turns(2, 2));
        assert_eq!(
            reached.to_string(),
            "[Agent stopped: 2 of 2 turns are used]"
        );

        let limits = ExecutionLimits {
            max_total_tokens: 100,
            ..ExecutionLimits::default()
        };
        let mut tokens = tracker(limits);
        tokens.record_turn(99);
        assert_eq!(tokens.check(START), None);
        tokens.record_turn(1);
        assert_eq!(tokens.check(START), Some(LimitReached::Tokens(100, 100)));

        let time = tracker(ExecutionLimits::default());
        let at = |seconds| START.saturating_add(Duration::from_secs(seconds));
        assert_eq!(time.check(at(599)), None);
        let text = time.check(at(600)).unwrap().to_string();
        assert_eq!(text, "[Agent stopped: 600 of 600 seconds are over]");

        let limits = ExecutionLimits {
            max_cost: Some(0.5),
            ..ExecutionLimits::default()
        };
        let mut cost = tracker(limits);
        assert_eq!(cost.check(START), None);
        cost.record_cost(0.5);
        assert_eq!(cost.check(START), Some(LimitReached::Cost(0.5, 0.5)));
    }
}
