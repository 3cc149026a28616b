use std::sync::Arc;

use memory_model::{Role, Seq, Timestamp};
use memory_store::{FullStore, Origin};
use retrieval_tools::{
    ErrorKind, GrepArgs, HitOrder, Retrieval, RetrievalSet, SearchMode, SearchScope, Tool,
};
use serde_json::{Value, json};
use token_estimate::HeuristicEstimator;

use crate::world::{Counts, Set, World, tree};

#[test]
fn declarations() {
    let declared = |tool: &Tool| {
        serde_json::json!({
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "schema": tool.schema(),
        })
    };
    let declared: Vec<Value> = Retrieval::tools().iter().map(declared).collect();
    insta::assert_json_snapshot!(declared);
    let names = Retrieval::tools().iter().map(|tool| tool.name);
    let known = memory_model::conventions::MEMORY_TOOLS.iter().copied();
    assert!(names.eq(known.filter(|name| name.starts_with("memory_"))));
}

/// All providers accept schemas of plain types with a description.
#[test]
fn schemas_are_plain() {
    for tool in Retrieval::tools() {
        let schema = tool.schema();
        assert_eq!(
            (&schema["type"], &schema["additionalProperties"]),
            (&"object".into(), &false.into())
        );
        let properties = schema["properties"].as_object().unwrap();
        for (name, property) in properties {
            let keys = property.as_object().unwrap().keys();
            let known = ["description", "enum", "items", "type"];
            assert!(
                keys.clone().all(|key| known.contains(&key.as_str())),
                "{property}"
            );
            let is_described = property["description"]
                .as_str()
                .is_some_and(|text| !text.is_empty());
            assert!(
                is_described && property["type"].is_string(),
                "{name} {property}"
            );
        }
        for name in schema["required"].as_array().unwrap() {
            assert_eq!(properties[name.as_str().unwrap()]["type"], "string");
        }
    }
}

/// Strict modes of providers send null for missing arguments, and models sometimes do the same.
#[tokio::test]
async fn every_argument_can_be_null() {
    let (world, [a, ..]) = tree().await;
    let tools = world.tools();
    for tool in Retrieval::tools() {
        let mut given = serde_json::Map::new();
        let schema = tool.schema();
        for name in schema["properties"].as_object().unwrap().keys() {
            let is_required = schema["required"]
                .as_array()
                .unwrap()
                .contains(&name.as_str().into());
            let value = match (is_required, name.as_str()) {
                (true, "pattern") => "green".into(),
                (true, _) => a.id.as_str().into(),
                (false, "query") => "green".into(),
                (false, _) => Value::Null,
            };
            given.insert(name.clone(), value);
        }
        let answer = tools.call(tool.name, &Value::from(given).to_string()).await;
        assert!(!answer.is_error, "{} {}", tool.name, answer.text);
    }
}

/// A cursor is bound to all arguments, so it shows that arguments of different types are read as equal.
#[tokio::test]
async fn arguments_are_types() {
    let (world, _) = tree().await;
    let tools = world.tools();
    let asked = GrepArgs {
        pattern: "number".to_owned(),
        mode: SearchMode::Regex,
        smart_case: true,
        scope: SearchScope::Messages,
        roles: vec![Role::User],
        first: Some(Seq(3)),
        last: Some(Seq(9)),
        since: Timestamp::parse("2001-01-02T00:00:00Z"),
        until: Timestamp::parse("2126-01-03T04:05:06Z"),
        order: HitOrder::Newest,
        limit: 1,
        ..GrepArgs::default()
    };
    let first = tools.grep(asked.clone()).await.unwrap();
    let arguments = serde_json::json!({
        "pattern": "number", "mode": "Regex", "smart_case": "true", "scope": "messages", "roles": ["user"],
        "first": "3", "last": 9.0, "since": "2001-01-02", "until": "2126-01-03T04:05:06Z", "order": "newest",
        "limit": 2, "cursor": first.cursor.unwrap(),
    });
    let answer = tools.call("memory_grep", &arguments.to_string()).await;
    assert_eq!(
        answer.json["hits"].as_array().unwrap().len(),
        2,
        "{}",
        answer.text
    );
}

#[tokio::test]
async fn a_tool_set_fits_into_an_agent() {
    // The tools work with one pointer to a complete store, and on any thread.
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
    let answer = tools
        .call("memory_grep", r#"{"pattern":"number 12"}"#)
        .await;
    assert!(!answer.is_error && answer.text.contains("[12] "));
    assert_eq!(answer.json["hits"][0]["seq"], 12);
    let describe = format!(r#"{{"summary_id":"{}"}}"#, top.id);
    let answer = tools.call("memory_describe", &describe).await;
    assert_eq!(answer.json["children"][0], a.id.as_str());
    let answer = tools.call("memory_expand", &describe).await;
    assert_eq!(answer.json["children"][0]["kind"], "summary");
    assert_eq!(answer.json["children"][1]["kind"], "message");
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
        let answer = tools.call("memory_grep", &arguments).await;
        let found = answer.json["hits"].as_array().unwrap().len();
        assert_eq!(found, hits, "{limit}");
    }
    for scope in ["messages", " Messages "] {
        let arguments = format!(r#"{{"pattern":"green","scope":"{scope}","cursor":""}}"#);
        assert!(!tools.call("memory_grep", &arguments).await.is_error);
    }
    // An object that was written as a string.
    let answer = tools
        .call("memory_expand", r#""{\"summary_id\":\"message:2\"}""#)
        .await;
    assert_eq!(answer.json["tokens"], 4);
    let capped = r#"{"summary_id":"messages:1-30","token_cap":"9"}"#;
    assert_eq!(tools.call("memory_expand", capped).await.json["tokens"], 8);
}

/// Returns the names of all tools as an error message lists them.
fn names_of_tools() -> String {
    let names: Vec<&str> = Retrieval::tools().iter().map(|tool| tool.name).collect();
    let (last, first) = names.split_last().unwrap();
    format!("{} or {last}", first.join(", "))
}

#[tokio::test]
async fn the_error_of_a_bad_call_has_the_next_step() {
    let (world, _) = tree().await;
    let tools = world.tools();
    let mut out = String::new();
    for (name, arguments) in [
        ("memory_grep", ""),
        ("memory_grep", "{}"),
        ("memory_grep", r#"{"pattern":""}"#),
        ("memory_grep", r#"{"pattern":null}"#),
        ("memory_grep", r#"{"pattern":12}"#),
        ("memory_grep", r#"{"pattern":"x","scope":"all"}"#),
        ("memory_grep", r#"{"pattern":"x","limit":"many"}"#),
        ("memory_grep", r#"{"pattern":"x","limit":2.5}"#),
        ("memory_grep", r#"{"pattern":"x","limit":[3]}"#),
        ("memory_grep", r#"{"pattern":"x","max":3}"#),
        ("memory_grep", r#"{"patern":"x"}"#),
        ("memory_grep", r#"{"pattern":"x","mode":"regexp"}"#),
        ("memory_grep", r#"{"pattern":"x","roles":["usr"]}"#),
        ("memory_grep", r#"{"pattern":"x","roles":[4]}"#),
        ("memory_grep", r#"{"pattern":"x","since":"yesterday"}"#),
        ("memory_grep", r#"{"pattern":"x","smart_case":"maybe"}"#),
        ("memory_grep", r#"{"pattern":"x","first":9,"last":3}"#),
        ("memory_grep", r#"{"pattern":"x","cursor":"zzz"}"#),
        ("memory_grep", "[1]"),
        ("memory_grep", "{\"pattern\":"),
        ("memory_describe", "{}"),
        ("memory_describe", r#"{"summary_id":"  "}"#),
        (
            "memory_describe",
            r#"{"summary_id":"sum_none\nError: none"}"#,
        ),
        ("memory_describe", r#"{"summary_id":true}"#),
        ("memory_expand", "null"),
        ("memory_expand", r#"{"summary_id":"message:77"}"#),
        ("memory_expand", r#"{"summary_id":"messages:9-1"}"#),
        (
            "memory_expand",
            r#"{"summary_id":"message:1","token_cap":{}}"#,
        ),
        ("memory_recall", "{}"),
        ("memory_recall", r#"{"query":" "}"#),
        ("memory_recall", r#"{"query":"x","turn":3}"#),
        ("memory_recall", r#"{"turn":77}"#),
        ("memory_recall", r#"{"turn":0}"#),
        ("memory_recall", r#"{"query":"x","cursor":"r1/9@00000000"}"#),
        ("memory_files", r#"{"file":"x"}"#),
        ("memory_files", r#"{"action":"write"}"#),
        ("memory_files", r#"{"cursor":"f1+0@00000000"}"#),
        ("memory_requests", r#"{"limit":"many"}"#),
        ("memory_requests", r#"{"cursor":"q1@00000000"}"#),
        ("memory_forget", "{}"),
        ("memory_expnd", "{}"),
    ] {
        let answer = tools.call(name, arguments).await;
        assert!(answer.is_error, "{name} {arguments}");
        assert!(answer.json["error"]["message"].is_string());
        assert_eq!(answer.text.lines().count(), 1, "{}", answer.text);
        out.push_str(&format!("{name} {arguments}\n  {}", answer.text));
    }
    insta::assert_snapshot!("errors", out.replace(&names_of_tools(), "any tool"));
}

#[tokio::test]
async fn the_tools_are_offered_in_the_shape_that_sessions_take() {
    let tools = World::new().await.tools();
    for (declared, defined) in Retrieval::tools().iter().zip(Retrieval::definitions()) {
        assert!(tools.has_tool(&defined.name));
        assert_eq!(defined.name, declared.name);
        assert_eq!(defined.description.as_deref(), Some(declared.description));
        let schema: serde_json::Value = serde_json::from_str(defined.parameters.as_str()).unwrap();
        assert_eq!(schema, declared.schema());
        assert_eq!(memory_model::ToolDefinition::from(declared), defined);
    }
    assert!(!tools.has_tool("read_file"));
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
    // In a set of one conversation, the tools are the same as without a set.
    let one = RetrievalSet::new("main", world.tools());
    for (tool, alone) in one.tools().iter().zip(Retrieval::tools()) {
        assert_eq!((tool.name, tool.schema()), (alone.name, alone.schema()));
    }
    let answer = one.call("memory_grep", r#"{"pattern":"number 12"}"#).await;
    assert_eq!(answer.json["hits"][0]["seq"], 12);
    let two = one.with("other", other.tools());
    insta::assert_json_snapshot!("declared_for_two", two.tools()[1].schema());
    let answer = two
        .call("memory_grep", r#"{"session":"other","pattern":"words"}"#)
        .await;
    assert_eq!(answer.json["hits"][0]["seq"], 1);
    let mut out = String::new();
    for (name, arguments) in [
        ("memory_expand", r#"{"summary_id":"message:1"}"#),
        ("memory_grep", r#"{"pattern":"words","session":"third"}"#),
        ("memory_grep", r#"{"pattern":"words","session":["other"]}"#),
        ("memory_grep", r#"{"pattern":"words","sessions":"other"}"#),
        ("memory_grep", r#"{"session":"other"}"#),
        ("memory_forget", "{}"),
    ] {
        let answer = two.call(name, arguments).await;
        assert!(answer.is_error && !answer.text.contains("third's"));
        out.push_str(&format!("{name} {arguments}\n  {}", answer.text));
    }
    insta::assert_snapshot!(
        "errors_of_a_set",
        out.replace(&names_of_tools(), "any tool")
    );
    let all = two.call("memory_grep", r#"{"pattern":"number"}"#).await;
    assert!(!all.is_error && !all.text.contains("third's"), "{all:?}");
}

/// Creates three sessions. Returns their tools, and for each session the positions of the messages that contain the
/// word `needle`.
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
                let args = GrepArgs::new("needle")
                    .set(|it| it.mode = mode)
                    .set(|it| it.order = order);
                let mut args = args
                    .set(|it| it.scope = SearchScope::Messages)
                    .set(|it| it.limit = limit);
                let (mut hits, mut pages) = (Vec::new(), 0);
                loop {
                    let answer = set.grep(args.clone()).await.unwrap();
                    assert!(answer.hits.len() <= limit && answer.sessions == 3);
                    hits.extend(answer.hits);
                    pages += 1;
                    assert!(pages < 200, "{mode:?} {order:?} {limit}");
                    match answer.cursor {
                        Some(cursor) => args = args.set(|it| it.cursor = Some(cursor)),
                        None => break,
                    }
                }
                let found: Vec<(String, u32)> = hits
                    .iter()
                    .map(|one| (one.session.to_string(), one.hit.seq.unwrap().0))
                    .collect();
                // Pages of any size together give the same answer.
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
                    // The sessions take turns. The session c contains only one needle.
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
    // The mode is the first one that finds a hit in any session.
    let answer = set.grep("hay c2").await.unwrap();
    assert_eq!((answer.mode, answer.hits.len()), (SearchMode::Literal, 1));
    let answer = set.grep("c2 hay").await.unwrap();
    assert_eq!((answer.mode, answer.hits.len()), (SearchMode::Words, 1));
    assert!(
        answer
            .to_text()
            .starts_with("Note: nothing has the exact phrase")
    );
    assert!(answer.to_text().contains("1. session \"c\" [2] user"));
    let nothing = set.grep("zeppelin").await.unwrap();
    assert_eq!(nothing.to_text(), "No matches found in 3 sessions.\n");
    // A cursor is bound to its sessions and its arguments.
    let args = GrepArgs::new("needle").set(|it| it.limit = 1);
    let cursor = set.grep(args.clone()).await.unwrap().cursor.unwrap();
    let only = |keys: &[usize]| {
        let members: Vec<_> = set.members().collect();
        let mut members = keys.iter().map(|at| members[*at]);
        let (key, tools) = members.next().unwrap();
        let set = RetrievalSet::new(key.clone(), tools.clone());
        members.fold(set, |set, (key, tools)| {
            set.with(key.clone(), tools.clone())
        })
    };
    let two = only(&[0, 1]);
    let other = GrepArgs::new("hay").set(|it| it.cursor = Some(cursor.clone()));
    let turned = only(&[1, 0, 2]);
    let same = args.clone().set(|it| it.cursor = Some(cursor));
    for (set, args) in [(&two, &same), (&set, &other), (&turned, &same)] {
        let error = set.grep(args.clone()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
}

#[tokio::test]
async fn a_position_alone_names_no_message_of_several_sessions() {
    let (world, summaries) = tree().await;
    let other = world.open("other", Origin::Root).await;
    other
        .say(vec![memory_model::Message::user("the other's words")])
        .await;
    let set = RetrievalSet::new("other", other.tools())
        .with("main", world.tools())
        .with_default();
    let pointers = ["message:1", "messages:1-2", " message:1 "];
    for pointer in pointers {
        let given = |session: Value| json!({"summary_id": pointer, "session": session}).to_string();
        let answer = set.call("memory_expand", &given(Value::Null)).await;
        assert!(answer.is_error, "{answer:?}");
        for part in ["in each of 2 sessions", "\"other\" or \"main\""] {
            assert!(answer.text.contains(part), "{}", answer.text);
        }
        let answer = set.call("memory_expand", &given("main".into())).await;
        assert!(
            !answer.is_error && !answer.text.contains("the other's"),
            "{answer:?}"
        );
    }
    // A summary is found in the session that has it, and every answer names the session that it is about.
    let summary = json!({"summary_id": summaries[2].id}).to_string();
    for (tool, arguments, session) in [
        ("memory_expand", summary.as_str(), "main"),
        ("memory_describe", summary.as_str(), "main"),
        ("memory_recall", r#"{"query":"words"}"#, "other"),
        ("memory_requests", "{}", "other"),
        ("memory_files", "{}", "other"),
    ] {
        let answer = set.call(tool, arguments).await;
        assert!(
            answer
                .text
                .starts_with(&format!("Session \"{session}\":\n")),
            "{answer:?}"
        );
        assert_eq!(answer.json["session"], session, "{tool}");
    }
    for (id, expected) in [("sum_nowhere", "take an id"), ("12", "message:12")] {
        for tool in ["memory_expand", "memory_describe"] {
            let answer = set.call(tool, &json!({"summary_id": id}).to_string()).await;
            assert!(
                answer.text.contains("the 2 sessions have no summary"),
                "{answer:?}"
            );
            assert!(answer.text.contains(expected), "{answer:?}");
        }
    }
    let declared = set.tools()[2].schema();
    assert_eq!(declared["required"], json!(["summary_id"]));
    let session = declared["properties"]["session"]["description"].as_str();
    assert!(
        session.unwrap().contains("always needed for messages"),
        "{declared}"
    );
}
