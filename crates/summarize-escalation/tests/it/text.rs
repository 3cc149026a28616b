//! A text in one call: its target is a budget, whatever the summarizer does.

use summarize_escalation::testing::{Answer, Scripted, misbehaviours};
use summarize_escalation::{ExtractiveSummarizer, Summarizer, summarize_text};
use token_estimate::{TokenEstimator, default_estimator};

fn report() -> String {
    let line = |n: usize| {
        format!(
            "Step {n}: moved crates/part_{n}/src/lib.rs to the staging host, which took {n} s.\n"
        )
    };
    (1..60).map(line).collect()
}

#[tokio::test]
async fn no_summary_costs_more_than_it_may() {
    let estimator = default_estimator();
    let text = report();
    assert!(estimator.text(&text) > 1_000);
    for max_tokens in [0, 1, 3, 10, 40, 200, 900] {
        // One that hangs would be waited for: guards have a time-out.
        let answers = misbehaviours().into_iter();
        for answer in answers.filter(|answer| *answer != Answer::Hang) {
            let name = format!("{answer:?}");
            let model = Scripted::new([answer]);
            let summary = match summarize_text(&model, &text, max_tokens).await {
                Ok(summary) => summary,
                Err(error) => panic!("{name} at {max_tokens}: {error}"),
            };
            let tokens = estimator.text(&summary);
            assert!(tokens <= max_tokens, "{name}: {tokens} of {max_tokens}");
        }
        let extract: &dyn Summarizer = &ExtractiveSummarizer::new();
        let summary = summarize_text(extract, &text, max_tokens).await.unwrap();
        assert!(estimator.text(&summary) <= max_tokens);
        assert_eq!(
            summary.is_empty(),
            max_tokens < 1,
            "{max_tokens}: {summary:?}"
        );
    }
}

#[tokio::test]
async fn a_text_that_fits_is_its_own_summary() {
    let extract = ExtractiveSummarizer::new();
    for text in ["", "Deploy when green.", "a\n"] {
        assert_eq!(summarize_text(&extract, text, 50).await.unwrap(), text);
    }
}
