//! The calibrated estimator: what a tokenizer would do, told from the shapes of words, numbers, marks and scripts.

pub(crate) mod class;
mod coefficients;
pub(crate) mod machine;
pub(crate) mod model;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use crate::{CountedMessage, Error, ErrorKind, EstimatorId, Piece, TokenEstimator, overhead};
use model::{Model, ONE};

static O200K: Model = Model::new(&coefficients::o200k::COEFFICIENTS);
static CL100K: Model = Model::new(&coefficients::cl100k::COEFFICIENTS);

/// An estimate close to a real tokenizer's count, for a fraction of its time: one pass, no allocation, no vocabulary,
/// integer arithmetic, so the same figures everywhere.
///
/// A small machine follows the tokenizer's own pre-splitting (words by length, case and what stands before them,
/// groups of three digits, runs of marks, white space, scripts) and a table weighs each pair of neighbouring characters.
/// The weights are fitted against the exact tokenizers; `docs/tokens.md` of the repository says on what, and how far off
/// they are. A text that is not empty costs at least 1; one that begins with a mark costs as if it followed a word, less a
/// token, so that texts add up.
///
/// A message costs its texts, reasoning included, the names and arguments of calls, 1,600 for a picture or document,
/// and the overheads of OpenAI's chat format: 4 for a message, and 4 more for each call or result in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Calibrated {
    /// For OpenAI's `o200k_base` (GPT-4o and later): the general default.
    #[default]
    #[cfg_attr(feature = "serde", serde(rename = "calibrated"))]
    O200k,
    /// For OpenAI's `cl100k_base` (GPT-3.5, GPT-4).
    #[cfg_attr(feature = "serde", serde(rename = "calibrated-cl100k"))]
    Cl100k,
    /// For models whose tokenizer is not public, such as Claude: the estimate for `o200k_base` times 5/4. See
    /// [`Calibration`](crate::Calibration) for a factor learnt from the provider's own usage figures.
    #[cfg_attr(feature = "serde", serde(rename = "calibrated-unknown"))]
    Unknown,
}

impl Calibrated {
    /// Every family, the default first.
    pub const ALL: [Self; 3] = [Self::O200k, Self::Cl100k, Self::Unknown];

    /// The name, as in `calibrated`: the id without its version.
    pub const fn name(self) -> &'static str {
        match self {
            Self::O200k => "calibrated",
            Self::Cl100k => "calibrated-cl100k",
            Self::Unknown => "calibrated-unknown",
        }
    }

    /// The weight of a text in parts of a token, exact up to a prefix that is above `stop`.
    fn weigh(self, text: &str, stop: u64) -> u64 {
        self.by(|model| model.weigh(text, stop))
    }

    fn by(self, weigh: impl Fn(&Model) -> u64) -> u64 {
        match self {
            Self::O200k => weigh(&O200K),
            Self::Cl100k => weigh(&CL100K),
            Self::Unknown => {
                let weight = weigh(&O200K);
                weight.saturating_add(weight / UNKNOWN_MORE)
            }
        }
    }
}

/// What is added for a tokenizer that is not public: one part in so many.
const UNKNOWN_MORE: u64 = 4;

/// Weight in tokens: rounded up, and at least 1 for a text that is not empty.
fn tokens(weight: u64, empty: bool) -> u64 {
    weight.div_ceil(ONE).max(u64::from(!empty))
}

/// What versions have in common that differ in how they weigh a text.
macro_rules! by_weight {
    () => {
        fn text(&self, text: &str) -> u64 {
            tokens(self.weigh(text, u64::MAX), text.is_empty())
        }

        fn fits(&self, text: &str, limit: u64) -> Option<u64> {
            let weight = self.weigh(text, limit.saturating_mul(ONE));
            let tokens = tokens(weight, text.is_empty());
            (tokens <= limit).then_some(tokens)
        }

        fn message(&self, message: &dyn CountedMessage) -> u64 {
            let (mut weight, mut empty) = (0_u64, true);
            let mut more = overhead::MESSAGE;
            message.pieces(&mut |piece| {
                let mut add = |text: &str| {
                    weight = weight.saturating_add(self.weigh(text, u64::MAX));
                    empty &= text.is_empty();
                };
                match piece {
                    Piece::Text(text) | Piece::Reasoning(text) | Piece::Other(text) => add(text),
                    Piece::ToolCall { name, arguments } => {
                        add(name);
                        add(arguments);
                    }
                    Piece::ToolResult { .. } | Piece::Image { .. } | Piece::File { .. } => {}
                }
                more = more.saturating_add(overhead::piece(&piece));
            });
            tokens(weight, empty).saturating_add(more)
        }
    };
}

impl TokenEstimator for Calibrated {
    fn id(&self) -> EstimatorId {
        EstimatorId::known(match self {
            Self::O200k => "calibrated@3",
            Self::Cl100k => "calibrated-cl100k@3",
            Self::Unknown => "calibrated-unknown@3",
        })
    }

    by_weight!();

    fn request_overhead(&self) -> u64 {
        overhead::REQUEST
    }

    /// Of the texts that no fit has seen (`docs/tokens.md`) 95 % are not further below the real count.
    /// For a tokenizer that is not public the quarter that is added already stands for that.
    fn upper_permille(&self) -> u32 {
        match self {
            Self::O200k => 1_060,
            Self::Cl100k => 1_075,
            Self::Unknown => 1_000,
        }
    }
}

/// Version 2, for what was counted with it: a text that begins with a mark was counted as a line that does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Version2(pub(crate) Calibrated);

impl Version2 {
    fn weigh(self, text: &str, stop: u64) -> u64 {
        self.0.by(|model| model.weigh_line(text, stop))
    }
}

impl TokenEstimator for Version2 {
    fn id(&self) -> EstimatorId {
        EstimatorId::known(match self.0 {
            Calibrated::O200k => "calibrated@2",
            Calibrated::Cl100k => "calibrated-cl100k@2",
            Calibrated::Unknown => "calibrated-unknown@2",
        })
    }

    by_weight!();

    fn request_overhead(&self) -> u64 {
        self.0.request_overhead()
    }

    fn upper_permille(&self) -> u32 {
        self.0.upper_permille()
    }
}

impl fmt::Display for Calibrated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Calibrated {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|family| family.name() == name)
            .ok_or_else(|| Error::new(ErrorKind::UnknownEstimator, name))
    }
}
