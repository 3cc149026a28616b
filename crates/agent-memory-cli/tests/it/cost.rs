//! The cost of a model's calls, before a run and after it, beside the counts of the server.

use std::sync::{Arc, Mutex};

use agent_memory::tokens::estimator;
use serde_json::{Value, json};
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

use crate::providers::{Writer, run};
use crate::support::{Home, fixture, is};

/// Sums over all requests that a server has answered.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Counted {
    calls: u64,
    input: u64,
    output: u64,
    cached: u64,
}

/// A model that counts as OpenAI's do, with OpenAI's tokenizer. A tenth of each prompt is read from its cache.
struct Counts(Writer, Arc<Mutex<Counted>>);

impl Respond for Counts {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let estimator = estimator("o200k").unwrap();
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let messages = body["messages"].as_array().unwrap();
        let texts = messages
            .iter()
            .map(|message| message["content"].as_str().unwrap());
        let text = self.0.text(&body);
        let (input, output) = (
            texts.map(|text| estimator.text(text)).sum::<u64>(),
            estimator.text(&text),
        );
        let mut counted = self.1.lock().unwrap();
        counted.calls += 1;
        counted.input += input;
        counted.output += output;
        counted.cached += input / 10;
        ResponseTemplate::new(200).set_body_json(json!({
            "object": "chat.completion",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
            "usage": {"prompt_tokens": input, "completion_tokens": output,
                "prompt_tokens_details": {"cached_tokens": input / 10}},
        }))
    }
}

/// Starts a model that writes a part of its source: the number is the divisor.
async fn model(part: usize) -> (MockServer, Arc<Mutex<Counted>>) {
    let (server, counted) = (MockServer::start().await, Arc::<Mutex<Counted>>::default());
    let writer = Writer("Goal: ship the release. Kept: the plan.", part);
    let mock = Mock::given(method("POST")).respond_with(Counts(writer, Arc::clone(&counted)));
    mock.mount(&server).await;
    (server, counted)
}

/// Returns whether a number is between these percentages of an estimate.
fn within(counted: u64, estimate: &Value, percent: std::ops::RangeInclusive<u64>) -> bool {
    percent.contains(&(counted * 100 / estimate.as_u64().unwrap().max(1)))
}

/// Asserts that the server's counts are in the stated ranges around an estimate.
fn assert_near(estimate: &Value, counted: &Counted, told: &str) {
    let told = format!("{told}: {estimate} {counted:?}");
    assert!(counted.calls > 3, "{told}");
    assert!(
        within(counted.calls, &estimate["calls"], 85..=115),
        "{told}"
    );
    assert!(
        within(counted.input, &estimate["input"], 75..=110),
        "{told}"
    );
    // The length of answers is the model's choice: the estimate has the length that it is asked for.
    assert!(
        within(counted.output, &estimate["output"], 5..=120),
        "{told}"
    );
}

#[tokio::test]
async fn a_dry_run_tells_the_calls_and_tokens_of_the_run() {
    for (file, window, part) in [
        ("claude-code/release-week", None, 10),
        ("claude-code/release-week", None, 5),
        ("claude-code/release-week", Some("6000"), 10),
        ("jsonl/huge-results", None, 10),
    ] {
        let (server, counted) = model(part).await;
        let url = format!("{}/v1", server.uri());
        let home = Home::new();
        let (path, mut options) = (fixture(file), vec!["--summarizer", "openai:gpt-5-mini"]);
        if let Some(tokens) = window {
            options.extend(["--model-window", tokens]);
        }
        // A dry run needs neither a key nor a server.
        let dry = home.json(&[&["compact", &path, "--dry-run"][..], &options].concat());
        assert!(!home.database().exists());
        assert_eq!(dry["spent"]["calls"], 0);
        options.extend(["--base-url", &url]);
        let compact = run(
            &home,
            &[&["--json", "compact", &path][..], &options].concat(),
        )
        .ended(0);
        let (compact, counted) = (compact.json(), *counted.lock().unwrap());
        assert_near(
            &dry["estimate"],
            &counted,
            &format!("{file} {window:?} {part}"),
        );
        assert!(compact.get("estimate").is_none());
        // The result has the server's own counts.
        is(
            &compact["spent"],
            json!({"calls": counted.calls, "input": counted.input, "cached_input": counted.cached,
                "output": counted.output, "estimated_calls": 0, "unanswered_calls": 0}),
        );
        // 0.25 dollars for a million tokens in, 0.025 for cached ones, 2 for those out.
        let (cached, input) = (counted.cached as f64, counted.input as f64);
        let usd = ((input - cached) * 0.25 + cached * 0.025 + counted.output as f64 * 2.0) / 1e6;
        let saved = cached * (0.25 - 0.025) / 1e6;
        for (name, expected) in [("usd", usd), ("saved_usd", saved)] {
            let told = compact["spent"][name].as_f64().unwrap();
            assert!(
                (told - expected).abs() < 1e-9,
                "{name}: {told} is not {expected}"
            );
        }
        is(
            &compact["spent"]["models"][0],
            json!({"model": "gpt-5-mini", "prices": {"input": 0.25, "cached_input": 0.025, "output": 2.0,
                "as_of": "2026-11-23", "source": "https://developers.openai.com/api/docs/pricing"}}),
        );
    }
}

#[tokio::test]
async fn the_cost_of_redo_is_told_before_and_afterwards() {
    let home = Home::new();
    home.ok(&["compact", &fixture("claude-code/release-week")]);
    let key = home.session();
    let (server, counted) = model(10).await;
    let url = format!("{}/v1", server.uri());
    let options = ["--summarizer", "ollama:qwen3:8b", "--base-url", &url];
    let dry = home.json(&[&["redo", &key, "--dry-run"][..], &options].concat());
    assert!(server.received_requests().await.unwrap().is_empty());
    assert!(dry["plan"]["nodes"].as_array().unwrap().len() > 1);
    // Without a model the plan is told alone.
    let plan = home.json(&["redo", &key, "--dry-run"]);
    assert_eq!((&plan["plan"], plan.get("estimate")), (&dry["plan"], None));
    let ran = run(&home, &[&["redo", &key][..], &options].concat()).ended(0);
    let counted = *counted.lock().unwrap();
    assert_near(&dry["estimate"], &counted, "redo");
    // A model of one's own has no price.
    assert_eq!(
        (&dry["estimate"]["usd"], &dry["estimate"]["saved_usd"]),
        (&Value::Null, &Value::Null)
    );
    ran.shows(&format!("{} calls of qwen3:8b in ", counted.calls));
    ran.shows("money not known: the table of models has no prices of qwen3:8b");
}

#[test]
fn a_dry_run_says_in_words_what_it_would_cost() {
    let home = Home::new();
    let file = fixture("claude-code/release-week");
    let dry = |model: &str| home.ok(&["compact", &file, "--dry-run", "--summarizer", model]);
    let priced = dry("anthropic:claude-haiku-4-5");
    priced.shows("A run would make about 4 calls of claude-haiku-4-5: about ");
    priced.shows(" out; $0.1");
    priced.shows(
        "list prices of https://platform.claude.com/docs/en/about-claude/pricing, 2026-11-23",
    );
    priced.shows("The next iteration would make");
    let local = dry("ollama:qwen3:8b");
    local.shows("money not known: the table of models has no prices of qwen3:8b");
    assert!(!local.out.contains('$'), "{}", local.out);
    // Without a model there is nothing to pay.
    let none = home.ok(&["compact", &file, "--dry-run"]);
    assert!(!none.out.contains("call"), "{}", none.out);
}

#[tokio::test]
async fn calls_without_an_answer_are_told_apart() {
    let home = Home::new();
    let server = MockServer::start().await;
    let refused = json!({"error": {"message": "no such model", "code": "model_not_found"}});
    let mock = Mock::given(method("POST"));
    mock.respond_with(ResponseTemplate::new(404).set_body_json(refused))
        .mount(&server)
        .await;
    let url = format!("{}/v1", server.uri());
    let file = fixture("claude-code/release-week");
    let model = ["--summarizer", "openai:gpt-5-mini", "--base-url", &url];
    let ran = run(&home, &[&["compact", &file][..], &model].concat()).ended(0);
    let calls = server.received_requests().await.unwrap().len();
    ran.shows(&format!(
        "0 tokens in and 0 out; $0; {calls} calls had no answer"
    ));
}
