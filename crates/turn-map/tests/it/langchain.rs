//! `trim_to_budget` beside LangChain's `trim_messages`: 500 random lists with random arguments, recorded
//! by `langchain.py`. Every difference has a reason that is read from the case, not from our result.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use turn_map::openai::{self, Chat};
use turn_map::{GroupingPolicy, Role, TextSplitter, Trim, TrimStrategy, Trimmed, trim_to_budget};

#[derive(Deserialize)]
struct Case {
    messages: Vec<Value>,
    given: Given,
    #[serde(default)]
    kept: Vec<usize>,
    #[serde(default)]
    changed: Vec<(usize, Vec<Option<String>>)>,
    raised: Option<String>,
}

#[derive(Deserialize)]
struct Given {
    max_tokens: u64,
    counter: String,
    strategy: TrimStrategy,
    allow_partial: bool,
    start_on: Vec<Role>,
    end_on: Vec<Role>,
    include_system: bool,
    text_splitter: String,
}

impl Given {
    fn trim(&self, grouping: Option<GroupingPolicy>) -> Trim {
        let splitter = match self.text_splitter.as_str() {
            "words" => TextSplitter::new(|text| text.split_inclusive(' ').collect()),
            "characters" => TextSplitter::Characters,
            _ => TextSplitter::Lines,
        };
        Trim::new(self.max_tokens)
            .with_strategy(self.strategy)
            .with_allow_partial(self.allow_partial)
            .with_start_on(self.start_on.clone())
            .with_end_on(self.end_on.clone())
            .with_include_system(self.include_system)
            .with_text_splitter(splitter)
            .with_grouping(grouping)
    }

    fn cost(&self, list: &[&Chat]) -> u64 {
        match self.counter.as_str() {
            "messages" => list.len() as u64,
            _ => list.iter().map(|message| letters(message)).sum(),
        }
    }
}

fn cases() -> Vec<Case> {
    let mut lines = include_str!("langchain.jsonl").lines();
    assert_eq!(lines.next(), Some(r#"{"langchain-core":"1.7.2"}"#));
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The message in OpenAI's shape.
fn chat(message: &Value) -> Chat {
    let element = |said: &Value| match said {
        Value::Null => {
            json!({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}})
        }
        said => json!({"type": "text", "text": said}),
    };
    let content = match &message[1] {
        Value::Array(list) => list.iter().map(element).collect(),
        text => text.clone(),
    };
    let mut chat = json!({"role": message[0], "content": content});
    match &message[2] {
        Value::Array(ids) => {
            let call = |id| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}});
            chat["tool_calls"] = ids.iter().map(call).collect();
        }
        Value::String(id) => chat["tool_call_id"] = json!(id),
        _ => {}
    }
    Chat(chat)
}

/// The texts of a message, and `None` for each image.
fn texts(message: &Chat) -> Vec<Option<String>> {
    match &message.0["content"] {
        Value::Array(list) => list
            .iter()
            .map(|block| block["text"].as_str().map(str::to_owned))
            .collect(),
        text => vec![Some(text.as_str().unwrap_or("").to_owned())],
    }
}

/// The recorder's counter.
fn letters(message: &Chat) -> u64 {
    let calls = message.0["tool_calls"].as_array().map_or(0, Vec::len) as u64;
    let text = |text: &Option<String>| match text {
        Some(text) => (text.chars().count() as u64).div_ceil(4),
        None => 10,
    };
    3 + 10 * calls + texts(message).iter().map(text).sum::<u64>()
}

/// Positions of each call and its result, in a list where no id is used twice.
fn pairs(list: &[Chat]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for (call, message) in list.iter().enumerate() {
        for id in message.0["tool_calls"].as_array().into_iter().flatten() {
            let answers = |message: &Chat| message.0["tool_call_id"] == id["id"];
            pairs.extend(list.iter().position(answers).map(|result| (call, result)));
        }
    }
    pairs
}

fn splits(kept: &[usize], list: &[Chat]) -> bool {
    let holds = |at| kept.contains(at);
    pairs(list)
        .iter()
        .any(|(call, result)| holds(call) != holds(result))
}

/// Why a result of LangChain's is not one that we return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// It refuses `start_on` and `include_system` with the strategy `first`.
    Raised,
    /// Its result costs more than the budget.
    Exceeds,
    /// It keeps a message of whose text nothing is left.
    Empty,
    /// It keeps a call without its result, or a result without its call.
    Splits,
    /// `end_on` leaves it a list that ends inside of a group, before it looks at the budget.
    EndsInside,
}

fn reason(case: &Case, list: &[Chat], grouped: bool) -> Option<Reason> {
    let given = &case.given;
    if let Some(raised) = &case.raised {
        assert!(
            raised.ends_with("only valid with strategy='last'"),
            "{raised}"
        );
        return Some(Reason::Raised);
    }
    if given.cost(&recorded(case, list).iter().collect::<Vec<_>>()) > given.max_tokens {
        return Some(Reason::Exceeds);
    }
    let empty = |(_, now): &(usize, Vec<Option<String>>)| *now == [Some(String::new())];
    if case.changed.iter().any(empty) {
        return Some(Reason::Empty);
    }
    if grouped && splits(&case.kept, list) {
        return Some(Reason::Splits);
    }
    let role = |message: &Chat| Role::parse(message.0["role"].as_str().unwrap()).unwrap();
    let ends = |message: &Chat| given.end_on.is_empty() || given.end_on.contains(&role(message));
    let end = list.iter().rposition(ends).map_or(0, |last| last + 1);
    let before: Vec<usize> = (0..end).collect();
    (grouped && given.strategy == TrimStrategy::Last && splits(&before, list))
        .then_some(Reason::EndsInside)
}

/// The messages that LangChain returned.
fn recorded(case: &Case, list: &[Chat]) -> Vec<Chat> {
    let message = |at: &usize| {
        let mut message = list[*at].clone();
        if let Some((_, now)) = case.changed.iter().find(|(changed, _)| changed == at) {
            message.0["content"] = match now.as_slice() {
                [Some(text)] => json!(text),
                now => now
                    .iter()
                    .map(|said| chat(&json!(["user", [said]])).0["content"][0].clone())
                    .collect(),
            };
        }
        message
    };
    case.kept.iter().map(message).collect()
}

fn is_recorded(case: &Case, list: &[Chat], ours: &Trimmed<Chat>) -> bool {
    let theirs = recorded(case, list);
    let said = |list: &[Chat]| list.iter().map(texts).collect::<Vec<_>>();
    ours.positions == case.kept && said(&ours.messages) == said(&theirs)
}

/// Replays all cases and counts those that differ, by reason.
fn differences(grouping: Option<GroupingPolicy>) -> BTreeMap<Reason, usize> {
    let mut counts = BTreeMap::new();
    for (number, case) in cases().iter().enumerate() {
        let list = openai::from_values(
            case.messages
                .iter()
                .map(|message| chat(message).0)
                .collect(),
        );
        let given = &case.given;
        let ours = trim_to_budget(&list, &given.trim(grouping), |list| given.cost(list));
        assert!(ours.tokens <= given.max_tokens);
        // A result that comes late belongs to no group, so only clean lists are judged here.
        if grouping.is_some() && turn_map::check_openai(&list).is_empty() {
            assert!(!splits(&ours.positions, &list), "case {number}");
            assert_eq!(turn_map::check_openai(&ours.messages), [], "case {number}");
        }
        if case.raised.is_none() && is_recorded(case, &list, &ours) {
            continue;
        }
        let reason = reason(case, &list, grouping.is_some());
        let reason = reason.unwrap_or_else(|| {
            panic!("case {number}: {:?}, not {:?}", ours.positions, case.kept);
        });
        if reason == Reason::Exceeds {
            assert!(ours.messages.is_empty() && ours.shortfall.is_some());
        }
        *counts.entry(reason).or_default() += 1;
    }
    counts
}

#[test]
fn every_case_is_there() {
    let cases = cases();
    assert_eq!(cases.len(), 500);
    assert!(cases.iter().filter(|case| !case.changed.is_empty()).count() > 30);
}

/// Message by message, both are the same but for what LangChain refuses, exceeds or empties.
#[test]
fn without_groups_the_result_is_langchains() {
    let counts = differences(None);
    let expected = [
        (Reason::Raised, 12),
        (Reason::Exceeds, 9),
        (Reason::Empty, 2),
    ];
    assert_eq!(counts, BTreeMap::from(expected));
}

#[test]
fn with_groups_only_split_pairs_differ() {
    let counts = differences(Some(GroupingPolicy::default()));
    let expected = [
        (Reason::Raised, 12),
        (Reason::Exceeds, 9),
        (Reason::Empty, 2),
        (Reason::Splits, 90),
        (Reason::EndsInside, 1),
    ];
    assert_eq!(counts, BTreeMap::from(expected));
}
