//! Event histories of OpenHands: the lines of an evaluation's `output.jsonl`, one run each, or one trajectory as a list
//! of events.
//!
//! Each event is an entry under its own id. An action with a tool's call is a message of the assistant, with the call as
//! the model wrote it; an observation is the result of the call that caused it. What OpenHands told the model beside
//! that (recalled knowledge, errors) is a message in the role of a tool; events that the model does not see are notes. The
//! model's response, which each event repeats, is not kept again. What a run holds besides (its result, its settings) is a
//! note at its end. Each run is held in memory whole, up to [`ReadOptions::max_line_bytes`](crate::ReadOptions::max_line_bytes).

use std::collections::{HashMap, HashSet};

use memory_model::{Message, Part, RawJson, ResultContent, Role, SessionKey};
use serde_json::value::RawValue;

use crate::Report;
use crate::documents::{Conversation, Documents, Source};
use crate::outline::Outline;
use crate::raw::{MetaBuilder, RawObject, Reading, list, readable};
use crate::session::note;

/// Actions and observations that the model does not see.
const UNSEEN: [&str; 12] = [
    "null",
    "change_agent_state",
    "agent_state_changed",
    "recall",
    "condensation",
    "condensation_request",
    "pause",
    "resume",
    "stop",
    "start",
    "send_pr",
    "push",
];
/// Actions that are calls of tools.
const CALLS: [&str; 14] = [
    "run",
    "run_ipython",
    "read",
    "write",
    "edit",
    "browse",
    "browse_interactive",
    "call_tool_mcp",
    "delegate",
    "think",
    "finish",
    "reject",
    "task_tracking",
    "add_task",
];

/// Event histories of OpenHands.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct OpenHands {}

impl OpenHands {
    /// Creates the format.
    pub fn new() -> Self {
        Self {}
    }
}

impl Documents for OpenHands {
    const NAME: &'static str = "openhands";

    fn is(outline: &Outline<'_>) -> bool {
        let events = |list: &str| {
            let has = |key: &str| outline.has(&format!("{list}[].{key}"));
            has("source") && (has("action") || has("observation"))
        };
        ["history", "history[]", ""].into_iter().any(events)
    }

    fn document(document: &RawValue, source: &mut Source<'_>) {
        let run = RawObject::parse(document.get());
        let history = run
            .as_ref()
            .map_or(Some(document), |run| run.get("history"));
        let mut events = Events {
            conversation: Conversation::new(),
            responses: HashSet::new(),
            calls: HashMap::new(),
            report: &mut source.report,
        };
        let history = history.and_then(list).unwrap_or_default();
        history.into_iter().for_each(|event| events.add(event));
        let mut conversation = events.conversation;
        if let Some(run) = &run {
            conversation.rest(run, &["history"]);
        }
        let mut log = conversation.finish(source, Self::NAME, None);
        let instance = run.and_then(|run| run.id("instance_id"));
        if let Some(instance) = instance.filter(|_| !log.named) {
            log.key = SessionKey::new(instance);
        }
        source.add(log);
    }
}

struct Events<'r> {
    conversation: Conversation,
    /// Responses whose text was told.
    responses: HashSet<String>,
    /// Ids of the calls, by the id of their event.
    calls: HashMap<String, String>,
    report: &'r mut Report,
}

impl Events<'_> {
    /// Adds an event, or the pair of an action and its observation.
    fn add(&mut self, event: &RawValue) {
        if let Some(pair) = list(event) {
            return pair.into_iter().for_each(|event| self.add(event));
        }
        self.report.lines += 1;
        let text = event.get();
        let object = RawObject::parse(text);
        let id = object.as_ref().and_then(|event| {
            let id = event.present("id")?;
            Some(id.get().trim_matches('"').to_owned())
        });
        let message = object.and_then(|event| {
            let mut message = match (event.string("action"), event.string("observation")) {
                (Some(kind), _) => self.action(&event, &kind),
                (None, Some(kind)) => self.observation(&event, &kind),
                (None, None) => None,
            }?;
            let time = event.time("timestamp", Reading::Now);
            message.created_at = time.unwrap_or_default();
            Some(message)
        });
        let message = message.unwrap_or_else(|| note(Role::System, text));
        self.conversation.begin(message.role == Role::System, text);
        self.conversation.log.push(message, id, text);
    }

    /// Counts an event of a kind that is not known; `None`, for it is a note.
    fn unknown(&mut self, kind: &str) -> Option<Message> {
        if !UNSEEN.contains(&kind) {
            let number = self.report.lines;
            self.report.warn(kind, number);
        }
        None
    }

    fn action(&mut self, event: &RawObject<'_>, kind: &str) -> Option<Message> {
        let args = event.object("args");
        let arg = |name: &str| {
            let value = args.as_ref()?.get(name)?;
            Some(readable(value, Reading::Now)?.0)
        };
        let is_user = event.string("source").as_deref() == Some("user");
        let call = event.object("tool_call_metadata");
        let mut meta = MetaBuilder::default();
        let mut message = match (kind, call) {
            ("system", _) => Message::system(arg("content")?),
            ("message", _) if is_user => Message::user(arg("content")?),
            ("message", _) => Message::assistant(arg("content")?),
            (_, Some(call)) => {
                let response = call.object("model_response");
                let message = self.call(&call, arg("thought"))?;
                if let Some(response) = response {
                    let mut facts = MetaBuilder::default();
                    facts.extend(response.others(&["choices"]));
                    meta.nest("\"model_response\"", facts);
                }
                message
            }
            (kind, None) if CALLS.contains(&kind) => {
                let id = event.present("id").map_or("", RawValue::get);
                let thought = arg("thought").filter(|text| !text.is_empty());
                let mut parts: Vec<Part> = thought.map(Part::text).into_iter().collect();
                parts.push(Part::ToolCall {
                    id: format!("event-{id}"),
                    name: kind.to_owned(),
                    arguments: RawJson::from_raw(event.get("args")?),
                });
                Message::new(Role::Assistant, parts)
            }
            _ => return self.unknown(kind),
        };
        let read = ["id", "action", "args", "tool_call_metadata", "message"];
        meta.extend(event.others(&read));
        if let Some(args) = &args {
            let mut rest = MetaBuilder::default();
            rest.extend(args.others(&["content", "thought"]));
            meta.nest("\"args\"", rest);
        }
        let event = event.present("id").map(RawValue::get);
        for part in &message.parts {
            if let (Part::ToolCall { id, .. }, Some(event)) = (part, event) {
                self.calls.insert(event.to_owned(), id.clone());
            }
        }
        message.meta = meta.finish();
        Some(message)
    }

    /// The message of a call: what the model said before it, if no other call of the response told it, and the
    /// call as the model wrote it.
    fn call(&mut self, call: &RawObject<'_>, thought: Option<String>) -> Option<Message> {
        let (id, name) = (call.id("tool_call_id")?, call.string("function_name")?);
        let response = call.object("model_response");
        let response_id = response.as_ref().and_then(|response| response.id("id"));
        let choices = response.and_then(|response| response.get("choices"));
        let choice = choices.and_then(list)?.first().copied()?;
        let said = RawObject::parse(choice.get())?.object("message")?;
        let calls = said.get("tool_calls").and_then(list).unwrap_or_default();
        let arguments = calls.iter().find_map(|call| {
            let call = RawObject::parse(call.get())?;
            let is_same = call.string("id").as_deref() == Some(id.as_str());
            let arguments = call.object("function")?.get("arguments")?;
            is_same.then(|| RawJson::from_raw(arguments))
        })?;
        let is_first = response_id
            .as_ref()
            .is_none_or(|id| self.responses.insert(id.clone()));
        let thought = thought.filter(|text| !text.is_empty());
        let text = thought.or_else(|| said.string("content").filter(|_| is_first));
        let text = text.filter(|text| !text.is_empty());
        let mut parts: Vec<Part> = text.map(Part::text).into_iter().collect();
        parts.push(Part::ToolCall {
            id,
            name,
            arguments,
        });
        let mut message = Message::new(Role::Assistant, parts);
        message.response = response_id;
        Some(message)
    }

    fn observation(&mut self, event: &RawObject<'_>, kind: &str) -> Option<Message> {
        let content = event.get("content");
        let content = content.and_then(|content| readable(content, Reading::Now));
        let text = content.map(|(text, _)| text).unwrap_or_default();
        let call = event.object("tool_call_metadata");
        let cause = event.present("cause").map(RawValue::get);
        let of_cause = cause.and_then(|cause| self.calls.get(cause).cloned());
        let call_id = call.and_then(|call| call.id("tool_call_id")).or(of_cause);
        let parts = match (kind, call_id) {
            ("recall", _) => recalled(text, event.object("extras")),
            (kind, _) if UNSEEN.contains(&kind) => return None,
            (kind, Some(call_id)) => {
                let failed = kind == "error"
                    || event
                        .get("success")
                        .is_some_and(|value| value.get() == "false");
                vec![Part::ToolResult {
                    call_id,
                    content: ResultContent::Text(text),
                    is_error: failed.then_some(true),
                }]
            }
            ("error" | "user_rejected", None) => vec![Part::text(text)],
            (kind, None) => return self.unknown(kind),
        };
        let mut message = Message::new(Role::Tool, parts);
        let mut meta = MetaBuilder::default();
        let read = [
            "id",
            "observation",
            "content",
            "tool_call_metadata",
            "message",
        ];
        meta.extend(event.others(&read));
        message.meta = meta.finish();
        Some(message)
    }
}

/// The texts that OpenHands recalled for the model.
fn recalled(text: String, extras: Option<RawObject<'_>>) -> Vec<Part> {
    let mut texts = vec![text];
    if let Some(extras) = extras {
        let fields = ["repo_instructions", "additional_agent_instructions"];
        texts.extend(fields.iter().filter_map(|field| extras.string(field)));
        let knowledge = extras.get("microagent_knowledge").and_then(list);
        let knowledge = knowledge.unwrap_or_default().into_iter();
        texts.extend(knowledge.filter_map(|one| RawObject::parse(one.get())?.string("content")));
    }
    texts.retain(|text| !text.is_empty());
    texts.into_iter().map(Part::text).collect()
}
