//! Summarizes a text outside of a conversation.

use memory_model::{Hash, LogEntry, Message, Seq};
use token_estimate::TokenEstimator;

use crate::error::Error;
use crate::escalate::escalate;
use crate::ladder::Ladder;
use crate::request::SummaryRequest;
use crate::summarizer::Summarizer;
use crate::target::Tolerance;
use crate::{Source, cut_to_tokens};

/// Summarizes a text to at most `max_tokens` tokens, with the default ladder and the default estimator. A text that
/// costs no more is returned unchanged.
///
/// ```
/// use summarize_escalation::{ExtractiveSummarizer, summarize_text};
/// use token_estimate::default_estimator;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let report = "All 212 tests passed on the staging host, so we deployed to it. ".repeat(40);
/// let summary = summarize_text(&ExtractiveSummarizer::new(), &report, 80).await?;
/// assert!(default_estimator().text(&summary) <= 80);
/// # Ok::<(), summarize_escalation::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The errors of [`escalate`]. A text that is too short for a summary is no error: it is cut.
pub async fn summarize_text(
    summarizer: &dyn Summarizer,
    text: &str,
    max_tokens: u64,
) -> Result<String, Error> {
    let estimator = token_estimate::default_estimator();
    let tokens = estimator.text(text);
    if tokens <= max_tokens {
        return Ok(text.to_owned());
    }
    let log = [LogEntry {
        seq: Seq::FIRST,
        message: Message::user(text),
        tokens,
        running: tokens,
        // No summarizer reads this field.
        hash: Hash::ZERO,
    }];
    let source = log.each_ref().map(Source::from);
    let request = SummaryRequest {
        target_tokens: max_tokens,
        ..SummaryRequest::new(&source, &estimator)
    };
    let ladder = Ladder {
        accept: Tolerance::NONE,
        ..Ladder::default()
    };
    let cut = |text: &str| cut_to_tokens(text, max_tokens, &estimator).unwrap_or_default();
    match escalate(summarizer, &ladder, &request).await {
        Err(error) if error.kind() == crate::ErrorKind::CannotShrink => Ok(cut(text)),
        // With `max_tokens` 0, the ladder chooses the target length, so the summary may cost more.
        Ok(outcome) if estimator.text(&outcome.text) > max_tokens => Ok(cut(&outcome.text)),
        outcome => Ok(outcome?.text),
    }
}
