//! Round trips of messages.

use agent_memory_genai::agent_memory::{
    Message, Part, RawJson, Role,
    model::{Media, MediaSource, ResultContent},
};
use agent_memory_genai::genai::adapter::AdapterKind;
use agent_memory_genai::genai::chat::{
    Binary, CacheControl, ChatMessage, ChatRole, ContentPart, MessageContent, MessageOptions,
    ToolCall, ToolResponse,
};
use agent_memory_genai::genai::{ModelIden, chat::CustomPart};
use agent_memory_genai::{from_genai, to_genai};
use proptest::prelude::*;
use serde_json::{Value, json};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[a-z \\\\\"\n{}]{1,12}",
        any::<String>(),
        Just(r#"{"genai_custom":{"data":1}}"#.to_owned()),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{0,3}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn content() -> impl Strategy<Value = ContentPart> {
    let types = ["image/png", "IMAGE/gif", "application/pdf", "?"].map(str::to_owned);
    let binary = (
        prop::sample::select(types.to_vec()),
        text(),
        prop::option::of(text()),
        any::<bool>(),
    );
    let call = (
        "[a-z]{0,3}",
        "[a-z]{0,3}",
        value(),
        prop::option::of(prop::collection::vec(text(), 0..3)),
    );
    prop_oneof![
        text().prop_map(ContentPart::Text),
        binary.prop_map(|(content_type, data, name, url)| {
            ContentPart::Binary(match url {
                true => Binary::from_url(content_type, data, name),
                false => Binary::from_base64(content_type, data, name),
            })
        }),
        call.prop_map(|(call_id, fn_name, fn_arguments, thought_signatures)| {
            ContentPart::ToolCall(ToolCall {
                call_id,
                fn_name,
                fn_arguments,
                thought_signatures,
            })
        }),
        ("[a-z]{0,3}", prop::option::of("[a-z]{0,3}"), text()).prop_map(
            |(call_id, fn_name, content)| ContentPart::ToolResponse(ToolResponse {
                call_id,
                fn_name,
                content,
            })
        ),
        text().prop_map(ContentPart::ThoughtSignature),
        text().prop_map(ContentPart::ReasoningContent),
        (value(), any::<bool>()).prop_map(|(data, known)| {
            let model_iden = known.then(|| ModelIden::new(AdapterKind::Anthropic, "m"));
            ContentPart::Custom(CustomPart { model_iden, data })
        }),
    ]
}

fn message() -> impl Strategy<Value = ChatMessage> {
    let roles = [
        ChatRole::System,
        ChatRole::User,
        ChatRole::Assistant,
        ChatRole::Tool,
    ];
    (
        prop::sample::select(roles.to_vec()),
        prop::collection::vec(content(), 0..6),
        any::<bool>(),
    )
        .prop_map(|(role, parts, cached)| {
            let message = ChatMessage::new(role, MessageContent::from_parts(parts));
            match cached {
                true => message.with_options(MessageOptions::from(CacheControl::Ephemeral1h)),
                false => message,
            }
        })
}

/// The message after a stay in a store: parts and `meta` as JSON.
fn stored(message: &Message) -> Message {
    let json = serde_json::to_string(message).unwrap();
    serde_json::from_str(&json).unwrap()
}

fn log_message() -> impl Strategy<Value = Message> {
    let image = "[A-Za-z0-9+/]{0,8}".prop_map(|data| {
        Part::Image(Media {
            media_type: "image/png".to_owned(),
            source: MediaSource::Data(data),
        })
    });
    let file = "https://[a-z]{1,5}".prop_map(|url| {
        Part::File(Media {
            media_type: "text/csv".to_owned(),
            source: MediaSource::Url(url),
        })
    });
    let result = ("[a-z]{0,4}", text()).prop_map(|(call_id, text)| Part::ToolResult {
        call_id,
        content: ResultContent::Text(text),
        is_error: None,
    });
    let assistant = prop_oneof![
        text().prop_map(Part::text),
        ("[a-z]{1,9}", prop::option::of(text()))
            .prop_map(|(text, signature)| Part::Reasoning { text, signature }),
        ("[a-z]{0,4}", "[a-z]{0,4}", value()).prop_map(|(id, name, arguments)| {
            Part::ToolCall {
                id,
                name,
                arguments: RawJson::from_value(&arguments).unwrap(),
            }
        }),
    ];
    let users = prop_oneof![text().prop_map(Part::text), image, file];
    prop_oneof![
        text().prop_map(Message::system),
        prop::collection::vec(users, 0..4).prop_map(|parts| Message::new(Role::User, parts)),
        prop::collection::vec(result, 1..3).prop_map(|parts| Message::new(Role::Tool, parts)),
        prop::collection::vec(assistant, 0..4)
            .prop_map(|parts| Message::new(Role::Assistant, parts)),
    ]
}

proptest! {
    // A failing case is shown whole: it needs no file.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn genais_messages_come_back_from_a_log(messages in prop::collection::vec(message(), 0..5)) {
        let log: Vec<Message> = messages.iter().map(|one| stored(&from_genai(one))).collect();
        prop_assert_eq!(json!(to_genai(&log)), json!(messages));
    }

    #[test]
    fn a_logs_messages_come_back_from_genai(messages in prop::collection::vec(log_message(), 0..5)) {
        let back: Vec<Message> = to_genai(&messages)
            .iter()
            .map(|one| Message { meta: None, ..from_genai(one) })
            .collect();
        prop_assert_eq!(back, messages);
    }
}

#[test]
fn a_result_gets_the_name_of_its_call() {
    let arguments = RawJson::parse(r#"{"path":"src"}"#).unwrap();
    let sent = to_genai(&[
        Message::tool_call("call_1", "ls", arguments),
        Message::tool_result("call_1", "lib.rs"),
        Message::tool_result("call_2", "?"),
    ]);
    let names: Vec<Option<&str>> = sent[1..]
        .iter()
        .map(|message| message.content.parts()[0].as_tool_response())
        .map(|response| response.unwrap().fn_name.as_deref())
        .collect();
    assert_eq!(names, [Some("ls"), None]);
}

#[test]
fn a_signature_belongs_to_the_reasoning_behind_it() {
    let content = [
        ContentPart::ThoughtSignature("s".to_owned()),
        ContentPart::ReasoningContent("Perhaps.".to_owned()),
        ContentPart::Text("Yes.".to_owned()),
    ];
    let message = from_genai(&ChatMessage::assistant(MessageContent::from_parts(content)));
    let reasoning = Part::Reasoning {
        text: "Perhaps.".to_owned(),
        signature: Some("s".to_owned()),
    };
    assert_eq!(message.parts, [reasoning, Part::text("Yes.")]);
}

#[test]
fn images_in_results_and_names_of_participants_are_told_in_words() {
    let image = Part::Image(Media {
        media_type: "image/png".to_owned(),
        source: MediaSource::Data("AAAA".to_owned()),
    });
    let result = Part::ToolResult {
        call_id: "c".to_owned(),
        content: ResultContent::Parts(vec![Part::text("Seen:"), image]),
        is_error: Some(true),
    };
    let sent = to_genai(&[
        Message::user("Look.").with_name("Anna"),
        Message::new(Role::Tool, vec![result]),
    ]);
    assert_eq!(sent[0].content.first_text(), Some("Anna: Look."));
    let response = sent[1].content.parts()[0].as_tool_response().unwrap();
    assert_eq!(response.content, "Seen:\n[image, image/png, about 3 bytes]");
}
