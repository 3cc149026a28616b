//! Summaries by a model, requested on the command line, with a local server.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wiremock::matchers::{body_partial_json, header, method, path};
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

use crate::endpoint::{Answer, Endpoint};
use crate::support::{Home, Ran, fixture, has, is, tells, words};

const KEY: &str = "sk-very-secret-0123456789";

pub(crate) fn completion(text: &str, finish: &str) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_json(json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": finish,
            "message": {"role": "assistant", "content": text, "refusal": null}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }))
}

/// Returns an answer with this text in the form of the API that a request is for.
fn answered(request: &Request, text: &str) -> ResponseTemplate {
    let path = request.url.path();
    let body = match () {
        () if path.ends_with("/messages") => json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": text}], "usage": {"input_tokens": 100, "output_tokens": 10},
        }),
        () if path.ends_with(":streamGenerateContent") => json!({
            "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 10},
        }),
        () if path.ends_with("/responses") => json!({
            "object": "response", "status": "completed", "error": null,
            "output": [{"type": "message", "content": [{"type": "output_text", "text": text}]}],
        }),
        () => return completion(text, "stop"),
    };
    ResponseTemplate::new(200).set_body_json(body)
}

/// Returns the longest text in a request: the source of a summary.
fn longest(value: &Value) -> &str {
    match value {
        Value::String(text) => text,
        Value::Array(all) => all
            .iter()
            .map(longest)
            .max_by_key(|text| text.len())
            .unwrap_or(""),
        Value::Object(all) => all
            .values()
            .map(longest)
            .max_by_key(|text| text.len())
            .unwrap_or(""),
        _ => "",
    }
}

/// A model with summaries that repeat the names in its source: file names, identifiers and codes. The number is the
/// part of the source that is kept.
pub(crate) struct Writer(pub(crate) &'static str, pub(crate) usize);

impl Writer {
    /// Returns the summary for a request.
    pub(crate) fn text(&self, body: &Value) -> String {
        let source = longest(body);
        let named = |word: &&str| {
            let marked = word
                .chars()
                .any(|c| "/_:#".contains(c) || c.is_ascii_digit());
            // The tags around the source are none of its words.
            marked && !word.contains("conversation_segment")
        };
        let mut words: Vec<&str> = source
            .split(|c: char| c.is_whitespace() || "\"',;()[]{}<>`".contains(c))
            .filter(named)
            .collect();
        words.sort_unstable();
        words.dedup();
        let mut text = self.0.to_owned();
        // That part of the source at most; from all over the alphabet.
        let step =
            1 + words.iter().map(|word| word.len() + 1).sum::<usize>() * self.1 / source.len();
        for word in words.iter().step_by(step) {
            text.push(' ');
            text.push_str(word);
        }
        text.push('.');
        text
    }
}

impl Respond for Writer {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        answered(request, &self.text(&body))
    }
}

pub(crate) async fn server(answer: impl Respond + 'static) -> MockServer {
    let server = MockServer::start().await;
    let mock = Mock::given(method("POST")).and(path("/v1/chat/completions"));
    mock.respond_with(answer).mount(&server).await;
    server
}

/// Runs a command with a key in the environment. Asserts that the key is never printed.
pub(crate) fn run(home: &Home, arguments: &[&str]) -> Ran {
    let mut command = home.command(arguments);
    let ran = Ran::from(command.env("OPENAI_API_KEY", KEY).output().unwrap());
    assert!(
        !ran.out.contains(KEY) && !ran.err.contains(KEY),
        "{}",
        ran.err
    );
    ran
}

#[tokio::test]
async fn a_model_writes_the_summaries_and_redo_replaces_provisional_ones() {
    let home = Home::new();
    let file = fixture("claude-code/release-week");
    // First the key is refused: the program goes on without the model, and says so.
    let wrong = json!({"error": {"message": format!("Incorrect API key: {KEY}"), "code": "invalid_api_key"}});
    let down = server(ResponseTemplate::new(401).set_body_json(wrong)).await;
    let url = format!("{}/v1", down.uri());
    let model = ["--summarizer", "openai:small-model", "--base-url", &url];
    let ran = run(&home, &[&["--json", "compact", &file][..], &model].concat()).ended(0);
    let compact = ran.json();
    let leaf = compact["summaries"]["leaf"].as_u64().unwrap();
    let made = leaf + compact["summaries"]["condensed"].as_u64().unwrap();
    assert!(made > 0);
    assert_eq!(compact["provisional"], made);
    tells(&compact["failure"], "check the key");
    ran.says("written without the model");
    ran.says("redo --summarizer openai:small-model");
    // The breaker of the session opened after three calls, and those beside them.
    assert!(down.received_requests().await.unwrap().len() <= 6);

    let key = compact["session"].as_str().unwrap();
    let plan = home.json(&["redo", key, "--dry-run"]);
    assert_eq!(plan["plan"]["nodes"].as_array().unwrap().len() as u64, made);
    assert_eq!(plan["stop_reason"], "dry_run");
    // With the model still down nothing changes.
    let ran = run(&home, &[&["--json", "redo", key][..], &model].concat()).ended(1);
    assert_eq!(ran.error()["kind"], "summarizer");
    assert_eq!(ran.json()["provisional"]["left"], made);

    let well = server(Writer("Goal: ship the release. Kept: the plan.", 10)).await;
    let url = format!("{}/v1", well.uri());
    let model = ["--summarizer", "openai:small-model", "--base-url", &url];
    let ran = run(&home, &[&["--json", "redo", key][..], &model].concat()).ended(0);
    let redo = ran.json();
    has(
        &redo,
        "session before after provisional rebuilt replaced calls failures stop_reason verify",
    );
    assert_eq!(
        redo["provisional"],
        json!({"found": made, "redone": made, "left": 0})
    );
    assert_eq!(redo["stop_reason"], "done");
    assert_eq!(redo["verify"]["ok"], true);
    let new = redo["replaced"][0]["new"].as_str().unwrap();
    let described = home.json(&["describe", key, new]);
    is(
        &described,
        json!({"provisional": false, "model": "small-model"}),
    );
    tells(&described["content"], "ship the release");
    let old = redo["replaced"][0]["old"].as_str().unwrap();
    assert_eq!(home.json(&["describe", key, old])["provisional"], true);
    let again = run(&home, &[&["redo", key][..], &model].concat());
    again.shows("Nothing is left to do");
    assert_eq!(home.json(&["verify"])["ok"], true);
}

#[tokio::test]
async fn the_request_is_the_providers_and_carries_instructions_and_key() {
    let home = Home::new();
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/v1/chat/completions"))
        .and(header("authorization", "Bearer given-on-the-line"))
        .and(body_partial_json(json!({"model": "qwen3:8b"})))
        .respond_with(Writer("Short.", 10))
        .expect(1..)
        .mount(&server)
        .await;
    let url = format!("{}/v1/", server.uri());
    let ran = run(
        &home,
        &[
            "--json",
            "compact",
            &fixture("claude-code/release-week"),
            "--summarizer",
            "ollama:qwen3:8b",
            "--base-url",
            &url,
            "--api-key",
            "given-on-the-line",
            "--instructions",
            "Mind the changelog.",
        ],
    )
    .ended(0);
    let compact = ran.json();
    is(&compact, json!({"provisional": 0, "failure": null}));
    assert!(!ran.out.contains("given-on-the-line") && !ran.err.contains("given-on-the-line"));
    let requests = server.received_requests().await.unwrap();
    assert!(String::from_utf8_lossy(&requests[0].body).contains("Mind the changelog."));
}

#[tokio::test]
async fn the_fallback_writes_when_the_cheap_model_fails() {
    let home = Home::new();
    let server = MockServer::start().await;
    Mock::given(body_partial_json(json!({"model": "small"})))
        .respond_with(completion("Cut off in the", "length"))
        .mount(&server)
        .await;
    Mock::given(body_partial_json(json!({"model": "large"})))
        .respond_with(Writer("Written by the large one.", 7))
        .mount(&server)
        .await;
    let url = format!("{}/v1", server.uri());
    let ran = run(
        &home,
        &words(&format!(
            "--json compact {} --summarizer compatible:small --fallback-model large --base-url {url}",
            fixture("claude-code/release-week")
        )),
    ).ended(0);
    let compact = ran.json();
    assert_eq!(compact["provisional"], 0);
    let (key, summary) = (&compact["session"], &compact["summary"]);
    let described = home.json(&["describe", key.as_str().unwrap(), summary.as_str().unwrap()]);
    assert_eq!(described["model"], "large");
}

/// A model that tells of its source in plain words, and names no file, identifier or code.
struct Vague;

impl Respond for Vague {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        // The instructions may be longer than the summaries to merge.
        let source = longest(body["messages"].as_array().unwrap().last().unwrap());
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for word in source.split(|c: char| c.is_whitespace() || ".,".contains(c)) {
            if word.len() > 5 && word.bytes().all(|c| c.is_ascii_lowercase()) {
                *counts.entry(word).or_default() += 1;
            }
        }
        let mut words: Vec<(&str, usize)> = counts.into_iter().collect();
        words.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let words: Vec<&str> = words.into_iter().map(|(word, _)| word).take(24).collect();
        let (first, rest) = words.split_at(words.len() / 2);
        // A merge is in other words than the summaries before it.
        let text = match source.contains("The work went on") {
            true => format!(
                "Attention was given to {} at first. Later there was {} to think of.",
                first.join(" or "),
                rest.join(" or ")
            ),
            false => format!(
                "The work went on with {}. It came to {} in the end.",
                first.join(" and "),
                rest.join(" and ")
            ),
        };
        answered(request, &text)
    }
}

/// Compacts with a vague model. Returns the result and the prompts.
async fn vaguely(arguments: &[&str]) -> (Value, Vec<String>) {
    let home = Home::new();
    let server = server(Vague).await;
    let url = format!("{}/v1", server.uri());
    let file = fixture("claude-code/release-week");
    let model = ["--summarizer", "openai:m", "--base-url", &url];
    let ran = run(
        &home,
        &[&["--json", "compact", &file][..], &model, arguments].concat(),
    )
    .ended(0);
    let requests = server.received_requests().await.unwrap();
    let bodies = requests.iter().map(|request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let system = body["messages"][0]["content"].as_str().unwrap();
        format!(
            "{system}{}",
            body["messages"][1]["content"].as_str().unwrap()
        )
    });
    (ran.json(), bodies.collect())
}

#[tokio::test]
async fn retention_prompts_and_window_are_settings() {
    // A summary that names nothing of its source is not taken, unless no terms are asked for.
    let (strict, asked) = vaguely(&[]).await;
    assert!(strict["provisional"].as_u64().unwrap() > 0, "{strict}");
    assert!(asked.iter().all(|body| !body.contains("Primary Request")));
    let longest = |bodies: &[String]| bodies.iter().map(String::len).max().unwrap();
    assert!(longest(&asked) > 45_000, "{}", longest(&asked));

    let (open, asked) = vaguely(&words(
        "--min-retained 0 --prompts numbered-sections --model-window 16000",
    ))
    .await;
    assert_eq!(open["provisional"], 0, "{open}");
    assert!(
        asked
            .iter()
            .all(|body| body.contains("Primary Request and Intent"))
    );
    assert!(longest(&asked) < 45_000, "{}", longest(&asked));

    let (all, _) = vaguely(&["--min-retained", "1"]).await;
    assert!(all["provisional"].as_u64() >= strict["provisional"].as_u64());
}

#[test]
fn invalid_summarizers_are_usage_errors() {
    let home = Home::new();
    let file = fixture("claude-code/release-week");
    let wrong: [(&[&str], &str); 18] = [
        (&["--summarizer", "llama"], "there is no summarizer llama"),
        (
            &["--summarizer", "nobody:m"],
            "openai, responses, anthropic, gemini, ollama, compatible",
        ),
        (&["--summarizer", "openai:"], "there is no summarizer"),
        (&["--summarizer", "openai:m"], "set OPENAI_API_KEY"),
        (&["--summarizer", "anthropic:m"], "set ANTHROPIC_API_KEY"),
        (
            &["--summarizer", "gemini:m"],
            "set GEMINI_API_KEY or GOOGLE_API_KEY",
        ),
        (&["--summarizer", "compatible:m"], "give --base-url"),
        (
            &["--summarizer", "ollama:m", "--base-url", "nowhere"],
            "is not a URL",
        ),
        (&["--fallback-model", "m"], "--summarizer PROVIDER:MODEL"),
        (&["--prompts", "checkpoint"], "--prompts needs a model"),
        (&["--model-window", "9000"], "--model-window needs a model"),
        (&["--min-retained", "0.5"], "--min-retained needs a model"),
        (
            &["--instructions", "Be brief."],
            "--instructions needs a model",
        ),
        (&["--idle-timeout", "9"], "--idle-timeout needs a model"),
        (&["--model-calls", "2"], "--model-calls needs a model"),
        (&["--reasoning", "low"], "--reasoning needs a model"),
        (&["--base-url", "http://x"], "--base-url needs a model"),
        (&["--api-key", "k"], "--api-key needs a model"),
    ];
    for (arguments, expected) in wrong {
        let ran = home.run(&[&["--json", "compact", &file][..], arguments].concat());
        assert_eq!(ran.code, 2, "{arguments:?} {}", ran.err);
        assert!(ran.err.contains(expected), "{arguments:?} {}", ran.err);
        assert_eq!(ran.error()["kind"], "usage");
    }
    assert!(!home.database().exists(), "a usage error makes no database");
    home.ok(&["compact", &file]);
    let ran = home.fails(&["redo", &home.session()], 2);
    ran.says("redo needs a model");
}

#[tokio::test]
async fn every_provider_is_asked_by_its_own_api_with_the_key_of_the_environment() {
    let file = fixture("claude-code/release-week");
    for (provider, variable, place, header_name, value) in [
        (
            "openai",
            "OPENAI_API_KEY",
            "/v1/chat/completions",
            "authorization",
            format!("Bearer {KEY}"),
        ),
        (
            "responses",
            "OPENAI_API_KEY",
            "/v1/responses",
            "authorization",
            format!("Bearer {KEY}"),
        ),
        (
            "anthropic",
            "ANTHROPIC_API_KEY",
            "/v1/messages",
            "x-api-key",
            KEY.to_owned(),
        ),
        (
            "gemini",
            "GEMINI_API_KEY",
            "/v1/models/m:streamGenerateContent",
            "x-goog-api-key",
            KEY.to_owned(),
        ),
        (
            "gemini",
            "GOOGLE_API_KEY",
            "/v1/models/m:streamGenerateContent",
            "x-goog-api-key",
            KEY.to_owned(),
        ),
    ] {
        let server = MockServer::start().await;
        Mock::given(method("POST"))
            .and(path(place))
            .and(header(header_name, value.as_str()))
            .respond_with(Writer("Goal: ship the release. Kept: the plan.", 10))
            .expect(1..)
            .mount(&server)
            .await;
        let url = format!("{}/v1", server.uri());
        let model = format!("{provider}:m");
        let home = Home::new();
        let compact = [
            "--json",
            "compact",
            &file,
            "--summarizer",
            &model,
            "--base-url",
            &url,
        ];
        let mut command = home.command(&compact);
        let ran = Ran::from(command.env(variable, KEY).output().unwrap()).ended(0);
        assert!(
            !ran.out.contains(KEY) && !ran.err.contains(KEY),
            "{}",
            ran.err
        );
        assert_eq!(ran.json()["provisional"], 0, "{provider} {}", ran.err);
        // Without a key nothing is asked.
        let ran = home.fails(&["compact", &file, "--summarizer", &model], 2);
        ran.says(variable);
    }
}

#[tokio::test]
async fn reasoning_and_calls_are_settings() {
    let server = server(Writer("Short.", 10)).await;
    let url = format!("{}/v1", server.uri());
    let file = fixture("claude-code/release-week");
    let options = format!("--summarizer openai:m --base-url {url} --reasoning low --model-calls 2");
    let compact = format!("--json compact {file} {options}");
    run(&Home::new(), &words(&compact)).ended(0);
    for request in server.received_requests().await.unwrap() {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(body["reasoning_effort"], "low");
        // Room for the reasoning, on a server of this machine too.
        assert!(body["max_tokens"].as_u64().unwrap() >= 4_096);
    }
}

#[test]
fn a_silent_endpoint_is_left_after_the_idle_timeout() {
    let endpoint = Endpoint::start(|_| Answer::Silence);
    let file = fixture("claude-code/release-week");
    let compact = [
        "--json",
        "compact",
        &file,
        "--idle-timeout",
        "1",
        "--model-timeout",
        "600",
    ];
    let compact = [
        &compact[..],
        &["--model-attempts", "1", "--model-calls", "4"],
    ]
    .concat();
    let home = Home::new();
    let options = endpoint.asked_by(&compact);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let ran = run(&home, &options).ended(0);
    let cause = &ran.json()["model"]["causes"][0];
    assert_eq!(cause["kind"], "timed_out", "{cause}");
    tells(&ran.json()["failure"], "sent nothing for 1 s");
}

#[tokio::test]
async fn a_handoff_whose_model_fails_is_an_error_and_changes_nothing() {
    let home = Home::new();
    let file = fixture("claude-code/release-week");
    let wrong = json!({"error": {"message": "Incorrect API key", "code": "invalid_api_key"}});
    for (answer, why) in [
        (
            ResponseTemplate::new(401).set_body_json(wrong),
            "check the key",
        ),
        (completion("", "stop"), "empty summary response"),
    ] {
        let server = server(answer).await;
        let url = format!("{}/v1", server.uri());
        let handoff = format!(
            "--json compact {file} --strategy handoff --fresh-tail 4 --summarizer openai:small-model --base-url {url}"
        );
        let ran = run(&home, &words(&handoff)).ended(1);
        let error = ran.error();
        assert_eq!(error["kind"], "summarizer");
        tells(&error["message"], why);
        is(&ran.json(), json!({"summaries": {}, "summary": null}));
        let key = ran.json()["session"].as_str().unwrap().to_owned();
        assert_eq!(home.json(&["view", &key])["version"], 0);
        assert!(!server.received_requests().await.unwrap().is_empty());
    }
}
