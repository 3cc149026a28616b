//! Limits and tokenizer of a model.

use std::borrow::Cow;
use std::sync::Arc;

use super::model_estimator::ModelEstimator;
use super::names::is_date;
use crate::{Calibrated, Error, SafetyFactor, TokenEstimator};

/// Tokenizer of a model. [`Self::Other`] if this crate lacks the tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub enum ModelTokenizer {
    /// OpenAI's `o200k_base`, used by GPT-4o to GPT-5, the o series, and gpt-oss (for plain texts).
    O200k,
    /// OpenAI's `cl100k_base`, used by GPT-3.5 and GPT-4.
    Cl100k,
    /// A tokenizer that is not public, or that this crate lacks.
    #[default]
    Other,
}

impl ModelTokenizer {
    /// All values, including [`Self::Other`].
    pub const ALL: [Self; 3] = [Self::O200k, Self::Cl100k, Self::Other];

    /// Returns the tokenizer's name in a TOML table of models: `o200k`, `cl100k` or `other`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k",
            Self::Cl100k => "cl100k",
            Self::Other => "other",
        }
    }

    /// Returns the exact estimator with the feature `exact`, otherwise the calibrated one.
    fn estimator(self) -> Arc<dyn TokenEstimator> {
        match self {
            #[cfg(feature = "exact")]
            Self::O200k => Arc::new(crate::Exact::O200k),
            #[cfg(feature = "exact")]
            Self::Cl100k => Arc::new(crate::Exact::Cl100k),
            #[cfg(not(feature = "exact"))]
            Self::O200k => Arc::new(Calibrated::O200k),
            #[cfg(not(feature = "exact"))]
            Self::Cl100k => Arc::new(Calibrated::Cl100k),
            Self::Other => Arc::new(Calibrated::Unknown),
        }
    }
}

/// A row of a [`ModelTable`](super::ModelTable): the limits of a model, and the data for counting its tokens.
///
/// The limits are the ones of the provider's service with its default settings. Another host of an open model may have
/// lower limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// Name of the model in requests to the provider, without the prefix of a provider such as `openai/`.
    pub name: Cow<'static, str>,
    /// Size of the model's context window, in tokens.
    pub context_window: u64,
    /// Whether the output of a request counts as part of [`context_window`](Self::context_window). If false, as for
    /// Gemini, the window limits only the input.
    pub output_in_window: bool,
    /// Maximum input of a request, in tokens. `None` if only the window limits the input.
    pub max_input: Option<u64>,
    /// Maximum output of a request, in tokens, including reasoning.
    pub max_output: u64,
    /// Tokenizer of the model, which determines the estimator.
    pub tokenizer: ModelTokenizer,
    /// Factor by which real counts may exceed the counts of the tokenizer's estimator. The estimator's own
    /// [`safety_factor`](TokenEstimator::safety_factor) is multiplied by it.
    pub safety_factor: SafetyFactor,
    /// Number of tokens that the provider adds once to a request with tools, in addition to the tools' own cost. `None`
    /// uses the estimator's [`tools_overhead`](TokenEstimator::tools_overhead).
    pub tools_overhead: Option<u64>,
    /// Prices of the model's tokens. `None` if they are not known.
    pub prices: Option<TokenPrices>,
    /// Day on which the row was last compared with its source, such as `2026-11-23`.
    pub as_of: Cow<'static, str>,
}

/// List prices of a model's tokens at its provider, in billionths of a US dollar for each token. The same number is the
/// price of a million tokens, in thousandths of a dollar.
///
/// ```
/// use token_estimate::models;
///
/// let prices = models::get("gpt-5-mini")?.prices.expect("the table has its prices");
/// // 0.25 dollars for a million tokens.
/// assert_eq!(prices.input, 250);
/// # Ok::<(), token_estimate::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenPrices {
    /// Price of a token in a prompt.
    pub input: u64,
    /// Price of a token in a prompt that the provider reads from its cache of prompts. `None` if there is no separate
    /// price.
    pub cached_input: Option<u64>,
    /// Price of a token in a prompt that the provider writes to its cache. `None` if there is no separate price.
    pub cache_write: Option<u64>,
    /// Price of a token in an answer, including reasoning.
    pub output: u64,
    /// Largest prompt for which the prices hold, in tokens. Longer prompts cost more. `None` if they hold for all.
    pub max_prompt: Option<u64>,
    /// Address of the page with the prices. Empty for prices that the caller agreed with its provider.
    pub source: &'static str,
}

impl TokenPrices {
    /// Creates prices of tokens in prompts and answers, without separate prices for cached tokens, and without a source.
    pub const fn new(input: u64, output: u64) -> Self {
        Self {
            input,
            cached_input: None,
            cache_write: None,
            output,
            max_prompt: None,
            source: "",
        }
    }

    /// Returns an error text if the prices contradict each other.
    fn fault(&self) -> Option<&'static str> {
        let cached = self.cached_input.unwrap_or(self.input);
        let written = self.cache_write.unwrap_or(self.input);
        match () {
            () if cached > self.input => Some("its cached tokens cost more than others"),
            () if written < cached => Some("writing to the cache costs less than reading from it"),
            () if self.max_prompt == Some(0) => Some("its prices hold for no prompt"),
            () => None,
        }
    }
}

impl ModelInfo {
    /// Creates a row for a model with a window of `context_window` tokens, which includes the output, and at most
    /// `max_output` tokens of output. `as_of` is the day on which these limits were checked, such as `2026-11-23`. The
    /// tokenizer is [`Other`](ModelTokenizer::Other), and the safety factor is 1.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        context_window: u64,
        max_output: u64,
        as_of: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            name: name.into(),
            context_window,
            output_in_window: true,
            max_input: None,
            max_output,
            tokenizer: ModelTokenizer::Other,
            safety_factor: SafetyFactor::ONE,
            tools_overhead: None,
            prices: None,
            as_of: as_of.into(),
        }
    }

    /// Sets the prices of a built-in row: [`TokenPrices::input`], [`TokenPrices::cached_input`],
    /// [`TokenPrices::cache_write`] and [`TokenPrices::output`], the largest prompt for which they hold, and their page. 0
    /// stands for `None`.
    pub(super) const fn priced(
        mut self,
        (input, cached_input, cache_write, output): (u64, u64, u64, u64),
        max_prompt: u64,
        source: &'static str,
    ) -> Self {
        const fn some(number: u64) -> Option<u64> {
            match number {
                0 => None,
                number => Some(number),
            }
        }
        self.prices = Some(TokenPrices {
            input,
            cached_input: some(cached_input),
            cache_write: some(cache_write),
            output,
            max_prompt: some(max_prompt),
            source,
        });
        self
    }

    /// Returns the maximum input that the provider accepts in a request with at most `output` tokens of output, in
    /// tokens.
    pub fn largest_input(&self, output: u64) -> u64 {
        let beside_output = match self.output_in_window {
            true => self.context_window.saturating_sub(output),
            false => self.context_window,
        };
        beside_output.min(self.max_input.unwrap_or(u64::MAX))
    }

    /// Returns the estimator for the model. It is exact if this crate has the tokenizer and the feature `exact` is on,
    /// otherwise calibrated. See [`estimator::for_model`](crate::estimator::for_model) for details.
    pub fn estimator(&self) -> Arc<dyn TokenEstimator> {
        Arc::new(ModelEstimator {
            estimator: self.tokenizer.estimator(),
            safety_factor: self.safety_factor,
            tools_overhead: self.tools_overhead,
        })
    }

    /// Returns an error if the limits of the row contradict each other or a field is malformed.
    pub(super) fn check(&self) -> Result<(), Error> {
        let wrong = if self.name.is_empty() || self.name.contains(char::is_whitespace) {
            "give it a name without white space".to_owned()
        } else if self.context_window == 0 || self.max_output == 0 || self.max_input == Some(0) {
            "give its context window, its largest output and its largest input, if any, at least 1 token"
                .to_owned()
        } else if self.max_output > self.context_window {
            format!(
                "its largest output of {} tokens is more than its context window of {}",
                self.max_output, self.context_window
            )
        } else if self
            .max_input
            .is_some_and(|input| input > self.context_window)
        {
            format!(
                "its largest input is more than its context window of {} tokens",
                self.context_window
            )
        } else if self.safety_factor < SafetyFactor::ONE {
            "give it a safety factor of at least 1".to_owned()
        } else if !is_date(&self.as_of) {
            format!(
                "{:?} is not a date: write `as_of` as in 2026-11-23",
                self.as_of
            )
        } else if let Some(fault) = self.prices.as_ref().and_then(TokenPrices::fault) {
            fault.to_owned()
        } else {
            return Ok(());
        };
        Err(Error::invalid_model(&self.name, wrong))
    }
}
