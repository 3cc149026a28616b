//! Reads and checks fields of JSON objects.

use memory_model::{Part, RawJson, ToolDefinition};
use serde_json::{Map, Value};

use crate::error::Error;

pub(crate) type Object = Map<String, Value>;

/// Returns the error for a value at a place, such as `messages[3].role`.
pub(crate) fn invalid(place: &str, problem: impl Into<String>) -> Error {
    Error::invalid(&format!("`{place}`"), problem)
}

/// Returns a value as an object, or the error that it is not one.
pub(crate) fn object<'a>(value: &'a Value, place: &str) -> Result<&'a Object, Error> {
    value.as_object().ok_or_else(|| {
        invalid(
            place,
            "it is not a JSON object: pass the list as the provider has it",
        )
    })
}

/// Returns a string field, or the error that it is missing.
pub(crate) fn string<'a>(object: &'a Object, key: &str, place: &str) -> Result<&'a str, Error> {
    object
        .get(key)
        .and_then(Value::as_str)
        .ok_or_else(|| invalid(place, format!("it has no string `{key}`")))
}

/// Returns a string field, if there is one.
pub(crate) fn text<'a>(object: &'a Object, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}

/// Returns an unknown part with a value as it came.
pub(crate) fn unknown(value: &Value) -> Part {
    match RawJson::from_value(value) {
        Ok(raw) => Part::Unknown { raw },
        Err(_) => Part::text(value.to_string()),
    }
}

/// Parses the JSON of an unknown part, if its `type` is one of `types`.
pub(crate) fn native(raw: &RawJson, types: &[&str]) -> Option<Value> {
    let value: Value = serde_json::from_str(raw.as_str()).ok()?;
    let kind = value.get("type").and_then(Value::as_str)?;
    types.contains(&kind).then_some(value)
}

/// Facts about a message that are not content. They become the message's `meta`.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    message: Object,
    blocks: Object,
}

impl Facts {
    /// Keeps the fields of a message that are not in `known`.
    pub(crate) fn message(&mut self, object: &Object, known: &[&str]) {
        self.message.extend(others(object, known));
    }

    /// Keeps the fields of the part at `index` that are not in `known`.
    pub(crate) fn part(&mut self, index: usize, object: &Object, known: &[&str]) {
        let others: Object = others(object, known).collect();
        if !others.is_empty() {
            self.blocks.insert(index.to_string(), others.into());
        }
    }

    /// Returns the facts as one JSON object. The facts of parts are under `blocks`, by the index of the part.
    pub(crate) fn finish(mut self) -> Option<RawJson> {
        if !self.blocks.is_empty() {
            self.message.insert("blocks".to_owned(), self.blocks.into());
        }
        match self.message.is_empty() {
            true => None,
            false => RawJson::from_value(&self.message).ok(),
        }
    }
}

fn others<'a>(
    object: &'a Object,
    known: &'a [&str],
) -> impl Iterator<Item = (String, Value)> + use<'a> {
    object
        .iter()
        .filter(|(key, value)| !known.contains(&key.as_str()) && !value.is_null())
        .map(|(key, value)| (key.clone(), value.clone()))
}

/// Returns the schema of a tool's arguments as a value.
pub(crate) fn schema(tool: &ToolDefinition) -> Value {
    let schema = serde_json::from_str(tool.parameters.as_str());
    // JSON that is nested too deeply for a value describes no arguments that a provider accepts.
    schema.unwrap_or_else(|_| serde_json::json!({"type": "object"}))
}

/// Returns the token count at a path of keys.
pub(crate) fn tokens(value: &Value, path: &[&str]) -> Option<u64> {
    let at = path.iter().try_fold(value, |value, key| value.get(key));
    at.and_then(Value::as_u64)
}
