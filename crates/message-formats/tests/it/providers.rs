//! Messages in the shapes of providers: what is read back is what was written.

use memory_model::{
    Media, MediaSource, Message, Part, RawJson, ResultContent, Role, ToolDefinition,
};
use message_formats::providers::{
    CONTINUED, CallIds, Provider, anthropic, gemini, openai, responses,
};
use message_formats::testing::provider_rules;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z ]{0,8}[a-z]",
        "\\PC{0,12}[a-z]",
        Just("line\n\u{0}\"quoted\" \\ 語🦀x".to_owned()),
    ]
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec(("\\PC{0,5}", inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Arguments: objects, what models write instead of objects, and JSON that breaks off.
fn arguments() -> impl Strategy<Value = RawJson> {
    let object = vec(("\\PC{0,5}", json_value()), 0..4)
        .prop_map(|fields| Value::Object(fields.into_iter().collect()).to_string());
    let broken = "\\PC{0,10}".prop_map(|text| Value::from(format!("{{\"a\": {text}")).to_string());
    let marked = "\\PC{0,5}".prop_map(|text| json!({"_arguments": text}).to_string());
    let other = prop_oneof![
        Just("[1]".to_owned()),
        Just("null".to_owned()),
        Just("\"\"".to_owned()),
        Just(r#"{"n":123456789012345678901}"#.to_owned()),
        marked
    ];
    prop_oneof![4 => object, 1 => broken, 1 => other].prop_map(|text| RawJson::parse(text).unwrap())
}

fn image() -> impl Strategy<Value = Part> {
    let source = prop_oneof![
        Just(("image/png", MediaSource::Data("AAAA".to_owned()))),
        Just((
            "image/*",
            MediaSource::Url("https://example.org/a.png".to_owned())
        )),
    ];
    source.prop_map(|(media_type, source)| {
        let media_type = media_type.to_owned();
        Part::Image(Media { media_type, source })
    })
}

/// What a message of each role can hold with a provider.
#[derive(Debug, Clone, Copy)]
struct Features {
    /// Results share a message.
    joined_results: bool,
    /// A result may hold images.
    images_in_results: bool,
    /// Says whether a result is an error.
    errors: bool,
    /// A signature that the provider gives.
    signature: Option<&'static str>,
}

fn features(provider: Provider) -> Features {
    let signed = "c2lnbmVk/c2lnbmVk+c2lnbmVkc2lnbmVkc2lnbmVkc2lnbmVkc2lnbmVkc2lnbmVkc2lnbg==";
    let (joined_results, images_in_results, errors, signature) = match provider {
        Provider::OpenAi => (false, false, false, None),
        Provider::Responses => {
            let item =
                r#"{"encrypted_content":"gAAA","id":"rs_1","summary":[],"type":"reasoning"}"#;
            (false, true, false, Some(item))
        }
        Provider::Anthropic => (true, true, true, Some(signed)),
        Provider::Gemini => (true, false, true, Some("gemini:c2lnbmVk")),
        _ => unreachable!(),
    };
    Features {
        joined_results,
        images_in_results,
        errors,
        signature,
    }
}

type Called = (RawJson, ResultContent, bool);

fn called(features: Features) -> impl Strategy<Value = Called> {
    let mut inner = text().prop_map(Part::text).boxed();
    if features.images_in_results {
        inner = prop_oneof![3 => inner, 1 => image()].boxed();
    }
    let content = prop_oneof![
        3 => text().prop_map(ResultContent::Text),
        1 => vec(inner, 1..3).prop_map(ResultContent::Parts),
    ];
    (arguments(), content, any::<bool>())
}

/// Lists that a provider can express: the speakers alternate, and reasoning leads to something.
fn expressible(provider: Provider) -> impl Strategy<Value = Vec<Message>> {
    let features = features(provider);
    let user = vec(
        prop_oneof![3 => text().prop_map(Part::text), 1 => image()],
        1..3,
    );
    let step = (
        any::<bool>(),
        vec(text(), 0..2),
        vec(called(features), 1..3),
    );
    let turn = (user, vec(step, 0..3), text());
    let ids = prop_oneof![
        Just("call_"),
        Just("a b|"),
        Just("_"),
        Just("am64_"),
        Just(LONG)
    ];
    (proptest::option::of(text()), vec(turn, 0..4), ids).prop_map(move |(system, turns, id)| {
        let mut messages: Vec<Message> = system.map(Message::system).into_iter().collect();
        let mut calls = 0;
        for (user, steps, last) in turns {
            messages.push(Message::new(Role::User, user));
            for (reasons, texts, called) in steps {
                let reasoning = features.signature.filter(|_| reasons);
                let mut parts: Vec<Part> = reasoning.map(reasoning_part).into_iter().collect();
                parts.extend(texts.into_iter().map(Part::text));
                let mut results = Vec::new();
                for (arguments, content, failed) in called {
                    calls += 1;
                    parts.push(Part::ToolCall {
                        id: format!("{id}{calls}"),
                        name: "run_it".to_owned(),
                        arguments,
                    });
                    results.push(Part::ToolResult {
                        call_id: format!("{id}{calls}"),
                        content,
                        is_error: (features.errors && failed).then_some(true),
                    });
                }
                messages.push(Message::new(Role::Assistant, parts));
                match features.joined_results {
                    true => messages.push(Message::new(Role::Tool, results)),
                    false => {
                        let of = |part| Message::new(Role::Tool, vec![part]);
                        messages.extend(results.into_iter().map(of));
                    }
                }
            }
            messages.push(Message::assistant(last));
        }
        messages
    })
}

/// An id that is too long to be sent, and to be encoded.
const LONG: &str =
    "call_0123456789012345678901234567890123456789|fc_0123456789012345678901234567890123456789";

fn reasoning_part(signature: &str) -> Part {
    let text = match signature.starts_with('{') {
        // The item of the responses API holds its text itself.
        true => String::new(),
        false => "Let me see.".to_owned(),
    };
    Part::Reasoning {
        text,
        signature: Some(signature.to_owned()),
    }
}

fn sent_and_read(provider: Provider, messages: &[Message]) -> Vec<Message> {
    let request = Value::Object(provider.request(messages));
    let mut read = provider.read_request(&request).unwrap();
    CallIds::of(messages).restore(&mut read);
    read
}

fn any_part() -> impl Strategy<Value = Part> {
    let id = prop_oneof![Just("1"), Just("2"), Just(""), Just("a b")];
    let signature = prop_oneof![
        Just(None),
        Just(Some("short".to_owned())),
        Just(Some("gemini:abcd".to_owned())),
        Just(Some("A".repeat(80))),
    ];
    let unknown = prop_oneof![
        Just(r#"{"type":"redacted_thinking","data":"x"}"#),
        Just(r#"{"type":"refusal","refusal":"No."}"#),
        Just(r#"{"type":"web_search_call","id":"ws_1"}"#),
        Just("7"),
    ];
    let leaf = prop_oneof![
        3 => "\\PC{0,3}".prop_map(Part::text),
        1 => Just(Part::text(" \n")),
        1 => image(),
        1 => Just(Part::File(Media {
            media_type: "text/csv".into(),
            source: MediaSource::Data("AAAA".into()),
        })),
        1 => unknown.prop_map(|raw| Part::Unknown { raw: RawJson::parse(raw).unwrap() }),
        1 => ("[a-z]{0,3}", signature)
            .prop_map(|(text, signature)| Part::Reasoning { text, signature }),
    ];
    let content = prop_oneof![
        "\\PC{0,3}".prop_map(ResultContent::Text),
        vec(leaf.clone(), 0..3).prop_map(ResultContent::Parts),
    ];
    prop_oneof![
        3 => leaf,
        2 => (id.clone(), arguments()).prop_map(|(id, arguments)| Part::ToolCall {
            id: id.to_owned(),
            name: "do it".to_owned(),
            arguments,
        }),
        2 => (id, content, proptest::option::of(any::<bool>())).prop_map(
            |(id, content, is_error)| Part::ToolResult {
                call_id: id.to_owned(),
                content,
                is_error,
            }
        ),
    ]
}

/// Any list of messages at all, paired or not.
fn any_messages() -> impl Strategy<Value = Vec<Message>> {
    let role = prop_oneof![
        1 => Just(Role::System),
        3 => Just(Role::User),
        4 => Just(Role::Assistant),
        3 => Just(Role::Tool),
    ];
    let name = proptest::option::weighted(0.1, Just("Ann B.".to_owned()));
    let message = (role, vec(any_part(), 0..4), name).prop_map(|(role, parts, name)| {
        let mut message = Message::new(role, parts);
        message.name = name;
        message
    });
    vec(message, 0..10)
}

/// All texts of messages, and of the results in them.
fn words(messages: &[Message]) -> String {
    let mut words = String::new();
    for part in messages.iter().flat_map(|message| &message.parts) {
        part.visit_texts(&mut |text| {
            words.push_str(&text);
            words.push('\n');
        });
    }
    words
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_a_provider_can_express_comes_back_as_it_was(
        (provider, messages) in provider().prop_flat_map(|one| (Just(one), expressible(one)))
    ) {
        prop_assert_eq!(sent_and_read(provider, &messages), messages);
    }

    #[test]
    fn reading_and_writing_again_changes_nothing(
        provider in provider(),
        messages in any_messages(),
    ) {
        let sent = Value::Object(provider.request(&messages));
        let read = provider.read_request(&sent).unwrap();
        prop_assert_eq!(Value::Object(provider.request(&read)), sent);
    }

    #[test]
    fn no_words_are_lost_but_reasoning_and_blanks(
        provider in provider(),
        texts in vec("[a-z]{12}", 1..8),
        messages in any_messages(),
    ) {
        let mut messages = messages;
        for (at, text) in texts.iter().enumerate() {
            let len = messages.len();
            if let Some(message) = messages.get_mut(at * 7 % len.max(1)) {
                message.parts.push(Part::text(text));
            }
        }
        let sent = words(&sent_and_read(provider, &messages));
        for text in &texts {
            prop_assert!(messages.is_empty() || sent.contains(text.as_str()), "{text}: {sent}");
        }
    }
}

fn provider() -> impl Strategy<Value = Provider> {
    proptest::sample::select(Provider::ALL.to_vec())
}

#[test]
fn a_list_that_begins_with_the_assistant_gets_a_first_message_and_loses_it_again() {
    let messages = [Message::assistant("Hello. "), Message::user("Hi.")];
    for provider in [Provider::Anthropic, Provider::Gemini] {
        let sent = Value::Object(provider.request(&messages));
        assert!(sent.to_string().contains(CONTINUED));
        assert_eq!(sent_and_read(provider, &messages), messages);
    }
}

#[test]
fn white_space_at_the_end_of_a_last_answer_is_not_sent_to_anthropic() {
    let messages = [
        Message::user("Say a."),
        Message::assistant("a \n"),
        Message::user("And b."),
        Message::assistant("b \n"),
    ];
    let (_, sent) = anthropic::write(&messages);
    assert_eq!(sent[1]["content"][0]["text"], "a \n");
    assert_eq!(sent[3]["content"][0]["text"], "b");
}

#[test]
fn usage_is_read_from_responses_of_each_provider() {
    let openai = json!({"usage": {
        "prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107,
        "prompt_tokens_details": {"cached_tokens": 60},
    }});
    let responses = json!({
        "input_tokens": 100, "output_tokens": 7, "total_tokens": 107,
        "input_tokens_details": {"cached_tokens": 60},
    });
    let anthropic = json!({"usage": {
        "input_tokens": 40, "output_tokens": 7, "cache_read_input_tokens": 60,
        "cache_creation_input_tokens": 0,
    }});
    let gemini = json!({"usageMetadata": {
        "promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 3,
        "thoughtsTokenCount": 4, "totalTokenCount": 107,
    }});
    for (provider, response) in Provider::ALL
        .into_iter()
        .zip([openai, responses, anthropic, gemini])
    {
        let usage = provider.usage(&response).unwrap();
        assert_eq!((usage.input, usage.cache_read, usage.output), (40, 60, 7));
        assert_eq!((usage.prompt_tokens(), usage.tokens()), (100, 107));
        assert_eq!(provider.usage(&json!({"usage": {}})), None);
    }
}

#[test]
fn a_response_is_read_whole() {
    let message = json!({
        "role": "assistant", "content": null, "refusal": null, "annotations": [],
        "reasoning_content": "Hm.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{\"a\": 1.0"}},
        ],
    });
    let read = openai::read(&[message]).unwrap();
    assert!(matches!(&read[0].parts[0], Part::Reasoning { text, .. } if text == "Hm."));
    assert!(matches!(&read[0].parts[1], Part::ToolCall { arguments, .. }
        if arguments.as_str() == r#""{\"a\": 1.0""#));

    let output = [
        json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]}),
        json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "Done.", "annotations": []}]}),
    ];
    let read = responses::read(None, &output).unwrap();
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].parts[1], Part::text("Done."));
    assert_eq!(
        read[0].meta.as_ref().unwrap().as_str(),
        r#"{"blocks":{"1":{"id":"msg_1","status":"completed"}}}"#
    );

    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude",
        "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn", "stop_sequence": null,
    });
    let read = anthropic::read(None, &[message]).unwrap();
    assert_eq!(read[0].response.as_deref(), Some("msg_1"));
    assert_eq!(
        read[0].meta.as_ref().unwrap().as_str(),
        r#"{"model":"claude","stop_reason":"end_turn"}"#
    );

    let content = json!({"role": "model", "parts": [
        {"functionCall": {"name": "ls", "args": {}}, "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "ls", "args": {"path": "src"}}},
    ]});
    let read = gemini::read(None, &[content]).unwrap();
    let ids = read[0].parts.iter().filter_map(|part| match part {
        Part::ToolCall { id, .. } => Some(id.as_str()),
        _ => None,
    });
    assert_eq!(ids.collect::<Vec<_>>(), ["ls_1", "ls_2"]);
    let (_, sent) = gemini::write(&read);
    assert_eq!(sent[1]["parts"][0]["thoughtSignature"], "c2ln");
}

#[test]
fn bad_input_is_refused_by_name() {
    for (messages, expected) in [
        (
            json!(["x"]),
            "`messages[0]` cannot be read: it is not a JSON object",
        ),
        (
            json!([{"role": "user", "content": 7}]),
            "`messages[0].content`",
        ),
        (
            json!([{"role": "tool", "content": "x"}]),
            "no string `tool_call_id`",
        ),
        (json!([{"role": "function", "content": "x"}]), "as `tool`"),
        (
            json!([{"role": "human", "content": "x"}]),
            "\"human\" is unknown",
        ),
        (
            json!([{"role": "assistant", "tool_calls": [{"id": "1"}]}]),
            "`messages[0].tool_calls[0].function`",
        ),
    ] {
        let error = openai::read(messages.as_array().unwrap()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    let error = anthropic::read(None, &[json!({"role": "user"})]).unwrap_err();
    assert!(error.to_string().contains("no `content`"), "{error}");
    let error = gemini::read(None, &[json!({"role": "user"})]).unwrap_err();
    assert!(error.to_string().contains("no list `parts`"), "{error}");
    let error = responses::read(None, &[json!({"type": "function_call"})]).unwrap_err();
    assert!(error.to_string().contains("`input[0]`"), "{error}");
    let error = Provider::Anthropic.read_request(&json!({})).unwrap_err();
    assert!(error.to_string().contains("`messages`"), "{error}");
}

#[test]
fn tools_are_written_in_each_shape() {
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"}}}"#;
    let tools = [ToolDefinition::new("ls", RawJson::parse(schema).unwrap())
        .with_description("Lists a folder.")];
    let schema: Value = serde_json::from_str(schema).unwrap();
    let at = |provider: Provider, path: &str| {
        let tools = Value::from(provider.tools(&tools));
        tools.pointer(path).cloned().unwrap_or_default()
    };
    assert_eq!(at(Provider::OpenAi, "/0/function/parameters"), schema);
    assert_eq!(
        at(Provider::OpenAi, "/0/function/description"),
        "Lists a folder."
    );
    assert_eq!(at(Provider::Responses, "/0/parameters"), schema);
    assert_eq!(at(Provider::Anthropic, "/0/input_schema"), schema);
    let declaration = "/0/functionDeclarations/0/parametersJsonSchema";
    assert_eq!(at(Provider::Gemini, declaration), schema);
    assert!(Provider::Gemini.tools(&[]).is_empty());
}

/// Servers that speak the format of chat completions want their own ids back.
#[test]
fn chat_completions_get_ids_of_calls_as_they_came() {
    let call = |id: &str| {
        let function = json!({"name": "lookup", "arguments": "{}"});
        json!([
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": null,
             "tool_calls": [{"id": id, "type": "function", "function": function}]},
            {"role": "tool", "tool_call_id": id, "content": "Found."},
        ])
    };
    for id in ["functions.lookup:1", "call_1|fc_2", "am64h_x"] {
        let sent = call(id);
        let read = openai::read(sent.as_array().unwrap()).unwrap();
        assert_eq!(Value::from(openai::write(&read)), sent);
        let request = Value::Object(Provider::OpenAi.request(&read));
        assert_eq!(provider_rules::openai_chat(&request), []);
        // Other shapes accept fewer characters.
        let (_, blocks) = anthropic::write(&read);
        let id = blocks[1]["content"][0]["id"].as_str().unwrap().to_owned();
        assert!(
            id.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        );
    }
}

#[test]
fn a_failed_result_is_marked_where_a_shape_has_a_place_for_it() {
    let asked = Message::tool_call("call_1", "ls", RawJson::parse("{}").unwrap());
    let failed = asked.tool_calls().next().unwrap().failed("no such folder");
    let messages = [Message::user("List."), asked, failed];
    let (_, sent) = anthropic::write(&messages);
    assert_eq!(sent[2]["content"][0]["is_error"], true);
    assert_eq!(openai::write(&messages)[2]["content"], "no such folder");
}
