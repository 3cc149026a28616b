//! Anthropic, Gemini, Ollama and OpenAI through the crate genai, each with a server that answers in its documented
//! form.

use std::time::Duration;

use model_client::{ApiKey, Failure, FailureKind, GenAi, ReasoningEffort, Stop};
use serde_json::{Value, json};
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::openai::{KEY, ask, hangs_up, server};

const PROVIDERS: [&str; 4] = ["openai", "anthropic", "gemini", "ollama"];

fn client(provider: &str, url: &str) -> GenAi {
    let client = GenAi::new(provider, "m").unwrap();
    client.with_base_url(url).with_key(ApiKey::new(KEY))
}

/// Returns a provider's answer with this text and this stop reason.
fn answer(provider: &str, text: &str, stop: &str) -> Value {
    match provider {
        "openai" => json!({
            "id": "c", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "finish_reason": stop,
                "message": {"role": "assistant", "content": text, "refusal": null}}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }),
        "anthropic" => json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
            "content": match text { "" => json!([]), text => json!([{"type": "text", "text": text}]) },
            "stop_reason": stop, "stop_sequence": null,
            "usage": {"input_tokens": 100, "output_tokens": 10},
        }),
        "gemini" => json!({
            "candidates": [{"index": 0, "finishReason": stop,
                "content": {"role": "model", "parts": match text {
                    "" => json!([]), text => json!([{"text": text}]) }}}],
            "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 10,
                "totalTokenCount": 110},
            "modelVersion": "m",
        }),
        _ => json!({
            "model": "m", "created_at": "2026-01-01T00:00:00Z", "done": true, "done_reason": stop,
            "message": {"role": "assistant", "content": text},
            "prompt_eval_count": 100, "eval_count": 10,
        }),
    }
}

/// Returns the provider's stop reasons for a complete answer, for the output limit and for a refusal.
fn reasons(provider: &str) -> [&'static str; 3] {
    match provider {
        "openai" => ["stop", "length", "content_filter"],
        "anthropic" => ["end_turn", "max_tokens", "refusal"],
        "gemini" => ["STOP", "MAX_TOKENS", "SAFETY"],
        // Ollama has no filter; a server in its place may.
        _ => ["stop", "length", "content_filter"],
    }
}

/// Returns an error in the form of the provider.
fn error(provider: &str, text: &str) -> Value {
    match provider {
        "openai" => json!({"error": {"message": text, "type": "x", "param": null, "code": null}}),
        "anthropic" => json!({"type": "error", "error": {"type": "x", "message": text}}),
        "gemini" => json!({"error": {"code": 1, "message": text, "status": "X"}}),
        _ => json!({"error": text}),
    }
}

async fn outcome(provider: &str, answer: ResponseTemplate) -> Result<String, Failure> {
    let server = server(answer).await;
    let url = format!("{}/v1", server.uri());
    ask(&client(provider, &url)).await.map(|answer| answer.text)
}

async fn kind(provider: &str, answer: ResponseTemplate) -> FailureKind {
    outcome(provider, answer).await.unwrap_err().kind()
}

fn ok(body: &Value) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_json(body)
}

#[tokio::test]
async fn success_is_a_text_with_its_cost_asked_for_as_documented() {
    for provider in PROVIDERS {
        let server = MockServer::start().await;
        let text = answer(provider, " Deploy when green.\n", reasons(provider)[0]);
        let (place, name, value) = match provider {
            "anthropic" => ("/v1/messages", "x-api-key", KEY.to_owned()),
            "gemini" => (
                "/v1/models/m:generateContent",
                "x-goog-api-key",
                KEY.to_owned(),
            ),
            "openai" => (
                "/v1/chat/completions",
                "authorization",
                format!("Bearer {KEY}"),
            ),
            _ => (
                "/v1/api/chat",
                "content-type",
                "application/json".to_owned(),
            ),
        };
        Mock::given(method("POST"))
            .and(path(place))
            .and(header(name, value.as_str()))
            .respond_with(ok(&text))
            .expect(1)
            .mount(&server)
            .await;
        let client = client(provider, &format!("{}/v1/", server.uri()));
        let answer = ask(&client).await.unwrap();
        assert_eq!(answer.text, "Deploy when green.", "{provider}");
        assert_eq!(answer.usage.unwrap().total(), 110, "{provider}");
        let requests = server.received_requests().await.unwrap();
        let sent = String::from_utf8_lossy(&requests[0].body);
        assert!(sent.contains("Deploy only after the tests are green."));
    }
}

#[tokio::test]
async fn refused_requests_have_different_kinds() {
    let wrong = format!("the key {KEY} is wrong");
    for provider in PROVIDERS {
        let body = |status| ResponseTemplate::new(status).set_body_json(error(provider, &wrong));
        assert_eq!(
            kind(provider, body(401)).await,
            FailureKind::Auth,
            "{provider}"
        );
        assert_eq!(
            kind(provider, body(500)).await,
            FailureKind::Overloaded,
            "{provider}"
        );
        assert_eq!(
            kind(provider, body(529)).await,
            FailureKind::Overloaded,
            "{provider}"
        );
        let limited = body(429).insert_header("retry-after", "20");
        let failure = outcome(provider, limited).await.unwrap_err();
        assert_eq!(failure.kind(), FailureKind::RateLimited, "{provider}");
        assert_eq!(failure.retry_after(), Some(Duration::from_secs(20)));
    }
    let invalid = json!({"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.",
        "status": "INVALID_ARGUMENT"}});
    let invalid = ResponseTemplate::new(400).set_body_json(invalid);
    assert_eq!(kind("gemini", invalid).await, FailureKind::Auth);
    let long = error(
        "anthropic",
        "prompt is too long: 210000 tokens > 200000 maximum",
    );
    let long = ResponseTemplate::new(400).set_body_json(long);
    assert_eq!(kind("anthropic", long).await, FailureKind::TooLong);
}

#[tokio::test]
async fn an_empty_answer_is_a_failure() {
    for provider in PROVIDERS {
        let [end, limit, refusal] = reasons(provider);
        let declined = match provider {
            "anthropic" => Stop::Refused,
            _ => Stop::Filtered,
        };
        for (text, reason, expected) in [
            ("Deploy when", limit, Stop::CutOff),
            ("I cannot", refusal, declined),
        ] {
            let server = server(ok(&answer(provider, text, reason))).await;
            let client = client(provider, &format!("{}/v1", server.uri()));
            let answer = ask(&client).await.unwrap();
            assert_eq!((&*answer.text, answer.stop), (text, expected), "{provider}");
        }
        for empty in ["", " \n"] {
            let empty = outcome(provider, ok(&answer(provider, empty, end))).await;
            let kind = empty.unwrap_err().kind();
            let none = [FailureKind::Empty, FailureKind::BadAnswer];
            assert!(none.contains(&kind), "{provider} {kind}");
        }
        let malformed =
            ResponseTemplate::new(200).set_body_raw("{\"choices\":[{\"mess", "application/json");
        assert_eq!(
            kind(provider, malformed).await,
            FailureKind::BadAnswer,
            "{provider}"
        );
        let page = ResponseTemplate::new(200).set_body_raw("<html>", "text/html");
        assert_eq!(
            kind(provider, page).await,
            FailureKind::BadAnswer,
            "{provider}"
        );
        let odd = outcome(provider, ok(&json!({}))).await;
        assert!(odd.is_err(), "{provider}");
    }
    let blocked = ok(&json!({"promptFeedback": {"blockReason": "SAFETY"},
        "usageMetadata": {"promptTokenCount": 9, "totalTokenCount": 9}}));
    let blocked = server(blocked).await;
    let client = client("gemini", &blocked.uri());
    assert_eq!(ask(&client).await.unwrap().stop, Stop::Filtered);
}

#[tokio::test]
async fn no_answer_is_a_failure_that_may_pass() {
    for provider in PROVIDERS {
        let late = ok(&answer(provider, "late", reasons(provider)[0]));
        let server = server(late.set_delay(Duration::from_secs(30))).await;
        let client = client(provider, &server.uri());
        let client = client.with_timeout(Some(Duration::from_millis(50)));
        let failure = ask(&client).await.unwrap_err();
        assert_eq!(failure.kind(), FailureKind::TimedOut, "{provider}");
        for half in [
            "",
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{",
        ] {
            let client = self::client(provider, &hangs_up(half).await);
            let failure = ask(&client).await.unwrap_err();
            assert_eq!(
                failure.kind(),
                FailureKind::Unreachable,
                "{provider} {failure}"
            );
        }
    }
}

#[test]
fn an_unknown_provider_is_refused() {
    let error = GenAi::new("nobody", "m").unwrap_err();
    assert_eq!(error.kind(), FailureKind::InvalidClient);
}

#[tokio::test]
async fn odd_usage_refuses_no_answer() {
    for provider in PROVIDERS {
        for count in [Value::Null, json!(-3), json!(9.7), json!("many"), json!([])] {
            let mut body = answer(provider, "Deploy when green.", reasons(provider)[0]);
            for place in [
                "/usage/prompt_tokens",
                "/usage/completion_tokens",
                "/usage/input_tokens",
                "/usage/output_tokens",
                "/usageMetadata/promptTokenCount",
                "/usageMetadata/candidatesTokenCount",
                "/prompt_eval_count",
                "/eval_count",
            ] {
                if let Some(found) = body.pointer_mut(place) {
                    *found = count.clone();
                }
            }
            let text = outcome(provider, ok(&body)).await;
            assert_eq!(text.unwrap(), "Deploy when green.", "{provider} {count}");
        }
    }
}

#[tokio::test]
async fn reasoning_is_spelt_as_each_provider_spells_it() {
    for (provider, place, value) in [
        ("openai", "/reasoning_effort", json!("high")),
        ("ollama", "/think", json!("high")),
    ] {
        let body = answer(provider, "A summary.", reasons(provider)[0]);
        let server = server(ResponseTemplate::new(200).set_body_json(body)).await;
        let client = client(provider, &server.uri());
        ask(&client).await.unwrap();
        ask(&client.with_reasoning(ReasoningEffort::High))
            .await
            .unwrap();
        let requests = server.received_requests().await.unwrap();
        let sent = requests.iter().map(|request| {
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            body.pointer(place).cloned()
        });
        let sent: Vec<Option<Value>> = sent.collect();
        assert_eq!(sent, [None, Some(value)], "{provider}");
    }
}
