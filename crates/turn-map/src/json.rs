//! Functions for the JSON messages of all providers.

use serde_json::{Map, Value, json};
use token_estimate::PartView;

/// A borrowed view of one element of a message's content list.
pub(crate) enum ElementView<'v> {
    Part(PartView<'v>),
    /// An element of unknown type, shown as its JSON text.
    Raw(String),
}

impl ElementView<'_> {
    pub(crate) fn part(&self) -> PartView<'_> {
        match self {
            Self::Part(part) => *part,
            Self::Raw(json) => PartView::Other(json),
        }
    }
}

/// Returns the text under a key, or an empty text.
pub(crate) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or("")
}

/// Returns the length of the base64 text in a `data:` address. 0 for other addresses.
pub(crate) fn data_address_len(address: &str) -> usize {
    match address.split_once(',') {
        Some((head, data)) if head.starts_with("data:") => data.len(),
        _ => 0,
    }
}

/// Sets the value under a key of an object. Does not change a value that is not an object.
pub(crate) fn set(value: &mut Value, key: &str, new: impl Into<Value>) {
    if let Some(object) = value.as_object_mut() {
        object.insert(key.to_owned(), new.into());
    }
}

/// Calls `visit` with a tool result as a view. The content of the result is a text or a list of elements.
pub(crate) fn view_result(
    (call_id, name): (&str, Option<&str>),
    is_error: bool,
    content: Option<&Value>,
    element: fn(&Value) -> ElementView<'_>,
    visit: &mut dyn FnMut(PartView<'_>),
) {
    let views: Vec<ElementView<'_>> = match content {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(elements)) => elements.iter().map(element).collect(),
        Some(content) => vec![element(content)],
    };
    let parts: Vec<PartView<'_>> = views.iter().map(ElementView::part).collect();
    visit(PartView::ToolResult {
        call_id,
        name,
        content: &parts,
        is_error,
    });
}

pub(crate) fn text_element(text: String) -> Value {
    json!({"type": "text", "text": text})
}

/// Sets the text of an element, which must be a text.
pub(crate) fn set_element_text(element: &mut Value, text: String) {
    match element {
        Value::String(old) => *old = text,
        element => {
            let key = if element.get("refusal").is_some() {
                "refusal"
            } else {
                "text"
            };
            set(element, key, text);
        }
    }
}

/// Sets the text of a tool result's content. In a list, the text replaces the first text or raw element. The other
/// texts and raw elements are removed, and images and documents are kept.
pub(crate) fn set_content_text(
    content: &mut Value,
    text: String,
    element: fn(&Value) -> ElementView<'_>,
) {
    let Value::Array(elements) = content else {
        *content = Value::String(text);
        return;
    };
    let is_text = |value: &Value| {
        let view = element(value);
        matches!(view.part(), PartView::Text(_) | PartView::Other(_))
    };
    let first = elements.iter().position(is_text).unwrap_or(elements.len());
    elements.retain(|element| !is_text(element));
    elements.insert(first.min(elements.len()), text_element(text));
}

/// Removes the content of a tool result from `object`. Returns it with a heading before it, as the content of a
/// message: a text, or a list of elements. An element of a type that is not in `types` becomes a text with its JSON.
pub(crate) fn headed(
    object: &mut Map<String, Value>,
    heading: String,
    types: &[&str],
) -> Result<String, Vec<Value>> {
    match object.remove("content") {
        None | Some(Value::Null) => Ok(heading),
        Some(Value::String(text)) => Ok(format!("{heading}\n{text}")),
        Some(content) => {
            let elements = match content {
                Value::Array(elements) => elements,
                content => vec![content],
            };
            let elements = elements.into_iter().map(|element| match element {
                Value::String(text) => text_element(text),
                element if types.contains(&text(&element, "type")) => element,
                element => text_element(element.to_string()),
            });
            let heading = std::iter::once(text_element(heading));
            Err(heading.chain(elements).collect())
        }
    }
}
