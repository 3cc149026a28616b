//! The policy: what is kept as it is, and how long summaries get.

use std::fmt;
use std::sync::Arc;

use compaction_plan::{Prompts, Room};
use serde::{Deserialize, Serialize};
use turn_map::CutPolicy;

/// pi's reserve by its document, in tokens: room for the next turn, of which summaries are a share.
const RESERVE: u64 = 8_192;

/// The policy of a [`HandoffPlanner`](crate::HandoffPlanner).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HandoffPolicy {
    /// Which of the newest messages stay as they are. By default those of the newest 16,384 tokens.
    pub keep: CutPolicy,
    /// Whether a cut inside a turn gives two summaries: of everything before that turn, and of its beginning.
    /// Default true. Otherwise one summary covers both.
    pub split_turns: bool,
    /// Largest cost of the summary, in tokens. Default 6,553: 0.8 of pi's reserve.
    pub summary_tokens: u64,
    /// Largest cost of the summary of a turn's beginning, in tokens. Default 4,096: 0.5 of pi's reserve.
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
#[derive(Clone)]
pub struct LiveHandoffPolicy(Arc<dyn Fn() -> HandoffPolicy + Send + Sync>);

impl LiveHandoffPolicy {
    /// Wraps what returns the policy as it is now.
    pub fn new(policy: impl Fn() -> HandoffPolicy + Send + Sync + 'static) -> Self {
        Self(Arc::new(policy))
    }

    /// Returns the policy as it is now.
    pub fn get(&self) -> HandoffPolicy {
        (self.0)()
    }
}

impl From<HandoffPolicy> for LiveHandoffPolicy {
    fn from(policy: HandoffPolicy) -> Self {
        Self::new(move || policy.clone())
    }
}

impl fmt::Debug for LiveHandoffPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LiveHandoffPolicy")
            .field(&self.get())
            .finish()
    }
}

impl HandoffPolicy {
    /// Returns the preset anna: the newest 20 messages stay, everything before them becomes one summary.
    pub fn anna() -> Self {
        Self {
            keep: CutPolicy::LastMessages { messages: 20 },
            split_turns: false,
            max_source_tokens: None,
            min_tokens: 0,
            list_files: false,
            ..Self::default()
        }
    }

    /// Returns the preset of pi's document: the newest 16,384 tokens stay, and a turn may be split.
    pub fn pi() -> Self {
        Self {
            max_source_tokens: None,
            min_tokens: 0,
            ..Self::default()
        }
    }

    /// Returns the preset of pi's code: as [`pi`](Self::pi), but 20,000 tokens stay, and summaries are shares of a
    /// reserve of 16,384.
    pub fn pi_code() -> Self {
        Self {
            keep: CutPolicy::RecentTokens { tokens: 20_000 },
            summary_tokens: 16_384 * 4 / 5,
            prefix_tokens: 16_384 / 2,
            ..Self::pi()
        }
    }

    /// Returns the preset of Operator-Use's sliding window: the newest 20,000 tokens stay, and each handoff folds the oldest
    /// 10,000 of what is before them into the summary. It goes with a turn policy that compacts from half of the window on.
    pub fn sliding_window() -> Self {
        Self {
            keep: CutPolicy::RecentTokens { tokens: 20_000 },
            max_source_tokens: Some(10_000),
            min_tokens: 0,
            ..Self::default()
        }
    }

    /// Returns the preset koda: 4 of fewer than 12 messages stay, else half of them; summaries of up to 4,096
    /// tokens.
    pub fn koda() -> Self {
        Self {
            keep: CutPolicy::PreserveCount,
            split_turns: false,
            summary_tokens: 4_096,
            max_source_tokens: None,
            min_tokens: 0,
            list_files: false,
            ..Self::default()
        }
    }

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

    /// Sets which of the newest messages stay as they are.
    pub fn with_keep(mut self, keep: CutPolicy) -> Self {
        self.keep = keep;
        self
    }

    /// Sets the largest cost of the summary, and of the summary of a turn's beginning, in tokens.
    pub fn with_summary_tokens(mut self, summary: u64, prefix: u64) -> Self {
        (self.summary_tokens, self.prefix_tokens) = (summary, prefix);
        self
    }

    /// Sets whether a cut inside a turn gives two summaries.
    pub fn with_split_turns(mut self, split: bool) -> Self {
        self.split_turns = split;
        self
    }

    /// Sets the largest source of one handoff, in tokens.
    pub fn with_max_source_tokens(mut self, tokens: Option<u64>) -> Self {
        self.max_source_tokens = tokens;
        self
    }

    /// Sets the fewest tokens of messages that are worth a handoff.
    pub fn with_min_tokens(mut self, tokens: u64) -> Self {
        self.min_tokens = tokens;
        self
    }

    /// Sets whether a summary lists the files that its text does not name.
    pub fn with_list_files(mut self, list: bool) -> Self {
        self.list_files = list;
        self
    }

    /// Sets prompts that take the place of the summarizer's own.
    pub fn with_prompts(mut self, prompts: Prompts) -> Self {
        self.prompts = Some(prompts);
        self
    }
}
