//! Gemini's generateContent, against answers as its documents show them.

use std::time::Duration;

use model_client::{ApiKey, ChatModel as _, FailureKind, GeminiGenerate, ReasoningEffort, Stop};
use serde_json::{Value, json};
use wiremock::matchers::{header, method, path, query_param};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::openai::{KEY, ask, prompt, sent, server};
use crate::streams::stream;

fn client(server: &MockServer) -> GeminiGenerate {
    let client = GeminiGenerate::new(&server.uri(), "gemini-small").unwrap();
    client.with_key(ApiKey::new(KEY))
}

fn chunk(text: &str, finish: &Value, output: u64) -> Value {
    let mut candidate =
        json!({"index": 0, "content": {"role": "model", "parts": [{"text": text}]}});
    if !finish.is_null() {
        candidate["finishReason"] = finish.clone();
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": {"promptTokenCount": 120, "candidatesTokenCount": output, "thoughtsTokenCount": 40,
            "cachedContentTokenCount": 64, "totalTokenCount": 160 + output},
        "modelVersion": "gemini-small-001", "responseId": "r",
    })
}

fn events(finish: &Value) -> Vec<Value> {
    let thought = json!({"candidates": [{"index": 0, "content": {"role": "model",
        "parts": [{"text": "Hm.", "thought": true}]}}]});
    vec![
        thought,
        chunk("Deploy ", &Value::Null, 2),
        chunk("when green.", finish, 5),
    ]
}

#[tokio::test]
async fn a_streamed_answer_is_a_text_with_its_cost() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/v1beta/models/gemini-small:streamGenerateContent"))
        .and(query_param("alt", "sse"))
        .and(header("x-goog-api-key", KEY))
        .respond_with(stream(&events(&json!("STOP")), &[]))
        .expect(1)
        .mount(&server)
        .await;
    let answer = ask(&client(&server)).await.unwrap();
    assert_eq!(answer.text, "Deploy when green.");
    let usage = answer.usage.unwrap();
    assert_eq!(
        (usage.input, usage.output, usage.cached_input),
        (120, 45, 64)
    );
    let requests = server.received_requests().await.unwrap();
    assert!(requests[0].headers.get("authorization").is_none());
    let expected = json!({
        "systemInstruction": {"parts": [{"text": "Summarise it."}]},
        "contents": [{"role": "user", "parts": [{"text": prompt().user}]}],
        "generationConfig": {"maxOutputTokens": 4096},
    });
    assert_eq!(sent(&server).await, expected);
}

#[tokio::test]
async fn an_answer_at_once_is_read_too() {
    // One document, or the list that the address without `alt=sse` answers with.
    for body in [
        chunk("Deploy.", &json!("STOP"), 3),
        json!(events(&json!("STOP"))),
    ] {
        let server = server(ResponseTemplate::new(200).set_body_json(&body)).await;
        let answer = ask(&client(&server)).await.unwrap();
        assert!(answer.text.starts_with("Deploy"), "{}", answer.text);
        assert_eq!(answer.stop, Stop::Complete);
    }
}

#[tokio::test]
async fn reasons_to_stop_are_read() {
    for (reason, expected) in [
        ("STOP", Ok(Stop::Complete)),
        ("MAX_TOKENS", Ok(Stop::CutOff)),
        ("SAFETY", Ok(Stop::Filtered)),
        ("RECITATION", Ok(Stop::Filtered)),
        ("LANGUAGE", Ok(Stop::Filtered)),
        ("PROHIBITED_CONTENT", Ok(Stop::Filtered)),
        ("SPII", Ok(Stop::Filtered)),
        ("BLOCKLIST", Ok(Stop::Filtered)),
        ("OTHER", Err(FailureKind::BadAnswer)),
        ("MALFORMED_FUNCTION_CALL", Err(FailureKind::BadAnswer)),
    ] {
        let server = server(stream(&events(&json!(reason)), &[])).await;
        let answer = ask(&client(&server)).await;
        let stop = answer
            .map(|answer| answer.stop)
            .map_err(|failure| failure.kind());
        assert_eq!(stop, expected, "{reason}");
    }
    for reason in ["SAFETY", "OTHER", "PROHIBITED_CONTENT"] {
        let blocked = json!({"promptFeedback": {"blockReason": reason},
            "usageMetadata": {"promptTokenCount": 9, "totalTokenCount": 9}});
        let server = server(stream(&[blocked], &[])).await;
        assert_eq!(ask(&client(&server)).await.unwrap().stop, Stop::Filtered);
    }
}

#[tokio::test]
async fn errors_are_read_before_and_inside_of_a_stream() {
    for (status, name, text, expected) in [
        (
            400,
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.",
            FailureKind::Auth,
        ),
        (
            400,
            "INVALID_ARGUMENT",
            "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
            FailureKind::TooLong,
        ),
        (403, "PERMISSION_DENIED", "no", FailureKind::Auth),
        (
            404,
            "NOT_FOUND",
            "models/x is not found",
            FailureKind::NotFound,
        ),
        (
            429,
            "RESOURCE_EXHAUSTED",
            "slow down",
            FailureKind::RateLimited,
        ),
        (
            503,
            "UNAVAILABLE",
            "The model is overloaded.",
            FailureKind::Overloaded,
        ),
    ] {
        let error = json!({"error": {"code": status, "message": text, "status": name, "details": [
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]}});
        let listed = json!([error]);
        for body in [&error, &listed] {
            let server = server(ResponseTemplate::new(status).set_body_json(body)).await;
            let failure = ask(&client(&server)).await.unwrap_err();
            assert_eq!(failure.kind(), expected, "{name}");
            assert_eq!(failure.retry_after(), Some(Duration::from_millis(34_500)));
        }
        let begun = [events(&Value::Null).remove(1), error];
        let server = server(stream(&begun, &[])).await;
        assert_eq!(
            ask(&client(&server)).await.unwrap_err().kind(),
            expected,
            "{name} in a stream"
        );
    }
}

#[tokio::test]
async fn reasoning_is_requested_only_if_set() {
    for (effort, config) in [
        (None, Value::Null),
        (Some(ReasoningEffort::None), json!({"thinkingBudget": 0})),
        (Some(ReasoningEffort::Low), json!({"thinkingLevel": "LOW"})),
        (
            Some(ReasoningEffort::High),
            json!({"thinkingLevel": "HIGH"}),
        ),
    ] {
        let server = server(stream(&events(&json!("STOP")), &[])).await;
        let mut client = client(&server);
        if let Some(effort) = effort {
            client = client.with_reasoning(effort);
        }
        client.complete(&prompt()).await.unwrap();
        assert_eq!(
            sent(&server).await["generationConfig"]["thinkingConfig"],
            config
        );
    }
}
