//! Blocks by a summarizer.

use std::sync::Arc;

use block_overlay::{
    BlockCompactionStrategy, CompactedSection, CompactionConfig, LoopRecord, OneLineSummarizer,
    SummarizingBlockCompaction, TurnMap,
};
use memory_model::Message;
use summarize_escalation::testing::{Answer, Scripted, log};
use summarize_escalation::{
    ExtractiveSummarizer, Ladder, Source, Summarizer, SummaryRequest, escalate,
};
use token_estimate::TokenEstimatorExt as _;

use crate::world::{COUNTER, block_on, config, record, summary_tokens, texts, turns, user};

fn summarized(
    record: &LoopRecord,
    config: &CompactionConfig,
    summarizer: Arc<dyn Summarizer>,
) -> block_overlay::Result<CompactedSection> {
    let ladder = Ladder {
        gate: None,
        ..Ladder::default()
    };
    let strategy = SummarizingBlockCompaction {
        summarizer,
        ladder,
        instructions: Some("Prices first.".to_owned()),
    };
    let turn_map = TurnMap::from_messages(&record.messages);
    let section = strategy.keep_compacted(record, &turn_map, config, false);
    Ok(block_on(section)?.unwrap())
}

#[test]
fn a_model_digests_all_turns_in_one_message() {
    let record = turns("a", 40, 30);
    let model = Scripted::new([Answer::text("Forty questions were answered.")]);
    let section = summarized(&record, &config(), Arc::new(model.clone())).unwrap();
    assert_eq!(
        texts(&section.messages),
        ["[Summary] Forty questions were answered."]
    );
    assert_eq!(
        (
            section.range.indices().len(),
            section.omitted,
            model.calls()
        ),
        (40, None, 1)
    );
}

#[test]
fn a_summary_never_exceeds_its_tokens() {
    for tokens in [20, 60, 200, 2_000] {
        for answer in [
            Answer::HeadCut,
            Answer::Longer,
            Answer::fail("down"),
            Answer::Empty,
        ] {
            let config = summary_tokens(tokens);
            let model = Arc::new(Scripted::new([answer.clone()]));
            let section = summarized(&turns("a", 40, 30), &config, model).unwrap();
            let cost = COUNTER.messages(&section.messages);
            assert!(cost <= tokens, "{answer:?}: {cost} of {tokens}");
            assert!(
                !section.messages.is_empty() || section.omitted.is_some(),
                "{answer:?}"
            );
        }
    }
}

#[test]
fn a_middle_too_short_for_a_summary_is_one_liners() {
    let record = record("a", vec![user("Hi.")]);
    let model = Arc::new(Scripted::head_cut());
    let section = summarized(&record, &config(), model).unwrap();
    assert_eq!(texts(&section.messages), ["[Summary] User: Hi."]);
}

#[test]
fn an_extract_needs_no_model() {
    let section = summarized(
        &turns("a", 40, 30),
        &config(),
        Arc::new(ExtractiveSummarizer::new()),
    )
    .unwrap();
    assert!(section.messages[0].text().contains("question 39"));
}

/// A summarizer that shows the instructions that it was given.
#[derive(Debug)]
struct Instructed;

#[async_trait::async_trait]
impl Summarizer for Instructed {
    fn id(&self) -> &str {
        "instructed@1"
    }

    async fn summarize(
        &self,
        request: &SummaryRequest<'_>,
    ) -> Result<summarize_escalation::SummarizerResponse, summarize_escalation::Error> {
        let text = request.instructions.unwrap_or("none").to_owned();
        Ok(summarize_escalation::SummarizerResponse::new(text))
    }
}

#[test]
fn a_summarizer_is_given_the_instructions() {
    let section = summarized(&turns("a", 40, 30), &config(), Arc::new(Instructed)).unwrap();
    assert_eq!(texts(&section.messages), ["[Summary] Prices first."]);
}

#[test]
fn one_liners_are_a_summarizer_too() {
    let messages: Vec<Message> = (0..30)
        .flat_map(|n| {
            let ask = Message::user(format!("Question {n}?"));
            [
                ask,
                Message::assistant(format!(
                    "Answer {n} of many words. {}",
                    "So it is. ".repeat(40)
                )),
            ]
        })
        .collect();
    let entries = log(messages, &COUNTER);
    let source: Vec<Source<'_>> = entries.iter().map(Source::from).collect();
    let mut request = SummaryRequest::new(&source, &COUNTER);
    request.target_tokens = 2_000;
    let ladder = Ladder::default();
    let outcome = block_on(escalate(&OneLineSummarizer, &ladder, &request)).unwrap();
    assert_eq!(outcome.text.lines().count(), 30);
    assert!(
        outcome
            .text
            .starts_with("User: Question 0? → Answer 0 of many words.")
    );
    request.target_tokens = 200;
    let outcome = block_on(escalate(&OneLineSummarizer, &ladder, &request)).unwrap();
    let shown = outcome.text.lines().count() - 1;
    assert!(outcome.tokens_out <= 200);
    assert!(
        outcome
            .text
            .ends_with(&format!("[… left out: {} turns …]", 30 - shown))
    );
}
