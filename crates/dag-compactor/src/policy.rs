//! The policy of the planner: which messages are compacted, and how many at a time.

use compaction_plan::Room;
use memory_model::{Span, SpanBody};
use serde::{Deserialize, Serialize};

/// The last messages of the log, which are not compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FreshTail {
    /// Minimum number of messages, as far as the limits below allow. Default 20.
    pub messages: usize,
    /// Maximum cost in tokens, unless the last group alone costs more. Default 16,384.
    pub max_tokens: Option<u64>,
    /// Divisor of the whole log's cost that gives another maximum: 4 is a quarter. Default 4. A long tail would leave
    /// no messages to compact in a short conversation. The cost is the log's and not the view's, because a view shrinks
    /// from pass to pass, and the tail would shrink with it.
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
    /// Returns a tail of the last `messages` messages at any cost.
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

/// The policy of a [`DagPlanner`](crate::DagPlanner).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DagPolicy {
    /// The last messages of the log, which are not compacted.
    pub fresh_tail: FreshTail,
    /// Whether the user's running request stays unchanged until the next request, even before the fresh tail. Default
    /// true.
    ///
    /// The request is the user's latest message with text and without a tool result. Leaves form before and after it.
    /// With the next request it is an ordinary message: it becomes a leaf, even a short one (`bridge`), or a part of a
    /// condensed summary if it is too short for that. A request that costs more than a quarter of the room, or of
    /// `max_source_tokens` if no room is known, is compacted like any message. If the request is between a tool call
    /// and its result, the whole group is kept or compacted.
    pub keep_request: bool,
    /// Minimum number of messages of a leaf. Default 10. A leaf has fewer if more would cost too much for one call, or
    /// if they cost a quarter of `max_source_tokens`.
    pub leaf_min_messages: usize,
    /// Maximum cost of the source for one call, in tokens. Default 20,000; `None` makes each run of messages one leaf.
    /// A single group may cost more, together with earlier messages that are too few for a separate summary.
    /// `condensed_min` summaries may also cost more.
    pub max_source_tokens: Option<u64>,
    /// Minimum number of summaries of a condensed summary. Default 2.
    pub condensed_min: usize,
    /// Maximum number of summaries of a condensed summary, at least `condensed_min`. Default 8;
    /// `None` takes a whole run.
    pub condensed_max: Option<usize>,
    /// Maximum depth of a summary; `None` sets no limit.
    pub max_depth: Option<u32>,
    /// Whether messages between two summaries, or before the first, are compacted however few they are. Default true.
    /// If they are too short for a leaf, they go into the condensed summary of their neighbours.
    pub bridge: bool,
    /// Whether a run must be large enough that a summary of half its length is possible, rendering included. Default
    /// true.
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
    /// Returns the default policy for a model with a window of `tokens` tokens. The fresh tail takes at most a quarter
    /// of it, and one source at most half, so that there are messages to compact before the window is full.
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

    /// Returns this policy for contexts with limited room. The fresh tail takes at most three eighths of it, and one
    /// source, if it is limited at all, at most three quarters, so that the summary of the largest source and the
    /// largest tail fit together.
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

    /// Whether a summary of `source` tokens can be worth it if rendering adds `overhead`.
    pub(crate) fn gains(&self, source: u64, overhead: u64) -> bool {
        // Ten tokens are the least that a summary aims at.
        !self.require_gain || source >= overhead.saturating_add(10).saturating_mul(2)
    }

    /// Returns the depth of a span's summary if that may be condensed.
    pub(crate) fn condenses(&self, span: &Span) -> Option<u32> {
        let SpanBody::Summary { depth, .. } = span.body else {
            return None;
        };
        self.max_depth
            .is_none_or(|most| depth < most)
            .then_some(depth)
    }

    /// Minimum number of summaries of a condensed one; at least 2.
    pub(crate) fn fewest(&self) -> usize {
        self.condensed_min.max(2)
    }

    /// Whether messages cost so much that their number does not matter.
    pub(crate) fn heavy(&self, tokens: u64) -> bool {
        self.max_source_tokens
            .is_some_and(|most| tokens >= most / 4)
    }

    pub(crate) fn fits(&self, tokens: u64) -> bool {
        self.max_source_tokens.is_none_or(|most| tokens <= most)
    }
}
