//! A model's window, and configurations by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use token_estimate::{HeuristicEstimator, TokenEstimator, default_estimator};

use crate::config::CompactionConfig;
use crate::error::{Error, ErrorKind, Result};
use crate::reduce::ReductionPolicy;

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

impl<M> From<&ContextConfig<M>> for ReductionPolicy {
    /// The numbers of the configuration: its own fields for lists, and where they are absent those of
    /// its compaction, which count messages here.
    fn from(config: &ContextConfig<M>) -> Self {
        let compaction = &config.compaction;
        let lines = config.tool_output_max_lines;
        Self {
            budget: config.message_budget(),
            keep_first: config.keep_first.unwrap_or(compaction.keep_first_turns),
            keep_recent: config.keep_recent.unwrap_or(compaction.keep_recent_turns),
            tool_output_max_lines: lines.unwrap_or(compaction.tool_output_max_lines),
        }
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
