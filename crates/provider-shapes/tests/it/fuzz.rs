//! Mutated requests and replies: see `outside_checks::fuzz`.

use outside_checks::fuzz::Target;
use provider_shapes::{Provider, anthropic, gemini, openai, responses};
use serde_json::{Value, json};

use crate::lists::written_for_all;

#[test]
fn providers() {
    Target::new("providers", env!("CARGO_MANIFEST_DIR"), 800).run(check);
}

fn check(input: &[u8]) -> Vec<(u8, usize, [usize; 4])> {
    let mut shapes = Vec::new();
    if let Ok(value) = serde_json::from_slice::<Value>(input) {
        for (at, provider) in (0..).zip(Provider::ALL) {
            provider.usage(&value);
            let field = ["messages", "input", "messages", "contents"][at as usize];
            let mut lists = vec![value.clone(), json!({ field: value })];
            lists.extend(written(provider, &value));
            for list in lists {
                if let Ok(messages) = provider.read_request(&list) {
                    shapes.push((at, messages.len(), written_for_all(&messages)));
                }
            }
        }
    }
    shapes
}

/// The message of a reply, as the next request has it.
fn written(provider: Provider, reply: &Value) -> Option<Value> {
    let reply = match provider {
        Provider::OpenAi => openai::reply(reply),
        Provider::Responses => responses::reply(reply),
        Provider::Anthropic => anthropic::reply(reply),
        _ => gemini::reply(reply),
    };
    Some(Value::Object(provider.request(&reply.ok()?.messages)))
}
