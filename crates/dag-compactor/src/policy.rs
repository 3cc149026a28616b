//! The policy of the planner: which messages are compacted, and how many at a time.

use compaction_plan::Room;
use memory_model::{Span, SpanBody};
use serde::{Deserialize, Serialize};

/// Size of the fresh tail: the last messages of the log, which are not compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FreshTail {
    /// Minimum number of messages in the tail, as long as the maximum costs below allow it. Default 20.
    pub messages: usize,
    /// Maximum cost of the tail, in tokens; `None` sets no maximum. Default 16,384. The last group of messages that
    /// belong together is always in the tail, even if it costs more.
    pub max_tokens: Option<u64>,
    /// Divisor that limits the tail to a part of the whole log's cost: 4 limits the tail to a quarter. Default 4;
    /// `None` sets no limit. Without a limit, a long tail would leave no messages to compact in a short conversation.
    /// The limit uses the cost of the log and not of the view (the compacted log), because the view shrinks with each
    /// compaction, and the tail would shrink with it.
    pub max_part: Option<u64>,
}

impl Default for FreshTail {
    fn default() -> Self {
        Self {
            messages: 20,
            max_tokens: Some(16_384),
            max_part: Some(4),
        }
    }
}

impl FreshTail {
    /// Sets a tail of the last `messages` messages, without a maximum cost.
    pub fn messages(messages: usize) -> Self {
        Self {
            messages,
            max_tokens: None,
            max_part: None,
        }
    }

    /// Returns the maximum cost of the tail in a log of `log_tokens` tokens; `None` for no limit.
    pub(crate) fn limit(&self, log_tokens: u64) -> Option<u64> {
        let part = self.max_part.map(|part| log_tokens / part.max(1));
        match (self.max_tokens, part) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

/// Policy of a [`DagPlanner`](crate::DagPlanner): which messages and summaries it compacts, and into how large
/// summaries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DagPolicy {
    /// Size of the tail of last messages that are not compacted.
    pub fresh_tail: FreshTail,
    /// Whether the request that the user still waits for stays unchanged until the next request, even if it is older
    /// than the fresh tail. Default true.
    ///
    /// The request is the user's latest message with text and without a tool result. The messages before it and after
    /// it are summarized separately. When the next request arrives, the old one is compacted like any other message:
    /// into a leaf, or into a condensed summary if it is too short for a leaf (see `bridge`). A request that costs more
    /// than a quarter of the [`Room`] is never protected. If no room is known, the limit is a quarter of
    /// `max_source_tokens`. If the request is between a tool call and its result, the whole group is kept or compacted.
    pub keep_request: bool,
    /// Minimum number of messages that one leaf (a summary of messages) summarizes. Default 10. A leaf summarizes fewer
    /// messages if more would cost too much for one call, or if they cost a quarter of `max_source_tokens`.
    pub leaf_min_messages: usize,
    /// Maximum cost of the messages or summaries that one call summarizes, in tokens. Default 20,000; `None` makes each
    /// run of messages one leaf. Three sources may cost more: a single group of messages that belong together, this
    /// group together with earlier messages that are too few for a separate summary, and a number of `condensed_min`
    /// summaries.
    pub max_source_tokens: Option<u64>,
    /// Minimum number of summaries that one condensed summary (a summary of summaries) covers. Default 2.
    pub condensed_min: usize,
    /// Maximum number of summaries that one condensed summary covers, at least `condensed_min`. Default 8; `None` sets
    /// no limit on the number.
    pub condensed_max: Option<usize>,
    /// Maximum depth of a summary, with 0 for leaves; `None` sets no limit.
    pub max_depth: Option<u32>,
    /// Whether messages between two summaries, or before the first summary, are compacted even if they are fewer than
    /// `leaf_min_messages`. Default true. If they are too short for a leaf, they are included in the condensed summary
    /// of their neighbours.
    pub bridge: bool,
    /// Whether a run of messages or summaries is compacted only if a summary of half its length is long enough to be
    /// useful, including the tokens that rendering adds. Default true.
    pub require_gain: bool,
    /// Maximum number of iterations of a full compaction; `None` sets no limit.
    pub max_iterations: Option<u32>,
}

impl Default for DagPolicy {
    fn default() -> Self {
        Self {
            fresh_tail: FreshTail::default(),
            keep_request: true,
            leaf_min_messages: 10,
            max_source_tokens: Some(20_000),
            condensed_min: 2,
            condensed_max: Some(8),
            max_depth: None,
            bridge: true,
            require_gain: true,
            max_iterations: None,
        }
    }
}

impl DagPolicy {
    /// Returns the default policy for a model with a window of `tokens` tokens. The fresh tail costs at most a quarter
    /// of the window, and one source at most half of it, so that some messages can be compacted before the window is
    /// full.
    pub fn for_window(tokens: u64) -> Self {
        let policy = Self::default();
        let least =
            |limit: Option<u64>, part: u64| limit.map(|limit| limit.min((tokens / part).max(1)));
        Self {
            fresh_tail: FreshTail {
                max_tokens: least(policy.fresh_tail.max_tokens, 4),
                ..policy.fresh_tail
            },
            max_source_tokens: least(policy.max_source_tokens, 2),
            ..policy
        }
    }

    /// Returns this policy with lower limits for a context in which the view may cost at most `room` tokens. The fresh
    /// tail (the latest messages, which are not compacted) may cost at most three eighths of the room, unless the room
    /// must hold the whole tail. The input of one summary may cost at most three quarters. The summary of the largest
    /// input and the largest tail then fit together. A limit that is not set on the input stays unset, and without a
    /// room all limits stay the same.
    pub(crate) fn within(&self, room: Option<Room>) -> Self {
        let mut policy = self.clone();
        if let Some(room) = room {
            let eighths = |n: u64| (room.tokens / 8).saturating_mul(n).max(1);
            policy.max_source_tokens = policy.max_source_tokens.map(|most| most.min(eighths(6)));
            if !room.whole_tail {
                let most = policy.fresh_tail.max_tokens.unwrap_or(u64::MAX);
                policy.fresh_tail.max_tokens = Some(most.min(eighths(3)));
            }
        }
        policy
    }

    /// Returns whether the summary of a source of `source` tokens can save enough tokens, if rendering adds `overhead`
    /// tokens. Always true without `require_gain`.
    pub(crate) fn gains(&self, source: u64, overhead: u64) -> bool {
        // A summary has a target length of at least ten tokens.
        !self.require_gain || source >= overhead.saturating_add(10).saturating_mul(2)
    }

    /// Returns the depth of a span's summary; `None` if the span has no summary, or the summary may not be condensed
    /// further.
    pub(crate) fn condenses(&self, span: &Span) -> Option<u32> {
        let SpanBody::Summary { depth, .. } = span.body else {
            return None;
        };
        self.max_depth
            .is_none_or(|most| depth < most)
            .then_some(depth)
    }

    /// Returns the minimum number of summaries that one condensed summary covers; at least 2.
    pub(crate) fn fewest(&self) -> usize {
        self.condensed_min.max(2)
    }

    /// Returns whether messages cost so much that they may become a leaf regardless of their number.
    pub(crate) fn heavy(&self, tokens: u64) -> bool {
        self.max_source_tokens
            .is_some_and(|most| tokens >= most / 4)
    }

    pub(crate) fn fits(&self, tokens: u64) -> bool {
        self.max_source_tokens.is_none_or(|most| tokens <= most)
    }
}
