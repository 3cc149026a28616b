//! Estimated costs of tools, compared with the counts of providers.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tiktoken::CoreBpe as Tokenizer;
use token_estimate::{Calibrated, TokenEstimator, TokenEstimatorExt, ToolView};

/// Returns a function in the form of OpenAI's requests.
fn function(name: &str, description: &str, parameters: &Value) -> (String, String, String) {
    (
        name.to_owned(),
        description.to_owned(),
        parameters.to_string(),
    )
}

fn tools(estimator: &dyn TokenEstimator, tools: &[(String, String, String)]) -> u64 {
    estimator.tools(
        tools
            .iter()
            .map(|(name, description, parameters)| ToolView::new(name, description, parameters)),
    )
}

/// An estimator that counts exactly, without the feature `exact`.
#[derive(Debug)]
struct Counted(&'static str);

impl Counted {
    fn tokenizer(&self) -> &'static Tokenizer {
        match self.0 {
            "o200k" => o200k_base(),
            _ => cl100k_base(),
        }
    }
}

impl TokenEstimator for Counted {
    fn id(&self) -> token_estimate::EstimatorId {
        token_estimate::EstimatorId::new(self.0, 1).unwrap()
    }
    fn text(&self, text: &str) -> u64 {
        self.tokenizer().count(text) as u64
    }
    fn message(&self, _: &dyn token_estimate::MessageView) -> u64 {
        0
    }
}

/// The counts are from OpenAI's service for gpt-3.5-turbo: the tokens of a prompt with the function minus the tokens
/// without it, as recorded in the tests of the package openai-chat-tokens (MIT).
#[test]
fn functions_that_openai_counted_cost_no_less_and_at_most_40_tokens_and_three_quarters_more() {
    let string = json!({"type": "string"});
    let empty = json!({"type": "object", "properties": {}});
    let one = json!({"type": "object", "properties": {"foo": string}});
    let two = json!({"type": "object", "properties": {
        "foo": string, "bar": {"type": "number", "description": "A number"},
    }});
    let nested = json!({"type": "object", "properties": {"foo": {"type": "object", "properties": {
        "bar": {"type": "string", "enum": ["a", "b", "c"]}, "baz": {"type": "boolean"},
    }}}});
    let recipe = json!({
        "type": "object",
        "required": ["ingredients", "instructions", "time_to_cook"],
        "properties": {
            "ingredients": {"type": "array", "items": {
                "type": "object",
                "required": ["name", "unit", "amount"],
                "properties": {
                    "name": string,
                    "unit": {"enum": ["grams", "ml", "cups", "pieces", "teaspoons"], "type": "string"},
                    "amount": {"type": "number"},
                },
            }},
            "instructions": {
                "type": "array", "items": string, "description": "Steps to prepare the recipe (no numbering)",
            },
            "time_to_cook": {"type": "number", "description": "Total time to prepare the recipe in minutes"},
        },
    });
    for (name, description, parameters, counted) in [
        ("foo", "", &empty, 31 - 8),
        ("foo", "Do a foo", &empty, 36 - 8),
        ("bing_bong", "Do a bing bong", &one, 49 - 8),
        ("bing_bong", "Do a bing bong", &two, 57 - 8),
        ("bing_bong", "Do a bing bong", &nested, 68 - 8),
        ("get_recipe", "", &recipe, 106 - 8),
    ] {
        let function = [function(name, description, parameters)];
        for estimator in [
            &Counted("cl100k") as &dyn TokenEstimator,
            &Calibrated::Cl100k,
        ] {
            let estimate = tools(estimator, &function);
            println!("{}: {name} {estimate}, counted {counted}", estimator.id());
            assert!(estimate >= counted, "{name}: {estimate}, counted {counted}");
            assert!(
                estimate <= counted * 7 / 4 + 40,
                "{name}: {estimate}, counted {counted}"
            );
        }
    }
}

/// The four tools of an existing agent, with the counts of the package openai-chat-tokens 0.2.8 for each tool and for
/// all tools together, with `cl100k_base`.
#[test]
fn the_tools_of_a_transcript_cost_at_most_a_quarter_more_than_a_peer_counts() {
    let Some(corpus) = crate::corpus::corpus() else {
        return;
    };
    let file = corpus.join("openhands/multi-swe-bench-output.jsonl");
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let defined = lines
        .flat_map(|line| line["history"].as_array().cloned().unwrap_or_default())
        .find_map(|event| event["args"]["tools"].as_array().cloned())
        .unwrap();
    let functions: Vec<_> = defined
        .iter()
        .map(|tool| {
            let tool = &tool["function"];
            let text = |field: &str| tool[field].as_str().unwrap().to_owned();
            function(&text("name"), &text("description"), &tool["parameters"])
        })
        .collect();
    for (name, counted) in [
        ("execute_bash", 503),
        ("think", 219),
        ("finish", 169),
        ("str_replace_editor", 747),
        ("", 1_590),
    ] {
        let given: Vec<_> = functions
            .iter()
            .filter(|function| name.is_empty() || function.0 == name)
            .cloned()
            .collect();
        for estimator in [
            &Counted("cl100k") as &dyn TokenEstimator,
            &Calibrated::Cl100k,
        ] {
            let estimate = tools(estimator, &given);
            println!("{}: {name} {estimate}, counted {counted}", estimator.id());
            assert!(estimate >= counted, "{name}: {estimate}, counted {counted}");
            assert!(
                estimate <= counted * 5 / 4,
                "{name}: {estimate}, counted {counted}"
            );
        }
    }
}

/// The example of Anthropic's page on counting tokens has 403 tokens for Claude Opus 4.1: a question of at least ten
/// tokens, this tool, and 346 tokens of the system prompt for tools.
#[test]
fn the_tool_of_anthropics_example_costs_no_less() {
    let parameters = json!({"type": "object", "properties": {"location": {
        "type": "string", "description": "The city and state, e.g. San Francisco, CA",
    }}, "required": ["location"]});
    let tool = function(
        "get_weather",
        "Get the current weather in a given location",
        &parameters,
    );
    let model = token_estimate::estimator::for_model("claude-opus-4-1").unwrap();
    let estimate = tools(&model, &[tool]);
    println!("{estimate}");
    assert!((403 - 10..403 + 60).contains(&estimate), "{estimate}");
}

/// The counter of functions that OpenAI publishes for GPT-4o and GPT-4, with its constants.
fn published(tokenizer: &Tokenizer, begin: u64, functions: &[(String, String, Value)]) -> u64 {
    let count = |text: &str| tokenizer.count(text) as u64;
    let mut sum = 12;
    for (name, description, parameters) in functions {
        sum += begin + count(&format!("{name}:{}", description.trim_end_matches('.')));
        let properties = parameters["properties"].as_object().unwrap();
        sum += 3 * u64::from(!properties.is_empty());
        for (key, property) in properties {
            let text = |field: &str| property[field].as_str().unwrap_or_default().to_owned();
            let described = text("description");
            sum += 3 + count(&format!(
                "{key}:{}:{}",
                text("type"),
                described.trim_end_matches('.')
            ));
            if let Some(items) = property["enum"].as_array() {
                let items: u64 = items
                    .iter()
                    .map(|item| 3 + count(item.as_str().unwrap()))
                    .sum();
                sum += items - 3;
            }
        }
    }
    sum
}

fn any_function() -> impl Strategy<Value = (String, String, Value)> {
    let word = || "[a-z]{1,9}(_[a-z]{1,9}){0,2}";
    let sentence = || "([A-Za-z]{1,9}[ ,.'-]){0,20}";
    let items = prop::option::of(prop::collection::vec(
        "[a-z]{1,8}([ _-][a-z0-9]{1,8})?",
        1..30,
    ));
    let property = (
        word(),
        prop::sample::select(vec!["string", "number", "boolean"]),
        sentence(),
        items,
    );
    (word(), sentence(), prop::collection::vec(property, 0..8)).prop_map(
        |(name, description, list)| {
            let mut properties = Map::new();
            let mut required = Vec::new();
            for (n, (key, kind, description, items)) in list.into_iter().enumerate() {
                let mut property = json!({"type": kind});
                if n % 3 != 2 {
                    property["description"] = description.into();
                }
                if let Some(items) = items {
                    property["enum"] = items.into();
                }
                if n % 2 == 0 {
                    required.push(key.clone());
                }
                properties.insert(key, property);
            }
            let parameters =
                json!({"type": "object", "properties": properties, "required": required});
            (name, description, parameters)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn tools_cost_no_less_than_the_published_counter_says(
        functions in prop::collection::vec(any_function(), 1..6),
    ) {
        let given: Vec<_> = functions
            .iter()
            .map(|(name, description, parameters)| function(name, description, parameters))
            .collect();
        for (tokenizer, begin) in [("o200k", 7), ("cl100k", 10)] {
            let estimator = Counted(tokenizer);
            let least = published(estimator.tokenizer(), begin, &functions);
            let estimate = tools(&estimator, &given);
            prop_assert!(estimate >= least, "{tokenizer}: {estimate}, published {least}");
            let most = least * 7 / 4 + 40 * functions.len() as u64;
            prop_assert!(estimate <= most, "{tokenizer}: {estimate}, published {least}");
        }
    }
}

fn o200k_base() -> &'static Tokenizer {
    tiktoken::get_encoding("o200k_base").expect("compiled in")
}

fn cl100k_base() -> &'static Tokenizer {
    tiktoken::get_encoding("cl100k_base").expect("compiled in")
}
