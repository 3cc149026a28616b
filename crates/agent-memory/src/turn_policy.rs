//! Policy for the turns of an agent: the model's window, thresholds, and an action for the beginning of a turn, for
//! each model call and for the end of a turn.

use compaction_plan::Live;
use compaction_runner::Trigger;
use context_assembler::Budget;
use serde::{Deserialize, Serialize};
use token_estimate::models::{self, ModelInfo};

use crate::Result;

/// Size of a model's context window, and the parts of it that are not available for a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Size of the window, in tokens.
    pub tokens: u64,
    /// Number of tokens reserved for the model's answer. Default 8,192, but at most a quarter of the window.
    pub reserve: u64,
    /// Cost of a system prompt and tools that the application adds to requests without telling the session, in tokens.
    #[serde(default)]
    pub system_tokens: u64,
    /// Maximum number of pictures in a context; `None` sets no limit.
    #[serde(default)]
    pub pictures: Option<usize>,
    /// Maximum size of a context in bytes, as [`Budget::with_bytes`] counts them; `None` sets no limit.
    #[serde(default)]
    pub bytes: Option<u64>,
}

impl Window {
    /// Creates a window of `tokens` tokens with the default reserve and no system prompt.
    pub fn new(tokens: u64) -> Self {
        Self {
            tokens,
            reserve: (tokens / 4).min(8_192),
            system_tokens: 0,
            pictures: None,
            bytes: None,
        }
    }

    /// Returns the window of a model of the built-in table, such as `gpt-5` or `anthropic/claude-sonnet-4-5`, with no
    /// system prompt. [`tokens::models::get`](crate::tokens::models::get) documents how names are matched; for a model
    /// of your own table, use `Window::from(&model)`.
    ///
    /// The window is the largest input that the provider accepts. The reserve is chosen so that the provider also
    /// accepts the remaining input together with the output:
    ///
    /// - If the output counts within the model's context window, the reserve is the model's largest output, but at most
    ///   a quarter of that window and at most 128,000 tokens. Do not request more output than the reserve.
    /// - If the provider limits the input separately, the reserve is only the part of that output that does not fit
    ///   between this limit and the context window. It is at least 8,192 tokens or 1/32 of the window, whichever is
    ///   less, for tokens that providers add to a request.
    ///
    /// ```
    /// use agent_memory::Window;
    ///
    /// // 200,000 tokens with the output, which is at most 64,000.
    /// let window = Window::for_model("claude-sonnet-4-5-20250929")?;
    /// assert_eq!((window.tokens, window.reserve), (200_000, 50_000));
    /// // 400,000 tokens with the output, and an input of at most 272,000.
    /// let window = Window::for_model("openai/gpt-5")?;
    /// assert_eq!((window.tokens, window.reserve), (272_000, 8_192));
    /// # Ok::<(), agent_memory::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `UnknownModel` for a name that is not in the table; the message suggests the nearest name.
    pub fn for_model(name: &str) -> Result<Self> {
        Ok(Self::from(models::get(name)?))
    }

    /// Returns the budget of a context: the window without the reserve and the system prompt.
    pub fn budget(&self) -> Budget {
        let taken = self.reserve.saturating_add(self.system_tokens);
        Budget::tokens(self.tokens.saturating_sub(taken))
            .with_pictures(self.pictures)
            .with_bytes(self.bytes)
    }
}

/// Maximum output for which a window reserves tokens.
const MOST_OUTPUT: u64 = 128_000;

/// Converts a model's data into its window: see [`Window::for_model`].
impl From<&ModelInfo> for Window {
    fn from(model: &ModelInfo) -> Self {
        let tokens = model.largest_input(0);
        let output = model
            .max_output
            .min(model.context_window / 4)
            .min(MOST_OUTPUT);
        let least = (tokens / 32).min(8_192);
        let reserve = tokens.saturating_sub(model.largest_input(output));
        Self {
            reserve: reserve.max(least),
            ..Self::new(tokens)
        }
    }
}

/// Compaction that a session may run at the beginning of an agent's turn, before a model call, or at the end of a turn.
///
/// The hard threshold also counts as crossed while the view costs more than the window's [`budget`](Window::budget). If
/// the view still exceeds the budget before a model call, every action except `Nothing` publishes extracts until the
/// view fits. Extracts are summaries written without a model, so a context omits only content that no summary can
/// replace. A ladder without the extractive tier publishes no extracts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Action {
    /// Runs no compaction.
    #[default]
    Nothing,
    /// Publishes prefetched summaries if the hard threshold is crossed. Does not wait for a model.
    Publish,
    /// Publishes like [`Publish`](Self::Publish). If the soft threshold is crossed, also prefetches: writes summaries
    /// as drafts, which a later action publishes. The prefetch runs in a background task if the memory can start one
    /// ([`Builder::background`](crate::Builder::background)), otherwise before the call of the session returns.
    Prefetch,
    /// Compacts if the hard threshold is crossed, and waits for the model. Sessions of the strategy handoff are handed
    /// over by [`Builder::handoff_options`](crate::Builder::handoff_options).
    Compact,
}

/// Policy for compacting during an agent's turns: an action for the beginning of a turn, for each model call and for
/// the end of a turn, and the thresholds of the actions.
///
/// By default, summaries are prefetched after a turn if more than half of the window is used. They are published before
/// a turn or a model call if more than three quarters are used.
///
/// The use of the window is measured in two ways, and the larger number counts. One is the estimate of the view and
/// the identity, multiplied by [`SessionUsage::safety_factor`](crate::tokens::SessionUsage::safety_factor). The other
/// is the number that the provider reported last, without [`Window::system_tokens`].
///
/// Absolute thresholds and the budget are compared with [`WindowUse::tokens`](crate::compaction::WindowUse::tokens).
/// Thresholds that are a share of the window are compared with
/// [`WindowUse::request_tokens`](crate::compaction::WindowUse::request_tokens), which adds [`Window::system_tokens`].
/// A soft threshold above the budget counts as crossed at two thirds of the budget.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TurnPolicy {
    /// Threshold above which summaries are prefetched. Default: 0.5 of the window.
    pub soft: Trigger,
    /// Threshold above which summaries are published or the view (the compacted log) is compacted. Default: 0.75 of the
    /// window.
    pub hard: Trigger,
    /// Threshold for warnings: [`TurnReport::warned`](crate::TurnReport::warned) is true if the use of the window is
    /// above this threshold, and not above the hard threshold. Default: never.
    pub warn: Trigger,
    /// Action that [`Session::before_turn`](crate::Session::before_turn) takes.
    pub before_turn: Action,
    /// Action that [`Session::context`](crate::Session::context) takes before it assembles the context.
    pub before_call: Action,
    /// Action that [`Session::after_turn`](crate::Session::after_turn) takes.
    pub after_turn: Action,
}

impl Default for TurnPolicy {
    fn default() -> Self {
        Self {
            soft: Trigger::Fraction { of_window: 0.5 },
            hard: Trigger::default(),
            warn: Trigger::Never,
            before_turn: Action::Publish,
            before_call: Action::Publish,
            after_turn: Action::Prefetch,
        }
    }
}

impl TurnPolicy {
    /// Returns a policy that never compacts during a turn. [`Session::compact`](crate::Session::compact) still works.
    pub fn manual() -> Self {
        Self {
            soft: Trigger::Never,
            hard: Trigger::Never,
            warn: Trigger::Never,
            before_turn: Action::Nothing,
            before_call: Action::Nothing,
            after_turn: Action::Nothing,
        }
    }
}

/// A turn policy that may change while a program runs. It is evaluated each time a session may compact.
pub type LiveTurnPolicy = Live<TurnPolicy>;

#[cfg(test)]
mod tests {
    use token_estimate::models::ModelTable;

    use super::*;
    use crate::ErrorKind;

    #[test]
    fn the_budget_of_every_model_is_an_input_that_its_provider_accepts() {
        for model in ModelTable::builtin().models() {
            let window = Window::from(model);
            let input = window.budget().get();
            let name = &model.name;
            assert_eq!(Window::for_model(name).unwrap(), window, "{name}");
            assert!(model.max_input.is_none_or(|most| input < most), "{name}");
            assert!(input < model.context_window, "{name}");
            // A request for the reserved output, or for the largest that is not beyond a quarter.
            let output = model.max_output.min(model.context_window / 4).min(128_000);
            let both = if model.output_in_window {
                input + output
            } else {
                input
            };
            assert!(both <= model.context_window, "{name}: {both}");
            assert!(input >= window.tokens * 3 / 4, "{name}: {window:?}");
            assert!(window.tokens <= model.context_window, "{name}: {window:?}");
        }
    }

    #[test]
    fn windows_of_models_are_their_inputs_limits() {
        for (name, tokens, reserve) in [
            ("gpt-4o-2024-08-06", 128_000, 16_384),
            ("o3", 200_000, 50_000),
            ("claude-opus-4-8", 1_000_000, 128_000),
            ("models/gemini-2.5-pro", 1_048_576, 8_192),
            ("qwen3-max", 258_048, 61_440),
            ("kimi-k3", 1_048_576, 128_000),
        ] {
            let window = Window::for_model(name).unwrap();
            assert_eq!((window.tokens, window.reserve), (tokens, reserve), "{name}");
            assert_eq!(window.system_tokens, 0);
        }
    }

    #[test]
    fn an_unknown_model_is_named_with_the_nearest() {
        let error = Window::for_model("gpt-55").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnknownModel);
        assert!(error.to_string().contains("gpt-5.5"), "{error}");
    }
}
