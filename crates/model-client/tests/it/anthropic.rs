//! Anthropic's messages, against answers as its documents show them.

use std::time::Duration;

use model_client::{
    AnthropicMessages, ApiKey, ChatModel as _, FailureKind, ModelUsage, ReasoningEffort, Stop,
};
use serde_json::{Value, json};
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::openai::{KEY, ask, prompt, sent, server};
use crate::streams::stream;

fn client(server: &MockServer) -> AnthropicMessages {
    let client = AnthropicMessages::new(&server.uri(), "claude-small").unwrap();
    client.with_key(ApiKey::new(KEY))
}

/// The stream of the documents: a text in two pieces, with a ping before them.
fn events(stop: &Value) -> Vec<Value> {
    vec![
        json!({"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "claude-small",
            "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 25, "cache_creation_input_tokens": 100,
                "cache_read_input_tokens": 1200, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "aGk="}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "ping"}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Deploy "}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "when green."}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
            "usage": {"output_tokens": 15}}),
        json!({"type": "message_stop"}),
    ]
}

fn message(text: &str, stop: &str) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-small",
        "content": [{"type": "thinking", "thinking": "Hm.", "signature": "aGk="}, {"type": "text", "text": text}],
        "stop_reason": stop, "stop_sequence": null,
        "usage": {"input_tokens": 25, "cache_creation_input_tokens": 0, "cache_read_input_tokens": null,
            "output_tokens": 15},
    })
}

#[tokio::test]
async fn a_streamed_answer_is_a_text_with_its_cost() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/v1/messages"))
        .and(header("x-api-key", KEY))
        .and(header("anthropic-version", "2023-06-01"))
        .and(header("content-type", "application/json"))
        .respond_with(stream(&events(&json!("end_turn")), &[]))
        .expect(1)
        .mount(&server)
        .await;
    let answer = ask(&client(&server)).await.unwrap();
    assert_eq!(answer.text, "Deploy when green.");
    assert_eq!(answer.stop, Stop::Complete);
    let usage = answer.usage.unwrap();
    assert_eq!(
        (usage.input, usage.output, usage.cached_input),
        (1_325, 15, 1_200)
    );
    assert_eq!(usage.cache_write, 100);
    let requests = server.received_requests().await.unwrap();
    assert!(requests[0].headers.get("authorization").is_none());
    let expected = json!({
        "model": "claude-small",
        "max_tokens": 4096,
        "system": [{"type": "text", "text": "Summarise it.", "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": prompt().user}],
        "stream": true,
    });
    assert_eq!(sent(&server).await, expected);
}

#[tokio::test]
async fn an_answer_at_once_is_read_too() {
    let answer = message(" Deploy.\n", "end_turn");
    let server = server(ResponseTemplate::new(200).set_body_json(answer)).await;
    let answer = ask(&client(&server)).await.unwrap();
    assert_eq!(answer.text, "Deploy.");
    assert_eq!(answer.usage, Some(ModelUsage::new(25, 15)));
}

#[tokio::test]
async fn reasons_to_stop_are_read() {
    for (reason, expected) in [
        ("end_turn", Ok(Stop::Complete)),
        ("stop_sequence", Ok(Stop::Complete)),
        ("max_tokens", Ok(Stop::CutOff)),
        ("model_context_window_exceeded", Ok(Stop::CutOff)),
        ("refusal", Ok(Stop::Refused)),
        ("tool_use", Err(FailureKind::BadAnswer)),
        ("pause_turn", Err(FailureKind::BadAnswer)),
    ] {
        let whole = ResponseTemplate::new(200).set_body_json(message("Deploy when", reason));
        for answer in [stream(&events(&json!(reason)), &[]), whole] {
            let server = server(answer).await;
            let answer = ask(&client(&server)).await;
            let stop = answer
                .map(|answer| answer.stop)
                .map_err(|failure| failure.kind());
            assert_eq!(stop, expected, "{reason}");
        }
    }
}

#[tokio::test]
async fn errors_are_read_before_and_inside_of_a_stream() {
    let error = |kind: &str| json!({"type": "error", "error": {"type": kind, "message": format!("no: {KEY}")}});
    for (status, kind, expected) in [
        (400, "invalid_request_error", FailureKind::BadRequest),
        (401, "authentication_error", FailureKind::Auth),
        (402, "billing_error", FailureKind::Quota),
        (403, "permission_error", FailureKind::Auth),
        (404, "not_found_error", FailureKind::NotFound),
        (413, "request_too_large", FailureKind::TooLong),
        (429, "rate_limit_error", FailureKind::RateLimited),
        (500, "api_error", FailureKind::Overloaded),
        (529, "overloaded_error", FailureKind::Overloaded),
    ] {
        let refused = ResponseTemplate::new(status)
            .set_body_json(error(kind))
            .insert_header("retry-after", "7");
        let server = server(refused).await;
        let failure = ask(&client(&server)).await.unwrap_err();
        assert_eq!(failure.kind(), expected, "{kind}");
        assert_eq!(failure.retry_after(), Some(Duration::from_secs(7)));
        let begun = events(&Value::Null)
            .into_iter()
            .take(8)
            .chain([error(kind)]);
        let server = self::server(stream(&begun.collect::<Vec<_>>(), &[])).await;
        let failure = ask(&client(&server)).await.unwrap_err();
        assert_eq!(failure.kind(), expected, "{kind} in a stream");
    }
}

#[tokio::test]
async fn reasoning_is_requested_only_if_set() {
    for (effort, thinking, level) in [
        (None, Value::Null, Value::Null),
        (
            Some(ReasoningEffort::None),
            json!({"type": "disabled"}),
            Value::Null,
        ),
        (
            Some(ReasoningEffort::Minimal),
            json!({"type": "adaptive"}),
            json!({"effort": "low"}),
        ),
        (
            Some(ReasoningEffort::High),
            json!({"type": "adaptive"}),
            json!({"effort": "high"}),
        ),
    ] {
        let server = server(stream(&events(&json!("end_turn")), &[])).await;
        let mut client = client(&server);
        if let Some(effort) = effort {
            client = client.with_reasoning(effort);
        }
        client.complete(&prompt()).await.unwrap();
        let sent = sent(&server).await;
        assert_eq!(
            (&sent["thinking"], &sent["output_config"]),
            (&thinking, &level)
        );
    }
}

#[tokio::test]
async fn the_version_belongs_to_the_address_once() {
    for base in ["", "/", "/v1", "/v1/"] {
        let server = MockServer::start().await;
        Mock::given(path("/v1/messages"))
            .respond_with(stream(&events(&json!("end_turn")), &[]))
            .mount(&server)
            .await;
        let url = format!("{}{base}", server.uri());
        let client = AnthropicMessages::new(&url, "m").unwrap();
        client.complete(&prompt()).await.unwrap();
    }
}
