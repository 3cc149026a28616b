//! Requests and responses of a loop.

use agent_memory_genai::agent_memory::Window;
use agent_memory_genai::agent_memory::{
    Budget, Memory, Message, Part, RawJson, Role, ToolDefinition, testing,
};
use agent_memory_genai::genai::ModelIden;
use agent_memory_genai::genai::adapter::AdapterKind;
use agent_memory_genai::genai::chat::{
    ChatMessage, ChatResponse, ContentPart, MessageContent, StopReason, ToolCall, ToolResponse,
    Usage,
};
use agent_memory_genai::{chat_request, from_genai, reply};
use serde_json::json;

fn call(id: &str) -> ToolCall {
    ToolCall {
        call_id: id.to_owned(),
        fn_name: "look".to_owned(),
        fn_arguments: json!({"at": 7}),
        thought_signatures: Some(vec!["signed".to_owned()]),
    }
}

fn response(content: Vec<ContentPart>) -> ChatResponse {
    let model = ModelIden::new(AdapterKind::OpenAI, "small");
    ChatResponse {
        content: MessageContent::from_parts(content),
        reasoning_content: Some("Look.".to_owned()),
        model_iden: model.clone(),
        provider_model_iden: model,
        stop_reason: Some(StopReason::from("tool_calls".to_owned())),
        usage: Usage {
            prompt_tokens: Some(90),
            completion_tokens: Some(9),
            total_tokens: Some(99),
            ..Usage::default()
        },
        captured_raw_body: None,
        response_id: Some("resp_1".to_owned()),
    }
}

#[tokio::test]
async fn a_request_has_the_context_as_it_was_said_and_the_tools() {
    let memory: Memory = testing::memory().open().await.unwrap();
    let schema = RawJson::parse(r#"{"type":"object"}"#).unwrap();
    let look = ToolDefinition::new("look", schema);
    let session = memory.session("chat").system("Be brief.").tools([look]);
    let session = session.await.unwrap();
    let calls = [call("a"), call("b")];
    let said = [
        ChatMessage::user("Look."),
        ChatMessage::from(calls.to_vec()),
        ChatMessage::from(vec![
            ToolResponse::from_tool_call(&calls[0], "full"),
            ToolResponse::from_tool_call(&calls[1], "empty"),
        ]),
    ];
    let mut log: Vec<Message> = said.iter().map(from_genai).collect();
    // Results that were ingested one by one are sent as one message.
    let results = log.pop().unwrap();
    let single = |part: Part| Message::new(Role::Tool, vec![part]);
    log.extend(results.parts.into_iter().map(single));
    let _report = session.ingest_batch(log).await.unwrap();
    let context = session.assemble(Budget::tokens(8_000)).await.unwrap();
    let request = chat_request(&session, &context).await.unwrap();
    let sent = json!(request.messages);
    assert_eq!(sent[0], json!(ChatMessage::system("Be brief.")));
    assert_eq!(
        sent.as_array().unwrap()[1..],
        json!(said).as_array().unwrap()[..]
    );
    assert_eq!(request.tools.unwrap()[0].name.as_str(), "look");
}

#[tokio::test]
async fn a_response_is_ingested_and_its_usage_is_learnt_from() {
    let memory: Memory = testing::memory().open().await.unwrap();
    let session = memory.session("chat").window(Window::new(8_000));
    let session = session.await.unwrap();
    session.user("Look.").await.unwrap();
    session.context().await.unwrap();
    let reply = reply(&response(vec![ContentPart::ToolCall(call("a"))]));
    let message = &reply.messages[0];
    let kinds: Vec<&str> = message.parts.iter().map(kind).collect();
    assert_eq!(kinds, ["reasoning", "call"]);
    assert_eq!(message.response.as_deref(), Some("resp_1"));
    let meta: serde_json::Value =
        serde_json::from_str(message.meta.as_ref().unwrap().as_str()).unwrap();
    assert_eq!(
        (&meta["model"], &meta["stop_reason"]),
        (&json!("small"), &json!("tool_calls"))
    );
    let signatures = &meta["genai"]["blocks"]["1"]["thought_signatures"];
    assert_eq!(*signatures, json!(["signed"]));
    session.reply(&reply).await.unwrap();
    assert_eq!(session.usage().await.unwrap().context.reported, 99);
}

fn kind(part: &Part) -> &'static str {
    match part {
        Part::Reasoning { .. } => "reasoning",
        Part::ToolCall { .. } => "call",
        _ => "other",
    }
}
