//! The policy: what is kept as it is, and how long summaries get.

use compaction_plan::{Live, Prompts, Room};
use serde::{Deserialize, Serialize};
use turn_map::CutPolicy;

/// Room for the next turn, in tokens, of which summaries are a share.
const RESERVE: u64 = 8_192;

/// Minimum number of recent messages to keep verbatim when a short conversation is handed over by number, as
/// [`CutPolicy::LastMessages`].
pub const COMPACT_PRESERVE_COUNT: usize = 4;

/// The policy of a [`HandoffPlanner`](crate::HandoffPlanner).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HandoffPolicy {
    /// Which of the newest messages stay as they are. By default those of the newest 16,384 tokens.
    pub keep: CutPolicy,
    /// Whether a cut inside a turn gives two summaries: of everything before that turn, and of its beginning.
    /// Default true. Otherwise one summary covers both.
    pub split_turns: bool,
    /// Largest cost of the summary, in tokens. Default 6,553: 0.8 of a reserve of 8,192.
    pub summary_tokens: u64,
    /// Largest cost of the summary of a turn's beginning, in tokens. Default 4,096: 0.5 of a reserve of 8,192.
    pub prefix_tokens: u64,
    /// Largest source of one handoff, in tokens, the previous summary not counted; more is folded handoff by
    /// handoff. Default 100,000; `None` sets no limit. A single group of messages may cost more.
    pub max_source_tokens: Option<u64>,
    /// Fewest tokens of messages that are worth a handoff. Default 1,000. Otherwise each new message would
    /// push an old one over the limit of `keep`, and the whole summary would be written again for it.
    pub min_tokens: u64,
    /// Whether a summary lists the files that its text does not name; tasks that are still to be done it always lists. Default true. The whole list is
    /// always in the summary's facts: see [`FileLedger::of`](crate::FileLedger::of).
    pub list_files: bool,
    /// Prompts that take the place of the summarizer's own. Default `None`.
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

/// A policy that may change while a program runs: it is asked for at each plan.
pub type LiveHandoffPolicy = Live<HandoffPolicy>;

impl HandoffPolicy {
    /// Returns the default policy for a model whose window has `tokens` tokens: the kept messages take at most a
    /// quarter of it, the summaries a fifth and an eighth.
    pub fn for_window(tokens: u64) -> Self {
        Self::default().limited(tokens, true)
    }

    /// Returns this policy for contexts with limited room: the kept messages take at most a quarter of it, unless
    /// contexts show them whole whatever they cost.
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
