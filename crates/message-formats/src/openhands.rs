//! Event histories of OpenHands: the lines of an evaluation's `output.jsonl`, with one run each, or one trajectory as a
//! list of events.
//!
//! - Each event is an entry under its id.
//! - An action with a tool's call is a message of the assistant, with the call as the model wrote it. An observation is
//!   the result of the call that caused it.
//! - Other texts that OpenHands showed the model, such as recalled knowledge and errors, are messages in the role of a
//!   tool. Events that the model does not see are notes.
//! - Each event repeats the model's response. The response's text is read with its first call. An action without such a
//!   response is read as a call itself.
//! - Other members of a run, such as its result and its settings, are a note at its end.
//! - Each run is held in memory whole, up to [`ReadOptions::max_line_bytes`](crate::ReadOptions::max_line_bytes).

use std::collections::{HashMap, HashSet};

use memory_model::{Message, Part, RawJson, ResultContent, Role, Zone};
use serde_json::value::RawValue;

use crate::Report;
use crate::chat::reasoning;
use crate::documents::{Conversation, Documents, Source};
use crate::outline::Outline;
use crate::raw::{MetaBuilder, RawObject, list, readable, text};
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

/// Sources of events, with the quote that ends their text.
const SOURCES: [&str; 3] = ["agent\"", "user\"", "environment\""];

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
    const NAMES_SESSIONS: bool = false;

    fn is(outline: &Outline<'_>) -> bool {
        let events = |list: &str| {
            let has = |key: &str| outline.has(&format!("{list}[].{key}"));
            let is_of = |name: &str| outline.begins(&format!("{list}[].source"), name);
            SOURCES.into_iter().any(is_of)
                && (has("action") && has("args") || has("observation") && has("content"))
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
            zone: source.options.zone.clone(),
            report: &mut source.report,
        };
        let history = history.and_then(list).unwrap_or_default();
        history.into_iter().for_each(|event| events.add(event));
        let mut conversation = events.conversation;
        if let Some(run) = &run {
            conversation.rest(run, &["history"]);
        }
        source.finish::<Self>(conversation, run.and_then(|run| run.id("instance_id")));
    }
}

struct Events<'r> {
    conversation: Conversation,
    /// Ids of the responses with a text that was read already.
    responses: HashSet<String>,
    /// Ids of the calls, by the id of their event.
    calls: HashMap<String, String>,
    /// Zone of the events' times, which OpenHands writes in local time.
    zone: Zone,
    report: &'r mut Report,
}

impl Events<'_> {
    /// Adds an event, or both events of a pair of an action and its observation.
    fn add(&mut self, event: &RawValue) {
        if let Some(pair) = list(event) {
            return pair.into_iter().for_each(|event| self.add(event));
        }
        self.report.lines += 1;
        let text = event.get();
        let object = RawObject::parse(text);
        let id = object.as_ref().and_then(|event| {
            let id = event.present("id")?.get().trim_matches('"');
            (!id.is_empty()).then(|| id.to_owned())
        });
        let mut kind = None;
        let message = object.and_then(|event| {
            let (action, observation) = (event.string("action"), event.string("observation"));
            let message = match (&action, &observation) {
                (Some(kind), _) => self.action(&event, kind),
                (None, Some(kind)) => self.observation(&event, kind),
                (None, None) => None,
            };
            kind = action.or(observation);
            let mut message = message?;
            let time = event.local_time("timestamp", &self.zone);
            message.created_at = time.unwrap_or_default();
            Some(message)
        });
        let message = message.unwrap_or_else(|| {
            let kind = kind.as_deref().unwrap_or("unknown_event");
            if !UNSEEN.contains(&kind) {
                self.report.warn(kind, self.report.lines);
            }
            note(Role::System, text)
        });
        self.conversation.begin(message.role == Role::System, text);
        self.conversation.log.push(message, id, text);
    }

    fn action(&mut self, event: &RawObject<'_>, kind: &str) -> Option<Message> {
        let args = event.object("args");
        let (mut meta, mut rest) = (MetaBuilder::default(), MetaBuilder::default());
        let mut arg = |name: &str| {
            let value = args.as_ref()?.get(name)?;
            text(value, &format!("\"{name}\""), &mut rest)
        };
        let is_user = event.string("source").as_deref() == Some("user");
        let mut read = vec!["id", "action", "args", "message", "tool_call_metadata"];
        let mut are_arguments = false;
        let mut message = match kind {
            "system" => Message::system(arg("content")?),
            "message" if is_user => Message::user(arg("content")?),
            "message" => Message::assistant(arg("content")?),
            kind => {
                let thought = arg("thought").filter(|text| !text.is_empty());
                let call = event.object("tool_call_metadata");
                let written = call
                    .as_ref()
                    .and_then(|call| self.call(call, thought.clone(), &mut meta));
                match written {
                    Some(message) => message,
                    None if CALLS.contains(&kind) => {
                        are_arguments = true;
                        if call.is_some() {
                            read.pop();
                        }
                        let made = || {
                            let id = event.present("id").map_or("", RawValue::get);
                            format!("event-{id}")
                        };
                        let id = call.and_then(|call| call.id("tool_call_id"));
                        let mut parts: Vec<Part> = thought.map(Part::text).into_iter().collect();
                        parts.push(Part::ToolCall {
                            id: id.unwrap_or_else(made),
                            name: kind.to_owned(),
                            arguments: RawJson::from_raw(event.get("args")?),
                        });
                        Message::new(Role::Assistant, parts)
                    }
                    None => return None,
                }
            }
        };
        meta.extend(event.others(&read));
        if let Some(args) = args.filter(|_| !are_arguments) {
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

    /// Reads the message of a call. It has the call as the model wrote it.
    ///
    /// The model's reasoning and text before the call are included, if no other call of the response has included them.
    /// Returns `None` if the response does not hold the call.
    fn call(
        &mut self,
        call: &RawObject<'_>,
        thought: Option<String>,
        meta: &mut MetaBuilder,
    ) -> Option<Message> {
        let (id, name) = (call.id("tool_call_id")?, call.string("function_name")?);
        let response = call.object("model_response")?;
        let choice = response.get("choices").and_then(list)?.first().copied()?;
        let said = RawObject::parse(choice.get())?.object("message")?;
        let calls = said.get("tool_calls").and_then(list).unwrap_or_default();
        let arguments = calls.iter().find_map(|call| {
            let call = RawObject::parse(call.get())?;
            let is_same = call.string("id").as_deref() == Some(id.as_str());
            let arguments = call.object("function")?.get("arguments")?;
            is_same.then(|| RawJson::from_raw(arguments))
        })?;
        let response_id = response.id("id");
        let is_first = response_id
            .as_ref()
            .is_none_or(|id| self.responses.insert(id.clone()));
        let mut facts = response.rest(&["choices"]);
        let (mut parts, mut told) = (Vec::new(), thought);
        if is_first {
            let mut known = vec!["role", "tool_calls"];
            if let Some((key, reasoning)) = reasoning(&said) {
                known.push(key);
                parts.push(reasoning);
            }
            let mut rest = MetaBuilder::default();
            let content = said.get("content");
            let content = content.and_then(|content| text(content, "\"content\"", &mut rest));
            if content.is_some() {
                known.push("content");
            }
            told = told.or(content);
            let others = said.others(&known);
            rest.extend(others.filter(|member| member.value.get() != "null"));
            facts.nest("\"message\"", rest);
        }
        meta.nest("\"model_response\"", facts);
        parts.extend(told.filter(|text| !text.is_empty()).map(Part::text));
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
        let mut meta = MetaBuilder::default();
        let content = event.get("content");
        let content = content.and_then(|content| text(content, "\"content\"", &mut meta));
        let text = content.unwrap_or_default();
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
            (_, None) => return None,
        };
        let mut message = Message::new(Role::Tool, parts);
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

/// Returns the texts that OpenHands recalled for the model.
fn recalled(text: String, extras: Option<RawObject<'_>>) -> Vec<Part> {
    let mut texts = vec![text];
    if let Some(extras) = extras {
        let fields = ["repo_instructions", "additional_agent_instructions"];
        let text = |value| Some(readable(value)?.0);
        texts.extend(fields.iter().filter_map(|field| text(extras.get(field)?)));
        let knowledge = extras.get("microagent_knowledge").and_then(list);
        let knowledge = knowledge.unwrap_or_default().into_iter();
        texts
            .extend(knowledge.filter_map(|one| text(RawObject::parse(one.get())?.get("content")?)));
    }
    texts.retain(|text| !text.is_empty());
    texts.into_iter().map(Part::text).collect()
}
