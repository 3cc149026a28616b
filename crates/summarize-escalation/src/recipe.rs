//! The recipe of a summary, a key of caches.

use memory_model::conventions::{AgentConventions as _, GenericConventions};
use memory_model::{FieldHasher, Purpose, Recipe};

use crate::ladder::Ladder;
use crate::request::{SummaryKind, SummaryRequest};

/// Returns the recipe of the summary that `summarizer` writes for this request under this ladder. Together with the
/// hash of the source, the recipe is the key of a cache.
///
/// The recipe is one line of everything on which the text depends, except the source: the summarizer's id (which
/// contains the model and the prompts), the ladder, kind and depth class of the summary, the target length and the
/// estimator. It also contains the agent's conventions if the summarizer's id does not name them and they are not the
/// default ones, and hashes of the instructions, the previous summary and the request's prompts, if there are
/// any.
pub fn recipe(summarizer: &str, ladder: &Ladder, request: &SummaryRequest<'_>) -> Recipe {
    let kind = match (request.kind(), request.depth()) {
        (SummaryKind::Leaf, _) => "leaf",
        (SummaryKind::Condensed, 1) => "condensed-1",
        (SummaryKind::Condensed, _) => "condensed-2+",
    };
    let rule = ladder.target_rule(request.kind());
    let target = match request.target_tokens {
        0 => rule.to_string(),
        tokens if tokens == rule.target(request.source_tokens()) => rule.to_string(),
        tokens => tokens.to_string(),
    };
    let mut line = format!(
        "summarizer={summarizer} ladder={} kind={kind} target={target} estimator={}",
        ladder.id(),
        request.estimator.id().as_str(),
    );
    let conventions = request.conventions.id();
    if conventions != GenericConventions.id() && !summarizer.contains(conventions) {
        line.push_str(&format!(" conventions={conventions}"));
    }
    if request.purpose == Purpose::TurnPrefix {
        line.push_str(" purpose=turn-prefix");
    }
    if request.max_tokens > 0 {
        line.push_str(&format!(" max={}", request.max_tokens));
    }
    if request.overhead_tokens > 0 {
        line.push_str(&format!(" overhead={}", request.overhead_tokens));
    }
    for (name, text) in [
        ("instructions", request.instructions),
        ("previous", request.previous),
    ] {
        if let Some(text) = text {
            let mut hasher = FieldHasher::new("agent-memory recipe text 1");
            hasher.bytes(text.as_bytes());
            let hash = hasher.finish().to_string();
            line.push_str(&format!(" {name}={}", hash.get(..16).unwrap_or(&hash)));
        }
    }
    if let Some(prompts) = request.prompts {
        let hash = prompts.hash().to_string();
        let hash = hash.get(..16).unwrap_or(&hash);
        line.push_str(&format!(" prompts={}-{hash}", prompts.id));
    }
    Recipe::new(line)
}
