//! The ladder over a real client of a model.

use model_client::OpenAiCompatible;
use serde_json::{Value, json};
use summarize_escalation::{
    Ladder, LadderOutcome, LlmSummarizer, Source, Summarizer as _, SummaryRequest, Tier, escalate,
};
use token_estimate::HeuristicEstimator;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

fn completion(content: &Value, finish: &str) -> Value {
    json!({
        "choices": [{
            "index": 0, "finish_reason": finish,
            "message": {"role": "assistant", "content": content, "refusal": null},
        }],
        "usage": {"prompt_tokens": 120, "completion_tokens": 9, "total_tokens": 129},
    })
}

#[test]
fn the_id_names_provider_model_and_prompts() {
    let client = OpenAiCompatible::new("http://localhost/v1", "small-model").unwrap();
    let summarizer = LlmSummarizer::new("small-model", client).with_provider("ollama");
    assert!(
        summarizer.id().starts_with("ollama:small-model/"),
        "{}",
        summarizer.id()
    );
    assert_eq!(summarizer.model(), Some("small-model"));
}

/// What a server answers, under a ladder.
async fn climbed(
    answer: &Value,
    ladder: &Ladder,
) -> Result<LadderOutcome, summarize_escalation::Error> {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(ResponseTemplate::new(200).set_body_json(answer))
        .mount(&server)
        .await;
    let texts = ["Deploy only after the tests are green. "; 12];
    let messages = texts.iter().map(|text| memory_model::Message::user(*text));
    let log = crate::fixtures::entries(messages.collect());
    let source: Vec<_> = log.iter().map(Source::from).collect();
    let request = SummaryRequest::new(&source, &HeuristicEstimator::Bytes4);
    let client = OpenAiCompatible::new(&server.uri(), "small-model").unwrap();
    let summarizer = LlmSummarizer::new("small-model", client).with_provider("compatible");
    escalate(&summarizer, ladder, &request).await
}

#[tokio::test]
async fn a_providers_stop_reason_reaches_the_rules_of_the_ladder() {
    let cut = completion(&json!("Deploy when green, and"), "length");
    let filtered = completion(&json!("Deploy"), "content_filter");
    let mut refusal = completion(&Value::Null, "stop");
    refusal["choices"][0]["message"]["refusal"] = json!("I cannot help with that.");
    // By default each tier that asks a model is tried, and the reason recorded.
    for (answer, reason) in [
        (&cut, "cut_off"),
        (&filtered, "filtered"),
        (&refusal, "refused"),
    ] {
        let outcome = climbed(answer, &Ladder::default()).await.unwrap();
        assert_eq!(outcome.tier, Tier::Extractive);
        let tiers: Vec<Tier> = outcome.refused.iter().map(|refusal| refusal.tier).collect();
        assert_eq!(
            tiers,
            [Tier::Normal, Tier::Aggressive],
            "{:?}",
            outcome.refused
        );
        for refusal in &outcome.refused {
            assert_eq!(
                serde_json::to_value(&refusal.reason).unwrap(),
                json!(reason)
            );
        }
    }
}
