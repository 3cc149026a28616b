//! Clients of embedding models against servers that answer in the documented form.

use std::sync::Arc;
use std::time::Duration;

use model_client::guard::{GuardPolicy, GuardedModel, SpendPolicy};
use model_client::{
    ApiKey, EmbeddingModel, Embeddings, Failure, FailureKind, ModelUsage, OpenAiEmbeddings,
};
use serde_json::{Value, json};
use wiremock::matchers::{body_partial_json, header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::openai::{KEY, hangs_up, server};

fn texts() -> Vec<String> {
    ["a dog", "a bus"].map(String::from).to_vec()
}

fn at(url: &str) -> OpenAiEmbeddings {
    let client = OpenAiEmbeddings::new(url, "small-embedder").unwrap();
    client.with_key(ApiKey::new(KEY))
}

fn client(server: &MockServer) -> OpenAiEmbeddings {
    at(&format!("{}/v1/", server.uri()))
}

/// Embeds two texts, and checks that the answer does not show the key.
async fn ask(client: &dyn EmbeddingModel) -> Result<Embeddings, Failure> {
    assert!(!format!("{client:?} {client:#?}").contains(KEY));
    let failure = match client.embed(&texts()).await {
        Ok(answer) => return Ok(answer),
        Err(failure) => failure,
    };
    assert!(!format!("{failure:?} {failure}").contains(KEY));
    assert!(failure.to_string().contains(": "), "{failure}");
    Err(failure)
}

fn embeddings(data: &Value) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_json(json!({
        "object": "list", "model": "small-embedder", "data": data,
        "usage": {"prompt_tokens": 6, "total_tokens": 6},
    }))
}

fn one(index: usize, vector: &[f64]) -> Value {
    json!({"object": "embedding", "index": index, "embedding": vector})
}

#[tokio::test]
async fn success_is_a_vector_for_each_text_in_their_order() {
    let server = MockServer::start().await;
    let asked = json!({
        "model": "small-embedder", "input": ["a dog", "a bus"],
        "encoding_format": "float", "dimensions": 2,
    });
    Mock::given(method("POST"))
        .and(path("/v1/embeddings"))
        .and(header("authorization", format!("Bearer {KEY}").as_str()))
        .and(body_partial_json(asked))
        .respond_with(embeddings(&json!([
            one(1, &[0.0, 1.0]),
            one(0, &[0.5, -0.5])
        ])))
        .expect(1)
        .mount(&server)
        .await;
    let answer = ask(&client(&server).with_dimensions(2)).await.unwrap();
    assert_eq!(answer.vectors, [[0.5, -0.5], [0.0, 1.0]]);
    assert_eq!(answer.usage, Some(ModelUsage::new(6, 0)));
}

#[tokio::test]
async fn no_texts_need_no_server() {
    let client = at("http://127.0.0.1:1/v1");
    assert!(client.embed(&[]).await.unwrap().vectors.is_empty());
}

#[tokio::test]
async fn answers_of_another_form_are_refused() {
    for answer in [
        embeddings(&json!([one(0, &[1.0])])),
        embeddings(&json!([one(0, &[1.0]), one(0, &[1.0])])),
        embeddings(&json!([one(0, &[1.0]), one(2, &[1.0])])),
        embeddings(&json!([one(0, &[1.0]), one(1, &[1.0, 2.0])])),
        embeddings(&json!([one(0, &[]), one(1, &[])])),
        embeddings(&json!([one(0, &[1.0]), {"index": 1, "embedding": ["x"]}])),
        embeddings(&json!("none")),
        ResponseTemplate::new(200).set_body_string("<html>"),
        ResponseTemplate::new(200)
            .set_body_json(json!({"error": {"message": format!("key {KEY}")}})),
    ] {
        let server = server(answer).await;
        let failure = ask(&client(&server)).await.unwrap_err();
        assert_eq!(failure.kind(), FailureKind::BadAnswer, "{failure}");
    }
}

#[tokio::test]
async fn refusals_have_their_kind_and_no_key() {
    let said = json!({"error": {"message": format!("bad key {KEY}"), "code": "invalid_api_key"}});
    for (status, kind) in [
        (401, FailureKind::Auth),
        (404, FailureKind::NotFound),
        (429, FailureKind::RateLimited),
        (503, FailureKind::Overloaded),
    ] {
        let answer = ResponseTemplate::new(status)
            .insert_header("retry-after", "7")
            .set_body_json(&said);
        let server = server(answer).await;
        let failure = ask(&client(&server)).await.unwrap_err();
        assert_eq!(failure.kind(), kind, "{failure}");
        assert_eq!(failure.retry_after(), Some(Duration::from_secs(7)));
    }
    let failure = ask(&at(&hangs_up("").await)).await.unwrap_err();
    assert_eq!(failure.kind(), FailureKind::Unreachable);
    let failure = OpenAiEmbeddings::new("ftp://example.org", "m").unwrap_err();
    assert_eq!(failure.kind(), FailureKind::InvalidClient);
}

#[tokio::test]
async fn guards_retry_and_limit() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(ResponseTemplate::new(503).insert_header("retry-after", "0"))
        .up_to_n_times(1)
        .mount(&server)
        .await;
    Mock::given(method("POST"))
        .respond_with(embeddings(&json!([one(0, &[1.0]), one(1, &[2.0])])))
        .mount(&server)
        .await;
    let policy = GuardPolicy {
        session_spend: SpendPolicy::calls(2),
        ..GuardPolicy::default()
    };
    let timer = Arc::new(model_client::TokioTimer::new());
    let guarded = GuardedModel::new("small", client(&server), policy, timer);
    let answer = ask(&guarded).await.unwrap();
    assert_eq!(answer.vectors, [[1.0], [2.0]]);
    assert_eq!(guarded.session().spent().calls, 2);
    let failure = ask(&guarded).await.unwrap_err();
    assert_eq!(failure.kind(), FailureKind::SpendLimit);
    assert_eq!(server.received_requests().await.unwrap().len(), 2);
}
