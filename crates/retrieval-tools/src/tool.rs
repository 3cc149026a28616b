//! A tool for a model: its declaration, and the answer of a call.

use std::pin::Pin;

use memory_model::{RawJson, ToolDefinition};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::arguments::{Arguments, Declared, Reach, read};
use crate::error::{Error, Result};
use crate::retrieval::Retrieval;

/// A tool's arguments, with the function that answers a call.
pub(crate) trait Call: Arguments {
    /// Answers a call with these arguments.
    fn answer(self, tools: &Retrieval) -> impl Future<Output = Result<ToolAnswer>> + Send;
}

type Answering<'a> = Pin<Box<dyn Future<Output = Result<ToolAnswer>> + Send + 'a>>;

/// Declaration of a tool for a model: its name, description and arguments.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Tool {
    /// Name of the tool.
    pub name: &'static str,
    /// Title of the tool, to show to people.
    pub title: &'static str,
    /// Description of the tool, for the model.
    pub description: &'static str,
    /// Whether the tool changes data.
    pub writes: bool,
    pub(crate) reach: Reach,
    pub(crate) declared: Declared,
    pub(crate) call: for<'a> fn(&'a Self, &'a Retrieval, Map<String, Value>) -> Answering<'a>,
}

impl Tool {
    pub(crate) fn of<T: Call>() -> Self {
        Self {
            name: T::NAME,
            title: T::TITLE,
            description: T::DESCRIPTION,
            writes: T::WRITES,
            reach: T::REACH,
            declared: Declared::of::<T>(),
            call: |tool, tools, given| {
                Box::pin(async move { read::<T>(&tool.declared, given)?.answer(tools).await })
            },
        }
    }

    /// Returns the JSON Schema of the tool's arguments, an object. The schema uses only plain types. Arguments that are
    /// not in its list `required` can be omitted.
    pub fn schema(&self) -> Value {
        let mut properties = self.declared.arguments.clone();
        for schema in properties.values_mut().filter_map(Value::as_object_mut) {
            schema
                .retain(|key, _| ["description", "enum", "items", "type"].contains(&key.as_str()));
        }
        let mut schema = json!({
            "additionalProperties": false,
            "properties": properties,
            "required": self.declared.required,
            "type": "object",
        });
        // The order of keys in a map depends on features that other crates enable.
        schema.sort_all_objects();
        schema
    }
}

impl From<&Tool> for ToolDefinition {
    fn from(tool: &Tool) -> Self {
        let parameters = RawJson::from_value(&tool.schema())
            .unwrap_or_else(|_| RawJson::from_raw(RawValue::NULL));
        Self::new(tool.name, parameters).with_description(tool.description)
    }
}

/// Answer to a tool call of a model.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolAnswer {
    /// Text to send to the model.
    pub text: String,
    /// The answer as JSON for programs. If the call failed: `{"error":{"kind":…,"message":…}}`. A long pattern or query
    /// is repeated only up to its first 500 characters.
    pub json: Value,
    /// Whether the call failed. The field `text` then says how to correct the call.
    pub is_error: bool,
}

impl ToolAnswer {
    /// Creates an answer that is only a text.
    pub(crate) fn of_text(text: String) -> Self {
        Self {
            json: json!({"text": text}),
            text,
            is_error: false,
        }
    }

    pub(crate) fn new<T: Serialize>(text: String, answer: &T) -> Result<Self> {
        let json = serde_json::to_value(answer).map_err(|error| {
            Error::invalid(format!("the answer cannot be written as JSON: {error}"))
        })?;
        Ok(Self {
            text,
            json,
            is_error: false,
        })
    }
}

impl From<Error> for ToolAnswer {
    fn from(error: Error) -> Self {
        let kind = error.kind().as_str();
        Self {
            text: format!("Error: {error}\n"),
            json: json!({"error": {"kind": kind, "message": error.to_string()}}),
            is_error: true,
        }
    }
}
