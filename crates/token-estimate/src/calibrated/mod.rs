//! The calibrated estimator: predicts a tokenizer's count from the shapes of words, numbers, punctuation and scripts.

pub(crate) mod class;
pub(crate) mod floor;
pub(crate) mod machine;
pub(crate) mod model;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::{EstimatorId, MessageView, SafetyFactor, TokenEstimator, overhead, tool};
use floor::Joins;
use floor::ONE;
use model::Model;

static O200K: Model = Model::new(include_bytes!("coefficients/o200k.bin"));
static CL100K: Model = Model::new(include_bytes!("coefficients/cl100k.bin"));
static O200K_JOINS: Joins = Joins::new(include_bytes!("coefficients/o200k.joins.bin"));
static CL100K_JOINS: Joins = Joins::new(include_bytes!("coefficients/cl100k.joins.bin"));

/// Estimates the token count of a real tokenizer in a fraction of its time. The estimator reads a text once, allocates
/// no memory, needs no vocabulary, and returns the same counts on every machine.
///
/// A state machine follows the tokenizer's pre-splitting (words by length, case and preceding character, groups of
/// three digits, runs of punctuation, white space, scripts). A table has a weight for each pair of neighbouring
/// characters. The coefficients are fitted to the exact tokenizers. `docs/measurements/tokens.md` in the repository
/// lists the texts and the errors.
///
/// A text that is not empty costs at least 1 token. A text that begins with punctuation costs as much as after a word,
/// less one token, so that the costs of joined texts add up.
///
/// Errors for `o200k_base` and `cl100k_base` in the languages of the corpus: of different texts of up to 50 tokens, 95
/// % are within 1 token and 15 % of the exact count, and 99.5 % within 2 tokens and 20 %. Longer texts are within a few
/// percent.
///
/// The cost of a message includes its texts and reasoning, the names and arguments of calls, 1,600 tokens for an image,
/// and 3,000 for each page of a PDF. A PDF whose pages cannot be counted has a page for each 4,000 bytes. Base64 is never
/// counted as text: a picture in an unknown part is an image, and other data costs by its size. Added are the fixed costs
/// of OpenAI's chat format: 4 tokens, and 4 more for each call or result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Calibrated {
    /// Estimates for OpenAI's `o200k_base` (GPT-4o and later). The default estimator.
    #[default]
    #[cfg_attr(feature = "serde", serde(rename = "calibrated"))]
    O200k,
    /// Estimates for OpenAI's `cl100k_base` (GPT-3.5, GPT-4).
    #[cfg_attr(feature = "serde", serde(rename = "calibrated-cl100k"))]
    Cl100k,
    /// Estimates for models without a public tokenizer, such as Claude: 5/4 of the estimate for `o200k_base`.
    /// [`Calibration`](crate::Calibration) learns a better factor from the usage that the provider reports.
    #[cfg_attr(feature = "serde", serde(rename = "calibrated-unknown"))]
    Unknown,
}

impl Calibrated {
    /// All calibrated estimators, the default one first.
    pub const ALL: [Self; 3] = [Self::O200k, Self::Cl100k, Self::Unknown];

    /// Returns the estimator's name, such as `calibrated`: its id without the version.
    pub const fn name(self) -> &'static str {
        match self {
            Self::O200k => "calibrated",
            Self::Cl100k => "calibrated-cl100k",
            Self::Unknown => "calibrated-unknown",
        }
    }

    /// Returns the weight of a text in parts of a token. If the weight exceeds `stop`, may return the weight of a
    /// prefix that exceeds `stop`.
    fn weigh(self, text: &str, stop: u64) -> u64 {
        match self {
            Self::O200k => O200K.weigh(&O200K_JOINS, text, stop),
            Self::Cl100k => CL100K.weigh(&CL100K_JOINS, text, stop),
            Self::Unknown => {
                let weight = O200K.weigh(&O200K_JOINS, text, stop);
                weight.saturating_add(weight / UNKNOWN_MORE)
            }
        }
    }
}

/// Divisor of the estimate for the addition for tokenizers that are not public: a quarter is added.
const UNKNOWN_MORE: u64 = 4;

/// Converts a weight to tokens: rounded up, and at least 1 for a text that is not empty.
fn tokens(weight: u64, empty: bool) -> u64 {
    weight.div_ceil(ONE).max(u64::from(!empty))
}

impl TokenEstimator for Calibrated {
    fn id(&self) -> EstimatorId {
        EstimatorId::known(match self {
            Self::O200k => "calibrated@5",
            Self::Cl100k => "calibrated-cl100k@5",
            Self::Unknown => "calibrated-unknown@5",
        })
    }

    fn text(&self, text: &str) -> u64 {
        tokens(self.weigh(text, u64::MAX), text.is_empty())
    }

    fn fits(&self, text: &str, limit: u64) -> Option<u64> {
        let weight = self.weigh(text, limit.saturating_mul(ONE));
        Some(tokens(weight, text.is_empty())).filter(|tokens| *tokens <= limit)
    }

    fn message(&self, message: &dyn MessageView) -> u64 {
        let (mut weight, mut empty) = (0_u64, true);
        let fixed = overhead::count(message, &mut |text| {
            weight = weight.saturating_add(self.weigh(text, u64::MAX));
            empty &= text.is_empty();
        });
        tokens(weight, empty).saturating_add(fixed)
    }

    fn request_overhead(&self) -> u64 {
        overhead::REQUEST
    }

    /// Returns the largest overhead that Anthropic states for any model, if the tokenizer is not public. Otherwise
    /// returns the overhead of OpenAI's rendering.
    fn tools_overhead(&self) -> u64 {
        match self {
            Self::O200k | Self::Cl100k => tool::REQUEST,
            Self::Unknown => tool::ANTHROPIC_REQUEST,
        }
    }

    /// Returns a factor that covers 95 % of texts outside of the fit (`docs/measurements/tokens.md`). 1 for a tokenizer
    /// that is not public, because its estimate is already raised by a quarter.
    fn safety_factor(&self) -> SafetyFactor {
        match self {
            Self::O200k => SafetyFactor::from_thousandths(1_060),
            Self::Cl100k => SafetyFactor::from_thousandths(1_075),
            Self::Unknown => SafetyFactor::ONE,
        }
    }
}

impl fmt::Display for Calibrated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
