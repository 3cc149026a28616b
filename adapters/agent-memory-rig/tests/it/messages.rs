//! Round trips of messages.

use agent_memory::{
    Message, Part, RawJson, Role,
    model::{Media, MediaSource, ResultContent},
};
use agent_memory_rig::{from_rig, to_rig};
use proptest::prelude::*;
use rig_core::completion::Message as RigMessage;
use rig_core::completion::message::{
    AssistantContent, AssistantMessage, Audio, AudioMediaType, CallId, Document, DocumentMediaType,
    DocumentSourceKind, Image, ImageDetail, ImageMediaType, LocalCallId, Origin, Reasoning,
    StopReason, ToolCall, ToolFunction, ToolName, ToolResult, ToolResultContent, UserContent,
    Video, VideoMediaType,
};
use serde_json::{Value, json};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[a-z \\\\\"\n{}]{1,12}",
        any::<String>(),
        Just(r#"{"type":"text","text":"x"}"#.to_owned()),
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

fn data() -> impl Strategy<Value = DocumentSourceKind> {
    prop_oneof![
        "[A-Za-z0-9+/]{0,8}".prop_map(DocumentSourceKind::Base64),
        "https://[a-z]{1,5}/[a-z]{1,5}".prop_map(DocumentSourceKind::Url),
        text().prop_map(DocumentSourceKind::FileId),
        text().prop_map(DocumentSourceKind::String),
        Just(DocumentSourceKind::Unknown),
    ]
}

fn image() -> impl Strategy<Value = Image> {
    let media_type = prop::option::of(prop_oneof![
        Just(ImageMediaType::PNG),
        Just(ImageMediaType::SVG)
    ]);
    let detail = prop::option::of(prop_oneof![Just(ImageDetail::Low), Just(ImageDetail::Auto)]);
    (data(), media_type, detail).prop_map(|(data, media_type, detail)| Image {
        data,
        media_type,
        detail,
        native: None,
    })
}

fn call() -> impl Strategy<Value = CallId> {
    prop_oneof![
        "[a-z]{1,4}".prop_map(CallId::from_wire),
        Just(()).prop_map(|()| CallId::from(LocalCallId::new())),
    ]
}

fn name() -> impl Strategy<Value = ToolName> {
    prop_oneof![Just("tool".to_owned()), "[a-z_]{1,6}"]
        .prop_map(|name| ToolName::new(name).unwrap())
}

fn result_item() -> impl Strategy<Value = ToolResultContent> {
    prop_oneof![
        text().prop_map(ToolResultContent::text),
        image().prop_map(ToolResultContent::Image),
        value().prop_map(ToolResultContent::json),
    ]
}

fn user_block() -> impl Strategy<Value = UserContent> {
    let results = (
        call(),
        name(),
        prop::collection::vec(result_item(), 0..3),
        any::<bool>(),
    )
        .prop_map(|(call, name, content, is_error)| {
            UserContent::ToolResult(ToolResult {
                call,
                name,
                content,
                is_error,
            })
        });
    prop_oneof![
        text().prop_map(UserContent::text),
        results,
        image().prop_map(UserContent::Image),
        (data(), prop::option::of(Just(AudioMediaType::FLAC)))
            .prop_map(|(data, media_type)| UserContent::Audio(Audio { data, media_type })),
        (
            data(),
            prop::option::of(Just(VideoMediaType::WEBM)),
            prop::option::of(Just(json!({"fps": 1})))
        )
            .prop_map(|(data, media_type, additional_params)| {
                UserContent::Video(Video {
                    data,
                    media_type,
                    additional_params,
                })
            }),
        (
            data(),
            prop::option::of(Just(DocumentMediaType::Python)),
            prop::option::of(Just(json!({"title": "a"})))
        )
            .prop_map(|(data, media_type, additional_params)| {
                UserContent::Document(Document {
                    data,
                    media_type,
                    additional_params,
                })
            }),
    ]
}

fn function() -> impl Strategy<Value = ToolFunction> {
    (name(), value(), text(), any::<bool>()).prop_map(|(name, value, text, parse)| match parse {
        true => ToolFunction::parse(name, &text),
        false => ToolFunction::new(name, value),
    })
}

fn assistant_block() -> impl Strategy<Value = AssistantContent> {
    let block = prop_oneof![
        text().prop_map(AssistantContent::text),
        (call(), function())
            .prop_map(|(id, function)| AssistantContent::ToolCall(ToolCall::new(id, function))),
        (text(), any::<bool>()).prop_map(|(text, redacted)| {
            let mut reasoning = Reasoning::new(text);
            reasoning.redacted = redacted;
            AssistantContent::Reasoning(reasoning)
        }),
        image().prop_map(AssistantContent::Image),
        value().prop_map(|item| {
            serde_json::from_value(json!({"type": "opaque", "item": item, "replay": true})).unwrap()
        }),
    ];
    let native = prop_oneof![
        value(),
        text().prop_map(|text| json!({"type": "thinking", "signature": text})),
    ];
    (block, prop::option::of(native)).prop_map(|(block, native)| match native {
        Some(native) => block.with_native(native),
        None => block,
    })
}

fn message() -> impl Strategy<Value = RigMessage> {
    let origin = prop::option::of(prop::option::of("[a-z]{1,3}").prop_map(|id| {
        let mut origin = Origin::new("anthropic.messages".to_owned(), "anthropic", "m");
        origin.response_id = id;
        origin
    }));
    let stop = prop::option::of(prop_oneof![
        Just(StopReason::Stop),
        text().prop_map(StopReason::Error)
    ]);
    prop_oneof![
        text().prop_map(RigMessage::system),
        prop::collection::vec(user_block(), 0..4).prop_map(|content| RigMessage::User { content }),
        (prop::collection::vec(assistant_block(), 0..4), origin, stop).prop_map(
            |(content, origin, stop)| {
                let turn = AssistantMessage::new(content);
                RigMessage::Assistant(turn.with_origin(origin).with_stop(stop))
            }
        ),
    ]
}

/// The message after a stay in a store: parts and `meta` as JSON.
fn stored(message: &Message) -> Message {
    let json = serde_json::to_string(message).unwrap();
    serde_json::from_str(&json).unwrap()
}

proptest! {
    // A failing case is shown whole: it needs no file.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rigs_messages_come_back_from_a_log(messages in prop::collection::vec(message(), 0..5)) {
        let log: Vec<Message> = messages.iter().map(|one| stored(&from_rig(one))).collect();
        // Through JSON, as rig stores them: what that changes is not ours to keep.
        let rigs: Vec<RigMessage> =
            serde_json::from_value(serde_json::to_value(&messages).unwrap()).unwrap();
        prop_assert_eq!(to_rig(&log), rigs);
    }

    #[test]
    fn a_logs_messages_come_back_from_rig(messages in prop::collection::vec(log_message(), 0..5)) {
        let rigs = to_rig(&messages);
        let back: Vec<Message> = rigs
            .iter()
            .map(|one| Message { meta: None, ..from_rig(one) })
            .collect();
        prop_assert_eq!(back, messages);
    }
}

/// Messages that rig can express.
fn log_message() -> impl Strategy<Value = Message> {
    let media = || {
        let source = prop_oneof![
            "[A-Za-z0-9+/]{0,8}".prop_map(MediaSource::Data),
            "https://[a-z]{1,5}".prop_map(MediaSource::Url),
        ];
        let types = [
            "image/png",
            "audio/wav",
            "video/mp4",
            "application/pdf",
            "text/csv",
        ];
        (prop::sample::select(types.to_vec()), source).prop_map(|(media_type, source)| {
            let media = Media {
                media_type: media_type.to_owned(),
                source,
            };
            match media_type {
                "image/png" => Part::Image(media),
                _ => Part::File(media),
            }
        })
    };
    let image = || media().prop_filter("an image", |part| matches!(part, Part::Image(_)));
    let content = prop_oneof![
        text().prop_map(ResultContent::Text),
        prop::collection::vec(prop_oneof![text().prop_map(Part::text), image()], 2..4)
            .prop_map(ResultContent::Parts),
    ];
    let result = ("[a-z]{1,4}", content, any::<bool>()).prop_map(|(call_id, content, is_error)| {
        Part::ToolResult {
            call_id,
            content,
            is_error: is_error.then_some(true),
        }
    });
    let arguments = prop_oneof![
        prop::collection::btree_map("[a-z]{1,3}", value(), 0..4)
            .prop_map(|map| RawJson::from_value(&map).unwrap()),
        // Text that is no JSON.
        "[a-z{\\[]{1,8}"
            .prop_filter("no JSON", |text| RawJson::parse(text.as_str()).is_err())
            .prop_map(|text| RawJson::from_value(&text).unwrap()),
    ];
    let assistant = prop_oneof![
        text().prop_map(Part::text),
        (text(), prop::option::of(text()))
            .prop_map(|(text, signature)| Part::Reasoning { text, signature }),
        ("[a-z]{1,4}", "[a-z]{1,4}", arguments).prop_map(|(id, name, arguments)| {
            Part::ToolCall {
                id,
                name,
                arguments,
            }
        }),
        image(),
    ];
    prop_oneof![
        text().prop_map(Message::system),
        (
            text().prop_map(Part::text),
            prop::collection::vec(prop_oneof![text().prop_map(Part::text), media()], 0..3)
        )
            .prop_map(|(first, mut parts)| {
                parts.insert(0, first);
                Message::new(Role::User, parts)
            }),
        prop::collection::vec(result, 1..3).prop_map(|parts| Message::new(Role::Tool, parts)),
        prop::collection::vec(assistant, 0..4)
            .prop_map(|parts| Message::new(Role::Assistant, parts)),
    ]
}

#[test]
fn a_result_gets_the_name_of_its_call() {
    let arguments = RawJson::parse(r#"{"path":"src"}"#).unwrap();
    let log = [
        Message::tool_call("call_1", "ls", arguments),
        Message::tool_result("call_1", "lib.rs"),
        Message::tool_result("call_2", "?"),
    ];
    let rigs = to_rig(&log);
    let names: Vec<&str> = rigs
        .iter()
        .filter_map(|message| match message {
            RigMessage::User { content } => match &content[0] {
                UserContent::ToolResult(result) => Some(result.name.as_str()),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(names, ["ls", "tool"]);
}

#[test]
fn what_was_kept_for_other_parts_is_not_put_back() {
    let call = ToolCall::new(
        CallId::from(LocalCallId::new()),
        ToolFunction::new(ToolName::new("ls").unwrap(), json!({})),
    );
    let turn = AssistantMessage::new(vec![AssistantContent::ToolCall(call)]);
    let mut message = from_rig(&RigMessage::Assistant(turn));
    let Part::ToolCall { id, .. } = &mut message.parts[0] else {
        panic!("{message:?}")
    };
    // A context gives calls of the same id other ids.
    *id = "another".to_owned();
    let rigs = to_rig(&[message]);
    let RigMessage::Assistant(turn) = &rigs[0] else {
        panic!("{rigs:?}")
    };
    let call = turn.tool_calls().next().unwrap();
    assert_eq!(call.id, CallId::from_wire("another"));
}

#[test]
fn raw_bytes_become_base64() {
    let image = UserContent::image_raw(vec![1, 2, 3], Some(ImageMediaType::PNG), None);
    let message = from_rig(&RigMessage::from(image));
    let data = MediaSource::Data("AQID".to_owned());
    assert!(matches!(&message.parts[..], [Part::Image(media)] if media.source == data));
}

#[test]
fn names_of_participants_stand_before_their_words() {
    let rigs = to_rig(&[Message::user("Hello.").with_name("Anna")]);
    assert_eq!(rigs, [RigMessage::user("Anna: Hello.")]);
}
