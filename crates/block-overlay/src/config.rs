//! When and how to compact, as values.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use token_estimate::{HeuristicEstimator, TokenEstimator, default_estimator};

use crate::error::{Error, ErrorKind, Result};
use crate::layout::TurnRule;
use crate::one_liner::OneLiners;
use crate::reduce::CompactionStrategy;
use crate::strategy::BlockCompactionStrategy;

/// Rule that decides how many loops before the newest one are compacted and shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CompactionScope {
    /// A fixed number of loops. Default: 3.
    FixedCount(usize),
    /// As many as fit into the maximum cost of a context once they are compacted: a loop counts what its
    /// block costs, and one without a block its messages, but at most `max_summary_tokens`. A loop whose
    /// messages alone exceed a context can be in scope.
    TokenBudget,
    /// As many as fit with all their messages; the first that does not fit ends the scope, as in
    /// phi-core's code.
    TokenBudgetRaw,
}

impl Default for CompactionScope {
    fn default() -> Self {
        Self::FixedCount(3)
    }
}

/// When to compact, how to compact, and with which strategies.
///
/// Serializes to the fields of phi-core's type of that name; the strategies are left out, and fields that
/// are absent have their defaults.
#[derive(Serialize, Deserialize)]
#[serde(default, bound = "")]
#[non_exhaustive]
pub struct CompactionConfig<M> {
    /// Share of the window that headroom is measured from. Default 0.90.
    pub compact_at_pct: f64,
    /// Compaction begins when less than this share of the window is left below it. Default 0.05: with
    /// a window of 100,000 tokens and a system prompt of 4,000 above 81,000 tokens.
    pub compact_budget_threshold_pct: f64,
    /// Loops before the newest one that are compacted and shown. Default: 3.
    pub compaction_scope: CompactionScope,
    /// Turns at the beginning of the newest loop that are shown as they are. Default 2; 0 for none.
    pub keep_first_turns: usize,
    /// Turns at the end of the newest loop that are shown with shortened tool output. Default 10. More
    /// where a tool call and its results would be divided otherwise.
    pub keep_recent_turns: usize,
    /// Maximum cost of the summary of one loop, in tokens. Default 2,000.
    pub max_summary_tokens: u64,
    /// Maximum number of lines of a tool's output in the recent turns. Default 50.
    pub tool_output_max_lines: usize,
    /// What summaries should pay attention to. It is the first message of each summary, and an
    /// instruction to a summarizer that asks a model. Default: none.
    pub focus_message: Option<String>,
    /// Rule that decides where turns begin. Default: by the turn index of messages.
    pub turn_rule: TurnRule,
    /// What a turn becomes without a model. Default: one line with the user's words.
    pub one_liners: OneLiners,
    /// Whether a context says in a message what is left out. Default true.
    pub mark_omissions: bool,
    /// Reduces message lists of callers without a session; `None` for
    /// [`DefaultCompaction`](crate::DefaultCompaction).
    #[serde(skip)]
    pub in_memory_strategy: Option<Arc<dyn CompactionStrategy<M>>>,
    /// Makes blocks; `None` for [`DefaultBlockCompaction`](crate::DefaultBlockCompaction).
    #[serde(skip)]
    pub block_strategy: Option<Arc<dyn BlockCompactionStrategy<M>>>,
}

impl<M> Default for CompactionConfig<M> {
    fn default() -> Self {
        Self {
            compact_at_pct: 0.90,
            compact_budget_threshold_pct: 0.05,
            compaction_scope: CompactionScope::default(),
            keep_first_turns: 2,
            keep_recent_turns: 10,
            max_summary_tokens: 2_000,
            tool_output_max_lines: 50,
            focus_message: None,
            turn_rule: TurnRule::default(),
            one_liners: OneLiners::default(),
            mark_omissions: true,
            in_memory_strategy: None,
            block_strategy: None,
        }
    }
}

impl<M> Clone for CompactionConfig<M> {
    fn clone(&self) -> Self {
        Self {
            focus_message: self.focus_message.clone(),
            in_memory_strategy: self.in_memory_strategy.clone(),
            block_strategy: self.block_strategy.clone(),
            ..*self
        }
    }
}

impl<M> fmt::Debug for CompactionConfig<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactionConfig")
            .field("compact_at_pct", &self.compact_at_pct)
            .field(
                "compact_budget_threshold_pct",
                &self.compact_budget_threshold_pct,
            )
            .field("compaction_scope", &self.compaction_scope)
            .field("keep_first_turns", &self.keep_first_turns)
            .field("keep_recent_turns", &self.keep_recent_turns)
            .field("max_summary_tokens", &self.max_summary_tokens)
            .field("tool_output_max_lines", &self.tool_output_max_lines)
            .field("focus_message", &self.focus_message)
            .field("turn_rule", &self.turn_rule)
            .field("one_liners", &self.one_liners)
            .field("mark_omissions", &self.mark_omissions)
            .field("in_memory_strategy", &self.in_memory_strategy)
            .field("block_strategy", &self.block_strategy)
            .finish()
    }
}

impl<M> CompactionConfig<M> {
    /// Returns the preset phi-core: the defaults, but one-liners of the assistant's messages alone and no
    /// message that says what is left out.
    pub fn phi_core() -> Self {
        Self {
            one_liners: OneLiners::AssistantMessages,
            mark_omissions: false,
            ..Self::default()
        }
    }

    /// Sets how many turns are kept at the beginning and at the end of the newest loop.
    #[must_use]
    pub fn with_kept_turns(mut self, first: usize, recent: usize) -> Self {
        (self.keep_first_turns, self.keep_recent_turns) = (first, recent);
        self
    }

    /// Sets which loops are compacted and shown.
    #[must_use]
    pub fn with_scope(mut self, scope: CompactionScope) -> Self {
        self.compaction_scope = scope;
        self
    }

    /// Sets the maximum cost of the summary of one loop, in tokens.
    #[must_use]
    pub fn with_max_summary_tokens(mut self, tokens: u64) -> Self {
        self.max_summary_tokens = tokens;
        self
    }

    /// Sets what summaries should pay attention to.
    #[must_use]
    pub fn with_focus(mut self, message: impl Into<String>) -> Self {
        self.focus_message = Some(message.into());
        self
    }

    /// Sets where turns begin.
    #[must_use]
    pub fn with_turn_rule(mut self, rule: TurnRule) -> Self {
        self.turn_rule = rule;
        self
    }

    /// Sets the strategy that makes blocks.
    #[must_use]
    pub fn with_block_strategy(mut self, strategy: Arc<dyn BlockCompactionStrategy<M>>) -> Self {
        self.block_strategy = Some(strategy);
        self
    }

    /// Sets the strategy for callers without a session.
    #[must_use]
    pub fn with_in_memory_strategy(mut self, strategy: Arc<dyn CompactionStrategy<M>>) -> Self {
        self.in_memory_strategy = Some(strategy);
        self
    }

    /// Whether it is time to compact: whether the headroom `compact_at_pct − system / window − tokens /
    /// window` is below `compact_budget_threshold_pct`. A window of 0 tokens is unknown and never is.
    /// Shares are exact to nine decimal places.
    ///
    /// ```
    /// use block_overlay::CompactionConfig;
    /// use memory_model::Message;
    ///
    /// let config = CompactionConfig::<Message>::default();
    /// assert!(!config.is_due(81_000, 100_000, 4_000));
    /// assert!(config.is_due(81_001, 100_000, 4_000));
    /// ```
    pub fn is_due(&self, tokens: u64, window: u64, system_tokens: u64) -> bool {
        const BILLION: i128 = 1_000_000_000;
        let (at, least) = (self.compact_at_pct, self.compact_budget_threshold_pct);
        if window == 0 || at.is_nan() || least.is_nan() {
            return false;
        }
        let billionths = |share: f64| (share.clamp(-1e9, 1e9) * 1e9).round() as i128;
        let used = i128::from(tokens) + i128::from(system_tokens);
        used * BILLION > (billionths(at) - billionths(least)) * i128::from(window)
    }
}

/// A model's window and what to do when it fills up. A host without one has compaction turned off.
#[derive(Serialize, Deserialize)]
#[serde(default, bound = "")]
#[non_exhaustive]
pub struct ContextConfig<M> {
    /// Window of the model, in tokens. Default 100,000.
    pub max_context_tokens: u64,
    /// Cost of the system prompt, in tokens. Default 4,000.
    pub system_prompt_tokens: u64,
    /// When and how to compact.
    pub compaction: CompactionConfig<M>,
    /// Messages at the end that the reduction of a list keeps; `None` for
    /// [`CompactionConfig::keep_recent_turns`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_recent: Option<usize>,
    /// Messages at the beginning that the reduction of a list keeps; `None` for
    /// [`CompactionConfig::keep_first_turns`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_first: Option<usize>,
    /// Lines of a tool's output that the reduction of a list keeps; `None` for
    /// [`CompactionConfig::tool_output_max_lines`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_output_max_lines: Option<usize>,
    /// Counts tokens; `None` for [`default_estimator`].
    #[serde(skip)]
    pub token_counter: Option<Arc<dyn TokenEstimator>>,
}

impl<M> Default for ContextConfig<M> {
    fn default() -> Self {
        Self {
            max_context_tokens: 100_000,
            system_prompt_tokens: 4_000,
            compaction: CompactionConfig::default(),
            keep_recent: None,
            keep_first: None,
            tool_output_max_lines: None,
            token_counter: None,
        }
    }
}

impl<M> Clone for ContextConfig<M> {
    fn clone(&self) -> Self {
        Self {
            compaction: self.compaction.clone(),
            token_counter: self.token_counter.clone(),
            ..*self
        }
    }
}

impl<M> fmt::Debug for ContextConfig<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContextConfig")
            .field("max_context_tokens", &self.max_context_tokens)
            .field("system_prompt_tokens", &self.system_prompt_tokens)
            .field("compaction", &self.compaction)
            .field("keep_recent", &self.keep_recent)
            .field("keep_first", &self.keep_first)
            .field("tool_output_max_lines", &self.tool_output_max_lines)
            .field("token_counter", &self.token_counter)
            .finish()
    }
}

impl<M> ContextConfig<M> {
    /// Creates the configuration for a window, the rest by default.
    pub fn new(max_context_tokens: u64) -> Self {
        Self {
            max_context_tokens,
            ..Self::default()
        }
    }

    /// Returns the preset phi-core: its window, system prompt, token counter and
    /// [compaction](CompactionConfig::phi_core).
    pub fn phi_core() -> Self {
        Self {
            compaction: CompactionConfig::phi_core(),
            token_counter: Some(Arc::new(HeuristicEstimator::Bytes4PerPart)),
            ..Self::default()
        }
    }

    /// Sets the cost of the system prompt, in tokens.
    #[must_use]
    pub fn with_system_prompt_tokens(mut self, tokens: u64) -> Self {
        self.system_prompt_tokens = tokens;
        self
    }

    /// Sets when and how to compact.
    #[must_use]
    pub fn with_compaction(mut self, compaction: CompactionConfig<M>) -> Self {
        self.compaction = compaction;
        self
    }

    /// Sets what counts tokens.
    #[must_use]
    pub fn with_token_counter(mut self, counter: Arc<dyn TokenEstimator>) -> Self {
        self.token_counter = Some(counter);
        self
    }

    /// Returns what counts tokens.
    pub fn counter(&self) -> Arc<dyn TokenEstimator> {
        self.token_counter.clone().unwrap_or_else(default_estimator)
    }

    /// Tokens that messages may cost: the window without the system prompt.
    pub fn message_budget(&self) -> u64 {
        self.max_context_tokens
            .saturating_sub(self.system_prompt_tokens)
    }
}

/// Configurations by name, so that hosts and files can refer to them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent, bound = "")]
pub struct NamedConfigs<M>(BTreeMap<String, CompactionConfig<M>>);

impl<M> Default for NamedConfigs<M> {
    /// Those of this crate: `default` and `phi-core`.
    fn default() -> Self {
        let presets = [
            ("default", CompactionConfig::default()),
            ("phi-core", CompactionConfig::phi_core()),
        ];
        Self(
            presets
                .map(|(name, config)| (name.to_owned(), config))
                .into(),
        )
    }
}

impl<M> NamedConfigs<M> {
    /// Adds a configuration, or replaces the one of that name.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, config: CompactionConfig<M>) -> Self {
        self.0.insert(name.into(), config);
        self
    }

    /// The configuration of that name.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownConfig`], whose text lists the names.
    pub fn get(&self, name: &str) -> Result<&CompactionConfig<M>> {
        self.0.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.names().collect();
            let message = format!(
                "no configuration is named `{name}`: use {}",
                known.join(" or ")
            );
            Error::new(ErrorKind::UnknownConfig, message)
        })
    }

    /// All names, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}
