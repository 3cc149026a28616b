//! The tools as a model sees them: names, schemas, and calls that never fail.

use memory_model::{RawJson, SummaryId};
use memory_search::SearchScope;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::expand::{DEFAULT_TOKEN_CAP, ExpandArgs};
use crate::grep::{DEFAULT_LIMIT, GrepArgs};
use crate::retrieval::Retrieval;
use crate::text::short;

/// Name of the tool that searches.
pub const GREP: &str = "memory_grep";
/// Name of the tool that describes a summary.
pub const DESCRIBE: &str = "memory_describe";
/// Name of the tool that expands a summary.
pub const EXPAND: &str = "memory_expand";

/// Declaration of a tool for a model provider, as serde writes it. Converts into
/// [`memory_model::ToolDefinition`], which sessions and the shapes of providers take.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolDefinition {
    /// Name of the tool.
    pub name: &'static str,
    /// Description of the tool, for the model.
    pub description: &'static str,
    /// JSON Schema of the arguments; plain types only.
    pub parameters: Value,
}

impl From<ToolDefinition> for memory_model::ToolDefinition {
    fn from(tool: ToolDefinition) -> Self {
        let parameters = RawJson::from_value(&tool.parameters).unwrap_or_else(|_| null());
        Self::new(tool.name, parameters).with_description(tool.description)
    }
}

/// Answer of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolAnswer {
    /// Text to send to the model.
    pub text: String,
    /// JSON for programs; `{"error":{"kind","message"}}` for an error.
    pub json: RawJson,
    /// Whether the call failed; `text` then says what to do.
    pub is_error: bool,
}

impl ToolAnswer {
    fn new<T: Serialize>(text: String, answer: &T) -> Result<Self> {
        let json = RawJson::from_value(answer).map_err(|error| {
            Error::invalid(format!("the answer cannot be written as JSON: {error}"))
        })?;
        Ok(Self {
            text,
            json,
            is_error: false,
        })
    }

    fn error(error: &Error) -> Self {
        let kind = error.kind().as_str();
        let json = json!({"error": {"kind": kind, "message": error.to_string()}});
        Self {
            text: format!("Error: {error}\n"),
            json: RawJson::from_value(&json).unwrap_or_else(|_| null()),
            is_error: true,
        }
    }
}

/// JSON's null; there is always a way to write it.
fn null() -> RawJson {
    RawJson::from_raw(serde_json::value::RawValue::NULL)
}

impl Retrieval {
    /// Returns the definitions of the three tools, to be sent to a model beside the tools of the
    /// application.
    pub fn definitions() -> [memory_model::ToolDefinition; 3] {
        Self::tools().map(Into::into)
    }

    /// Whether a tool of this name is one of the three, which [`call`](Self::call) answers.
    pub fn has_tool(name: &str) -> bool {
        matches!(name, GREP | DESCRIBE | EXPAND)
    }

    /// Returns the declarations of the three tools.
    pub fn tools() -> [ToolDefinition; 3] {
        // Keys stand in alphabetical order: whether serde_json sorts them or keeps this order
        // depends on features that other crates turn on.
        [
            ToolDefinition {
                name: GREP,
                description: "Search the whole conversation for a piece of text, also where it \
                              was summarized. Answers with numbered hits: message:SEQ or a \
                              summary id (read more of both with memory_expand), and a snippet.",
                parameters: json!({
                    "additionalProperties": false,
                    "properties": {
                        "cursor": {
                            "description": "The cursor of an earlier answer, to get the hits \
                                            after it.",
                            "type": "string"
                        },
                        "limit": {
                            "description": "Maximum number of hits; 20 if not given.",
                            "type": "integer"
                        },
                        "pattern": {
                            "description": "The text to find, literally; upper and lower case \
                                            are the same, no character is special.",
                            "type": "string"
                        },
                        "scope": {
                            "description": "Where to look; both if not given.",
                            "enum": ["messages", "summaries", "both"],
                            "type": "string"
                        }
                    },
                    "required": ["pattern"],
                    "type": "object"
                }),
            },
            ToolDefinition {
                name: DESCRIBE,
                description: "Inspect a summary: its full text, the messages it covers, the \
                              summaries that contain it and those it was made from.",
                parameters: json!({
                    "additionalProperties": false,
                    "properties": {
                        "summary_id": {
                            "description": "The summary's id, such as sum_0123456789abcdef.",
                            "type": "string"
                        }
                    },
                    "required": ["summary_id"],
                    "type": "object"
                }),
            },
            ToolDefinition {
                name: EXPAND,
                description: "Read what a summary was made from, word for word: the messages of \
                              a leaf summary, the summaries inside a condensed one. Also reads \
                              messages by their position.",
                parameters: json!({
                    "additionalProperties": false,
                    "properties": {
                        "cursor": {
                            "description": "The cursor of an earlier answer, to go on after it.",
                            "type": "string"
                        },
                        "summary_id": {
                            "description": "A summary's id such as sum_0123456789abcdef, or \
                                            message:12, or messages:12-40.",
                            "type": "string"
                        },
                        "token_cap": {
                            "description": "Maximum tokens of content; 4000 if not \
                                            given.",
                            "type": "integer"
                        }
                    },
                    "required": ["summary_id"],
                    "type": "object"
                }),
            },
        ]
    }

    /// Answers a model's tool call. `arguments` is the JSON text that came with the call. Never fails:
    /// a call that cannot be answered gets an error answer that says what to do.
    pub async fn call(&self, name: &str, arguments: &str) -> ToolAnswer {
        let answer = match name {
            GREP => self.call_grep(arguments).await,
            DESCRIBE => self.call_describe(arguments).await,
            EXPAND => self.call_expand(arguments).await,
            _ => Err(Error::invalid(format!(
                "there is no tool {}: call {GREP}, {DESCRIBE} or {EXPAND}",
                short(name)
            ))),
        };
        answer.unwrap_or_else(|error| ToolAnswer::error(&error))
    }

    async fn call_grep(&self, arguments: &str) -> Result<ToolAnswer> {
        let mut given = Arguments::read(arguments, &["pattern", "scope", "limit", "cursor"])?;
        let args = GrepArgs {
            pattern: given.string("pattern")?.unwrap_or_default(),
            scope: given.scope()?,
            limit: given.count("limit", "20")?.map_or(DEFAULT_LIMIT, |limit| {
                usize::try_from(limit).unwrap_or(usize::MAX)
            }),
            cursor: given.filled("cursor")?,
        };
        let answer = self.grep(&args).await?;
        ToolAnswer::new(answer.to_text(), &answer)
    }

    async fn call_describe(&self, arguments: &str) -> Result<ToolAnswer> {
        let mut given = Arguments::read(arguments, &["summary_id"])?;
        let id = SummaryId::new(given.string("summary_id")?.unwrap_or_default());
        let answer = self.describe(&id).await?;
        ToolAnswer::new(answer.to_text(), &answer)
    }

    async fn call_expand(&self, arguments: &str) -> Result<ToolAnswer> {
        let mut given = Arguments::read(arguments, &["summary_id", "token_cap", "cursor"])?;
        let args = ExpandArgs {
            summary_id: given.string("summary_id")?.unwrap_or_default(),
            token_cap: given
                .count("token_cap", "4000")?
                .unwrap_or(DEFAULT_TOKEN_CAP),
            cursor: given.filled("cursor")?,
        };
        let answer = self.expand(&args).await?;
        ToolAnswer::new(answer.to_text(), &answer)
    }
}

/// The arguments of a call.
struct Arguments(Map<String, Value>);

impl Arguments {
    /// Reads a JSON object; nothing at all is an empty one, and an object that was written as a
    /// JSON string is taken for what it is.
    fn read(text: &str, known: &[&str]) -> Result<Self> {
        let expected = || format!("give a JSON object with {}", known.join(", "));
        if text.trim().is_empty() {
            return Ok(Self(Map::new()));
        }
        let parse = |text: &str| serde_json::from_str::<Value>(text);
        let value = match parse(text) {
            Ok(Value::String(inner)) => parse(&inner),
            other => other,
        };
        let map = match value {
            Ok(Value::Object(map)) => map,
            Ok(Value::Null) => Map::new(),
            Ok(_) => {
                return Err(Error::invalid(format!(
                    "the arguments are not an object: {}",
                    expected()
                )));
            }
            Err(error) => {
                return Err(Error::invalid(format!(
                    "the arguments are not JSON ({error}): {}",
                    expected()
                )));
            }
        };
        let mut unknown: Vec<&str> = map
            .keys()
            .map(String::as_str)
            .filter(|key| !known.contains(key))
            .collect();
        unknown.sort_unstable();
        match unknown.first() {
            Some(key) => Err(Error::invalid(format!(
                "there is no argument {}: {}",
                short(key),
                expected()
            ))),
            None => Ok(Self(map)),
        }
    }

    /// A text, if there is one.
    fn string(&mut self, key: &str) -> Result<Option<String>> {
        match self.0.remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(Error::invalid(format!(
                "{key} is {}: give a string",
                kind(&other)
            ))),
        }
    }

    /// A text that is not empty, if there is one.
    fn filled(&mut self, key: &str) -> Result<Option<String>> {
        let text = self.string(key)?;
        Ok(text.filter(|text| !text.trim().is_empty()))
    }

    /// A whole number, also as a float or in a string; what is below 0 becomes 0.
    fn count(&mut self, key: &str, example: &str) -> Result<Option<u64>> {
        let value = match self.0.remove(key) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => return Ok(None),
            Some(value) => value,
        };
        let number = match &value {
            Value::Number(number) => whole(&number.to_string()),
            Value::String(text) => whole(text.trim()),
            _ => None,
        };
        number.map(Some).ok_or_else(|| {
            Error::invalid(format!(
                "{key} is {}: give a whole number such as {example}",
                kind(&value)
            ))
        })
    }

    fn scope(&mut self) -> Result<SearchScope> {
        let Some(text) = self.filled("scope")? else {
            return Ok(SearchScope::Both);
        };
        [
            SearchScope::Messages,
            SearchScope::Summaries,
            SearchScope::Both,
        ]
        .into_iter()
        .find(|scope| scope.as_str().eq_ignore_ascii_case(text.trim()))
        .ok_or_else(|| {
            Error::invalid(format!(
                "there is no scope {}: give messages, summaries or both",
                short(&text)
            ))
        })
    }
}

/// Reads `20`, `-1` or `20.0`; what is below 0 becomes 0, what is too large the largest number.
fn whole(text: &str) -> Option<u64> {
    if let Ok(number) = text.parse::<i128>() {
        return Some(u64::try_from(number.max(0)).unwrap_or(u64::MAX));
    }
    let number: f64 = text.parse().ok()?;
    // A cast from f64 saturates.
    (number.is_finite() && number.fract() == 0.0).then_some(number as u64)
}

fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "a boolean".to_owned(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the text {}", short(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_where_they_are_clear() {
        for (text, number) in [
            ("20", Some(20)),
            ("-1", Some(0)),
            ("20.0", Some(20)),
            ("2e1", Some(20)),
            ("-2.0", Some(0)),
            ("1e30", Some(u64::MAX)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("20.5", None),
            ("NaN", None),
            ("inf", None),
            ("twenty", None),
        ] {
            assert_eq!(whole(text), number, "{text}");
        }
    }
}
