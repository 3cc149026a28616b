//! Reading the arguments of a call: lenient where the meaning is clear, and with errors that say what to do.

use memory_model::Timestamp;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::schema::{ParameterKind, Tool};
use crate::text::short;

/// The arguments of a call of a tool.
#[derive(Debug)]
pub(crate) struct Arguments(Map<String, Value>);

impl Arguments {
    /// Reads a JSON object; nothing at all is an empty one, and an object that was written as a
    /// JSON string is taken for what it is.
    pub(crate) fn read(text: &str, tool: &Tool) -> Result<Self> {
        let known: Vec<&str> = tool.parameters.iter().map(|one| one.name).collect();
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
        let Some(key) = unknown.first() else {
            return Ok(Self(map));
        };
        let mut message = format!("there is no argument {}", short(key));
        if let Some(near) = nearest(key, known.iter().copied()) {
            message.push_str(&format!(", did you mean {near}"));
        }
        Err(Error::invalid(format!("{message}: {}", expected())))
    }

    /// A text, if there is one.
    pub(crate) fn text(&mut self, key: &str) -> Result<Option<String>> {
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
    pub(crate) fn filled(&mut self, key: &str) -> Result<Option<String>> {
        let text = self.text(key)?;
        Ok(text.filter(|text| !text.trim().is_empty()))
    }

    /// A whole number, also as a float or in a string; what is below 0 becomes 0.
    pub(crate) fn whole(&mut self, key: &str, example: &str) -> Result<Option<u64>> {
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

    /// A truth value, also in a string.
    pub(crate) fn flag(&mut self, key: &str) -> Result<Option<bool>> {
        match self.0.remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
            Some(other) => {
                let text = other.as_str().map(str::trim).unwrap_or_default();
                let flag = text.to_ascii_lowercase().parse();
                flag.map(Some).map_err(|_| {
                    Error::invalid(format!("{key} is {}: give true or false", kind(&other)))
                })
            }
        }
    }

    /// A time, as RFC 3339 or as a date.
    pub(crate) fn time(&mut self, key: &str) -> Result<Option<Timestamp>> {
        let Some(text) = self.filled(key)? else {
            return Ok(None);
        };
        let day = format!("{}T00:00:00Z", text.trim());
        let time = Timestamp::parse(text.trim()).or_else(|| Timestamp::parse(&day));
        time.map(Some).ok_or_else(|| {
            Error::invalid(format!(
                "{key} is {}: give a time such as 2026-02-08T09:16:00Z, or a date",
                short(&text)
            ))
        })
    }

    /// One of the values of an argument by its name, whatever its case.
    pub(crate) fn one_of<T: Copy>(
        &mut self,
        key: &str,
        values: &[(&'static str, T)],
    ) -> Result<Option<T>> {
        let Some(text) = self.filled(key)? else {
            return Ok(None);
        };
        named(key, &text, values).map(Some)
    }

    /// Some of the values of an argument by their names: a list, or one name.
    pub(crate) fn some_of<T: Copy>(
        &mut self,
        key: &str,
        values: &[(&'static str, T)],
    ) -> Result<Vec<T>> {
        let list = match self.0.remove(key) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::String(text)) if text.trim().is_empty() => return Ok(Vec::new()),
            Some(Value::Array(list)) => list,
            Some(Value::String(text)) => list_of(&text),
            Some(one) => vec![one],
        };
        let item = |item: &Value| match item {
            Value::String(text) => named(key.trim_end_matches('s'), text, values),
            other => Err(Error::invalid(format!(
                "{key} has {}: give {}",
                kind(other),
                names(values)
            ))),
        };
        list.iter().map(item).collect()
    }
}

/// The items of a list that was written as a text: as JSON, or with commas between names.
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

fn named<T: Copy>(key: &str, text: &str, values: &[(&'static str, T)]) -> Result<T> {
    let known = |(name, _): &&(&'static str, T)| name.eq_ignore_ascii_case(text.trim());
    let found = values.iter().find(known).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let mut message = format!("there is no {key} {}", short(text));
        if let Some(near) = nearest(text.trim(), values.iter().map(|(name, _)| *name)) {
            message.push_str(&format!(", did you mean {near}"));
        }
        Error::invalid(format!("{message}: give {}", names(values)))
    })
}

fn names<T>(values: &[(&'static str, T)]) -> String {
    let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
    or(&names)
}

/// Names with `or` before the last.
pub(crate) fn or(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// The name that is closest to a text, where one is close: at most a third of the longer text's characters
/// differ, or one contains the other.
pub(crate) fn nearest<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A text that is no name at all costs no time.
    if text.len() > 64 {
        return None;
    }
    let text = text.to_lowercase();
    let close = names.filter_map(|name| {
        let distance = distance(&text, name);
        let longer = text.chars().count().max(name.chars().count());
        let contains = text.len() > 2 && (name.contains(&text) || text.contains(name));
        (contains || distance * 3 <= longer.max(3)).then_some((distance, name))
    });
    close.min().map(|(_, name)| name)
}

/// Number of characters that must be added, removed or replaced to make one text the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut before = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(&b) {
            let replaced = before + usize::from(x != *y);
            before = *cell;
            left = replaced.min(before + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
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

/// The texts of a kind that has some.
pub(crate) fn choices<T>(values: &[(&'static str, T)]) -> Vec<String> {
    values.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// Removes an argument that a set of tool sets takes for itself, and gives the others back as JSON.
pub(crate) fn take_out(
    text: &str,
    tool: &Tool,
    key: &'static str,
) -> Result<(Option<String>, String)> {
    let mut arguments = Arguments::read(text, tool)?;
    let is_known = tool.parameters.iter().find(|one| one.name == key);
    let taken = match is_known.map(|one| &one.kind) {
        Some(ParameterKind::OneOf(_)) => arguments.filled(key)?,
        _ => None,
    };
    Ok((taken, Value::Object(arguments.0).to_string()))
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

    #[test]
    fn distances_count_changes() {
        for (a, b, changes) in [
            ("", "abc", 3),
            ("abc", "abc", 0),
            ("kitten", "sitting", 3),
            ("é", "e", 1),
        ] {
            assert_eq!(distance(a, b), changes, "{a} {b}");
        }
    }
}
