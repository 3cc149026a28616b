//! An accepted summary.

use memory_model::{RawJson, Recipe, SummaryBody};
use serde::Serialize;

use crate::criteria::Scores;
use crate::refusal::Refusal;
use crate::summarizer::OmittedSource;
use crate::tier::Tier;

/// A summary that a ladder accepted, with the tier, the model, the costs and the refused tiers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
#[must_use]
pub struct LadderOutcome {
    /// Text of the summary.
    pub text: String,
    /// Importance rank of each line of the text; `None` if the summarizer ranked no lines, or the text was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<Vec<u8>>,
    /// Tier that wrote the summary.
    pub tier: Tier,
    /// Id of the summarizer that wrote the text.
    pub summarizer: String,
    /// Name of the model that wrote the text; `None` if it was written without a model.
    pub model: Option<String>,
    /// Whether the summary should be rewritten once a model is available.
    pub provisional: bool,
    /// Recipe of the summary: one line that describes how it was made, as a cache key. If the caller's summarizer wrote
    /// the text, the recipe is the result of [`recipe`](crate::recipe). An extract or a cut has a different recipe, so
    /// that a cache never returns it in place of a summary by that summarizer.
    pub recipe: Recipe,
    /// Target length of the text, in tokens.
    pub target_tokens: u64,
    /// Cost of the summary's source, in tokens.
    pub tokens_in: u64,
    /// Cost of the text, in tokens, without the tokens that rendering adds.
    pub tokens_out: u64,
    /// Number of summarizer calls: at most one for each tier.
    pub calls: u32,
    /// Number of model calls. Each retry counts, and so does each part of a source that is too long for one call.
    pub model_calls: u32,
    /// Parts of the source that the summary leaves out because the source was too long; `None` if it covers the whole
    /// source.
    pub left_out: Option<OmittedSource>,
    /// Measurements of the text; `None` if the ladder has no gate.
    pub scores: Option<Scores>,
    /// Tiers that were tried before this one, each with the reason for refusing its summary.
    pub refused: Vec<Refusal>,
}

/// JSON form of a [`LadderOutcome`] without its text.
#[derive(Serialize)]
struct Meta<'a> {
    target_tokens: u64,
    tokens_in: u64,
    tokens_out: u64,
    model_calls: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    scores: Option<&'a Scores>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    refused: &'a [Refusal],
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<OmittedSource>,
}

impl LadderOutcome {
    /// Returns the text with the ranks of its lines. The ranks are ignored if their number differs from the number of
    /// lines.
    pub fn body(&self) -> SummaryBody {
        SummaryBody::from_parts(self.text.clone(), self.ranks.clone())
            .unwrap_or_else(|_| SummaryBody::new(self.text.as_str()))
    }

    /// Returns a JSON object that describes how the summary was written, to store with it. Its fields are
    /// `target_tokens`, `tokens_in`, `tokens_out` and `model_calls`, and also `scores`, `refused` and `left_out` if
    /// they exist.
    pub fn meta(&self) -> Option<RawJson> {
        let meta = Meta {
            target_tokens: self.target_tokens,
            tokens_in: self.tokens_in,
            tokens_out: self.tokens_out,
            model_calls: self.model_calls,
            scores: self.scores.as_ref(),
            refused: &self.refused,
            left_out: self.left_out,
        };
        RawJson::from_value(&meta).ok()
    }
}
