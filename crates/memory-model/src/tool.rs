//! Tools that a model may call, and its calls.

use std::borrow::Cow;

use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Serialize};
use token_estimate::ToolView;

use crate::json::RawJson;
use crate::message::Message;
use crate::part::Part;

/// A tool that a model may call, in a provider-independent form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolDefinition {
    /// Name by which the model calls the tool.
    pub name: String,
    /// Description of the tool for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the object that holds the tool's arguments.
    pub parameters: RawJson,
}

impl ToolDefinition {
    /// Creates a tool definition without a description.
    pub fn new(name: impl Into<String>, parameters: RawJson) -> Self {
        Self {
            name: name.into(),
            description: None,
            parameters,
        }
    }

    /// Sets the description of the tool for the model.
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Returns a borrowed view of the definition, the form that token estimators accept.
    ///
    /// ```
    /// use memory_model::{RawJson, ToolDefinition};
    /// use token_estimate::{Calibrated, TokenEstimatorExt};
    ///
    /// let schema = RawJson::parse(r#"{"type":"object","properties":{"path":{"type":"string"}}}"#)?;
    /// let read = ToolDefinition::new("read", schema).with_description("Reads a file.");
    /// assert_eq!(Calibrated::O200k.tools([read.view()]), 47);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn view(&self) -> ToolView<'_> {
        let description = self.description.as_deref().unwrap_or_default();
        ToolView::new(&self.name, description, self.parameters.as_str())
    }
}

/// A call of a tool, borrowed from the message that makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolCall<'a> {
    /// Id of the call. The call's result refers to it.
    pub id: &'a str,
    /// Name of the called tool.
    pub name: &'a str,
    /// Original arguments of the call: JSON, or a JSON string of text that is not JSON.
    pub arguments: &'a RawJson,
}

impl<'a> ToolCall<'a> {
    /// Parses the arguments of the call as a `T`. Blank arguments count as `{}`.
    ///
    /// Arguments that are not JSON are an error for every type, even for `String`. A log keeps them as a JSON string of
    /// their text, and a call that was cut off must not pass for a text. A tool that takes free text reads
    /// [`text`](Self::text) instead.
    ///
    /// # Errors
    /// If the arguments are not JSON, or do not fit the type `T`. The text of the error is written for the model: pass
    /// it back with [`failed`](Self::failed).
    ///
    /// ```
    /// use memory_model::{Message, RawJson};
    ///
    /// let cut = RawJson::from_value(&r#"{"path": "sr"#)?;
    /// let message = Message::tool_call("call_1", "ls", cut);
    /// let call = message.tool_calls().next().unwrap();
    /// let error = call.parse::<serde_json::Value>().unwrap_err().to_string();
    /// assert!(error.starts_with("the arguments are not JSON (EOF while parsing"));
    /// assert_eq!(call.text(), r#"{"path": "sr"#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn parse<T: Deserialize<'a>>(&self) -> Result<T, serde_json::Error> {
        let arguments = self.arguments.as_str();
        if let Ok(text) = serde_json::from_str::<String>(arguments) {
            if text.trim().is_empty() {
                return serde_json::from_str("{}");
            }
            if let Err(error) = serde_json::from_str::<IgnoredAny>(&text) {
                return Err(serde_json::Error::custom(format!(
                    "the arguments are not JSON ({error}): give a JSON object"
                )));
            }
        }
        serde_json::from_str(arguments)
    }

    /// Returns the arguments of the call as the model wrote them: the JSON, or the text that is not JSON.
    pub fn text(&self) -> Cow<'a, str> {
        let arguments = self.arguments.as_str();
        let text = serde_json::from_str::<String>(arguments);
        text.map_or(Cow::Borrowed(arguments), Cow::Owned)
    }

    /// Returns the message that answers the call with a text.
    pub fn result(&self, text: impl Into<String>) -> Message {
        Message::tool_result(self.id, text)
    }

    /// Returns the message that answers the call with an error text, marked as an error. OpenAI's formats have no field
    /// for this mark. In them, the text begins with `[tool error]`.
    pub fn failed(&self, text: impl Into<String>) -> Message {
        Message::failed_result(self.id, text)
    }
}

impl Message {
    /// Returns the tool calls in the message, in order.
    ///
    /// ```
    /// use memory_model::{Message, RawJson};
    ///
    /// let message = Message::tool_call("call_1", "ls", RawJson::parse(r#"{"path":"src"}"#)?);
    /// for call in message.tool_calls() {
    ///     let arguments: std::collections::HashMap<&str, &str> = call.parse()?;
    ///     assert_eq!((call.name, arguments["path"]), ("ls", "src"));
    ///     assert_eq!(call.result("lib.rs"), Message::tool_result("call_1", "lib.rs"));
    ///     assert_eq!(call.failed("no such folder"), Message::failed_result("call_1", "no such folder"));
    /// }
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn tool_calls(&self) -> impl Iterator<Item = ToolCall<'_>> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall {
                id,
                name,
                arguments,
            } => Some(ToolCall {
                id,
                name,
                arguments,
            }),
            _ => None,
        })
    }
}
