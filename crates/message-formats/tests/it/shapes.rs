//! Messages in the shapes of the providers' interfaces: one a line, as a list, and as a request.

use memory_model::{EntryKind, Message, Part, ResultContent, Role};
use message_formats::{ReadOptions, SessionLog, Transcript};
use provider_shapes::Provider;
use serde_json::{Value, json};

use crate::support::{export, read_str};

/// A conversation in each shape, as a list.
fn conversations() -> Vec<(&'static str, Value)> {
    let openai = json!([
        {"role":"system","content":"Be brief."},
        {"role":"user","content":[{"type":"text","text":"Which pump is worn?","cache_control":{"type":"ephemeral"}}]},
        {"role":"assistant","content":"","reasoning_content":"Its log first.","tool_calls":[
            {"id":"c1","type":"function","index":0,"function":{"name":"log","arguments":"{\"pump\":3}"},"extra_content":{"google":{"thought_signature":"x"}}},
            {"id":"c2","type":"custom","custom":{"name":"note","input":"pump"}}]},
        {"role":"tool","tool_call_id":"c1","content":"vibration 9.1"},
        {"role":"tool","tool_call_id":"c2","content":"kept"},
        {"role":"assistant","content":"Pump 3."},
    ]);
    let functions = json!([
        {"role":"user","content":"Which pump is worn?"},
        {"role":"assistant","content":null,"function_call":{"name":"log","arguments":"{\"pump\":3}"}},
        {"role":"function","name":"log","content":"vibration 9.1"},
        {"role":"assistant","content":"Pump 3."},
    ]);
    let ollama = json!([
        {"role":"user","content":"Which pump is worn?","images":["iVBORw0KGgo="]},
        {"role":"assistant","content":"","thinking":"Its log first.","tool_calls":[{"function":{"index":0,"name":"log","arguments":{"pump":3}}}]},
        {"role":"tool","tool_name":"log","content":"vibration 9.1"},
        {"role":"assistant","content":"Pump 3."},
    ]);
    let anthropic = json!([
        {"role":"user","content":[{"type":"text","text":"Which pump is worn?"}]},
        {"role":"assistant","content":[{"type":"thinking","thinking":"Its log first.","signature":"s"},{"type":"tool_use","id":"t1","name":"log","input":{"pump":3}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"vibration 9.1"}]}]},
        {"role":"assistant","content":[{"type":"text","text":"Pump 3."}]},
    ]);
    let gemini = json!([
        {"role":"user","parts":[{"text":"Which pump is worn?"}]},
        {"role":"model","parts":[{"text":"Its log first.","thought":true},{"functionCall":{"name":"log","args":{"pump":3}},"thoughtSignature":"x"}]},
        {"role":"user","parts":[{"functionResponse":{"name":"log","response":{"output":"vibration 9.1"}}}]},
        {"role":"model","parts":[{"text":"Pump 3."}]},
    ]);
    let responses = json!([
        {"type":"message","role":"user","content":[{"type":"input_text","text":"Which pump is worn?"}]},
        {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Its log first."}],"encrypted_content":"x"},
        {"type":"function_call","id":"fc_1","call_id":"c1","name":"log","arguments":"{\"pump\":3}"},
        {"type":"function_call_output","call_id":"c1","output":"vibration 9.1"},
        {"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"Pump 3.","annotations":[]}]},
    ]);
    vec![
        ("openai", openai),
        ("functions", functions),
        ("ollama", ollama),
        ("anthropic", anthropic),
        ("gemini", gemini),
        ("responses", responses),
    ]
}

fn one(transcript: &Transcript) -> &SessionLog {
    assert!(
        transcript.report.skipped.is_empty(),
        "{:?}",
        transcript.report
    );
    let [session] = &transcript.sessions[..] else {
        panic!("{transcript:?}")
    };
    session
}

fn parts(session: &SessionLog) -> Vec<&Part> {
    session
        .messages
        .iter()
        .flat_map(|message| &message.parts)
        .collect()
}

/// Checks that the conversation about the pump was read.
fn check(name: &str, session: &SessionLog) {
    let texts: Vec<&str> = parts(session)
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } if !text.is_empty() && text != "Be brief." => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["Which pump is worn?", "Pump 3."], "{name}");
    let mut open = Vec::new();
    let mut answered = 0;
    for part in parts(session) {
        match part {
            Part::ToolCall { id, name: tool, .. } => {
                assert!(["log", "note"].contains(&tool.as_str()), "{name}");
                open.push(id.clone());
            }
            Part::ToolResult {
                call_id, content, ..
            } => {
                answered += 1;
                assert!(open.contains(call_id), "{name}: {call_id}");
                assert!(
                    ["vibration 9.1", "kept"].contains(&content.text().as_ref()),
                    "{name}"
                );
            }
            Part::Unknown { .. } => panic!("{name}: {part:?}"),
            _ => {}
        }
    }
    assert_eq!(answered, open.len(), "{name}");
    let thought = parts(session)
        .iter()
        .any(|part| matches!(part, Part::Reasoning { text, .. } if text == "Its log first."));
    assert!(thought || name == "functions", "{name}");
    assert!(
        session
            .messages
            .iter()
            .all(|message| message.kind == EntryKind::Message)
    );
}

#[test]
fn each_shape_is_read_from_lines_from_a_list_and_from_a_request() {
    for (name, list) in conversations() {
        let lines: Vec<String> = list
            .as_array()
            .unwrap()
            .iter()
            .map(Value::to_string)
            .collect();
        let from_lines = read_str(&lines.join("\n"));
        assert_eq!(from_lines.format, "jsonl");
        check(name, one(&from_lines));

        let from_list = read_str(&list.to_string());
        assert_eq!(from_list.format, "messages");
        check(name, one(&from_list));
        let pretty = read_str(&serde_json::to_string_pretty(&list).unwrap());
        assert_eq!(one(&pretty).messages, one(&from_list).messages, "{name}");

        let field = match name {
            "responses" => "input",
            "gemini" => "contents",
            _ => "messages",
        };
        let request = json!({ field: list });
        let from_request = read_str(&request.to_string());
        assert_eq!(
            one(&from_request).messages,
            one(&from_list).messages,
            "{name}"
        );
        // What was exported reads back the same.
        for transcript in [&from_lines, &from_list] {
            let again = read_str(&export(one(transcript)));
            assert_eq!(one(&again).messages, one(transcript).messages, "{name}");
        }
    }
}

#[test]
fn what_is_written_for_a_provider_is_read_as_a_transcript() {
    for (name, list) in conversations() {
        let read = read_str(&list.to_string());
        let messages: Vec<Message> = one(&read).messages.clone();
        for provider in Provider::ALL {
            let request = Value::Object(provider.request(&messages)).to_string();
            let again = read_str(&request);
            assert_eq!(again.format, "messages", "{request}");
            let count = |session: &SessionLog| {
                let is_call =
                    |part: &&&Part| matches!(part, Part::ToolCall { .. } | Part::ToolResult { .. });
                parts(session).iter().filter(is_call).count()
            };
            assert_eq!(count(one(&again)), count(one(&read)), "{name} {provider:?}");
            assert!(
                parts(one(&again))
                    .iter()
                    .all(|part| !matches!(part, Part::Unknown { .. }))
            );
        }
    }
}

#[test]
fn ids_are_the_sources_own() {
    let (_, list) = conversations().pop().unwrap();
    let read = read_str(&list.to_string());
    let ids: Vec<&str> = one(&read)
        .messages
        .iter()
        .filter_map(|m| m.external_id.as_deref())
        .collect();
    assert_eq!((ids[1], ids[2], ids[4]), ("rs_1", "fc_1", "msg_1"));
    assert!(ids[0].starts_with("h-") && ids[3].starts_with("h-"));
}

#[test]
fn a_request_tells_its_system_prompt_first_and_counts_its_settings() {
    for request in [
        json!({"model":"m","system":"Be brief.","messages":[{"role":"user","content":"Go."}]}),
        json!({"model":"m","system":[{"type":"text","text":"Be brief.","cache_control":{}}],"messages":[{"role":"user","content":"Go."}]}),
        json!({"model":"m","instructions":"Be brief.","input":[{"role":"user","content":"Go."}]}),
        json!({"model":"m","systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"text":"Go."}]}]}),
    ] {
        let transcript = read_str(&request.to_string());
        assert_eq!(transcript.report.skipped, [("model".to_owned(), 1)].into());
        let messages = &transcript.sessions[0].messages;
        let read: Vec<(Role, String)> = messages.iter().map(|m| (m.role, m.text())).collect();
        assert_eq!(
            read,
            [
                (Role::System, "Be brief.".into()),
                (Role::User, "Go.".into())
            ]
        );
    }
}

#[test]
fn requests_one_a_line_are_conversations_and_a_longer_one_goes_on() {
    let request = |texts: &[&str]| {
        let messages: Vec<Value> = texts
            .iter()
            .map(|text| json!({"role":"user","content":text}))
            .collect();
        json!({ "messages": messages }).to_string()
    };
    let lines = [
        request(&["a"]),
        request(&["x"]),
        request(&["a", "b"]),
        request(&["x", "y"]),
        request(&["a", "c"]),
    ];
    let transcript = read_str(&lines.join("\n"));
    let read: Vec<Vec<String>> = transcript
        .sessions
        .iter()
        .map(|session| session.messages.iter().map(Message::text).collect())
        .collect();
    assert_eq!(read, [vec!["a", "b"], vec!["x", "y"], vec!["a", "c"]]);
    let keys: Vec<&str> = transcript
        .sessions
        .iter()
        .map(|session| session.key.as_str())
        .collect();
    assert!(keys[0].starts_with("messages-") && keys[2] == format!("{}-2", keys[0]));
    let named = json!({"session_id":"s","messages":[{"role":"user","content":"a"}]}).to_string();
    let named = read_str(&named);
    assert_eq!(
        (named.sessions[0].key.as_str(), named.sessions[0].named),
        ("s", true)
    );
}

#[test]
fn requests_of_a_named_conversation_go_on_with_it() {
    let request = |name: &str, texts: &[&str]| {
        let messages: Vec<Value> = texts
            .iter()
            .map(|text| json!({"role":"user","content":text}))
            .collect();
        json!({ "session_id": name, "messages": messages }).to_string()
    };
    let lines = [
        request("s", &["a"]),
        request("t", &["a"]),
        request("s", &["a", "b"]),
        request("s", &["c"]),
        request("s", &["c", "d"]),
    ];
    let read = |transcript: &Transcript| -> Vec<(String, Vec<String>)> {
        let texts = |log: &SessionLog| log.messages.iter().map(Message::text).collect();
        let sessions = transcript.sessions.iter();
        sessions
            .map(|log| (log.key.to_string(), texts(log)))
            .collect()
    };
    let texts = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| (*text).to_owned())
            .collect::<Vec<_>>()
    };
    let expected = [
        ("s".to_owned(), texts(&["a", "b"])),
        ("t".to_owned(), texts(&["a"])),
        ("s-2".to_owned(), texts(&["c", "d"])),
    ];
    assert_eq!(read(&read_str(&lines.join("\n"))), expected);
    // Under the name that the caller gives.
    let unnamed = [
        json!({"messages":[{"role":"user","content":"a"}]}).to_string(),
        {
            let messages = json!([{"role":"user","content":"a"},{"role":"user","content":"b"}]);
            json!({ "messages": messages }).to_string()
        },
    ];
    let options = ReadOptions::default().with_session("given");
    let transcript = message_formats::read(unnamed.join("\n").as_bytes(), &options).unwrap();
    assert_eq!(
        read(&transcript),
        [("given".to_owned(), texts(&["a", "b"]))]
    );
}

#[test]
fn a_value_that_is_no_list_of_messages_is_read_or_counted() {
    let said = |text: &str| json!({"input":[{"role":"user","content":text}]}).to_string();
    let lines = [
        said("a"),
        json!({"input":"lost words"}).to_string(),
        "7".to_owned(),
        json!({"input":7}).to_string(),
        json!({"model":"m","input":null}).to_string(),
        "[]".to_owned(),
        said("z"),
    ];
    let transcript = read_str(&lines.join("\n"));
    let read: Vec<Vec<(Role, String)>> = transcript
        .sessions
        .iter()
        .map(|log| log.messages.iter().map(|m| (m.role, m.text())).collect())
        .collect();
    let user = |text: &str| vec![(Role::User, text.to_owned())];
    assert_eq!(read, [user("a"), user("lost words"), user("z")]);
    let skipped = [("input", 1), ("model", 1), ("no_messages", 4)];
    let skipped = skipped.map(|(kind, count)| (kind.to_owned(), count));
    assert_eq!(transcript.report.skipped, skipped.into());
    assert!(transcript.report.lost_any());
    let keys: Vec<&str> = transcript
        .sessions
        .iter()
        .map(|log| log.key.as_str())
        .collect();
    assert!(
        keys.iter().all(|key| key.len() > "messages-".len()),
        "{keys:?}"
    );
}

#[test]
fn a_result_by_name_answers_a_call_that_has_an_id() {
    let call =
        |id: &str| json!({"id":id,"type":"function","function":{"name":"log","arguments":{}}});
    let ollama = json!([
        {"role":"user","content":"Go."},
        {"role":"assistant","content":"","tool_calls":[call("c1"), call("c2"), call("c3")]},
        {"role":"tool","tool_call_id":"c1","content":"one"},
        {"role":"tool","tool_name":"log","content":"two"},
        {"role":"tool","name":"log","content":"three"},
    ]);
    let answer = |text: &str| json!({"functionResponse":{"name":"log","response":{"output":text}}});
    let call = |id: &str| json!({"functionCall":{"id":id,"name":"log","args":{}}});
    let gemini = json!([
        {"role":"user","parts":[{"text":"Go."}]},
        {"role":"model","parts":[call("c1"), call("c2"), call("c3")]},
        {"role":"user","parts":[{"functionResponse":{"id":"c1","name":"log","response":{"output":"one"}}}]},
        {"role":"user","parts":[answer("two"), answer("three")]},
    ]);
    for list in [ollama, gemini] {
        let transcript = read_str(&list.to_string());
        let found: Vec<(String, String)> = parts(one(&transcript))
            .into_iter()
            .filter_map(|part| match part {
                Part::ToolResult {
                    call_id, content, ..
                } => Some((call_id.clone(), content.text().into_owned())),
                _ => None,
            })
            .collect();
        let expected = [("c1", "one"), ("c2", "two"), ("c3", "three")];
        let expected = expected.map(|(id, text)| (id.to_owned(), text.to_owned()));
        assert_eq!(found, expected, "{list}");
    }
}

#[test]
fn parts_of_gemini_may_have_fields_that_are_null() {
    let list = json!([
        {"role":"user","parts":[{"text":"Go.","thought":null,"function_call":null,"inline_data":null}]},
        {"role":"model","parts":[
            {"text":null,"thought":null,"function_call":{"id":null,"name":"log","args":{"pump":3}},"thought_signature":"x"}]},
        {"role":"user","parts":[{"text":null,"function_response":{"id":null,"name":"log","response":{"output":"9.1"}}}]},
    ]);
    let transcript = read_str(&list.to_string());
    let signature = Some("gemini:x".to_owned());
    let arguments = memory_model::RawJson::parse(r#"{"pump":3}"#).unwrap();
    let expected = [
        Part::text("Go."),
        Part::Reasoning {
            text: String::new(),
            signature,
        },
        Part::ToolCall {
            id: "function-1".into(),
            name: "log".into(),
            arguments,
        },
        Part::ToolResult {
            call_id: "function-1".into(),
            content: ResultContent::Text("9.1".into()),
            is_error: None,
        },
    ];
    assert_eq!(parts(one(&transcript)), expected.iter().collect::<Vec<_>>());
    let meta = one(&transcript).messages[1].meta.as_ref().unwrap();
    assert!(meta.as_str().contains(r#""text":null"#), "{meta:?}");
}

#[test]
fn reasoning_is_read_from_its_summary_and_its_content() {
    let text = |kind: &str, text: &str| json!({"type":kind,"text":text});
    for (item, expected) in [
        (
            json!({"type":"reasoning","summary":[],"content":[text("reasoning_text", "one"), text("reasoning_text", "two")]}),
            "one\n\ntwo",
        ),
        (
            json!({"type":"reasoning","summary":[text("summary_text", "short")],"content":[text("reasoning_text", "long")]}),
            "short\n\nlong",
        ),
        (json!({"type":"reasoning","summary":[],"content":null}), ""),
    ] {
        let list = json!([{"type":"message","role":"user","content":"Go."}, item]);
        let transcript = read_str(&list.to_string());
        let [_, Part::Reasoning { text, .. }] = &parts(one(&transcript))[..] else {
            panic!("{transcript:?}")
        };
        assert_eq!(text, expected);
    }
}

#[test]
fn unknown_kinds_are_kept_and_counted() {
    let list = json!([
        {"role":"user","content":"Go."},
        {"type":"web_search_call","id":"ws_1","status":"completed"},
        {"type":"item_reference","id":"x"},
        {"role":"narrator","content":"Later."},
        7,
    ]);
    let transcript = read_str(&list.to_string());
    let skipped: Vec<(&str, u64)> = transcript
        .report
        .skipped
        .iter()
        .map(|(kind, n)| (kind.as_str(), *n))
        .collect();
    assert_eq!(
        skipped,
        [
            ("item_reference", 1),
            ("not_an_object", 1),
            ("unknown_role", 1),
            ("web_search_call", 1)
        ]
    );
    let log = &transcript.sessions[0];
    let kinds: Vec<EntryKind> = log.messages.iter().map(|message| message.kind).collect();
    use EntryKind::{Message as M, Note as N};
    assert_eq!(kinds, [M, M, N, N, N]);
    for (message, item) in log.messages.iter().zip(list.as_array().unwrap()).skip(1) {
        let [Part::Unknown { raw }] = &message.parts[..] else {
            panic!("{message:?}")
        };
        assert_eq!(&serde_json::from_str::<Value>(raw.as_str()).unwrap(), item);
    }
}

#[test]
fn a_result_that_failed_in_geminis_shape_is_marked() {
    let list = json!([
        {"role":"model","parts":[{"functionCall":{"id":"a","name":"ls","args":{}}}]},
        {"role":"user","parts":[{"functionResponse":{"id":"a","name":"ls","response":{"error":"no such folder"}}},{"text":"Try again."}]},
        {"role":"model","parts":[{"functionCall":{"name":"ls"}}]},
        {"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"files":["a"]}}},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]},
    ]);
    let transcript = read_str(&list.to_string());
    let log = one(&transcript);
    let results: Vec<(&str, &ResultContent, Option<bool>)> = parts(log)
        .into_iter()
        .filter_map(|part| match part {
            Part::ToolResult {
                call_id,
                content,
                is_error,
            } => Some((call_id.as_str(), content, *is_error)),
            _ => None,
        })
        .collect();
    let text = |text: &str| ResultContent::Text(text.to_owned());
    assert_eq!(
        results,
        [
            ("a", &text("no such folder"), Some(true)),
            ("function-1", &text(r#"{"files":["a"]}"#), None)
        ]
    );
    assert_eq!(log.messages[1].role, Role::User);
    assert!(matches!(log.messages[3].parts[1], Part::Image(_)));
}
