//! JSON of providers: no content is lost, and sanitized lists follow the rules, which are checked on the JSON itself.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use token_estimate::{HeuristicEstimator, TokenEstimator, TokenEstimatorExt};
use turn_map::{
    ClearPolicy, EditableMessage, PartView, Problem, Role, TrimPolicy, TurnMap, anthropic, apply,
    atoms, check_anthropic, check_openai, openai, sanitize,
};

const ESTIMATOR: HeuristicEstimator = HeuristicEstimator::Bytes4;

fn kinds(message: &impl EditableMessage) -> String {
    let mut kinds = String::new();
    message.parts(&mut |part| {
        kinds.push(match part {
            PartView::Text(_) => 't',
            PartView::Reasoning(_) => 'r',
            PartView::ToolCall { .. } => 'c',
            PartView::ToolResult { .. } => 'o',
            PartView::Image { .. } => 'i',
            PartView::File { .. } => 'f',
            _ => '?',
        });
    });
    kinds
}

/// Takes the parts out of a message and puts them back.
fn retaken<M: EditableMessage + Clone>(message: &M) -> (usize, M) {
    let mut message = message.clone();
    let parts = message.take_parts();
    let count = parts.len();
    message.put_parts(parts);
    (count, message)
}

/// Collects every word of the JSON that begins with `mark`.
fn marks(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => into.extend(
            text.split(|letter: char| !letter.is_ascii_alphanumeric())
                .filter(|word| word.starts_with("mark"))
                .map(str::to_owned),
        ),
        Value::Array(values) => values.iter().for_each(|value| marks(value, into)),
        Value::Object(fields) => fields.values().for_each(|value| marks(value, into)),
        _ => {}
    }
}

fn all_marks(values: &[Value]) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    values.iter().for_each(|value| marks(value, &mut all));
    all
}

/// Numbers the texts `mark`, so that each can be found again.
fn number_marks(value: &mut Value, next: &mut usize) {
    match value {
        Value::String(text) if text == "mark" => {
            *text = format!("mark{next}");
            *next += 1;
        }
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| number_marks(value, next)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|value| number_marks(value, next)),
        _ => {}
    }
}

fn numbered(mut values: Vec<Value>) -> Vec<Value> {
    let mut next = 0;
    values
        .iter_mut()
        .for_each(|value| number_marks(value, &mut next));
    values
}

mod chat {
    use super::*;

    fn id() -> impl Strategy<Value = String> {
        prop::sample::select(vec!["", "x", "y", "z"]).prop_map(str::to_owned)
    }

    fn element() -> impl Strategy<Value = Value> {
        prop::sample::select(vec![
            json!({"type": "text", "text": "mark"}),
            json!({"type": "text", "text": "mark", "cache": "mark"}),
            json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}),
            json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}),
            json!({"type": "file", "file": {"file_id": "mark"}}),
            json!({"type": "refusal", "refusal": "mark"}),
            json!({"type": "novelty", "some": ["mark"]}),
            json!("mark"),
        ])
    }

    fn content() -> impl Strategy<Value = Option<Value>> {
        prop_oneof![
            4 => Just(Some(json!("mark"))),
            1 => Just(Some(json!(""))),
            1 => Just(Some(Value::Null)),
            1 => Just(None),
            3 => prop::collection::vec(element(), 0..4).prop_map(|list| Some(Value::Array(list))),
        ]
    }

    fn call() -> impl Strategy<Value = Value> {
        (id(), 0..4).prop_map(|(id, shape)| match shape {
            0 => json!({"id": id, "type": "custom", "custom": {"name": "sql", "input": "mark"}}),
            1 => json!({"id": id, "type": "function", "function": {"name": "read", "arguments": {"of": "mark"}}}),
            _ => json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "mark"}}),
        })
    }

    fn message() -> impl Strategy<Value = Value> {
        let roles = vec![
            "system",
            "developer",
            "user",
            "assistant",
            "assistant",
            "assistant",
        ];
        let tool = (id(), content(), any::<bool>()).prop_map(|(id, content, named)| {
            let mut message = json!({"role": "tool", "tool_call_id": id, "metadata": "mark"});
            if let Some(content) = content {
                message["content"] = content;
            }
            if named {
                message["name"] = json!("read");
            }
            message
        });
        let other = (
            prop::sample::select(roles),
            content(),
            prop::collection::vec(call(), 0..4),
            prop::bool::weighted(0.1),
            prop::bool::weighted(0.1),
        )
            .prop_map(|(role, content, calls, refusal, reasoning)| {
                let mut message = json!({"role": role, "metadata": "mark"});
                if let Some(content) = content {
                    message["content"] = content;
                }
                if role == "assistant" && !calls.is_empty() {
                    message["tool_calls"] = Value::Array(calls);
                }
                if refusal {
                    message["refusal"] = json!("mark");
                }
                if reasoning {
                    message["reasoning_content"] = json!("mark");
                }
                message
            });
        prop_oneof![other, tool]
    }

    pub(super) fn list() -> impl Strategy<Value = Vec<Value>> {
        prop::collection::vec(message(), 0..14).prop_map(numbered)
    }

    /// Returns the first rule that the JSON breaks; `None` if it breaks none.
    pub(super) fn broken(list: &[Value]) -> Option<String> {
        let mut waiting: Vec<String> = Vec::new();
        for (at, message) in list.iter().enumerate() {
            let role = message["role"].as_str()?;
            if role == "tool" {
                let id = message["tool_call_id"].as_str().unwrap_or("none");
                match waiting.iter().position(|call| call == id) {
                    Some(call) => drop(waiting.remove(call)),
                    None => return Some(format!("{at}: answers nothing")),
                }
                continue;
            }
            if !waiting.is_empty() {
                return Some(format!("{at}: {waiting:?} wait"));
            }
            if message.get("tool_call_id").is_some() {
                return Some(format!("{at}: an id without a result"));
            }
            if let Some(calls) = message.get("tool_calls") {
                let calls = calls.as_array().map_or(&[][..], Vec::as_slice);
                waiting = calls
                    .iter()
                    .map(|call| call["id"].as_str().unwrap().to_owned())
                    .collect();
                if calls.is_empty() || role != "assistant" || waiting.iter().any(String::is_empty) {
                    return Some(format!("{at}: bad calls"));
                }
            }
        }
        (!waiting.is_empty()).then(|| format!("{waiting:?} wait at the end"))
    }
}

mod turns {
    use super::*;

    fn id() -> impl Strategy<Value = String> {
        prop::sample::select(vec!["", "x", "y", "z"]).prop_map(str::to_owned)
    }

    fn plain() -> impl Strategy<Value = Value> {
        prop::sample::select(vec![
            json!({"type": "text", "text": "mark", "cache_control": {"type": "ephemeral"}}),
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}),
            json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "mark"}}),
            json!({"type": "search_result", "source": "mark", "title": "mark", "content": []}),
        ])
    }

    fn block() -> impl Strategy<Value = Value> {
        let said = prop::sample::select(vec![
            json!({"type": "thinking", "thinking": "mark", "signature": "mark"}),
            json!({"type": "redacted_thinking", "data": "mark"}),
            json!({"type": "server_tool_use", "id": "mark", "name": "web_search", "input": {}}),
            json!({"type": "novelty", "some": ["mark"]}),
            json!("mark"),
        ]);
        let call = id().prop_map(|id| {
            json!({"type": "tool_use", "id": id, "name": "read", "input": {"of": "mark"}, "extra": "mark"})
        });
        prop_oneof![2 => plain(), 1 => said, 3 => call, 3 => result()]
    }

    fn result() -> impl Strategy<Value = Value> {
        let content = prop_oneof![
            3 => Just(Some(json!("mark"))),
            1 => Just(None),
            1 => Just(Some(Value::Null)),
            2 => prop::collection::vec(prop_oneof![plain(), Just(json!({"type": "tool_reference", "tool_name": "mark"}))], 0..3)
                .prop_map(|list| Some(Value::Array(list))),
        ];
        (id(), content, any::<bool>()).prop_map(|(id, content, is_error)| {
            let mut block = json!({"type": "tool_result", "tool_use_id": id, "cache_control": {"type": "ephemeral"}});
            if let Some(content) = content {
                block["content"] = content;
            }
            if is_error {
                block["is_error"] = json!(true);
            }
            block
        })
    }

    fn message() -> impl Strategy<Value = Value> {
        let content = prop_oneof![
            1 => Just(json!("mark")),
            1 => Just(json!("")),
            5 => prop::collection::vec(block(), 0..5).prop_map(Value::Array),
        ];
        let roles = vec!["user", "assistant", "assistant", "system"];
        let response = prop::option::weighted(0.2, prop::sample::select(vec!["r", "s"]));
        (prop::sample::select(roles), content, response).prop_map(|(role, content, response)| {
            let mut message = json!({"role": role, "content": content, "metadata": "mark"});
            if let Some(response) = response {
                message["id"] = json!(response);
            }
            message
        })
    }

    pub(super) fn list() -> impl Strategy<Value = Vec<Value>> {
        prop::collection::vec(message(), 0..12).prop_map(numbered)
    }

    fn ids(turn: &[&Value], kind: &str, key: &str) -> Vec<String> {
        turn.iter()
            .filter(|block| block["type"] == kind)
            .map(|block| block[key].as_str().unwrap_or("").to_owned())
            .collect()
    }

    /// Returns the first rule that the JSON breaks; `None` if it breaks none.
    pub(super) fn broken(list: &[Value]) -> Option<String> {
        let mut turns: Vec<(&str, Vec<&Value>)> = Vec::new();
        for message in list {
            let role = message["role"].as_str()?;
            let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
            let text = (!message["content"].is_array()).then_some(&message["content"]);
            let blocks = text.into_iter().chain(blocks);
            match turns.last_mut() {
                _ if role == "system" => {
                    if blocks
                        .clone()
                        .any(|b| b["type"] == "tool_use" || b["type"] == "tool_result")
                    {
                        return Some("a system message with calls".to_owned());
                    }
                }
                Some((last, turn)) if *last == role => turn.extend(blocks),
                _ => turns.push((role, blocks.collect())),
            }
        }
        let mut seen = BTreeSet::new();
        for (at, (role, turn)) in turns.iter().enumerate() {
            let calls = ids(turn, "tool_use", "id");
            let results = ids(turn, "tool_result", "tool_use_id");
            match *role {
                "assistant" => {
                    let next = turns
                        .get(at + 1)
                        .map(|(_, turn)| ids(turn, "tool_result", "tool_use_id"));
                    let mut answers = next.unwrap_or_default();
                    answers.sort();
                    let mut wanted = calls.clone();
                    wanted.sort();
                    if answers != wanted
                        || !results.is_empty()
                        || calls.iter().any(String::is_empty)
                    {
                        return Some(format!("{at}: {wanted:?} and {answers:?}"));
                    }
                    if !calls.into_iter().all(|id| seen.insert(id)) {
                        return Some(format!("{at}: an id twice"));
                    }
                }
                _ => {
                    let first = turn
                        .iter()
                        .take_while(|b| b["type"] == "tool_result")
                        .count();
                    if !calls.is_empty() || results.len() != first || (at == 0 && first > 0) {
                        return Some(format!("{at}: results behind content, or calls"));
                    }
                }
            }
        }
        None
    }
}

/// A message can hold one result, so each moved result gets a separate message.
#[test]
fn results_that_move_get_a_message_each() {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}});
    let result =
        |id: &str, text: &str| json!({"role": "tool", "tool_call_id": id, "content": text});
    let calls = json!({"role": "assistant", "tool_calls": [call("x"), call("y"), call("z")]});
    let user = json!({"role": "user", "content": "wait"});
    let list = vec![
        calls.clone(),
        user.clone(),
        result("x", "1"),
        result("y", "2"),
    ];
    let list = openai::from_values(list);
    let plan = sanitize(&list, "[no result]");
    assert_eq!(
        openai::into_values(apply(list, &plan.edits)),
        [
            calls,
            result("x", "1"),
            result("y", "2"),
            result("z", "[no result]"),
            user
        ]
    );
}

#[test]
fn the_parts_of_a_chat_message() {
    let parts = |value: Value| kinds(&openai::Chat(value));
    let call = json!({"id": "x", "function": {"name": "read", "arguments": "{}"}});
    assert_eq!(parts(json!({"role": "user", "content": "hi"})), "t");
    assert_eq!(parts(json!({"role": "user", "content": ""})), "");
    assert_eq!(
        parts(json!({"role": "assistant", "content": null, "refusal": "No."})),
        "t"
    );
    assert_eq!(
        parts(json!({"role": "assistant", "content": "so", "tool_calls": [call, call]})),
        "tcc"
    );
    assert_eq!(
        parts(
            json!({"role": "assistant", "reasoning_content": "hm", "content": [{"type": "text", "text": "a"}]})
        ),
        "rt"
    );
    assert_eq!(
        parts(
            json!({"role": "tool", "tool_call_id": "x", "content": [{"type": "text", "text": "a"}]})
        ),
        "o"
    );
    assert_eq!(parts(json!({"role": "tool"})), "o");
    assert_eq!(parts(json!([1])), "");
    let roles = [
        "system",
        "developer",
        "user",
        "assistant",
        "tool",
        "function",
    ];
    let role = |name| turn_map::MessageView::role(&openai::Chat(json!({"role": name})));
    assert_eq!(
        roles.map(role),
        [
            Role::System,
            Role::System,
            Role::User,
            Role::Assistant,
            Role::Tool,
            Role::Tool
        ]
    );
}

#[test]
fn results_that_are_late_or_without_a_call_become_a_users_text() {
    let list = openai::from_values(vec![
        json!({"role": "user", "content": "hi"}),
        json!({"role": "tool", "tool_call_id": "x", "name": "read", "content": "found", "metadata": 1}),
        json!({"role": "tool", "tool_call_id": "y", "content": [{"type": "text", "text": "seen"}]}),
    ]);
    let plan = sanitize(&list, "[no result]");
    assert!(
        plan.findings
            .iter()
            .all(|finding| finding.problem == Problem::Orphan)
    );
    assert_eq!(
        openai::into_values(apply(list, &plan.edits))[1..],
        [
            json!({"role": "user", "content": "[Result without a call: x]\nfound", "metadata": 1}),
            json!({"role": "user", "content": [
                {"type": "text", "text": "[Result without a call: y]"},
                {"type": "text", "text": "seen"},
            ]}),
        ]
    );
}

#[test]
fn grouping_trimming_and_clearing_read_the_json() {
    let long = "many words ".repeat(1_000);
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "Read", "arguments": "{}"}});
    let mut list = vec![json!({"role": "user", "content": "Read."})];
    for id in ["x", "y"] {
        list.push(json!({"role": "assistant", "tool_calls": [call(id)]}));
        list.push(json!({"role": "tool", "tool_call_id": id, "content": [{"type": "text", "text": long}, {"type": "text", "text": "end"}]}));
    }
    let list = openai::from_values(list);
    let groups = atoms(&list);
    let ranges: Vec<_> = groups.iter().map(|atom| atom.range()).collect();
    assert_eq!(ranges, [0..1, 1..3, 3..5]);
    assert_eq!(TurnMap::by_role(&list).count(), 1);
    let edits = TrimPolicy::ToolOutputTokens { tokens: 100 }.edits(2, &list[2], "", &ESTIMATOR);
    let trimmed = apply(list.clone(), &edits);
    let content = trimmed[2].0["content"].as_array().unwrap();
    assert_eq!(content.len(), 1);
    assert!(ESTIMATOR.text(content[0]["text"].as_str().unwrap()) <= 100);
    let clear = ClearPolicy {
        keep: 1,
        min_tokens: 1,
        min_messages: 0,
        tools: vec!["Read".into()],
    };
    let cleared = apply(
        list.clone(),
        &clear.edits(&list, |_| String::new(), &ESTIMATOR),
    );
    let stub = cleared[2].0["content"].as_str().unwrap();
    assert!(turn_map::is_left_out(stub));
    assert_eq!(cleared[4], list[4]);

    let blocks = anthropic::from_values(vec![
        json!({"role": "user", "content": "Read."}),
        json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "tool_use", "id": "x", "name": "Read", "input": {}}]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": [{"type": "text", "text": long}], "is_error": true}]}),
        json!({"role": "user", "content": "And?"}),
    ]);
    let ranges: Vec<_> = atoms(&blocks).iter().map(|atom| atom.range()).collect();
    assert_eq!(ranges, [0..1, 1..3, 3..4]);
    assert_eq!(TurnMap::by_role(&blocks).count(), 2);
    assert_eq!(kinds(&blocks[1]), "rc");
    let edits = TrimPolicy::ToolOutputTokens { tokens: 100 }.edits(2, &blocks[2], "", &ESTIMATOR);
    let before = ESTIMATOR.messages(&blocks);
    let trimmed = apply(blocks, &edits);
    assert!(ESTIMATOR.messages(&trimmed) < before);
    assert_eq!(trimmed[2].0["content"][0]["is_error"], true);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn putting_back_the_parts_of_a_chat_message_does_not_change_it(list in chat::list()) {
        for message in openai::from_values(list) {
            let (count, again) = retaken(&message);
            prop_assert_eq!(count, kinds(&message).len());
            prop_assert_eq!(again, message);
        }
    }

    #[test]
    fn putting_back_the_parts_of_a_turn_does_not_change_it(list in turns::list()) {
        for message in anthropic::from_values(list) {
            let (count, again) = retaken(&message);
            prop_assert_eq!(count, kinds(&message).len());
            prop_assert_eq!(again, message);
        }
    }

    #[test]
    fn a_sanitized_chat_keeps_the_rules_and_all_content(list in chat::list()) {
        let before = all_marks(&list);
        let list = openai::from_values(list);
        let plan = sanitize(&list, "[no result]");
        let mended = apply(list, &plan.edits);
        prop_assert_eq!(check_openai(&mended), vec![]);
        prop_assert!(sanitize(&mended, "[no result]").edits.is_empty());
        let mended = openai::into_values(mended);
        prop_assert_eq!(chat::broken(&mended), None, "{:#?}", mended);
        prop_assert_eq!(all_marks(&mended), before);
    }

    #[test]
    fn sanitized_turns_keep_the_rules_and_all_content(list in turns::list()) {
        let list = anthropic::from_values(list);
        let plan = sanitize(&list, "[no result]");
        let mended = apply(list.clone(), &plan.edits);
        prop_assert_eq!(check_anthropic(&mended), vec![]);
        prop_assert!(sanitize(&mended, "[no result]").edits.is_empty());
        let mended = anthropic::into_values(mended);
        prop_assert_eq!(turns::broken(&mended), None, "{:#?}", mended);
        // A message without remaining results is removed together with its fields. A call by another role is removed
        // too.
        let mut kept = BTreeSet::new();
        for message in list {
            if let Value::Array(blocks) = &message.0["content"] {
                let stays = |block: &&Value| block["type"] != "tool_use" || message.0["role"] == "assistant";
                blocks.iter().filter(stays).for_each(|block| marks(block, &mut kept));
            } else {
                marks(&message.0, &mut kept);
            }
        }
        let after = all_marks(&mended);
        let lost: Vec<_> = kept.difference(&after).collect();
        prop_assert!(lost.is_empty(), "{lost:?}");
    }
}
