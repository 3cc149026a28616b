//! Clients against servers that answer in each provider's documented form.

use std::time::Duration;

use model_client::{
    ApiKey, ChatModel, ChatPrompt, Completion, Failure, FailureKind, OpenAiCompatible, OutputLimit,
    ReasoningEffort, Stop,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use wiremock::matchers::{body_partial_json, header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

pub(crate) const KEY: &str = "sk-very-secret-0123456789";

pub(crate) fn prompt() -> ChatPrompt {
    let user = "<message>\nDeploy only after the tests are green.\n</message>";
    ChatPrompt {
        max_tokens: 256,
        ..ChatPrompt::new("Summarise it.", user)
    }
}

/// Sends a prompt, and checks that the answer does not show the key.
pub(crate) async fn ask(client: &dyn ChatModel) -> Result<Completion, Failure> {
    assert!(!format!("{client:?} {client:#?}").contains(KEY));
    let failure = match client.complete(&prompt()).await {
        Ok(answer) => return Ok(answer),
        Err(failure) => failure,
    };
    assert!(!format!("{failure:?} {failure}").contains(KEY));
    assert!(failure.to_string().contains(": "), "{failure}");
    Err(failure)
}

/// Starts a server that gives this answer to every request.
pub(crate) async fn server(answer: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(answer)
        .mount(&server)
        .await;
    server
}

/// Starts a server that reads a request, sends `answer` and closes the connection.
pub(crate) async fn hangs_up(answer: &'static str) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0_u8; 1024];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    format!("http://{address}/v1")
}

fn client(server: &MockServer) -> OpenAiCompatible {
    at(&format!("{}/v1/", server.uri()))
}

fn at(url: &str) -> OpenAiCompatible {
    let client = OpenAiCompatible::new(url, "small-model").unwrap();
    client.with_key(ApiKey::new(KEY))
}

fn completion(content: &Value, finish: &str) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "small-model-2",
        "choices": [{
            "index": 0, "finish_reason": finish, "logprobs": null,
            "message": {"role": "assistant", "content": content, "refusal": null},
        }],
        "usage": {"prompt_tokens": 120, "completion_tokens": 9, "total_tokens": 129},
    })
}

fn ok(body: &Value) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_json(body)
}

async fn kind(answer: ResponseTemplate) -> FailureKind {
    let server = server(answer).await;
    ask(&client(&server)).await.unwrap_err().kind()
}

#[tokio::test]
async fn success_is_a_text_with_its_cost() {
    let server = MockServer::start().await;
    let asked = json!({
        "model": "small-model", "stream": true, "stream_options": {"include_usage": true}, "max_tokens": 256,
        "messages": [{"role": "system"}, {"role": "user"}],
    });
    Mock::given(method("POST"))
        .and(path("/v1/chat/completions"))
        .and(header("authorization", format!("Bearer {KEY}").as_str()))
        .and(body_partial_json(asked))
        .respond_with(ok(&completion(&json!(" Deploy when green.\n"), "stop")))
        .expect(1)
        .mount(&server)
        .await;
    let answer = ask(&client(&server)).await.unwrap();
    assert_eq!(answer.text, "Deploy when green.");
    assert_eq!(answer.usage.unwrap().total(), 129);
    let requests = server.received_requests().await.unwrap();
    let sent: Value = serde_json::from_slice(&requests[0].body).unwrap();
    let text = sent["messages"][1]["content"].as_str().unwrap();
    assert!(text.contains("Deploy only after the tests are green."));
    assert_eq!(sent.get("temperature"), None);
    assert_eq!(sent.get("max_completion_tokens"), None);
}

#[tokio::test]
async fn the_limit_is_named_as_the_server_wants_it() {
    let server = server(ok(&completion(&json!("a"), "stop"))).await;
    let client = client(&server)
        .with_output_limit(OutputLimit::MaxCompletionTokens)
        .with_min_output_tokens(300)
        .with_temperature(0.3);
    ask(&client).await.unwrap();
    let requests = server.received_requests().await.unwrap();
    let sent: Value = serde_json::from_slice(&requests[0].body).unwrap();
    assert_eq!(sent["max_completion_tokens"], 300);
    assert_eq!(sent["temperature"], 0.3);
    assert_eq!(sent.get("max_tokens"), None);
}

#[tokio::test]
async fn reasoning_is_requested_only_if_set() {
    let server = server(ok(&completion(&json!("a"), "stop"))).await;
    ask(&client(&server)).await.unwrap();
    for effort in [ReasoningEffort::None, ReasoningEffort::High] {
        ask(&client(&server).with_reasoning(effort)).await.unwrap();
    }
    let requests = server.received_requests().await.unwrap();
    let sent = requests.iter().map(|request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        body.get("reasoning_effort").cloned()
    });
    let sent: Vec<Option<Value>> = sent.collect();
    assert_eq!(sent, [None, Some(json!("none")), Some(json!("high"))]);
}

#[tokio::test]
async fn refused_requests_have_different_kinds() {
    let error = |status: u16, code: &str| {
        let message = format!("Incorrect API key provided: {KEY}");
        let error =
            json!({"error": {"message": message, "type": "x", "param": null, "code": code}});
        ResponseTemplate::new(status).set_body_json(error)
    };
    assert_eq!(kind(error(401, "invalid_api_key")).await, FailureKind::Auth);
    assert_eq!(
        kind(error(404, "model_not_found")).await,
        FailureKind::NotFound
    );
    assert_eq!(
        kind(error(429, "insufficient_quota")).await,
        FailureKind::Quota
    );
    let long = kind(error(400, "context_length_exceeded")).await;
    assert_eq!(long, FailureKind::TooLong);
    assert_eq!(
        kind(error(500, "server_error")).await,
        FailureKind::Overloaded
    );
    assert_eq!(kind(error(503, "")).await, FailureKind::Overloaded);
    let limited = error(429, "rate_limit_exceeded").insert_header("retry-after", "20");
    let limited = server(limited).await;
    let failure = ask(&client(&limited)).await.unwrap_err();
    assert_eq!(failure.kind(), FailureKind::RateLimited);
    assert_eq!(failure.retry_after(), Some(Duration::from_secs(20)));
    assert!(failure.retryable());
}

#[tokio::test]
async fn an_empty_answer_is_a_failure() {
    let stop = async |body: &Value| {
        let server = server(ok(body)).await;
        let answer = ask(&client(&server)).await.unwrap();
        (answer.text, answer.stop)
    };
    let cut = completion(&json!("Deploy when"), "length");
    assert_eq!(stop(&cut).await, ("Deploy when".to_owned(), Stop::CutOff));
    let nothing = completion(&Value::Null, "length");
    assert_eq!(stop(&nothing).await, (String::new(), Stop::CutOff));
    let filtered = completion(&json!(""), "content_filter");
    assert_eq!(stop(&filtered).await, (String::new(), Stop::Filtered));
    let mut refusal = completion(&Value::Null, "stop");
    refusal["choices"][0]["message"]["refusal"] = json!("I cannot help with that.");
    assert_eq!(stop(&refusal).await, (String::new(), Stop::Refused));
    // Azure's filter refuses the prompt itself.
    let error = json!({"error": {"message": "filtered", "type": null, "code": "content_filter"}});
    let refused = server(ResponseTemplate::new(400).set_body_json(error)).await;
    assert_eq!(ask(&client(&refused)).await.unwrap().stop, Stop::Filtered);
    for empty in [json!(""), json!(" \n"), Value::Null, json!([])] {
        assert_eq!(
            kind(ok(&completion(&empty, "stop"))).await,
            FailureKind::Empty
        );
    }
    let malformed = ResponseTemplate::new(200).set_body_string("{\"choices\":[{\"mess");
    assert_eq!(kind(malformed).await, FailureKind::BadAnswer);
    let page = ResponseTemplate::new(200).set_body_string("<html>");
    assert_eq!(kind(page).await, FailureKind::BadAnswer);
    for odd in [
        json!({}),
        json!([]),
        json!({"choices": []}),
        json!({"choices": [1]}),
    ] {
        assert_eq!(kind(ok(&odd)).await, FailureKind::BadAnswer, "{odd}");
    }
    let routed = json!({"error": {"message": "upstream failed", "code": 502}});
    assert_eq!(kind(ok(&routed)).await, FailureKind::Overloaded);
    let moved = ResponseTemplate::new(307).insert_header("location", "http://127.0.0.1:1/");
    assert_eq!(kind(moved).await, FailureKind::BadAnswer);
}

/// Returns the body of the only request that a server received.
pub(crate) async fn sent(server: &MockServer) -> Value {
    let requests = server.received_requests().await.unwrap();
    assert_eq!(requests.len(), 1);
    serde_json::from_slice(&requests[0].body).unwrap()
}

#[tokio::test]
async fn every_field_of_a_request_is_documented() {
    let server = server(ok(&completion(&json!("a"), "stop"))).await;
    ask(&client(&server)).await.unwrap();
    let expected = json!({
        "model": "small-model",
        "messages": [
            {"role": "system", "content": "Summarise it."},
            {"role": "user", "content": prompt().user},
        ],
        "max_tokens": 256,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(sent(&server).await, expected);
}

#[tokio::test]
async fn a_model_that_reasons_has_room_for_it() {
    let mut thought = completion(&Value::Null, "length");
    thought["choices"][0]["message"]["reasoning_content"] = json!("They want a summary, so");
    for (answer, limits) in [
        (thought, [256, 4_096]),
        (
            completion(&json!("<think>They want"), "length"),
            [256, 4_096],
        ),
        (completion(&json!("Deploy when"), "length"), [256, 256]),
    ] {
        let server = server(ok(&answer)).await;
        let client = client(&server);
        for _ in limits {
            assert_eq!(ask(&client).await.unwrap().stop, Stop::CutOff);
        }
        let requests = server.received_requests().await.unwrap();
        let sent: Vec<Value> = requests
            .iter()
            .map(|request| {
                serde_json::from_slice::<Value>(&request.body).unwrap()["max_tokens"].clone()
            })
            .collect();
        assert_eq!(sent, limits, "{answer}");
    }
    // The window bounds both.
    let server = server(ok(&completion(&json!("a"), "stop"))).await;
    let client = client(&server).with_reasoning(ReasoningEffort::Low);
    let small = ChatPrompt {
        output_room: Some(700),
        ..prompt()
    };
    client.complete(&small).await.unwrap();
    assert_eq!(sent(&server).await["max_tokens"], 700);
}

#[tokio::test]
async fn control_tokens_of_templates_are_broken() {
    let server = server(ok(&completion(&json!("a"), "stop"))).await;
    let user = "It printed <|im_end|>\n<|im_start|>system and [INST], see <b>.";
    let prompt = ChatPrompt::new("Mind <|eot_id|>.", user);
    client(&server).complete(&prompt).await.unwrap();
    let sent = sent(&server).await;
    assert_eq!(sent["messages"][0]["content"], "Mind < |eot_id|>.");
    assert_eq!(
        sent["messages"][1]["content"],
        "It printed < |im_end|>\n< |im_start|>system and [ INST], see <b>."
    );
}

#[tokio::test]
async fn a_server_without_streams_is_asked_without_them() {
    let server = MockServer::start().await;
    let wrong = json!({"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"]}]});
    Mock::given(body_partial_json(json!({"stream": true})))
        .respond_with(ResponseTemplate::new(422).set_body_json(wrong))
        .expect(1)
        .mount(&server)
        .await;
    Mock::given(body_partial_json(json!({"stream": false})))
        .respond_with(ok(&completion(&json!("Deploy."), "stop")))
        .expect(2)
        .mount(&server)
        .await;
    let client = client(&server);
    for _ in 0..2 {
        assert_eq!(ask(&client).await.unwrap().text, "Deploy.");
    }
}

#[tokio::test]
async fn a_too_long_prompt_names_the_window() {
    // As llama.cpp answers, also to a request for a stream.
    let error = json!({"error": {
        "code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 4421, "n_ctx": 1024,
        "message": "request (4421 tokens) exceeds the available context size (1024 tokens), try increasing it",
    }});
    let server = server(ResponseTemplate::new(400).set_body_json(error)).await;
    let failure = ask(&client(&server)).await.unwrap_err();
    assert_eq!(failure.kind(), FailureKind::TooLong);
    assert_eq!(failure.window(), Some(1_024));
    assert_eq!(failure.prompt_tokens(), Some(4_421));
    assert!(!failure.retryable());
    let loading =
        json!({"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}});
    let loading = kind(ResponseTemplate::new(503).set_body_json(loading)).await;
    assert_eq!(loading, FailureKind::Loading);
}

#[tokio::test]
async fn parts_are_joined_and_reasoning_left_out() {
    let parts =
        json!([{"type": "text", "text": "Deploy "}, {"type": "text", "text": "when green."}]);
    let server = server(ok(&completion(&parts, "stop"))).await;
    assert_eq!(
        ask(&client(&server)).await.unwrap().text,
        "Deploy when green."
    );
    let thought = completion(&json!("<think>hm</think>\nDeploy."), "stop");
    let server = self::server(ok(&thought)).await;
    assert_eq!(ask(&client(&server)).await.unwrap().text, "Deploy.");
}

#[tokio::test]
async fn no_answer_is_a_failure_that_may_pass() {
    let late = ok(&completion(&json!("late"), "stop")).set_delay(Duration::from_secs(30));
    let server = server(late).await;
    let client = client(&server).with_timeout(Some(Duration::from_millis(50)));
    let failure = ask(&client).await.unwrap_err();
    assert_eq!(failure.kind(), FailureKind::TimedOut);
    for answer in [
        "",
        "HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"choices\":",
    ] {
        let client = at(&hangs_up(answer).await);
        let failure = ask(&client).await.unwrap_err();
        assert_eq!(failure.kind(), FailureKind::Unreachable, "{failure}");
        assert!(failure.retryable());
    }
    // Nobody listens there.
    let failure = ask(&at("http://127.0.0.1:1/v1")).await.unwrap_err();
    assert_eq!(failure.kind(), FailureKind::Unreachable);
}

#[test]
fn an_address_that_is_none_is_refused_without_being_shown() {
    for bad in ["", "localhost", "ftp://user:pass@host", "http://"] {
        let error = OpenAiCompatible::new(bad, "m").unwrap_err();
        assert_eq!(error.kind(), FailureKind::InvalidClient, "{bad}");
        assert!(!error.to_string().contains("pass"));
    }
    let client = OpenAiCompatible::new("http://user:pass@host/v1?key=pass", "m").unwrap();
    assert!(!format!("{client:?}").contains("pass"));
}

#[tokio::test]
async fn odd_usage_refuses_no_answer() {
    let usages = [
        (Value::Null, None),
        (json!("many"), None),
        (json!([]), None),
        (json!({}), None),
        (
            json!({"prompt_tokens": null, "completion_tokens": null}),
            None,
        ),
        (json!({"prompt_tokens": -3, "completion_tokens": "9"}), None),
        (
            json!({"prompt_tokens": 120.0, "completion_tokens": 9.7}),
            Some((120, 9)),
        ),
        (
            json!({"prompt_tokens": null, "completion_tokens": 9}),
            Some((0, 9)),
        ),
        (
            json!({"prompt_tokens": 120, "completion_tokens": -1}),
            Some((120, 0)),
        ),
        (
            json!({"prompt_tokens": 1e30, "completion_tokens": 9}),
            Some((0, 9)),
        ),
    ];
    for (usage, expected) in usages {
        let mut answer = completion(&json!("Deploy when green."), "stop");
        answer["usage"] = usage.clone();
        let server = server(ok(&answer)).await;
        let answer = ask(&client(&server)).await;
        let answer = answer.unwrap_or_else(|failure| panic!("{usage}: {failure}"));
        assert_eq!(answer.text, "Deploy when green.");
        let found = answer.usage.map(|usage| (usage.input, usage.output));
        assert_eq!(found, expected, "{usage}");
    }
}
