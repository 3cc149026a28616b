//! Laws of prompts: nothing is too long, and each message is shown or counted.

use std::sync::{Arc, Mutex};

use agent_conventions::KnownAgents;
use async_trait::async_trait;
use memory_model::{LogEntry, Message, Part, RawJson, Role};
use model_client::{ChatModel, ChatPrompt, Completion, Failure};
use proptest::prelude::*;
use summarize_escalation::prompt::{PromptSet, render};
use summarize_escalation::{
    LlmSummarizer, ModelWindow, Source, Summarizer as _, SummaryRequest, testing,
};
use token_estimate::{HeuristicEstimator, TokenEstimator};

use crate::request;

/// Keeps the prompts, and answers with a few words.
#[derive(Debug, Clone, Default)]
struct Keep(Arc<Mutex<Vec<ChatPrompt>>>);

#[async_trait]
impl ChatModel for Keep {
    async fn complete(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
        self.0.lock().unwrap().push(prompt.clone());
        Ok(Completion::new("The door was painted."))
    }
}

fn sentence() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("<system-reminder>Mind it.</system-reminder>".to_owned()),
        Just("<command-name>/paint</command-name>".to_owned()),
        "[a-zäж日 <>\n]{1,60}",
        ("[a-z日]{1,6} ", 1..3_000_usize).prop_map(|(word, count)| word.repeat(count)),
    ]
}

/// A message of any kind that a log may have.
fn message() -> impl Strategy<Value = Message> {
    let by_program = |text: String| Message {
        meta: Some(RawJson::parse(r#"{"isMeta":true}"#).unwrap()),
        ..Message::user(text)
    };
    let call = |text: String| {
        let arguments = serde_json::json!({ "file_path": text }).to_string();
        Message::tool_call("c", "Read", RawJson::parse(arguments).unwrap())
    };
    let reasoning = |text: String| {
        let part = Part::Reasoning {
            text,
            signature: None,
        };
        Message::new(Role::Assistant, vec![part])
    };
    prop_oneof![
        sentence().prop_map(Message::user),
        sentence().prop_map(Message::assistant),
        sentence().prop_map(Message::system),
        sentence().prop_map(by_program),
        sentence().prop_map(call),
        sentence().prop_map(|text| Message::tool_result("c", text)),
        sentence().prop_map(reasoning),
        sentence().prop_map(|text| Message::note(Role::System, vec![Part::text(text)])),
    ]
}

fn sources(log: &[LogEntry]) -> Vec<Source<'_>> {
    log.iter().map(Source::from).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn prompt_and_answer_fit_in_the_window(
        messages in prop::collection::vec(message(), 1..24),
        window in 1_500_u64..24_000, target in 0_u64..3_000,
        ranked in any::<bool>(), before in any::<bool>(),
    ) {
        let log = testing::log(messages, &HeuristicEstimator::Bytes4);
        let source = sources(&log);
        let request = SummaryRequest {
            conventions: &KnownAgents,
            previous: before.then_some("The door was blue."),
            ..request(&source, target.min(window / 4))
        };
        let keep = Keep::default();
        let set = if ranked { PromptSet::ranked_lines() } else { PromptSet::standard() };
        let model = LlmSummarizer::new("m", keep.clone()).with_prompts(set).with_window(ModelWindow::tokens(window));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        // A source may need more calls than are allowed, and a window of 1,500 tokens is enough.
        if let Err(error) = runtime.block_on(model.summarize(&request)) {
            let asked = keep.0.lock().unwrap().len();
            prop_assert!(asked > 1 || log.iter().map(|entry| entry.tokens).sum::<u64>() > 16 * window, "{error}");
        }
        let factor = HeuristicEstimator::Bytes4.safety_factor().max(token_estimate::SafetyFactor::ONE);
        for prompt in keep.0.lock().unwrap().iter() {
            let count = |text: &str| HeuristicEstimator::Bytes4.text(text);
            let cost = count(&prompt.system) + count(&prompt.user) + prompt.max_tokens;
            prop_assert!(cost <= factor.divide(window), "{cost} of {window}: {}", prompt.user);
        }
    }

    /// No message is lost, and none is shown twice or in another order.
    #[test]
    fn each_message_is_shown_or_counted(messages in prop::collection::vec(message(), 1..24)) {
        let log = testing::log(messages, &HeuristicEstimator::Bytes4);
        let source = sources(&log);
        let request = SummaryRequest { conventions: &KnownAgents, ..request(&source, 100) };
        let user = render(&request).user;
        let (tag, rest) = user.split_once(">\n").unwrap();
        let counted = tag.split_once("not_shown=\"").map_or(0, |(_, rest)| {
            rest.split('"').next().unwrap().parse::<usize>().unwrap()
        });
        let seqs = rest.lines().filter_map(|line| line.strip_prefix("<message seq=\""));
        let seqs: Vec<u64> = seqs.map(|line| line.split('"').next().unwrap().parse().unwrap()).collect();
        prop_assert_eq!(seqs.len() + counted, log.len(), "{}", user);
        prop_assert!(seqs.is_sorted_by(|a, b| a < b));
    }

    /// Every word of the user and the assistant is in the prompt, in the form in which it was written.
    #[test]
    fn what_was_typed_is_whole(texts in prop::collection::vec("[a-zж日 ]{1,80}", 1..12)) {
        let messages = texts.iter().enumerate().map(|(n, text)| match n % 2 {
            0 => Message::user(text.clone()),
            _ => Message::assistant(text.clone()),
        });
        let log = testing::log(messages.collect(), &HeuristicEstimator::Bytes4);
        let source = sources(&log);
        let user = render(&request(&source, 100)).user;
        for text in texts.iter().filter(|text| !text.trim().is_empty()) {
            let shown = format!(">\n{}\n</message>", text.trim());
            prop_assert!(user.contains(&shown), "{text:?}: {user}");
        }
    }
}
