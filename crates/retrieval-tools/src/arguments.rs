//! Reads the arguments of a tool call. Accepts other JSON types if the meaning is clear. Error messages say how to
//! correct the call.

use memory_model::Timestamp;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::text::short;

/// Example number in an error message about an argument without a default.
const EXAMPLE: u64 = 12;

/// Arguments of a tool. Each field is an argument, and its doc comment is the description of the argument for the
/// model.
pub(crate) trait Arguments: DeserializeOwned + JsonSchema + Send + 'static {
    const NAME: &'static str;
    const TITLE: &'static str;
    const DESCRIPTION: &'static str;
    const REACH: Reach = Reach::Session;
    /// Whether the tool changes data.
    const WRITES: bool = false;
}

/// The conversations of a set that a tool answers from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The conversation that the argument `session` selects.
    Session,
    /// The conversation that the argument `agent_name` selects.
    Agent,
    /// None of them: the tool has data of the whole set.
    Set,
}

/// Declaration of a tool's arguments.
#[derive(Debug, Clone)]
pub(crate) struct Declared {
    /// JSON Schema of each argument, by name.
    pub(crate) arguments: Map<String, Value>,
    /// Names of the required arguments.
    pub(crate) required: Vec<String>,
}

/// Reads the arguments of a call as a value of type `T`.
pub(crate) fn read<T: DeserializeOwned>(
    tool: &Declared,
    mut given: Map<String, Value>,
) -> Result<T> {
    tool.check(&given)?;
    let mut read = Map::new();
    for (name, schema) in &tool.arguments {
        let is_required = tool.required.contains(name);
        let value = match given.remove(name) {
            // A missing required value is empty here, and gets its own error later.
            None | Some(Value::Null) => {
                (is_required && schema["type"] == "string").then(|| "".into())
            }
            Some(Value::String(text))
                if !is_required && text.trim().is_empty() && schema["format"] != "text" =>
            {
                None
            }
            Some(value) => Some(meant(name, schema, value)?),
        };
        read.extend(value.map(|value| (name.clone(), value)));
    }
    serde_json::from_value(read.into())
        .map_err(|error| Error::invalid(format!("the arguments cannot be read: {error}")))
}

impl Declared {
    pub(crate) fn of<T: Arguments>() -> Self {
        let mut schema = schemars::schema_for!(T).to_value();
        let mut take = |key: &str| schema.get_mut(key).map(Value::take).unwrap_or_default();
        let (arguments, required) = (take("properties"), take("required"));
        let mut declared = Self {
            arguments: serde_json::from_value(arguments).unwrap_or_default(),
            required: serde_json::from_value(required).unwrap_or_default(),
        };
        for argument in declared.arguments.values_mut() {
            // The schema of an optional value also lists null, which callers do not need.
            if let Some([name, ..]) = argument["type"].as_array().map(Vec::as_slice) {
                argument["type"] = name.clone();
            }
            let text = argument["description"].as_str().unwrap_or_default();
            argument["description"] = text.split_whitespace().collect::<Vec<_>>().join(" ").into();
        }
        declared
    }

    /// Returns the arguments of a call as an object. Blank arguments are an empty object. JSON in a string is parsed.
    pub(crate) fn object(&self, mut given: Value) -> Result<Map<String, Value>> {
        // The first round parses the text of the call, the second an object that the model wrote as a string in it.
        for _ in 0..2 {
            let Value::String(text) = &given else { break };
            given = match text.trim() {
                "" => Value::Null,
                text => serde_json::from_str(text).map_err(|error| {
                    self.expected(&format!("the arguments are not JSON ({error})"))
                })?,
            };
        }
        match given {
            Value::Object(given) => Ok(given),
            Value::Null => Ok(Map::new()),
            _ => Err(self.expected("the arguments are not an object")),
        }
    }

    /// Returns an error if the call has an argument that the tool does not have.
    pub(crate) fn check(&self, given: &Map<String, Value>) -> Result<()> {
        let unknown = given
            .keys()
            .filter(|key| !self.arguments.contains_key(*key));
        let Some(key) = unknown.min() else {
            return Ok(());
        };
        let known = self.arguments.keys().map(String::as_str);
        let near = did_you_mean(key, known);
        Err(self.expected(&format!("there is no argument {}{near}", short(key))))
    }

    fn expected(&self, problem: &str) -> Error {
        let mut known: Vec<&str> = self.arguments.keys().map(String::as_str).collect();
        known.sort_unstable();
        Error::invalid(format!(
            "{problem}: give a JSON object with {}",
            known.join(", ")
        ))
    }
}

/// Converts a value to the type in its schema if the meaning is clear, such as `"20"` to 20.
fn meant(name: &str, schema: &Value, value: Value) -> Result<Value> {
    let wrong =
        |expected: &str| Error::invalid(format!("{name} is {}: give {expected}", kind(&value)));
    match (schema["type"].as_str(), &value) {
        (Some("integer"), _) => {
            let number = match &value {
                Value::Number(number) => whole(&number.to_string()),
                Value::String(text) => whole(text.trim()),
                _ => None,
            };
            let example = schema["default"].as_u64().filter(|number| *number > 0);
            let example = example.unwrap_or(EXAMPLE);
            let number =
                number.ok_or_else(|| wrong(&format!("a whole number such as {example}")))?;
            let most = match schema["format"].as_str() {
                Some("uint32") => u32::MAX.into(),
                Some("uint") => usize::MAX as u64,
                _ => u64::MAX,
            };
            Ok(number.min(most).into())
        }
        (Some("boolean"), Value::Bool(_)) => Ok(value),
        (Some("boolean"), _) => {
            let text = value.as_str().map(str::trim).unwrap_or_default();
            let flag: Option<bool> = text.to_ascii_lowercase().parse().ok();
            flag.map(Value::from).ok_or_else(|| wrong("true or false"))
        }
        (Some("array"), _) => {
            let list = match value {
                Value::Array(list) => list,
                Value::String(text) => list_of(&text),
                one => vec![one],
            };
            let (one, texts) = (name.trim_end_matches('s'), names(&schema["items"]));
            if schema["items"]["type"] == "integer" {
                let number = |item: &Value| {
                    let text = item
                        .as_str()
                        .map_or_else(|| item.to_string(), str::to_owned);
                    let number = text.trim().parse::<i64>().ok().map(Value::from);
                    number.ok_or_else(|| {
                        Error::invalid(format!("{name} has {}: give whole numbers", kind(item)))
                    })
                };
                return list.iter().map(number).collect();
            }
            let item = |item: &Value| match item {
                Value::String(text) => named(one, text, &texts),
                other => Err(Error::invalid(format!(
                    "{name} has {}: give {}",
                    kind(other),
                    or(&texts)
                ))),
            };
            list.iter().map(item).collect()
        }
        (_, Value::String(text)) => match (names(schema).as_slice(), schema["format"].as_str()) {
            ([], Some("date-time")) => {
                let text = text.trim();
                let time = Timestamp::parse(text)
                    .or_else(|| Timestamp::parse(&format!("{text}T00:00:00Z")));
                time.map(|time| time.0.into()).ok_or_else(|| {
                    let given = short(text);
                    Error::invalid(format!(
                        "{name} is {given}: give a time such as 2026-02-08T09:16:00Z, or a date"
                    ))
                })
            }
            ([], _) => Ok(value),
            (texts, _) => named(name, text, texts),
        },
        _ => Err(wrong("a string")),
    }
}

/// Returns the permitted texts that a schema lists.
fn names(schema: &Value) -> Vec<&str> {
    let texts = schema["enum"].as_array().into_iter().flatten();
    texts.filter_map(Value::as_str).collect()
}

fn named(key: &str, text: &str, names: &[&str]) -> Result<Value> {
    let found = names
        .iter()
        .find(|name| name.eq_ignore_ascii_case(text.trim()));
    found.map(|name| (*name).into()).ok_or_else(|| {
        let near = did_you_mean(text.trim(), names.iter().copied());
        Error::invalid(format!(
            "there is no {key} {}{near}: give {}",
            short(text),
            or(names)
        ))
    })
}

/// Removes a text from the arguments and returns it. `None` if it is missing or blank.
pub(crate) fn take_text(given: &mut Map<String, Value>, key: &str) -> Result<Option<String>> {
    match given.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.trim().is_empty())),
        Some(other) => Err(Error::invalid(format!(
            "{key} is {}: give a string",
            kind(&other)
        ))),
    }
}

/// Returns the items of a list that was written as text: as JSON, or as names separated by commas.
fn list_of(text: &str) -> Vec<Value> {
    match serde_json::from_str(text) {
        Ok(Value::Array(list)) => list,
        Ok(Value::String(text)) => vec![Value::String(text)],
        _ => {
            let bare = text.trim().trim_start_matches('[').trim_end_matches(']');
            let quotes = ['"', '\'', ' '];
            let names = bare.split(',').map(|name| name.trim().trim_matches(quotes));
            let names = names.filter(|name| !name.is_empty());
            names.map(Value::from).collect()
        }
    }
}

/// Joins names with commas, and with `or` before the last name.
pub(crate) fn or(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn did_you_mean<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> String {
    let near = nearest(text, names);
    near.map_or_else(String::new, |near| format!(", did you mean {near}"))
}

/// Returns the name that is most similar to a text. `None` if no name is similar. A name is similar if at most a third
/// of the longer one's characters differ, or if one contains the other.
pub(crate) fn nearest<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A long text cannot be a mistyped name, so it is not compared.
    if text.len() > 64 {
        return None;
    }
    let text = text.to_lowercase();
    let close = names.filter_map(|name| {
        let distance = strsim::levenshtein(&text, name);
        let longer = text.chars().count().max(name.chars().count());
        let contains = text.len() > 2 && (name.contains(&text) || text.contains(name));
        (contains || distance * 3 <= longer.max(3)).then_some((distance, name))
    });
    close.min().map(|(_, name)| name)
}

/// Reads a whole number such as `20`, `-1` or `20.0`. A negative number becomes 0. A number that is too large becomes
/// the largest possible number.
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
    fn lists_are_read_from_texts() {
        for (text, expected) in [
            (r#"["user"]"#, vec!["user"]),
            (r#"["user", "tool"]"#, vec!["user", "tool"]),
            (r#""user""#, vec!["user"]),
            ("user", vec!["user"]),
            ("user, tool,", vec!["user", "tool"]),
            ("['user', 'tool']", vec!["user", "tool"]),
            ("[user]", vec!["user"]),
            ("[]", vec![]),
        ] {
            assert_eq!(list_of(text), expected, "{text}");
        }
    }

    #[test]
    fn the_nearest_name_is_close() {
        let names = ["pattern", "mode", "limit", "summary_id", "token_cap"];
        for (text, near) in [
            ("patern", Some("pattern")),
            ("Limits", Some("limit")),
            ("id", None),
            ("summaryId", Some("summary_id")),
            ("cap", Some("token_cap")),
            ("nothing like it", None),
            ("", None),
        ] {
            assert_eq!(nearest(text, names.into_iter()), near, "{text}");
        }
        assert_eq!(nearest(&"x".repeat(100_000), names.into_iter()), None);
    }
}
