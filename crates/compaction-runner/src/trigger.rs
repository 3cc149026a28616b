//! Triggers: conditions under which a compaction is due.

use serde::{Deserialize, Serialize};

/// Number of tokens that a request uses of a model's window. Input of [`Trigger::fires`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WindowUse {
    /// Cost of the messages in the request, in tokens, without the system prompt and the definitions of tools.
    pub tokens: u64,
    /// Size of the model's window, in tokens. 0 if it is not known.
    pub window: u64,
    /// Cost of the system prompt and the definitions of tools, in tokens. 0 if it is not known.
    pub system_tokens: u64,
    /// Estimate over the session's stored lines, in tokens: their bytes divided by 4. 0 unless a
    /// [`Trigger::StoredLines`] asks for it.
    pub stored_tokens: u64,
}

impl WindowUse {
    /// Returns the cost of the whole request, in tokens: the messages, the system prompt and the definitions of tools.
    pub fn request_tokens(&self) -> u64 {
        self.tokens.saturating_add(self.system_tokens)
    }
}

/// Condition on the use of a model's window under which a compaction is due.
///
/// Shares, percentages and reserves of the window are compared with the whole request ([`WindowUse::request_tokens`]).
/// Absolute thresholds are compared with the context alone. A number of tokens converts into an absolute threshold.
///
/// ```
/// use compaction_runner::{Trigger, WindowUse};
///
/// let trigger = Trigger::default();
/// let usage = |tokens| WindowUse { tokens, window: 100_000, ..WindowUse::default() };
/// assert!(!trigger.fires(&usage(75_000)));
/// assert!(trigger.fires(&usage(75_001)));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Trigger {
    /// Never fires. Compactions run only on request.
    Never,
    /// Fires if the messages cost more than a number of tokens.
    Absolute {
        /// Maximum cost of the messages, in tokens.
        tokens: u64,
    },
    /// Fires if the estimate over the session's stored lines is more than a number of tokens. The estimate is the number
    /// of bytes divided by 4, with the names and marks of JSON, the summaries and the header. Each check reads all
    /// messages that the view shows unchanged, so it takes longer than the check of any other trigger.
    StoredLines {
        /// Maximum estimate, in tokens.
        tokens: u64,
    },
    /// Fires if the request costs more than a share of the window. Default 0.75.
    Fraction {
        /// Maximum cost of the request, as a share of the window from 0 to 1. Exact to nine decimal places.
        of_window: f64,
    },
    /// Fires if the request leaves less than a number of tokens of the window unused.
    Reserve {
        /// Minimum number of unused tokens in the window.
        tokens: u64,
    },
    /// Fires if the request costs at least a percentage of the window.
    Percent {
        /// Minimum percentage of the window that the request uses. The actual percentage is rounded down before the
        /// comparison. With 0 the trigger never fires.
        percent: u64,
    },
    /// Fires if the request comes close to a share of the window. The headroom is the unused part of this share.
    Headroom {
        /// Share of the window that the request should not exceed, from 0 to 1. Default 0.90. Exact to nine decimal
        /// places.
        at: f64,
        /// Minimum headroom, as a share of the window. The trigger fires if the headroom is less. Default 0.05. Exact
        /// to nine decimal places.
        least: f64,
    },
}

impl Default for Trigger {
    /// Returns a trigger that fires above 0.75 of the window.
    fn default() -> Self {
        Self::Fraction { of_window: 0.75 }
    }
}

impl From<u64> for Trigger {
    /// Returns an absolute threshold.
    fn from(tokens: u64) -> Self {
        Self::Absolute { tokens }
    }
}

impl Trigger {
    /// Returns whether a compaction is due. A window of 0 tokens means that its size is not known. Triggers that depend
    /// on the window then do not fire.
    pub fn fires(&self, usage: &WindowUse) -> bool {
        let (window, request) = (usage.window, usage.request_tokens());
        match self {
            Self::Never => false,
            Self::Absolute { tokens: most } => usage.tokens > *most,
            Self::StoredLines { tokens: most } => usage.stored_tokens > *most,
            _ if window == 0 => false,
            Self::Fraction { of_window } => above(request, *of_window, 0.0, window),
            Self::Reserve { tokens: reserve } => request > window.saturating_sub(*reserve),
            Self::Percent { percent: 0 } => false,
            Self::Percent { percent } => {
                u128::from(request) * 100 / u128::from(window) >= u128::from(*percent)
            }
            // at − request / window < least
            Self::Headroom { at, least } => above(request, *at, *least, window),
        }
    }
}

/// Returns whether `tokens` is more than the share `at − below` of `window`. Shares are rounded to nine decimal places,
/// so that decimal shares such as 0.9 are exact. A share that is not a number is never exceeded.
fn above(tokens: u64, at: f64, below: f64, window: u64) -> bool {
    const BILLION: i128 = 1_000_000_000;
    if at.is_nan() || below.is_nan() {
        return false;
    }
    // The bounds are far outside of all useful shares, and prevent overflow.
    let billionths = |share: f64| (share.clamp(-1e9, 1e9) * BILLION as f64).round() as i128;
    let share = billionths(at) - billionths(below);
    i128::from(tokens) * BILLION > share * i128::from(window)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADROOM: Trigger = Trigger::Headroom {
        at: 0.90,
        least: 0.05,
    };

    fn usage(tokens: u64, window: u64) -> WindowUse {
        WindowUse {
            tokens,
            window,
            ..WindowUse::default()
        }
    }

    #[test]
    fn stored_lines_are_compared_with_their_own_estimate() {
        let trigger = Trigger::StoredLines { tokens: 80_000 };
        let lines = |stored_tokens| WindowUse {
            stored_tokens,
            ..usage(1_000_000, 100_000)
        };
        assert!(!trigger.fires(&lines(80_000)) && trigger.fires(&lines(80_001)));
        assert!(!trigger.fires(&lines(0)), "no other figure counts");
    }

    #[test]
    fn each_rule_has_its_edge() {
        for (trigger, window, last_quiet) in [
            (Trigger::Absolute { tokens: 80_000 }, 1_000_000, 80_000),
            (Trigger::default(), 100_000, 75_000),
            (Trigger::Reserve { tokens: 8_192 }, 100_000, 91_808),
            (Trigger::Percent { percent: 80 }, 100_000, 79_999),
        ] {
            assert!(!trigger.fires(&usage(last_quiet, window)), "{trigger:?}");
            assert!(trigger.fires(&usage(last_quiet + 1, window)), "{trigger:?}");
        }
    }

    #[test]
    fn headroom_counts_the_system_prompt() {
        // With a window of 100,000 tokens and a system prompt of 4,000, the trigger fires above 81,000.
        let at = |tokens| WindowUse {
            tokens,
            system_tokens: 4_000,
            ..usage(0, 100_000)
        };
        assert!(!HEADROOM.fires(&at(81_000)));
        assert!(HEADROOM.fires(&at(81_001)));
    }

    #[test]
    fn decimal_shares_have_exact_edges() {
        let (mut fraction, mut headroom) = (Vec::new(), Vec::new());
        for window in (1_000..=200_000).step_by(1_000) {
            for percent in 1..=99 {
                let edge = window / 100 * percent;
                let share = percent as f64 / 100.0;
                let exact = |trigger: Trigger| {
                    !trigger.fires(&usage(edge, window)) && trigger.fires(&usage(edge + 1, window))
                };
                if !exact(Trigger::Fraction { of_window: share }) {
                    fraction.push((window, percent));
                }
                // The same limit, at five hundredths below a share.
                let at = (percent + 5) as f64 / 100.0;
                if !exact(Trigger::Headroom { at, least: 0.05 }) {
                    headroom.push((window, percent));
                }
            }
        }
        assert_eq!((fraction.len(), headroom.len()), (0, 0), "{headroom:?}");
    }

    #[test]
    fn every_share_of_the_window_counts_the_system_prompt_once() {
        let at = |tokens| WindowUse {
            tokens,
            system_tokens: 40_000,
            ..usage(0, 100_000)
        };
        for (trigger, last_quiet) in [
            (Trigger::default(), 35_000),
            (Trigger::Reserve { tokens: 8_192 }, 51_808),
            (Trigger::Percent { percent: 80 }, 39_999),
            (HEADROOM, 45_000),
            (Trigger::Absolute { tokens: 80_000 }, 80_000),
        ] {
            assert!(!trigger.fires(&at(last_quiet)), "{trigger:?}");
            assert!(trigger.fires(&at(last_quiet + 1)), "{trigger:?}");
        }
    }

    #[test]
    fn zero_percent_is_off() {
        for tokens in [0, 1, 99_999, 100_000, u64::MAX] {
            let trigger = Trigger::Percent { percent: 0 };
            assert!(!trigger.fires(&usage(tokens, 100_000)), "{tokens}");
            assert_eq!(
                Trigger::Percent { percent: 1 }.fires(&usage(tokens, 100_000)),
                tokens >= 1_000
            );
        }
    }

    #[test]
    fn a_trigger_is_a_config_value() {
        let json = r#"{"kind":"reserve","tokens":8192}"#;
        let trigger: Trigger = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&trigger).unwrap(), json);
    }
}
