//! Conversations for property tests of this crate and of `summarize-escalation`.

use memory_model::{Message, Part, RawJson, ResultContent, Role};
use proptest::prelude::*;
use token_estimate::HeuristicEstimator;

pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-zA-Z ,.\n`#/:]{0,300}",
        "[あ-んア-ン一-龠。、！？\n]{0,120}",
        "[🦀🎉👩🏽e\u{301}\u{0}]{0,60}",
        Just(String::new()),
        "(error: [a-z]{1,9}\n|- \\[[0-9]{1,3}\\] User: [a-z ]{0,20}\n|Files: changed [a-z/.]{1,9}\n){0,6}",
    ]
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        text().prop_map(Message::user),
        text().prop_map(Message::assistant),
        text().prop_map(Message::system),
        ("[a-c]", "(Read|Bash|Edit|ask_user)", text()).prop_map(|(id, name, text)| {
            let key = if name == "Bash" { "command" } else { "path" };
            let arguments = serde_json::json!({ key: text });
            Message::tool_call(id, name, RawJson::from_value(&arguments).unwrap())
        }),
        ("[a-c]", text(), any::<Option<bool>>()).prop_map(|(call_id, text, is_error)| {
            let content = ResultContent::Text(text);
            let part = Part::ToolResult {
                call_id,
                content,
                is_error,
            };
            Message::new(Role::Tool, vec![part])
        }),
    ]
}

pub(crate) fn conversation() -> impl Strategy<Value = Vec<Message>> {
    prop::collection::vec(message(), 1..14)
}

pub(crate) fn estimator() -> impl Strategy<Value = HeuristicEstimator> {
    prop::sample::select(HeuristicEstimator::ALL.to_vec())
}
