//! The policy: which messages are kept, and how long summaries get.

use compaction_plan::{Live, Prompts, Request, Room};
use memory_model::Purpose;
use serde::{Deserialize, Serialize};
use turn_map::CutPolicy;

/// Tokens that a context reserves for the next turn. The maximum costs of summaries are shares of this number.
const RESERVE: u64 = 8_192;

/// Value of [`CutPolicy::LastMessages`] for short conversations: the minimum number of recent messages that a handoff
/// keeps unchanged.
pub const COMPACT_PRESERVE_COUNT: usize = 4;

/// Policy of a [`HandoffPlanner`](crate::HandoffPlanner): which messages a handoff keeps, and how long its summaries
/// are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HandoffPolicy {
    /// Rule that selects the kept messages at the end of the log. By default they are the last 16,384 tokens.
    pub keep: CutPolicy,
    /// Whether a cut inside a turn gives two summaries: one of everything before that turn, and one of the turn's
    /// beginning. Default true. If false, one summary covers both.
    pub split_turns: bool,
    /// Maximum cost of the summary of a handoff, in tokens. Default 6,553: 0.8 of a reserve of 8,192.
    pub summary_tokens: u64,
    /// Maximum cost of the summary of a turn's beginning, in tokens. Default 4,096: 0.5 of a reserve of 8,192.
    pub prefix_tokens: u64,
    /// Maximum cost of the messages that one handoff summarizes, in tokens, without the previous summary. Remaining
    /// messages are summarized by the next handoffs. Default 100,000; `None` sets no limit. A single group of messages
    /// that belong together may cost more.
    pub max_source_tokens: Option<u64>,
    /// Minimum cost of the messages that one handoff summarizes, in tokens. Default 1,000. Without a minimum, each new
    /// message would move one old message beyond the limit of `keep`, and a whole new summary would be written for that
    /// message.
    pub min_tokens: u64,
    /// Whether a summary ends with a line for the files that its text does not name. Default true. A session's contexts
    /// then show the lists of read and modified files in place of that line. Lines for open tasks
    /// that the text does not name are always added. The complete list of files is in the summary's metadata in any
    /// case: see [`FileLedger::of`](crate::FileLedger::of).
    pub list_files: bool,
    /// Prompts to use instead of the summarizer's own prompts. Default `None`, which keeps them.
    pub prompts: Option<Prompts>,
}

impl Default for HandoffPolicy {
    fn default() -> Self {
        Self {
            keep: CutPolicy::RecentTokens { tokens: 16_384 },
            split_turns: true,
            summary_tokens: RESERVE * 4 / 5,
            prefix_tokens: RESERVE / 2,
            max_source_tokens: Some(100_000),
            min_tokens: 1_000,
            list_files: true,
            prompts: None,
        }
    }
}

/// A handoff policy that may change while a program runs. The planner reads it at each plan.
pub type LiveHandoffPolicy = Live<HandoffPolicy>;

impl HandoffPolicy {
    /// Returns the default policy for a model with a window of `tokens` tokens. The kept messages cost at most a
    /// quarter of the window, the summary of a handoff at most a third, and the summary of a turn's beginning at most a
    /// fifth. The minimum cost of the messages for a handoff is at most an eighth of the window.
    pub fn for_window(tokens: u64) -> Self {
        Self::default().limited(tokens, true)
    }

    /// Returns the request for a summary of `new` tokens of messages and a previous summary of `before` tokens.
    pub(crate) fn request(&self, purpose: Purpose, before: u64, new: u64) -> Request {
        let most = match purpose {
            Purpose::TurnPrefix => self.prefix_tokens,
            _ => self.summary_tokens,
        };
        // The target length is the length of the previous summary plus a third of the new messages, if there is room. A
        // fifth of the room is reserved for the list of files and for a model that writes more than requested.
        let target = before
            .saturating_add(new / 3)
            .clamp(10, (most * 4 / 5).max(10));
        Request {
            purpose,
            target_tokens: target,
            max_tokens: most.max(10),
            prompts: self.prompts.clone(),
            ..Request::default()
        }
    }

    /// Returns this policy for contexts with limited room. The kept messages take at most a quarter of the room, unless
    /// contexts always show them whole.
    pub(crate) fn within(&self, room: Option<Room>) -> Self {
        match room {
            Some(room) => self.clone().limited(room.tokens, !room.whole_tail),
            None => self.clone(),
        }
    }

    fn limited(mut self, tokens: u64, tail: bool) -> Self {
        let least = |limit: u64, part: u64| limit.min((tokens / part).max(1));
        self.summary_tokens = least(self.summary_tokens, 3);
        self.prefix_tokens = least(self.prefix_tokens, 5);
        self.min_tokens = least(self.min_tokens, 8);
        self.max_source_tokens = self
            .max_source_tokens
            .map(|most| most.min(tokens.saturating_mul(4).max(1)));
        if let (CutPolicy::RecentTokens { tokens: keep }, true) = (&mut self.keep, tail) {
            *keep = least(*keep, 4);
        }
        self
    }
}
