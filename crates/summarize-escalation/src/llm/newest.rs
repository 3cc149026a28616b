//! Summarises a source that does not fit into a model's window without its oldest pieces.

use super::asker::Asker;
use super::window::ModelWindow;
use crate::error::Error;
use crate::request::SummaryRequest;
use crate::summarizer::{OmittedSource, SummarizerResponse};

/// Leaves out the oldest pieces until the prompt fits: at each of `tries` tries `percent` of those left,
/// down to `keep` pieces.
pub(super) async fn summarize(
    asker: &mut Asker<'_>,
    request: &SummaryRequest<'_>,
    window: ModelWindow,
    (percent, tries, keep): (u32, u32, u32),
) -> Result<SummarizerResponse, Error> {
    let keep = usize::try_from(keep).unwrap_or(usize::MAX).max(1);
    let percent = usize::try_from(percent.min(100)).unwrap_or(100);
    let mut first = 0;
    for _ in 0..tries {
        let left = request.source.len() - first;
        if left <= keep {
            break;
        }
        first += (left * percent).div_ceil(100).min(left - keep);
        let mut part = request.with_source(request.source.get(first..).unwrap_or_default());
        part.target_tokens = part.target_tokens.min(part.source_tokens());
        let Some(prompt) = window.fit(asker.prompts.render(&part), &part) else {
            continue;
        };
        let mut text = asker.ask(&prompt, &part).await?;
        let without = request.with_source(request.source.get(..first).unwrap_or_default());
        if let Some(range) = without.range() {
            let left_out = OmittedSource {
                range,
                pieces: first as u64,
                tokens: without.source_tokens(),
            };
            if !text.text.trim().is_empty() {
                text.text = format!(
                    "[Not in this summary: messages {range}, {} tokens; expand them.]\n{}",
                    left_out.tokens, text.text
                );
            }
            text.left_out = Some(left_out);
        }
        return Ok(text);
    }
    Err(asker.too_long(request, window))
}
