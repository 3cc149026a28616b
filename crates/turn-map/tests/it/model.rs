//! Messages of `memory-model`.

use memory_model::{EntryKind, Message, Part, RawJson, ResultContent, Role};
use turn_map::{
    ClearPolicy, TrimPolicy, TurnMap, apply, atoms, check_anthropic, check_openai, sanitize,
};

use crate::script::shown;

#[test]
fn the_models_messages_are_grouped() {
    let call = |id: &str| Part::ToolCall {
        id: id.to_owned(),
        name: "read".to_owned(),
        arguments: RawJson::parse("{}").unwrap(),
    };
    let result = |id: &str| Part::ToolResult {
        call_id: id.to_owned(),
        content: ResultContent::Text("found".to_owned()),
        is_error: None,
    };
    let mut note = Message::user("model changed");
    note.kind = EntryKind::Note;
    let mut first = Message::new(Role::Assistant, vec![call("x")]);
    first.response = Some("r".to_owned());
    let mut second = Message::new(Role::Assistant, vec![call("y")]);
    second.response = Some("r".to_owned());
    let messages = [
        Message::user("Look."),
        first,
        Message::new(Role::Tool, vec![result("x")]),
        note,
        second,
        Message::new(Role::Tool, vec![result("y")]),
        Message::user("And?"),
    ];
    assert_eq!(shown(&atoms(&messages)), "P0 G1-5 P6");
    assert_eq!(TurnMap::by_role(&messages).count(), 2);
}

fn result(id: &str, content: ResultContent) -> Message {
    let part = Part::ToolResult {
        call_id: id.to_owned(),
        content,
        is_error: Some(true),
    };
    Message::new(Role::Tool, vec![part])
}

fn picture() -> Part {
    Part::Image(memory_model::Media {
        media_type: "image/png".to_owned(),
        source: memory_model::MediaSource::Data("AAAA".to_owned()),
    })
}

#[test]
fn a_sanitized_list_of_the_models_messages_is_one_that_providers_take() {
    let call = |id: &str| Message::tool_call(id, "read", RawJson::parse("{}").unwrap());
    let pictured = ResultContent::Parts(vec![Part::text("seen"), picture()]);
    let list = vec![
        call("x"),
        Message::assistant("Meanwhile."),
        result("x", pictured),
        call("y"),
        Message::user("Go on."),
        Message::tool_result("y", "found"),
        call("y"),
    ];
    let plan = sanitize(&list, "[no result]");
    assert_eq!(plan.findings.len(), 5);
    let mended = apply(list, &plan.edits);
    assert!(check_openai(&mended).is_empty() && check_anthropic(&mended).is_empty());
    assert!(sanitize(&mended, "[no result]").edits.is_empty());
    let late = &mended[3];
    assert_eq!(late.role, Role::User);
    let text = |text: &str| Part::text(text);
    assert_eq!(
        late.parts,
        [text("[Late result of call x]"), text("seen"), picture()]
    );
    assert_eq!(mended[5], Message::tool_result("y", "found"));
    assert_eq!(mended[8], Message::tool_result("y_2", "[no result]"));
}

#[test]
fn trimming_keeps_pictures_and_clearing_does_not() {
    let lines = "a line of some length\n".repeat(100);
    let content = ResultContent::Parts(vec![picture(), Part::text(&lines), Part::text(&lines)]);
    let message = result("x", content);
    let preset = token_estimate::HeuristicEstimator::default();
    let trimmed = TrimPolicy::ToolOutputLines { lines: 50 }
        .trim(&message, "message:3", &preset)
        .unwrap();
    let Part::ToolResult {
        content: ResultContent::Parts(parts),
        is_error,
        ..
    } = &trimmed.parts[0]
    else {
        panic!("{trimmed:?}");
    };
    assert_eq!(
        (parts.len(), &parts[0], *is_error),
        (2, &picture(), Some(true))
    );
    let short = TrimPolicy::Block { tokens: 1_000_000 };
    assert_eq!(short.trim(&message, "", &preset), None);
    let clear = ClearPolicy {
        keep: 0,
        min_tokens: 1,
        min_messages: 0,
        tools: Vec::new(),
    };
    let edits = clear.edits(std::slice::from_ref(&message), |_| String::new(), &preset);
    let cleared = apply(vec![message], &edits).remove(0);
    let stub = ResultContent::Text("[… 1101 tokens left out …]".to_owned());
    assert_eq!(cleared, result("x", stub));
}
