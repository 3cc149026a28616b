use crate::{MessageView, TokenEstimator};

/// Token usage that a provider reported for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct Usage {
    /// Number of input tokens that were neither read from the prompt cache nor written to it.
    pub input: u64,
    /// Number of output tokens, including reasoning.
    pub output: u64,
    /// Number of input tokens read from the prompt cache.
    pub cache_read: u64,
    /// Number of input tokens written to the prompt cache.
    pub cache_write: u64,
    /// Total tokens of the request and its response. `None` if the provider does not report a total.
    pub total: Option<u64>,
}

impl Usage {
    /// Returns the size of the context including the response, in tokens. It is the reported total if that is above 0,
    /// otherwise the sum of input, output, cache read and cache write.
    pub fn tokens(&self) -> u64 {
        match self.total {
            Some(total) if total > 0 => total,
            _ => self.prompt_tokens().saturating_add(self.output),
        }
    }

    /// Returns the tokens of the request: the sum of input, cache read and cache write. If this sum is 0, returns the
    /// total minus the output, or 0 if the total is unknown too.
    pub fn prompt_tokens(&self) -> u64 {
        let sent = [self.cache_read, self.cache_write]
            .into_iter()
            .fold(self.input, u64::saturating_add);
        match self.total {
            Some(total) if sent == 0 => total.saturating_sub(self.output),
            _ => sent,
        }
    }
}

/// Outcome of a model's response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ResponseStatus {
    /// The response is complete.
    Completed,
    /// The response was cancelled, so its usage may be partial.
    Aborted,
    /// The response ended with an error, so its usage may be missing or partial.
    Failed,
}

/// Measures the size of a context: the latest usage that the provider reported, plus an estimate of the messages after
/// it.
///
/// A position is a number that grows along the conversation, such as the position of a message in a log. A compaction
/// replaces the measured context, so it invalidates all earlier usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct UsageTracker {
    last: Option<ReportedUsage>,
    compacted: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct ReportedUsage {
    at: u64,
    tokens: u64,
}

/// Size of a context, in tokens, as a reported and an estimated part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextTokens {
    /// Number of tokens that the provider reported for the first part of the context. 0 without a usable report.
    pub reported: u64,
    /// Estimated number of tokens of the messages after the reported part.
    pub estimated: u64,
    /// Position of the response for which the provider reported usage. `None` without a usable report.
    pub reported_at: Option<u64>,
}

impl ContextTokens {
    /// Returns the size of the whole context: reported plus estimated tokens.
    pub fn tokens(&self) -> u64 {
        self.reported.saturating_add(self.estimated)
    }
}

impl UsageTracker {
    /// Creates a tracker without reported usage.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records the usage of the response at position `at`. Returns whether the usage was accepted.
    ///
    /// Usage is ignored if it is 0, if the response was aborted or failed, if `at` is not after the latest compaction,
    /// or if `at` is before an accepted response.
    pub fn observe(&mut self, at: u64, usage: &Usage, outcome: ResponseStatus) -> bool {
        let tokens = usage.tokens();
        let stale = self.compacted.is_some_and(|compacted| at <= compacted)
            || self.last.is_some_and(|last| at < last.at);
        if tokens == 0 || stale || outcome != ResponseStatus::Completed {
            return false;
        }
        self.last = Some(ReportedUsage { at, tokens });
        true
    }

    /// Records a compaction. `at` is the latest position at the time of the compaction. Discards usage reported up to
    /// `at`.
    pub fn compacted(&mut self, at: u64) {
        self.compacted = self.compacted.max(Some(at));
        self.last = self.last.filter(|last| Some(last.at) > self.compacted);
    }

    /// Discards all recorded usage and compactions.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Returns the position of the response with the accepted usage, which covers all messages up to this position.
    /// `None` without accepted usage.
    pub fn reported_at(&self) -> Option<u64> {
        self.last.map(|last| last.at)
    }

    /// Returns the size of a context. `messages` are the messages of the context, each with its position. The size is
    /// the accepted usage plus the estimate of the messages after it. Without accepted usage, all messages are
    /// estimated.
    pub fn measure<M: MessageView>(
        &self,
        estimator: &dyn TokenEstimator,
        messages: impl IntoIterator<Item = (u64, M)>,
    ) -> ContextTokens {
        let covered = self.reported_at();
        let estimated = messages
            .into_iter()
            .filter(|(at, _)| Some(*at) > covered)
            .fold(0_u64, |sum, (_, message)| {
                sum.saturating_add(estimator.message(&message))
            });
        ContextTokens {
            reported: self.last.map_or(0, |last| last.tokens),
            estimated,
            reported_at: covered,
        }
    }

    /// Returns the size of a context from existing estimates in tokens. `all` is the estimate of all messages, `after`
    /// of the messages after [`reported_at`](Self::reported_at).
    pub fn measure_sums(&self, all: u64, after: u64) -> ContextTokens {
        match self.last {
            Some(last) => ContextTokens {
                reported: last.tokens,
                estimated: after,
                reported_at: Some(last.at),
            },
            None => ContextTokens {
                reported: 0,
                estimated: all,
                reported_at: None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HeuristicEstimator, MessageParts, PartView, Role};

    fn usage(input: u64, output: u64) -> Usage {
        Usage {
            input,
            output,
            ..Usage::default()
        }
    }

    /// Creates messages of twelve letters. Each costs 3 tokens as bytes / 4.
    fn messages(positions: std::ops::RangeInclusive<u64>) -> Vec<(u64, MessageParts<'static>)> {
        const TEXT: &[PartView<'_>] = &[PartView::Text("four letters")];
        positions
            .map(|at| (at, MessageParts::new(Role::User, TEXT)))
            .collect()
    }

    #[test]
    fn usage_is_its_total_or_the_sum_of_its_parts() {
        let parts = Usage {
            input: 1,
            output: 20,
            cache_read: 300,
            cache_write: 4_000,
            total: None,
        };
        assert_eq!(parts.tokens(), 4_321);
        assert_eq!(
            Usage {
                total: Some(9),
                ..parts
            }
            .tokens(),
            9
        );
        assert_eq!(
            Usage {
                total: Some(0),
                ..parts
            }
            .tokens(),
            4_321
        );
        assert_eq!(usage(u64::MAX, 1).tokens(), u64::MAX);
        assert_eq!(parts.prompt_tokens(), 4_301);
        let only_total = Usage {
            output: 20,
            total: Some(120),
            ..Usage::default()
        };
        assert_eq!(only_total.prompt_tokens(), 100);
        assert_eq!(Usage::default().prompt_tokens(), 0);
    }

    #[test]
    fn without_usage_everything_is_estimated() {
        let size = UsageTracker::new().measure(&HeuristicEstimator::Bytes4, messages(1..=4));
        assert_eq!(
            (size.reported, size.estimated, size.reported_at),
            (0, 12, None)
        );
        assert_eq!(
            UsageTracker::new()
                .measure(&HeuristicEstimator::Bytes4, messages(1..=1))
                .tokens(),
            3
        );
    }

    #[test]
    fn usage_covers_earlier_messages_and_the_rest_is_estimated() {
        let mut tracker = UsageTracker::new();
        assert!(tracker.observe(2, &usage(100, 50), ResponseStatus::Completed));
        let size = tracker.measure(&HeuristicEstimator::Bytes4, messages(1..=4));
        assert_eq!(
            (size.reported, size.estimated, size.reported_at),
            (150, 6, Some(2))
        );
        assert_eq!(size.tokens(), 156);
        assert!(tracker.observe(4, &usage(200, 1), ResponseStatus::Completed));
        assert_eq!(
            tracker
                .measure(&HeuristicEstimator::Bytes4, messages(1..=4))
                .tokens(),
            201
        );
        tracker.reset();
        assert_eq!(tracker, UsageTracker::new());
    }

    #[test]
    fn measuring_sums_equals_measuring_messages() {
        let mut tracker = UsageTracker::new();
        assert_eq!(
            tracker.measure_sums(12, 12),
            tracker.measure(&HeuristicEstimator::Bytes4, messages(1..=4))
        );
        tracker.observe(2, &usage(100, 50), ResponseStatus::Completed);
        assert_eq!(
            tracker.measure_sums(12, 6),
            tracker.measure(&HeuristicEstimator::Bytes4, messages(1..=4))
        );
    }

    #[test]
    fn empty_aborted_failed_and_older_usage_is_ignored() {
        let mut tracker = UsageTracker::new();
        assert!(tracker.observe(5, &usage(10, 0), ResponseStatus::Completed));
        assert!(!tracker.observe(6, &usage(0, 0), ResponseStatus::Completed));
        assert!(!tracker.observe(7, &usage(99, 9), ResponseStatus::Aborted));
        assert!(!tracker.observe(8, &usage(99, 9), ResponseStatus::Failed));
        assert!(!tracker.observe(4, &usage(99, 9), ResponseStatus::Completed));
        assert_eq!(tracker.reported_at(), Some(5));
        // The same response is reported again, as in a stream. The later figure counts.
        assert!(tracker.observe(5, &usage(11, 0), ResponseStatus::Completed));
        assert_eq!(
            tracker
                .measure(&HeuristicEstimator::Bytes4, messages(5..=6))
                .tokens(),
            11 + 3
        );
    }

    #[test]
    fn compaction_discards_usage_up_to_it() {
        let mut tracker = UsageTracker::new();
        tracker.observe(5, &usage(1_000, 0), ResponseStatus::Completed);
        tracker.compacted(5);
        assert_eq!(tracker.reported_at(), None);
        assert!(!tracker.observe(5, &usage(1_000, 0), ResponseStatus::Completed));
        assert_eq!(
            tracker
                .measure(&HeuristicEstimator::Bytes4, messages(4..=6))
                .tokens(),
            9
        );
        assert!(tracker.observe(6, &usage(40, 2), ResponseStatus::Completed));
        // An older compaction that is reported late changes nothing.
        tracker.compacted(3);
        assert_eq!(tracker.reported_at(), Some(6));
        assert!(!tracker.observe(5, &usage(1_000, 0), ResponseStatus::Completed));
    }
}
