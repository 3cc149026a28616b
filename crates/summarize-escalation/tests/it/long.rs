//! Sources that are longer than a summarizer's window.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use memory_model::{LogEntry, Message};
use model_client::{ChatModel, ChatPrompt, Completion, Failure};
use summarize_escalation::prompt::PromptSet;
use summarize_escalation::{
    ErrorKind, Ladder, LlmSummarizer, ModelWindow, Overflow, Source, Summarizer, SummaryRequest,
    Tier, escalate, testing,
};
use token_estimate::{HeuristicEstimator, SafetyFactor, TokenEstimator};

use crate::request;

/// Answers with the marks `m123m` in the prompt, and keeps what it cost.
#[derive(Debug, Clone, Default)]
struct Marks(Arc<Mutex<Vec<u64>>>);

#[async_trait]
impl ChatModel for Marks {
    async fn complete(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
        let cost = HeuristicEstimator::Bytes4.text(&prompt.system)
            + HeuristicEstimator::Bytes4.text(&prompt.user);
        self.0.lock().unwrap().push(cost + prompt.max_tokens);
        // What was before is no part of the source.
        let source = prompt.user.rsplit("</previous_context>").next();
        let mut marks: Vec<&str> = source
            .unwrap_or_default()
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| word.len() > 2 && word.starts_with('m') && word.ends_with('m'))
            .filter(|word| word[1..word.len() - 1].bytes().all(|b| b.is_ascii_digit()))
            .collect();
        marks.dedup();
        Ok(Completion::new(format!("{}.", marks.join(" "))))
    }
}

fn log(messages: usize, words: usize) -> Vec<LogEntry> {
    let messages = (0..messages).map(|n| Message::user(format!("m{n}m {}", "word ".repeat(words))));
    testing::log(messages.collect(), &HeuristicEstimator::Bytes4)
}

fn sources(log: &[LogEntry]) -> Vec<Source<'_>> {
    log.iter().map(Source::from).collect()
}

#[tokio::test]
async fn a_long_source_is_summarised_in_parts_without_omissions() {
    let log = log(60, 200);
    let source = sources(&log);
    let request = request(&source, 800);
    let marks = Marks::default();
    let model = LlmSummarizer::new("m", marks.clone()).with_window(ModelWindow::tokens(4_000));
    let outcome = escalate(&model, &Ladder::default(), &request)
        .await
        .unwrap();
    assert_eq!((outcome.tier, outcome.calls), (Tier::Normal, 1));
    let costs = marks.0.lock().unwrap().clone();
    assert_eq!(outcome.model_calls as usize, costs.len());
    assert!(costs.len() > 3, "{costs:?}");
    assert!(costs.iter().all(|cost| *cost <= 4_000), "{costs:?}");
    for n in 0..60 {
        assert!(
            outcome.text.contains(&format!("m{n}m")),
            "{n}: {}",
            outcome.text
        );
    }
    assert_eq!(outcome.left_out, None);
    assert_ne!(model.id(), LlmSummarizer::new("m", marks).id());
}

#[tokio::test]
async fn a_source_that_fits_takes_one_call() {
    let log = log(3, 20);
    let source = sources(&log);
    let request = request(&source, 40);
    let marks = Marks::default();
    let model = LlmSummarizer::new("m", marks.clone()).with_window(ModelWindow::tokens(4_000));
    model.summarize(&request).await.unwrap();
    assert_eq!(marks.0.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_message_longer_than_the_window_is_shortened_and_says_so() {
    #[derive(Debug, Clone, Default)]
    struct Keep(Arc<Mutex<Vec<String>>>);
    #[async_trait]
    impl ChatModel for Keep {
        async fn complete(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
            self.0.lock().unwrap().push(prompt.user.clone());
            Ok(Completion::new("short"))
        }
    }
    let mut log = log(2, 20);
    log.extend(self::log(1, 20_000));
    log[2].seq = memory_model::Seq(3);
    let source = sources(&log);
    let request = request(&source, 200);
    let keep = Keep::default();
    let model = LlmSummarizer::new("m", keep.clone()).with_window(ModelWindow::tokens(3_000));
    model.summarize(&request).await.unwrap();
    let prompts = keep.0.lock().unwrap().clone();
    assert!(prompts.iter().any(|p| p.contains(": expand message 3 …]")));
    assert!(!prompts.iter().any(|p| p.contains("expand message 1")));
}

#[tokio::test]
async fn too_long_is_an_error_by_policy() {
    let log = log(60, 200);
    let source = sources(&log);
    let request = request(&source, 800);
    for window in [
        ModelWindow {
            overflow: Overflow::Fail,
            ..ModelWindow::tokens(4_000)
        },
        ModelWindow {
            max_calls: 3,
            ..ModelWindow::tokens(4_000)
        },
        ModelWindow::tokens(10),
    ] {
        let model = LlmSummarizer::new("m", Marks::default()).with_window(window);
        let error = model.summarize(&request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLong);
        insta::allow_duplicates! {
            assert!(error.to_string().starts_with("messages 1-60 are too long for the window of"));
        }
        // The ladder goes on without a model.
        let outcome = escalate(&model, &Ladder::default(), &request)
            .await
            .unwrap();
        assert_eq!(outcome.tier, Tier::Extractive);
    }
}

#[tokio::test]
async fn an_empty_partial_summary_loses_no_source() {
    #[derive(Debug)]
    struct Nothing;
    #[async_trait]
    impl ChatModel for Nothing {
        async fn complete(&self, _: &ChatPrompt) -> Result<Completion, Failure> {
            Ok(Completion::new(""))
        }
    }
    let log = log(60, 200);
    let source = sources(&log);
    let request = request(&source, 800);
    let model = LlmSummarizer::new("m", Nothing).with_window(ModelWindow::tokens(4_000));
    let error = model.summarize(&request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Provider);
}

/// The whole prompt counts, as it is, and 24 tokens of framing.
#[tokio::test]
async fn a_source_fits_with_an_answer_of_4096_tokens() {
    let log = log(40, 100);
    let source = sources(&log);
    let estimator = HeuristicEstimator::Bytes3_5;
    // The answer may take half as much again.
    let request = SummaryRequest {
        target_tokens: 4_096 / 3 * 2 + 1,
        ..SummaryRequest::new(&source, &estimator)
    };
    let prompt = PromptSet::numbered_sections().render(&request);
    let cost = estimator.text(&prompt.system) + estimator.text(&prompt.user);
    let history: u64 = log
        .iter()
        .map(|entry| estimator.text(&entry.message.text()))
        .sum();
    let factor = estimator.safety_factor().max(SafetyFactor::ONE);
    let smallest = (0..20_000)
        .find(|window: &u64| factor.divide(window.saturating_sub(24)) >= cost + 4_096)
        .unwrap();
    assert!(history + 100 <= smallest - 4_096, "the whole window");
    for (tokens, fits) in [(smallest - 1, false), (smallest, true)] {
        let window = ModelWindow {
            overflow: Overflow::Fail,
            ..ModelWindow::tokens(tokens)
        };
        let model = LlmSummarizer::new("m", Marks::default())
            .with_prompts(PromptSet::numbered_sections())
            .with_window(window);
        assert_eq!(model.summarize(&request).await.is_ok(), fits, "{tokens}");
    }
}
