//! Parts and messages in formats other than JSON, and flattened into other types.

use std::fmt::Debug;

use memory_model::{Media, MediaSource, Message, Part, RawJson, ResultContent, Role, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

fn raw(json: &str) -> RawJson {
    RawJson::parse(json).unwrap()
}

/// One part of each kind. `exact` adds JSON whose spelling a parsed value would lose.
fn parts(exact: bool) -> Vec<Part> {
    let arguments = match exact {
        true => r#"{ "b":1.00,"a":1e400, "a":"\ud800","n":123456789012345678901234567890 }"#,
        false => r#"{"b":[1,-2.5,null,true,{}],"a":{"$json":"no JSON","x":[]},"é":"\"\n"}"#,
    };
    let mut parts = vec![
        Part::text("nul \0, \"quotes\", 緑"),
        Part::Reasoning {
            text: String::new(),
            signature: Some("s".into()),
        },
        Part::Reasoning {
            text: "hm".into(),
            signature: None,
        },
        Part::ToolCall {
            id: "1".into(),
            name: "read".into(),
            arguments: raw(arguments),
        },
        Part::ToolCall {
            id: "2".into(),
            name: "read".into(),
            arguments: raw(r#""{\"path\":1}""#),
        },
        Part::ToolResult {
            call_id: "1".into(),
            content: ResultContent::Text("text".into()),
            is_error: Some(true),
        },
        Part::Image(Media {
            media_type: "image/png".into(),
            source: MediaSource::Data("AA==".into()),
        }),
        Part::File(Media {
            media_type: "text/plain".into(),
            source: MediaSource::Url("file:///a".into()),
        }),
        Part::Unknown { raw: raw("null") },
        Part::Unknown {
            raw: raw(r#"{"type":"server_tool"}"#),
        },
    ];
    parts.push(Part::ToolResult {
        call_id: "2".into(),
        content: ResultContent::Parts(parts.clone()),
        is_error: None,
    });
    parts
}

fn message(exact: bool) -> Message {
    Message::new(Role::Assistant, parts(exact))
        .with_external_id("m1")
        .with_turn("loop", 3)
        .with_created_at(Timestamp(1_700_000_000_000_001))
        .with_meta(raw(r#"{"model":"m","usage":{"input":7}}"#))
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Line<T> {
    session: String,
    #[serde(flatten)]
    inner: T,
    after: u32,
}

/// The value as it comes back from TOML, CBOR, MessagePack (fields as an array and by name) and
/// JSON, by way of a text and of a `serde_json::Value`.
fn round_trips<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T, json: bool) {
    let toml_text = toml::to_string(value).unwrap();
    assert!(!toml_text.contains("private"), "{toml_text}");
    assert_eq!(toml::from_str::<T>(&toml_text).unwrap(), *value);
    let mut cbor = Vec::new();
    ciborium::into_writer(value, &mut cbor).unwrap();
    assert_eq!(
        ciborium::from_reader::<T, _>(cbor.as_slice()).unwrap(),
        *value
    );
    let pack = rmp_serde::to_vec(value).unwrap();
    assert_eq!(rmp_serde::from_slice::<T>(&pack).unwrap(), *value);
    let pack = rmp_serde::to_vec_named(value).unwrap();
    assert_eq!(rmp_serde::from_slice::<T>(&pack).unwrap(), *value);
    if json {
        let text = serde_json::to_string(value).unwrap();
        assert!(!text.contains("private"), "{text}");
        assert_eq!(serde_json::from_str::<T>(&text).unwrap(), *value);
    }
}

#[test]
fn parts_and_messages_come_back_from_any_format() {
    for exact in [false, true] {
        for part in parts(exact) {
            round_trips(&part, true);
        }
        round_trips(&message(exact), true);
        let note = Message::note(Role::System, Vec::new());
        round_trips(&note, true);
    }
    let value = serde_json::to_value(message(false)).unwrap();
    assert_eq!(value["parts"][3]["arguments"]["b"][0], 1);
    let again: Message = serde_json::from_value(value).unwrap();
    assert_eq!(again.parts.len(), 11);
}

#[test]
fn parts_and_messages_come_back_from_under_flatten() {
    fn line<T>(inner: T) -> Line<T> {
        Line {
            session: "s".into(),
            inner,
            after: 7,
        }
    }
    for part in parts(false) {
        round_trips(&line(part), true);
    }
    round_trips(&line(message(false)), true);
    // JSON under `flatten` is parsed by serde, so only other formats keep the spelling.
    for part in parts(true) {
        round_trips(&line(part), false);
    }
    round_trips(&line(message(true)), false);
    // It is written as it came all the same.
    let text = serde_json::to_string(&line(message(true))).unwrap();
    assert!(text.contains(r#""a":1e400, "a":"\ud800""#), "{text}");
}

#[test]
fn json_stays_the_json_that_it_was() {
    let part = &parts(true)[3];
    let json = r#"{"type":"tool_call","id":"1","name":"read","arguments":{ "b":1.00,"a":1e400, "a":"\ud800","n":123456789012345678901234567890 }}"#;
    assert_eq!(serde_json::to_string(part).unwrap(), json);
    assert_eq!(serde_json::from_str::<Part>(json).unwrap(), *part);
    let reader = serde_json::from_reader::<_, Part>(json.as_bytes()).unwrap();
    assert_eq!(reader, *part);
    // A map that looks like carried text is an object like any other.
    let json = r#"{"type":"tool_call","id":"1","name":"n","arguments":{"$json":"[1]"}}"#;
    let part: Part = serde_json::from_str(json).unwrap();
    assert_eq!(serde_json::to_string(&part).unwrap(), json);
    round_trips(&part, true);
}

#[test]
fn as_little_as_a_role_is_a_message() {
    let message: Message = toml::from_str("role = \"user\"").unwrap();
    assert_eq!(message, Message::new(Role::User, Vec::new()));
}

#[test]
fn values_without_a_json_form_are_errors() {
    let error = toml::from_str::<Part>("type = \"unknown\"\nraw = inf").unwrap_err();
    assert!(
        error.to_string().contains("JSON has no number inf"),
        "{error}"
    );
    let mut deep = Vec::new();
    deep.extend([0x81; 200]);
    deep.push(0);
    let error = ciborium::from_reader::<RawJson, _>(deep.as_slice()).unwrap_err();
    assert!(error.to_string().contains("nests deeper"), "{error}");
}
