//! Messages of OpenAI's chat completions as sent. Feature `json`.
//!
//! ```
//! use serde_json::json;
//! use turn_map::{apply, check_openai, openai, sanitize};
//!
//! let list = openai::from_values(vec![
//!     json!({"role": "user", "content": "Read it."}),
//!     json!({"role": "assistant", "content": null, "tool_calls": [
//!         {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}},
//!     ]}),
//! ]);
//! assert_eq!(check_openai(&list).len(), 1);
//! let plan = sanitize(&list, "[no result]");
//! let list = openai::into_values(apply(list, &plan.edits));
//! assert_eq!(
//!     list[2],
//!     json!({"role": "tool", "tool_call_id": "c1", "content": "[no result]"})
//! );
//! ```

use serde_json::{Value, json};
use token_estimate::{MessageView, PartView, Role};

use crate::EditableMessage;
use crate::json::{
    ElementView, data_address_len, headed, set, set_content_text, set_element_text, text,
    text_element, view_result,
};

/// Types of elements that the content of a message may contain.
const TYPES: [&str; 5] = ["text", "image_url", "input_audio", "file", "refusal"];

/// A message as JSON of OpenAI's chat completions API.
///
/// The content is a text or a list. `developer` is a system role, a refusal is a text, and a tool's message is one
/// result. The `reasoning_content` of compatible servers is reasoning. Unknown fields are kept unchanged, among them
/// `function_call`, which has no id. JSON that is not an object has no parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Chat(pub Value);

/// A part of a [`Chat`] message: a text, a call, a result or other content.
#[derive(Debug, Clone, PartialEq)]
pub struct Part(Inner);

#[derive(Debug, Clone, PartialEq)]
enum Inner {
    Reasoning(String),
    /// The whole content of a message, if it is a text instead of a list.
    Text(String),
    /// An element of the content list.
    Element(Value),
    Refusal(String),
    Call(Value),
    /// The whole message of a tool, which is one result.
    Result(Value),
}

/// Returns each JSON value as a message.
pub fn from_values(messages: Vec<Value>) -> Vec<Chat> {
    messages.into_iter().map(Chat).collect()
}

/// Returns the JSON value of each message.
pub fn into_values(messages: Vec<Chat>) -> Vec<Value> {
    messages.into_iter().map(|message| message.0).collect()
}

impl Chat {
    fn is_result(&self) -> bool {
        text(&self.0, "role") == "tool"
    }

    /// Returns the text under a key; `None` if the text is empty or missing.
    fn field(&self, key: &str) -> Option<&str> {
        Some(text(&self.0, key)).filter(|text| !text.is_empty())
    }

    fn list(&self, key: &str) -> &[Value] {
        self.0
            .get(key)
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }

    fn take_text(&mut self, key: &str) -> Option<String> {
        self.field(key)?;
        match self.0.as_object_mut()?.remove(key) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    fn take_list(&mut self, key: &str) -> Vec<Value> {
        if self.list(key).is_empty() {
            return Vec::new();
        }
        let object = self.0.as_object_mut();
        match object.and_then(|object| object.remove(key)) {
            Some(Value::Array(list)) => list,
            _ => Vec::new(),
        }
    }
}

fn element(value: &Value) -> ElementView<'_> {
    let address = |key: &str, field: &str| text(value.get(key).unwrap_or(&Value::Null), field);
    ElementView::Part(match (value, text(value, "type")) {
        (Value::String(text), _) => PartView::Text(text),
        (_, "text") => PartView::Text(text(value, "text")),
        (_, "refusal") => PartView::Text(text(value, "refusal")),
        (_, "image_url") => PartView::Image {
            base64_len: data_address_len(address("image_url", "url")),
        },
        (_, "file") => PartView::File {
            data: address("file", "file_data"),
        },
        (_, "input_audio") => PartView::File {
            data: address("input_audio", "data"),
        },
        _ => return ElementView::Raw(value.to_string()),
    })
}

fn view_call(call: &Value, visit: &mut dyn FnMut(PartView<'_>)) {
    let (function, arguments) = match call.get("custom") {
        Some(custom) => (custom, custom.get("input")),
        None => {
            let function = call.get("function").unwrap_or(&Value::Null);
            (function, function.get("arguments"))
        }
    };
    let raw;
    let arguments = match arguments {
        None => "",
        Some(Value::String(arguments)) => arguments,
        Some(arguments) => {
            raw = arguments.to_string();
            &raw
        }
    };
    visit(PartView::ToolCall {
        id: text(call, "id"),
        name: text(function, "name"),
        arguments,
    });
}

impl MessageView for Chat {
    fn role(&self) -> Role {
        match text(&self.0, "role") {
            "system" | "developer" => Role::System,
            "assistant" => Role::Assistant,
            "tool" | "function" => Role::Tool,
            _ => Role::User,
        }
    }

    fn parts(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        if self.is_result() {
            let names = (text(&self.0, "tool_call_id"), self.field("name"));
            view_result(names, false, self.0.get("content"), element, visit);
        } else {
            self.field("reasoning_content")
                .into_iter()
                .for_each(|text| visit(PartView::Reasoning(text)));
            match self.field("content") {
                Some(text) => visit(PartView::Text(text)),
                None => self
                    .list("content")
                    .iter()
                    .for_each(|value| visit(element(value).part())),
            }
            self.field("refusal")
                .into_iter()
                .for_each(|text| visit(PartView::Text(text)));
        }
        for call in self.list("tool_calls") {
            view_call(call, visit);
        }
    }
}

impl EditableMessage for Chat {
    type Part = Part;

    fn take_parts(&mut self) -> Vec<Part> {
        let calls = self.take_list("tool_calls").into_iter().map(Inner::Call);
        let mut parts = Vec::new();
        if self.is_result() {
            let object = self.0.as_object_mut();
            let content = object.and_then(|object| object.remove("content"));
            let mut whole = self.0.clone();
            if let Some(content) = content {
                set(&mut whole, "content", content);
            }
            parts.push(Inner::Result(whole));
        } else {
            let reasoning = self.take_text("reasoning_content");
            parts.extend(reasoning.map(Inner::Reasoning));
            match self.take_text("content") {
                Some(text) => parts.push(Inner::Text(text)),
                None => parts.extend(self.take_list("content").into_iter().map(Inner::Element)),
            }
            parts.extend(self.take_text("refusal").map(Inner::Refusal));
            if self.0.get("content").is_none() && parts.iter().any(Inner::is_content) {
                set(&mut self.0, "content", Value::Null);
            }
        }
        parts.into_iter().chain(calls).map(Part).collect()
    }

    /// Sets the parts of the message. If there are several tool results, the second and later ones become text.
    fn put_parts(&mut self, parts: Vec<Part>) {
        let was_result = self.is_result();
        let mut content: Vec<Inner> = Vec::new();
        let (mut calls, mut result) = (Vec::new(), None);
        for part in parts {
            match part.0 {
                Inner::Reasoning(text) => set(&mut self.0, "reasoning_content", text),
                Inner::Refusal(text) => set(&mut self.0, "refusal", text),
                Inner::Call(call) => calls.push(call),
                Inner::Result(whole) if result.is_none() => result = Some(whole),
                Inner::Result(whole) => {
                    let heading = format!("[Result of call {}]", text(&whole, "tool_call_id"));
                    content.extend(headed_content(whole, heading));
                }
                part => content.push(part),
            }
        }
        if let Some(whole) = result {
            self.0 = whole;
            if !content.is_empty() {
                let own = self.0.get_mut("content").map(Value::take);
                let own = match own {
                    Some(Value::Array(elements)) => {
                        elements.into_iter().map(Inner::Element).collect()
                    }
                    Some(Value::String(text)) => vec![Inner::Text(text)],
                    _ => Vec::new(),
                };
                content.splice(0..0, own);
            }
        } else if was_result && let Some(object) = self.0.as_object_mut() {
            object.remove("tool_call_id");
            object.remove("name");
        }
        match <[Inner; 1]>::try_from(content) {
            Ok([Inner::Text(text)]) => set(&mut self.0, "content", text),
            Ok(one) => set(&mut self.0, "content", elements(one)),
            Err(none) if none.is_empty() => {}
            Err(many) => set(&mut self.0, "content", elements(many)),
        }
        if !calls.is_empty() {
            set(&mut self.0, "tool_calls", calls);
        }
    }

    fn set_role(&mut self, role: Role) {
        if self.role() != role {
            set(&mut self.0, "role", role.as_str());
        }
    }

    fn results_behind(&self, parts: Vec<Part>) -> Vec<Self> {
        let message = |part: Part| match part.0 {
            Inner::Result(whole) => Self(whole),
            part => {
                let mut message = Self(json!({"role": "user"}));
                message.put_parts(vec![Part(part)]);
                message
            }
        };
        parts.into_iter().map(message).collect()
    }

    fn result_part(call_id: String, text: String) -> Part {
        Part(Inner::Result(
            json!({"role": "tool", "tool_call_id": call_id, "content": text}),
        ))
    }

    fn set_text(part: &mut Part, text: String) {
        match &mut part.0 {
            Inner::Text(old) | Inner::Refusal(old) => *old = text,
            Inner::Element(element) => set_element_text(element, text),
            Inner::Result(whole) => match whole.get_mut("content") {
                Some(content) => set_content_text(content, text, element),
                None => set(whole, "content", text),
            },
            Inner::Reasoning(_) | Inner::Call(_) => {}
        }
    }

    fn set_content(part: &mut Part, text: String) {
        if let Inner::Result(whole) = &mut part.0 {
            set(whole, "content", text);
        }
    }

    fn set_id(part: &mut Part, id: String) {
        match &mut part.0 {
            Inner::Call(call) => set(call, "id", id),
            Inner::Result(whole) => set(whole, "tool_call_id", id),
            _ => {}
        }
    }

    fn result_to_text(part: Part, heading: String) -> Vec<Part> {
        match part.0 {
            Inner::Result(whole) => headed_content(whole, heading).map(Part).collect(),
            part => vec![Part(Inner::Text(heading)), Part(part)],
        }
    }
}

impl Inner {
    fn is_content(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Element(_))
    }
}

fn headed_content(mut whole: Value, heading: String) -> impl Iterator<Item = Inner> {
    let content = match whole.as_object_mut() {
        Some(object) => headed(object, heading, &TYPES),
        None => Ok(heading),
    };
    let (text, list) = match content {
        Ok(text) => (Some(text), Vec::new()),
        Err(list) => (None, list),
    };
    let text = text.into_iter().map(Inner::Text);
    text.chain(list.into_iter().map(Inner::Element))
}

fn elements(content: impl IntoIterator<Item = Inner>) -> Vec<Value> {
    content
        .into_iter()
        .filter_map(|part| match part {
            Inner::Text(text) => Some(text_element(text)),
            Inner::Element(element) => Some(element),
            _ => None,
        })
        .collect()
}
