//! Messages of Anthropic's messages API as sent. Feature `json`.
//!
//! ```
//! use serde_json::json;
//! use turn_map::{anthropic, apply, check_anthropic, sanitize};
//!
//! let list = anthropic::from_values(vec![
//!     json!({"role": "user", "content": "Read it."}),
//!     json!({"role": "assistant", "content": [
//!         {"type": "tool_use", "id": "c1", "name": "read", "input": {}},
//!     ]}),
//! ]);
//! assert_eq!(check_anthropic(&list).len(), 1);
//! let plan = sanitize(&list, "[no result]");
//! let list = anthropic::into_values(apply(list, &plan.edits));
//! assert_eq!(
//!     list[2],
//!     json!({"role": "user", "content": [
//!         {"type": "tool_result", "tool_use_id": "c1", "content": "[no result]"},
//!     ]})
//! );
//! ```

use serde_json::{Value, json};
use token_estimate::{MessageView, PartView, Role};

use crate::EditableMessage;
use crate::json::{
    ElementView, headed, set, set_content_text, set_element_text, text, text_element, view_result,
};

/// Types of content blocks that a user's message may contain in addition to tool results.
const TYPES: [&str; 4] = ["text", "image", "document", "search_result"];

/// A message as JSON of Anthropic's messages API.
///
/// The content is a text or a list of blocks. Thinking blocks are reasoning. Calls of tools that the provider runs
/// itself, and their results, do not count as calls and results. Unknown blocks and fields are kept unchanged. An
/// assistant's message with an `id`, as in a response, is a part of the response with this id. JSON that is not an
/// object has no parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Message(pub Value);

/// A content block of a [`Message`], as a part that [`apply`](crate::apply) moves and changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Part(Inner);

#[derive(Debug, Clone, PartialEq)]
enum Inner {
    /// The whole content of a message, if it is a text instead of a list of blocks.
    Text(String),
    Block(Value),
}

/// Returns each JSON value as a message.
pub fn from_values(messages: Vec<Value>) -> Vec<Message> {
    messages.into_iter().map(Message).collect()
}

/// Returns the JSON value of each message.
pub fn into_values(messages: Vec<Message>) -> Vec<Value> {
    messages.into_iter().map(|message| message.0).collect()
}

fn view_block(block: &Value, visit: &mut dyn FnMut(PartView<'_>)) {
    match text(block, "type") {
        "tool_use" => {
            let input = block.get("input").map(Value::to_string);
            visit(PartView::ToolCall {
                id: text(block, "id"),
                name: text(block, "name"),
                arguments: input.as_deref().unwrap_or(""),
            });
        }
        "tool_result" => view_result(
            (text(block, "tool_use_id"), None),
            block.get("is_error") == Some(&Value::Bool(true)),
            block.get("content"),
            element,
            visit,
        ),
        _ => visit(element(block).part()),
    }
}

fn element(block: &Value) -> ElementView<'_> {
    let source = block.get("source").unwrap_or(&Value::Null);
    let data = match text(source, "type") {
        "base64" => text(source, "data"),
        _ => "",
    };
    ElementView::Part(match (block, text(block, "type")) {
        (Value::String(text), _) => PartView::Text(text),
        (_, "text") => PartView::Text(text(block, "text")),
        (_, "thinking") => PartView::Reasoning(text(block, "thinking")),
        (_, "redacted_thinking") => PartView::Reasoning(text(block, "data")),
        (_, "image") => PartView::Image {
            base64_len: data.len(),
        },
        (_, "document") if matches!(text(source, "type"), "base64" | "url" | "file") => {
            PartView::File { data }
        }
        _ => return ElementView::Raw(block.to_string()),
    })
}

impl MessageView for Message {
    fn role(&self) -> Role {
        match text(&self.0, "role") {
            "system" => Role::System,
            "assistant" => Role::Assistant,
            _ => Role::User,
        }
    }

    fn parts(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        match self.0.get("content") {
            Some(Value::String(text)) if !text.is_empty() => visit(PartView::Text(text)),
            Some(Value::Array(blocks)) => blocks.iter().for_each(|block| view_block(block, visit)),
            _ => {}
        }
    }

    fn response(&self) -> Option<&str> {
        let id = Some(text(&self.0, "id")).filter(|id| !id.is_empty());
        id.filter(|_| self.role() == Role::Assistant)
    }
}

impl EditableMessage for Message {
    type Part = Part;

    fn take_parts(&mut self) -> Vec<Part> {
        match self.0.get_mut("content") {
            Some(Value::String(text)) if !text.is_empty() => {
                vec![Part(Inner::Text(std::mem::take(text)))]
            }
            Some(Value::Array(blocks)) => {
                let blocks = std::mem::take(blocks).into_iter();
                blocks.map(|block| Part(Inner::Block(block))).collect()
            }
            _ => Vec::new(),
        }
    }

    fn put_parts(&mut self, mut parts: Vec<Part>) {
        let content = match parts.as_mut_slice() {
            [] => return,
            [Part(Inner::Text(text))] => Value::String(std::mem::take(text)),
            _ => parts.into_iter().map(Part::into_block).collect(),
        };
        set(&mut self.0, "content", content);
    }

    fn set_role(&mut self, role: Role) {
        let name = match role {
            Role::System => "system",
            Role::Assistant => "assistant",
            Role::User | Role::Tool => "user",
        };
        set(&mut self.0, "role", name);
    }

    fn results_behind(&self, parts: Vec<Part>) -> Vec<Self> {
        let blocks: Vec<Value> = parts.into_iter().map(Part::into_block).collect();
        vec![Self(json!({"role": "user", "content": blocks}))]
    }

    fn result_part(call_id: String, text: String) -> Part {
        Part(Inner::Block(
            json!({"type": "tool_result", "tool_use_id": call_id, "content": text}),
        ))
    }

    fn set_text(part: &mut Part, new: String) {
        match &mut part.0 {
            Inner::Text(old) => *old = new,
            Inner::Block(block) if text(block, "type") == "tool_result" => {
                match block.get_mut("content") {
                    Some(content) => set_content_text(content, new, element),
                    None => set(block, "content", new),
                }
            }
            Inner::Block(block) => set_element_text(block, new),
        }
    }

    fn set_content(part: &mut Part, new: String) {
        if let Inner::Block(block) = &mut part.0
            && text(block, "type") == "tool_result"
        {
            set(block, "content", new);
        }
    }

    fn set_id(part: &mut Part, id: String) {
        if let Inner::Block(block) = &mut part.0 {
            match text(block, "type") {
                "tool_use" => set(block, "id", id),
                "tool_result" => set(block, "tool_use_id", id),
                _ => {}
            }
        }
    }

    fn result_to_text(part: Part, heading: String) -> Vec<Part> {
        match part.0 {
            Inner::Block(Value::Object(mut block)) => match headed(&mut block, heading, &TYPES) {
                Ok(text) => vec![Part(Inner::Text(text))],
                Err(blocks) => blocks.into_iter().map(|b| Part(Inner::Block(b))).collect(),
            },
            part => vec![Part(Inner::Text(heading)), Part(part)],
        }
    }
}

impl Part {
    fn into_block(self) -> Value {
        match self.0 {
            Inner::Text(text) => text_element(text),
            Inner::Block(block) => block,
        }
    }
}
