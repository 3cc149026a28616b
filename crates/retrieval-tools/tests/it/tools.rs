use std::sync::Arc;

use memory_model::Seq;
use memory_store::{FullStore, Origin};
use retrieval_tools::{DESCRIBE, EXPAND, GREP, Retrieval, ToolAnswer};
use serde_json::Value;
use token_estimate::HeuristicEstimator;

use crate::world::{Counts, tree};

fn json(answer: &ToolAnswer) -> Value {
    serde_json::from_str(answer.json.as_str()).unwrap()
}

#[test]
fn definitions() {
    let tools = Retrieval::tools();
    insta::assert_json_snapshot!("definitions", tools);
    assert_eq!(tools.map(|tool| tool.name), [GREP, DESCRIBE, EXPAND]);
}

#[tokio::test]
async fn a_tool_set_fits_into_an_agent() {
    // Behind one pointer to a whole store, and on any thread.
    let (world, _) = tree().await;
    let store: Arc<dyn FullStore> = world.store.clone();
    let tools = Retrieval::new(
        store,
        world.chat,
        Arc::new(Counts(HeuristicEstimator::Bytes4)),
    );
    let answer = tokio::spawn(async move {
        let found = tools.grep("number 12").await.unwrap();
        let read = tools.expand("message:12").await.unwrap();
        (found.hits.len(), read.children.len())
    });
    assert_eq!(answer.await.unwrap(), (1, 1));
}

#[tokio::test]
async fn calls_answer_in_text_and_json() {
    let (world, [a, _, top]) = tree().await;
    let tools = world.tools();
    let answer = tools.call(GREP, r#"{"pattern":"number 12"}"#).await;
    assert!(!answer.is_error && answer.text.contains("message:12"));
    assert_eq!(json(&answer)["hits"][0]["seq"], 12);
    let describe = format!(r#"{{"summary_id":"{}"}}"#, top.id);
    let answer = tools.call(DESCRIBE, &describe).await;
    assert_eq!(json(&answer)["children"][0], a.id.as_str());
    let answer = tools.call(EXPAND, &describe).await;
    assert_eq!(json(&answer)["children"][0]["kind"], "summary");
    assert_eq!(json(&answer)["children"][1]["kind"], "message");
}

#[tokio::test]
async fn arguments_are_taken_as_they_are_meant() {
    let (world, _) = tree().await;
    let tools = world.tools();
    for (limit, hits) in [
        ("3", 3),
        ("3.0", 3),
        ("\"3\"", 3),
        ("\" 3 \"", 3),
        ("0", 20),
        ("-5", 20),
        ("-5.0", 20),
        ("null", 20),
        ("\"\"", 20),
        ("1e30", 30),
    ] {
        let arguments = format!(r#"{{"pattern":"message number","limit":{limit},"cursor":null}}"#);
        let answer = tools.call(GREP, &arguments).await;
        let found = json(&answer)["hits"].as_array().unwrap().len();
        assert_eq!(found, hits, "{limit}");
    }
    for scope in ["messages", " Messages "] {
        let arguments = format!(r#"{{"pattern":"green","scope":"{scope}","cursor":""}}"#);
        assert!(!tools.call(GREP, &arguments).await.is_error);
    }
    // An object written as a string.
    let answer = tools
        .call(EXPAND, r#""{\"summary_id\":\"message:2\"}""#)
        .await;
    assert_eq!(json(&answer)["tokens"], 4);
    let capped = r#"{"summary_id":"messages:1-30","token_cap":"9"}"#;
    assert_eq!(json(&tools.call(EXPAND, capped).await)["tokens"], 8);
}

#[tokio::test]
async fn a_bad_call_is_told_what_to_do() {
    let (world, _) = tree().await;
    let tools = world.tools();
    let mut out = String::new();
    for (name, arguments) in [
        (GREP, ""),
        (GREP, "{}"),
        (GREP, r#"{"pattern":""}"#),
        (GREP, r#"{"pattern":null}"#),
        (GREP, r#"{"pattern":12}"#),
        (GREP, r#"{"pattern":"x","scope":"all"}"#),
        (GREP, r#"{"pattern":"x","limit":"many"}"#),
        (GREP, r#"{"pattern":"x","limit":2.5}"#),
        (GREP, r#"{"pattern":"x","limit":[3]}"#),
        (GREP, r#"{"pattern":"x","max":3}"#),
        (GREP, r#"{"pattern":"x","cursor":"zzz"}"#),
        (GREP, "[1]"),
        (GREP, "{\"pattern\":"),
        (DESCRIBE, "{}"),
        (DESCRIBE, r#"{"summary_id":"  "}"#),
        (DESCRIBE, r#"{"summary_id":"sum_none\nError: none"}"#),
        (DESCRIBE, r#"{"summary_id":true}"#),
        (EXPAND, "null"),
        (EXPAND, r#"{"summary_id":"message:77"}"#),
        (EXPAND, r#"{"summary_id":"messages:9-1"}"#),
        (EXPAND, r#"{"summary_id":"message:1","token_cap":{}}"#),
        ("memory_forget", "{}"),
    ] {
        let answer = tools.call(name, arguments).await;
        assert!(answer.is_error, "{name} {arguments}");
        assert!(json(&answer)["error"]["message"].is_string());
        assert_eq!(answer.text.lines().count(), 1, "{}", answer.text);
        out.push_str(&format!("{name} {arguments}\n  {}", answer.text));
    }
    insta::assert_snapshot!("errors", out);
}

#[tokio::test]
async fn no_argument_reaches_another_conversation() {
    let (world, [a, ..]) = tree().await;
    let spawned = Origin::Spawn {
        parent: world.chat,
        at: Seq(4),
        call: None,
    };
    let tools = world.open("spawned", spawned).await.tools();
    for arguments in [
        format!(r#"{{"summary_id":"{}"}}"#, a.id),
        format!(r#"{{"summary_id":"{}","cursor":"x1@00000000"}}"#, a.id),
        r#"{"summary_id":"messages:1-4294967295"}"#.to_owned(),
    ] {
        assert!(tools.call(EXPAND, &arguments).await.is_error);
        assert!(tools.call(DESCRIBE, &arguments).await.is_error);
    }
    let args = format!(r#"{{"pattern":"green","cursor":"s{}"}}"#, a.id);
    assert!(tools.call(GREP, &args).await.is_error);
}

#[test]
fn the_tools_are_offered_in_the_shape_that_sessions_take() {
    let declared = Retrieval::tools();
    let defined = Retrieval::definitions();
    for (declared, defined) in declared.into_iter().zip(&defined) {
        assert!(Retrieval::has_tool(&defined.name));
        assert_eq!(defined.name, declared.name);
        assert_eq!(defined.description.as_deref(), Some(declared.description));
        let schema: serde_json::Value = serde_json::from_str(defined.parameters.as_str()).unwrap();
        assert_eq!(schema, declared.parameters);
        assert_eq!(memory_model::ToolDefinition::from(declared), *defined);
    }
    assert!(!Retrieval::has_tool("read_file"));
}
