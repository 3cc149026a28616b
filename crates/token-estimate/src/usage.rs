use crate::{CountedMessage, TokenEstimator};

/// What a provider says that a request cost, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct Usage {
    /// Input that was neither read from the prompt cache nor written to it.
    pub input: u64,
    /// Output, reasoning included.
    pub output: u64,
    /// Input read from the prompt cache.
    pub cache_read: u64,
    /// Input written to the prompt cache.
    pub cache_write: u64,
    /// The provider's own sum, where it gives one.
    pub total: Option<u64>,
}

impl Usage {
    /// Everything that stands in the context once the response has been added to it: the provider's total where it is
    /// given and not 0 (pi's rule), else input, output, cache read and cache write.
    pub fn tokens(&self) -> u64 {
        match self.total {
            Some(total) if total > 0 => total,
            _ => self.prompt_tokens().saturating_add(self.output),
        }
    }

    /// What was sent: input, cache read and cache write, or the total without the output where only that is given. 0 when
    /// it is not known.
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

/// How a response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Outcome {
    /// As it should.
    Completed,
    /// Somebody stopped it: its usage may be partial.
    Aborted,
    /// With an error: its usage may be missing or partial.
    Failed,
}

/// The size of a context from the last figure that a provider gave, and the estimate of what came after it.
///
/// Positions are numbers that grow along the conversation, such as a message's place in its log. A compaction makes
/// every figure up to it worthless: the context that they measured is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct UsageTracker {
    last: Option<Seen>,
    compacted: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Seen {
    at: u64,
    tokens: u64,
}

/// The size of a context, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextTokens {
    /// What the provider said; 0 when there is no usable figure.
    pub reported: u64,
    /// The estimate of the messages that the figure does not cover.
    pub estimated: u64,
    /// The position of the response that the figure came with.
    pub reported_at: Option<u64>,
}

impl ContextTokens {
    /// Both together.
    pub fn tokens(&self) -> u64 {
        self.reported.saturating_add(self.estimated)
    }
}

impl UsageTracker {
    /// A tracker that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes the usage that came with the response at this position, and says whether it counts: figures that are 0,
    /// that belong to an aborted or failed response, that are not newer than the newest compaction, or that are older
    /// than one already noted do not.
    pub fn observe(&mut self, at: u64, usage: &Usage, outcome: Outcome) -> bool {
        let tokens = usage.tokens();
        let stale = self.compacted.is_some_and(|compacted| at <= compacted)
            || self.last.is_some_and(|last| at < last.at);
        if tokens == 0 || stale || outcome != Outcome::Completed {
            return false;
        }
        self.last = Some(Seen { at, tokens });
        true
    }

    /// Notes a compaction that was made when `at` was the newest position: figures up to it no longer count.
    pub fn compacted(&mut self, at: u64) {
        self.compacted = self.compacted.max(Some(at));
        self.last = self.last.filter(|last| Some(last.at) > self.compacted);
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// The position of the figure in use: messages up to it are covered.
    pub fn reported_at(&self) -> Option<u64> {
        self.last.map(|last| last.at)
    }

    /// The size of a context made of these messages, each with its position: the last usable figure and the estimate of
    /// the messages after it, or the estimate of all of them when there is none.
    pub fn measure<M: CountedMessage>(
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

    /// The same from sums that are at hand: the estimates of `all` messages, and of those `after`
    /// [`reported_at`](Self::reported_at), in tokens.
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
    use crate::{MessageParts, Piece, Preset, Role};

    fn usage(input: u64, output: u64) -> Usage {
        Usage {
            input,
            output,
            ..Usage::default()
        }
    }

    /// 12 letters: 3 tokens each under anna's rule.
    fn messages(positions: std::ops::RangeInclusive<u64>) -> Vec<(u64, MessageParts<'static>)> {
        const TEXT: &[Piece<'_>] = &[Piece::Text("four letters")];
        positions
            .map(|at| (at, MessageParts::new(Role::User, TEXT)))
            .collect()
    }

    #[test]
    fn a_usage_is_the_sum_of_its_parts_unless_it_says_a_total() {
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
    fn without_a_figure_everything_is_estimated() {
        let size = UsageTracker::new().measure(&Preset::Anna, messages(1..=4));
        assert_eq!(
            (size.reported, size.estimated, size.reported_at),
            (0, 12, None)
        );
        assert_eq!(
            UsageTracker::new()
                .measure(&Preset::Anna, messages(1..=1))
                .tokens(),
            3
        );
    }

    #[test]
    fn a_figure_covers_what_came_before_and_the_rest_is_estimated() {
        let mut tracker = UsageTracker::new();
        assert!(tracker.observe(2, &usage(100, 50), Outcome::Completed));
        let size = tracker.measure(&Preset::Anna, messages(1..=4));
        assert_eq!(
            (size.reported, size.estimated, size.reported_at),
            (150, 6, Some(2))
        );
        assert_eq!(size.tokens(), 156);
        assert!(tracker.observe(4, &usage(200, 1), Outcome::Completed));
        assert_eq!(
            tracker.measure(&Preset::Anna, messages(1..=4)).tokens(),
            201
        );
        tracker.reset();
        assert_eq!(tracker, UsageTracker::new());
    }

    #[test]
    fn sums_give_what_the_messages_give() {
        let mut tracker = UsageTracker::new();
        assert_eq!(
            tracker.measure_sums(12, 12),
            tracker.measure(&Preset::Anna, messages(1..=4))
        );
        tracker.observe(2, &usage(100, 50), Outcome::Completed);
        assert_eq!(
            tracker.measure_sums(12, 6),
            tracker.measure(&Preset::Anna, messages(1..=4))
        );
    }

    #[test]
    fn empty_aborted_failed_and_older_figures_do_not_count() {
        let mut tracker = UsageTracker::new();
        assert!(tracker.observe(5, &usage(10, 0), Outcome::Completed));
        assert!(!tracker.observe(6, &usage(0, 0), Outcome::Completed));
        assert!(!tracker.observe(7, &usage(99, 9), Outcome::Aborted));
        assert!(!tracker.observe(8, &usage(99, 9), Outcome::Failed));
        assert!(!tracker.observe(4, &usage(99, 9), Outcome::Completed));
        assert_eq!(tracker.reported_at(), Some(5));
        // The same response again, as streams give it: the later figure.
        assert!(tracker.observe(5, &usage(11, 0), Outcome::Completed));
        assert_eq!(
            tracker.measure(&Preset::Anna, messages(5..=6)).tokens(),
            11 + 3
        );
    }

    #[test]
    fn a_compaction_ends_every_figure_up_to_it() {
        let mut tracker = UsageTracker::new();
        tracker.observe(5, &usage(1_000, 0), Outcome::Completed);
        tracker.compacted(5);
        assert_eq!(tracker.reported_at(), None);
        assert!(!tracker.observe(5, &usage(1_000, 0), Outcome::Completed));
        assert_eq!(tracker.measure(&Preset::Anna, messages(4..=6)).tokens(), 9);
        assert!(tracker.observe(6, &usage(40, 2), Outcome::Completed));
        // An older compaction that is reported late changes nothing.
        tracker.compacted(3);
        assert_eq!(tracker.reported_at(), Some(6));
        assert!(!tracker.observe(5, &usage(1_000, 0), Outcome::Completed));
    }
}
