//! OpenAI's responses, against answers as its documents show them.

use model_client::{ApiKey, ChatModel as _, FailureKind, OpenAiResponses, ReasoningEffort, Stop};
use serde_json::{Value, json};
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::openai::{KEY, ask, prompt, sent, server};
use crate::streams::stream;

fn client(server: &MockServer) -> OpenAiResponses {
    let client = OpenAiResponses::new(&format!("{}/v1", server.uri()), "gpt-small").unwrap();
    client.with_key(ApiKey::new(KEY))
}

fn response(status: &str, why: &Value, content: &Value) -> Value {
    json!({
        "id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-small-2", "status": status, "error": null,
        "incomplete_details": match why { Value::Null => Value::Null, why => json!({"reason": why}) },
        "output": [
            {"id": "rs_1", "type": "reasoning", "summary": []},
            {"id": "msg_1", "type": "message", "role": "assistant", "status": status, "content": content},
        ],
        "usage": {"input_tokens": 120, "input_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 15},
            "output_tokens": 30, "output_tokens_details": {"reasoning_tokens": 20}, "total_tokens": 150},
    })
}

fn text(text: &str) -> Value {
    json!([{"type": "output_text", "text": text, "annotations": []}])
}

/// The events of a stream, with this event last.
fn events(last: &str, response: &Value) -> Vec<Value> {
    let delta = |text: &str| {
        json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 1, "content_index": 0,
            "delta": text, "logprobs": [], "sequence_number": 4})
    };
    let begun = json!({"id": "resp_1", "object": "response", "status": "in_progress", "error": null, "output": []});
    vec![
        json!({"type": "response.created", "sequence_number": 0, "response": begun}),
        json!({"type": "response.in_progress", "sequence_number": 1, "response": begun}),
        json!({"type": "response.output_item.added", "sequence_number": 2, "output_index": 0,
            "item": {"id": "rs_1", "type": "reasoning", "summary": []}}),
        delta("Deploy "),
        delta("when green."),
        json!({"type": last, "sequence_number": 9, "response": response}),
    ]
}

#[tokio::test]
async fn a_streamed_answer_is_a_text_with_its_cost() {
    let server = MockServer::start().await;
    let whole = response("completed", &Value::Null, &text("Deploy when green."));
    Mock::given(method("POST"))
        .and(path("/v1/responses"))
        .and(header("authorization", format!("Bearer {KEY}").as_str()))
        .respond_with(stream(&events("response.completed", &whole), &[]))
        .expect(1)
        .mount(&server)
        .await;
    let answer = ask(&client(&server)).await.unwrap();
    assert_eq!(
        (&*answer.text, answer.stop),
        ("Deploy when green.", Stop::Complete)
    );
    let usage = answer.usage.unwrap();
    assert_eq!(
        (usage.input, usage.output, usage.cached_input),
        (120, 30, 100)
    );
    assert_eq!(usage.cache_write, 15);
    let expected = json!({
        "model": "gpt-small",
        "instructions": "Summarise it.",
        "input": [{"role": "user", "content": prompt().user}],
        "max_output_tokens": 4096,
        "store": false,
        "stream": true,
    });
    assert_eq!(sent(&server).await, expected);
}

#[tokio::test]
async fn ends_of_a_response_are_read() {
    let refusal = json!([{"type": "refusal", "refusal": "I cannot help with that."}]);
    for (last, status, why, content, expected) in [
        (
            "response.completed",
            "completed",
            Value::Null,
            text("Deploy"),
            Stop::Complete,
        ),
        (
            "response.incomplete",
            "incomplete",
            json!("max_output_tokens"),
            text("Deploy"),
            Stop::CutOff,
        ),
        (
            "response.incomplete",
            "incomplete",
            json!("max_output_tokens"),
            json!([]),
            Stop::CutOff,
        ),
        (
            "response.incomplete",
            "incomplete",
            json!("content_filter"),
            json!([]),
            Stop::Filtered,
        ),
        (
            "response.completed",
            "completed",
            Value::Null,
            refusal,
            Stop::Refused,
        ),
    ] {
        let whole = response(status, &why, &content);
        let at_once = ResponseTemplate::new(200).set_body_json(&whole);
        for answer in [stream(&events(last, &whole), &[]), at_once] {
            let server = server(answer).await;
            assert_eq!(
                ask(&client(&server)).await.unwrap().stop,
                expected,
                "{whole}"
            );
        }
    }
}

#[tokio::test]
async fn a_response_that_fails_is_a_failure() {
    for (code, expected) in [
        ("server_error", FailureKind::Overloaded),
        ("rate_limit_exceeded", FailureKind::RateLimited),
        ("invalid_prompt", FailureKind::BadRequest),
    ] {
        let mut failed = response("failed", &Value::Null, &json!([]));
        failed["error"] = json!({"code": code, "message": format!("no: {KEY}")});
        let error = json!({"type": "error", "code": code, "message": "no", "param": null, "sequence_number": 3});
        let at_once = ResponseTemplate::new(200).set_body_json(&failed);
        let in_between = events("response.completed", &failed)
            .into_iter()
            .take(4)
            .chain([error]);
        for answer in [
            stream(&events("response.failed", &failed), &[]),
            stream(&in_between.collect::<Vec<_>>(), &[]),
            at_once,
        ] {
            let server = server(answer).await;
            assert_eq!(
                ask(&client(&server)).await.unwrap_err().kind(),
                expected,
                "{code}"
            );
        }
    }
}

#[tokio::test]
async fn reasoning_is_requested_only_if_set() {
    for effort in [
        ReasoningEffort::None,
        ReasoningEffort::Minimal,
        ReasoningEffort::High,
    ] {
        let whole = response("completed", &Value::Null, &text("Deploy."));
        let server = server(stream(&events("response.completed", &whole), &[])).await;
        let client = client(&server).with_reasoning(effort);
        client.complete(&prompt()).await.unwrap();
        assert_eq!(sent(&server).await["reasoning"], json!({"effort": effort}));
    }
}
