use std::sync::Arc;

use memory_model::Seq;
use memory_store::{FullStore, Origin};
use retrieval_tools::{
    DESCRIBE, EXPAND, ErrorKind, FILES, GREP, GrepArgs, HitOrder, RECALL, Retrieval, RetrievalSet,
    SearchMode, SearchScope, Tool, ToolAnswer, ToolArguments, ToolShape,
};
use serde_json::Value;
use token_estimate::HeuristicEstimator;

use crate::world::{Counts, World, tree};

fn json(answer: &ToolAnswer) -> Value {
    serde_json::from_str(answer.json.as_str()).unwrap()
}

#[test]
fn declarations_in_every_shape() {
    let tools = Retrieval::tools();
    let names = tools.each_ref().map(|tool| tool.name);
    assert_eq!(names, [GREP, DESCRIBE, EXPAND, RECALL, FILES]);
    for shape in ToolShape::ALL {
        insta::assert_json_snapshot!(
            format!("declared_{}", shape.as_str()),
            shape.declare(&tools)
        );
    }
}

/// Where `AGENT_MEMORY_REQUESTS` names a folder, a request with the tools is written there in each shape, for
/// `cargo xtask provider-types`, which holds them against the types of the providers' own libraries.
#[test]
fn requests_with_the_tools() {
    let Some(folder) = std::env::var_os("AGENT_MEMORY_REQUESTS") else {
        return;
    };
    for (shape, name, field) in [
        (ToolShape::OpenAiChat, "openai", "messages"),
        (ToolShape::OpenAiResponses, "responses", "input"),
        (ToolShape::Anthropic, "anthropic", "messages"),
        (ToolShape::Gemini, "gemini", "contents"),
    ] {
        let message = match shape {
            ToolShape::Gemini => serde_json::json!({"role": "user", "parts": [{"text": "x"}]}),
            _ => serde_json::json!({"role": "user", "content": "x"}),
        };
        let tools = shape.declare(&Retrieval::tools());
        let request = serde_json::json!({field: [message], "tools": tools});
        let file = std::path::Path::new(&folder).join(format!("retrieval-tools.{name}.json"));
        std::fs::write(file, request.to_string()).unwrap();
    }
}

/// Strict modes: every property is required, nothing else may be given, and no key is used that they do not
/// know.
#[test]
fn strict_schemas_keep_within_what_strict_modes_accept() {
    fn check(schema: &Value) {
        let known = [
            "additionalProperties",
            "description",
            "enum",
            "items",
            "properties",
            "required",
            "type",
        ];
        let object = schema.as_object().unwrap();
        assert!(
            object.keys().all(|key| known.contains(&key.as_str())),
            "{schema}"
        );
        if let Some(properties) = object.get("properties") {
            let names: Vec<&String> = properties.as_object().unwrap().keys().collect();
            let required = schema["required"].as_array().unwrap();
            let required: Vec<&str> = required.iter().map(|name| name.as_str().unwrap()).collect();
            assert_eq!(names, required);
            assert_eq!(schema["additionalProperties"], false);
            properties.as_object().unwrap().values().for_each(check);
        }
        // What may be null says so in its list of values too.
        if let (Some(types), Some(values)) = (schema["type"].as_array(), schema["enum"].as_array())
        {
            assert_eq!(
                types.contains(&"null".into()),
                values.contains(&Value::Null),
                "{schema}"
            );
        }
        if let Some(items) = object.get("items") {
            check(items);
        }
    }
    for tool in all_tools() {
        check(&tool.strict_schema());
        let loose = tool.schema();
        let required = loose["required"].as_array().unwrap();
        let wanted = tool.parameters.iter().filter(|one| one.required);
        assert_eq!(required.len(), wanted.count(), "{}", tool.name);
    }
}

fn all_tools() -> Vec<Tool> {
    Retrieval::tools().into()
}

/// What a strict mode sends for arguments that are left out, and what an absent-minded model does.
#[tokio::test]
async fn every_argument_can_be_null() {
    let (world, [a, ..]) = tree().await;
    let tools = world.tools();
    for tool in all_tools() {
        let mut given = serde_json::Map::new();
        for parameter in &tool.parameters {
            let value = match (parameter.required, parameter.name) {
                (true, "pattern") => "green".into(),
                (true, _) => a.id.as_str().into(),
                (false, "query") => "green".into(),
                (false, _) => Value::Null,
            };
            given.insert(parameter.name.to_owned(), value);
        }
        let answer = tools.call(tool.name, &Value::from(given).to_string()).await;
        assert!(!answer.is_error, "{} {}", tool.name, answer.text);
    }
}

#[test]
fn arguments_are_types() {
    let args = GrepArgs::from_json(
        r#"{"pattern":"x","mode":"Regex","smart_case":"true","scope":"summaries","roles":["user"],
            "first":"3","last":9.0,"since":"2026-01-02","until":"2026-01-03T04:05:06Z","order":"newest",
            "limit":7,"cursor":"c"}"#,
    );
    insta::assert_debug_snapshot!("typed_arguments", args.unwrap());
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
        (GREP, r#"{"patern":"x"}"#),
        (GREP, r#"{"pattern":"x","mode":"regexp"}"#),
        (GREP, r#"{"pattern":"x","roles":["usr"]}"#),
        (GREP, r#"{"pattern":"x","roles":[4]}"#),
        (GREP, r#"{"pattern":"x","since":"yesterday"}"#),
        (GREP, r#"{"pattern":"x","smart_case":"maybe"}"#),
        (GREP, r#"{"pattern":"x","first":9,"last":3}"#),
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
        (RECALL, "{}"),
        (RECALL, r#"{"query":" "}"#),
        (RECALL, r#"{"query":"x","turn":3}"#),
        (RECALL, r#"{"turn":77}"#),
        (RECALL, r#"{"turn":0}"#),
        (RECALL, r#"{"query":"x","cursor":"r1/9@00000000"}"#),
        (FILES, r#"{"file":"x"}"#),
        (FILES, r#"{"action":"write"}"#),
        (FILES, r#"{"cursor":"f1+0@00000000"}"#),
        ("memory_forget", "{}"),
        ("memory_expnd", "{}"),
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
        let description = Some(declared.description.as_str());
        assert_eq!(defined.description.as_deref(), description);
        let schema: serde_json::Value = serde_json::from_str(defined.parameters.as_str()).unwrap();
        assert_eq!(schema, declared.schema());
        assert_eq!(memory_model::ToolDefinition::from(declared), *defined);
    }
    assert!(!Retrieval::has_tool("read_file"));
}

#[tokio::test]
async fn a_set_has_the_conversations_that_it_was_given() {
    let (world, _) = tree().await;
    let other = world.open("other", Origin::Root).await;
    other
        .say(vec![memory_model::Message::user("the other's words")])
        .await;
    let third = world.open("third", Origin::Root).await;
    third
        .say(vec![memory_model::Message::user("the third's words")])
        .await;
    // One conversation: the tools are as they are alone.
    let one = RetrievalSet::new("main", world.tools());
    assert_eq!(one.tools(), all_tools());
    let answer = one.call(GREP, r#"{"pattern":"number 12"}"#).await;
    assert_eq!(json(&answer)["hits"][0]["seq"], 12);
    let two = one.with("other", other.tools());
    insta::assert_json_snapshot!("declared_for_two", two.tools()[1].schema());
    let answer = two
        .call(GREP, r#"{"session":"other","pattern":"words"}"#)
        .await;
    assert_eq!(json(&answer)["hits"][0]["seq"], 1);
    let mut out = String::new();
    for (name, arguments) in [
        (EXPAND, r#"{"summary_id":"message:1"}"#),
        (GREP, r#"{"pattern":"words","session":"third"}"#),
        (GREP, r#"{"pattern":"words","session":["other"]}"#),
        (GREP, r#"{"pattern":"words","sessions":"other"}"#),
        (GREP, r#"{"session":"other"}"#),
        ("memory_forget", "{}"),
    ] {
        let answer = two.call(name, arguments).await;
        assert!(answer.is_error && !answer.text.contains("third's"));
        out.push_str(&format!("{name} {arguments}\n  {}", answer.text));
    }
    insta::assert_snapshot!("errors_of_a_set", out);
    let all = two.call(GREP, r#"{"pattern":"number"}"#).await;
    assert!(!all.is_error && !all.text.contains("third's"), "{all:?}");
    // A smaller set is no way back to the larger one.
    let again = two.only(&["other".into()]).unwrap();
    assert_eq!(again.members().count(), 1);
    assert!(again.only(&["main".into()]).is_err() && again.only(&[]).is_err());
}

/// Three sessions: their messages that have a needle, with their times.
async fn three() -> (RetrievalSet, [Vec<u32>; 3]) {
    let one = World::new().await;
    let worlds = [
        one.open("a", Origin::Root).await,
        one.open("b", Origin::Root).await,
        one.open("c", Origin::Root).await,
    ];
    let mut set: Option<RetrievalSet> = None;
    let mut needles = [Vec::new(), Vec::new(), Vec::new()];
    for (at, (world, key)) in worlds.iter().zip(["a", "b", "c"]).enumerate() {
        let messages = (1..=[9_u32, 40, 2][at]).map(|n| {
            let has = n % (at as u32 + 1) == 0;
            needles[at].extend(has.then_some(n));
            let text = if has { "a needle in the hay" } else { "hay" };
            let time = crate::world::at(i64::from(n) * 10 + at as i64);
            memory_model::Message::user(format!("{text} {key}{n}")).with_created_at(time)
        });
        world.say(messages.collect()).await;
        let tools = world.tools();
        set = Some(match set {
            None => RetrievalSet::new(key, tools),
            Some(set) => set.with(key, tools),
        });
    }
    (set.unwrap(), needles)
}

#[tokio::test]
async fn one_answer_over_several_sessions_merges_them_fairly() {
    let (set, needles) = three().await;
    let expected: usize = needles.iter().map(Vec::len).sum();
    for mode in [
        SearchMode::Literal,
        SearchMode::Words,
        SearchMode::Prose,
        SearchMode::Auto,
    ] {
        for order in [HitOrder::Relevance, HitOrder::Oldest, HitOrder::Newest] {
            let mut first = None;
            for limit in [1, 4, 7, 100] {
                let args = GrepArgs::new("needle").with_mode(mode).with_order(order);
                let mut args = args.with_scope(SearchScope::Messages).with_limit(limit);
                let (mut hits, mut pages) = (Vec::new(), 0);
                loop {
                    let answer = set.grep(&args).await.unwrap();
                    assert!(answer.hits.len() <= limit && answer.sessions == 3);
                    hits.extend(answer.hits);
                    pages += 1;
                    assert!(pages < 200, "{mode:?} {order:?} {limit}");
                    match answer.cursor {
                        Some(cursor) => args = args.with_cursor(cursor),
                        None => break,
                    }
                }
                let found: Vec<(String, u32)> = hits
                    .iter()
                    .map(|one| (one.session.to_string(), one.hit.seq.unwrap().0))
                    .collect();
                // Pages of any size are the same answer.
                assert_eq!(
                    first.get_or_insert_with(|| found.clone()),
                    &found,
                    "{limit}"
                );
                if mode != SearchMode::Prose {
                    assert_eq!(found.len(), expected, "{mode:?} {order:?} {limit}");
                }
                let mut each = found.clone();
                each.sort();
                each.dedup();
                assert_eq!(each.len(), found.len(), "each hit once");
                let times: Vec<_> = hits.iter().map(|one| one.hit.created_at).collect();
                match order {
                    HitOrder::Oldest => assert!(times.is_sorted(), "{times:?}"),
                    HitOrder::Newest => assert!(times.iter().rev().is_sorted(), "{times:?}"),
                    // Each session has its turn: c has no needle but at 2.
                    _ => {
                        let turns: Vec<&str> = found.iter().map(|one| one.0.as_str()).collect();
                        assert_eq!(turns[..2], ["a", "b"], "{turns:?}");
                        let of =
                            |key: &str| turns.iter().take(10).filter(|one| **one == key).count();
                        assert!(of("a").abs_diff(of("b")) <= 1, "{turns:?}");
                    }
                }
            }
        }
    }
    // In the mode that is tried first and finds something anywhere.
    let answer = set.grep("hay c2").await.unwrap();
    assert_eq!((answer.mode, answer.hits.len()), (SearchMode::Literal, 1));
    let answer = set.grep("c2 hay").await.unwrap();
    assert_eq!((answer.mode, answer.hits.len()), (SearchMode::Words, 1));
    assert!(
        answer
            .to_text()
            .starts_with("Note: nothing has the exact phrase")
    );
    assert!(
        answer
            .to_text()
            .contains("1. session \"c\" message:2 user ")
    );
    let nothing = set.grep("zeppelin").await.unwrap();
    assert_eq!(nothing.to_text(), "No matches found in 3 sessions.\n");
    // A cursor belongs to its sessions and its question.
    let args = GrepArgs::new("needle").with_limit(1);
    let cursor = set.grep(&args).await.unwrap().cursor.unwrap();
    let two = set.only(&["a".into(), "b".into()]).unwrap();
    let other = GrepArgs::new("hay").with_cursor(cursor.clone());
    let turned = set.only(&["b".into(), "a".into(), "c".into()]).unwrap();
    let same = args.clone().with_cursor(cursor);
    for (set, args) in [(&two, &same), (&set, &other), (&turned, &same)] {
        let error = set.grep(args).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
}
