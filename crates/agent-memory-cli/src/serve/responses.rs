//! Compactions for clients of OpenAI's responses: `/v1/responses/compact`, and `/v1/responses` with a trigger.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use agent_memory::context::AssembleRequest;
use agent_memory::model::{Accounting as _, Clock as _, SystemClock, ViewVersion};
use agent_memory::view::ViewAtVersion;
use agent_memory::{CompactRequest, Context, ErrorKind};
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::placing::{self, Placed, Request};
use super::pointer::{Pointer, content};
use super::refusal::Refusal;
use super::server::{Answer, Call, Server};
use crate::app::App;
use crate::hook::rendering;

/// Answers `/v1/responses`.
pub(super) async fn respond(server: Arc<Server>, app: &App, call: Call) -> Result<Answer, Refusal> {
    let mut request: Request = serde_json::from_slice(&call.body)?;
    drop(call);
    let (items, has_trigger) = request.take_items()?;
    if !has_trigger {
        let text = "this server has no model: it answers compactions alone";
        let refusal = Refusal::new(StatusCode::BAD_REQUEST, "no_model", text);
        return Err(refusal.hint(
            "end the input with {\"type\":\"compaction_trigger\"}, or ask the model's own server",
        ));
    }
    answer(&server, app, &request, &items, "response").await
}

/// Answers `/v1/responses/compact`.
pub(super) async fn compact(server: Arc<Server>, app: &App, call: Call) -> Result<Answer, Refusal> {
    let mut request: Request = serde_json::from_slice(&call.body)?;
    drop(call);
    let (items, _) = request.take_items()?;
    answer(&server, app, &request, &items, "response.compaction").await
}

async fn answer(
    server: &Server,
    app: &App,
    request: &Request,
    items: &[Value],
    object: &str,
) -> Result<Answer, Refusal> {
    let placed = placing::place(server, request, items).await?;
    let (session, input) = (placed.session.clone(), placed.input);
    let (pointer, text) = compacted(server, app, placed).await?;
    server.metrics.compactions.fetch_add(1, Ordering::Relaxed);
    let text = pointer.mark(&text)?;
    let output = session.accounting().text(&text);
    let id = content(&agent_memory::Message::user(text.as_str())).to_string();
    let item = json!({
        "id": format!("cmp_{}", id.get(..32).unwrap_or(&id)),
        "type": "compaction",
        "encrypted_content": text,
    });
    let mut response = json!({
        "id": pointer.response()?,
        "object": object,
        "created_at": SystemClock.now().0 / 1_000_000,
        "model": request.model,
        "output": [item],
        "usage": {
            "input_tokens": input,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": input + output,
        },
    });
    let is_stream = request.stream == Some(true);
    if is_stream || object == "response" {
        let rest = json!({
            "object": "response", "status": "completed", "error": null, "incomplete_details": null,
            "instructions": null, "metadata": {}, "parallel_tool_calls": true, "temperature": null,
            "tool_choice": "auto", "tools": [], "top_p": null,
            "previous_response_id": request.previous_response_id,
        });
        let fields = response.as_object_mut().zip(rest.as_object());
        fields
            .into_iter()
            .for_each(|(all, rest)| all.extend(rest.clone()));
    }
    match is_stream {
        true => Ok(Answer::events(events(&response, &item))),
        false => Answer::json(&response),
    }
}

/// Returns the events of a response with one item.
fn events(response: &Value, item: &Value) -> String {
    let mut begun = response.clone();
    begun["status"] = "in_progress".into();
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    let events = [
        json!({"type": "response.created", "response": begun}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": response}),
    ];
    let mut out = String::new();
    for (number, mut event) in events.into_iter().enumerate() {
        event["sequence_number"] = number.into();
        let name = event["type"].as_str().unwrap_or_default();
        let _ = write!(out, "event: {name}\ndata: {event}\n\n");
    }
    out
}

/// Compacts a session. Returns the pointer to the messages of a request, and the text in place of them.
async fn compacted(
    server: &Server,
    app: &App,
    placed: Placed,
) -> Result<(Pointer, String), Refusal> {
    let session = &placed.session;
    session
        .compact(CompactRequest::to_fit(server.budget))
        .await?;
    let mut view = session.current_view().await?;
    // If an old request comes again, summaries may cover later messages too. An earlier version does not.
    let view = loop {
        let version = view.version();
        match view.up_to(placed.last).await {
            Err(error) if error.kind() == ErrorKind::Invalid && version.0 > 0 => {
                view = session.view_at(ViewVersion(version.0 - 1)).await?;
            }
            view => break view?,
        }
    };
    let before = placed.input.max(view.measure().tokens);
    let budget = rendering::budget(server.budget, before);
    let context = assembled(&view, budget).await?;
    let mut texts = vec![rendering::opening(app, &view).await?];
    texts.extend(rendering::texts(&context.messages));
    texts.retain(|text| !text.trim().is_empty());
    let last = view.snapshot().head;
    let chain = placed.beginning.unwrap_or_default();
    let chain = chain.chain_to(session, last).await?;
    Ok((Pointer::new(session, last, chain), texts.join("\n\n")))
}

/// Returns the context within a budget, or within the smallest possible one.
async fn assembled(view: &ViewAtVersion, budget: u64) -> agent_memory::Result<Context> {
    let request = |budget| -> AssembleRequest { rendering::request(view.session(), budget) };
    match view.assemble(request(budget)).await {
        Err(error) => match error.kind() {
            ErrorKind::BudgetTooSmall { needed } => view.assemble(request(needed)).await,
            _ => Err(error),
        },
        context => context,
    }
}
