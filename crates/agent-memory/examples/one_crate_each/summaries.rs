//! `summarize-escalation`: summarizes a text within a budget of tokens, with or without a model.

use summarize_escalation::{ExtractiveSummarizer, summarize_text};

pub(crate) async fn run() -> crate::Result<String> {
    let report = "All 212 tests passed on the staging host, so we deployed to it. ".repeat(40);
    let summary = summarize_text(&ExtractiveSummarizer::new(), &report, 60).await?;
    assert!(summary.len() < report.len() / 4);
    Ok(format!("{} bytes to {}", report.len(), summary.len()))
}
