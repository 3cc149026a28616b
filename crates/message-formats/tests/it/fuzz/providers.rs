//! Messages in the shapes of providers, and the replies of providers.

use memory_model::Message;
use message_formats::providers::{Provider, anthropic, gemini, openai, responses};
use message_formats::{ReadOptions, read};
use serde_json::{Value, json};

use crate::providers::refused;

pub(super) fn check(input: &[u8]) -> Vec<(u8, usize, [usize; 4])> {
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
    if let Ok(transcript) = read(input, &ReadOptions::default()) {
        let logs = transcript.sessions.iter();
        shapes.extend(logs.map(|log| (4, log.len(), written_for_all(&log.messages))));
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

/// Writes messages for each provider, which accepts them, and reads them back.
fn written_for_all(messages: &[Message]) -> [usize; 4] {
    Provider::ALL.map(|provider| {
        let request = Value::Object(provider.request(messages));
        let refused = refused(provider, &request);
        assert!(
            refused.is_empty(),
            "{}: {refused:?}\n{request}",
            provider.name()
        );
        let read = provider.read_request(&request).unwrap();
        let again = Value::Object(provider.request(&read));
        assert_eq!(again, request, "{}: written again", provider.name());
        read.iter().map(|message| message.parts.len()).sum()
    })
}
