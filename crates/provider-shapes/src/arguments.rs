//! Arguments of calls. Some providers send them as text, others as objects.

use memory_model::RawJson;
use memory_model::raw::RawObject;
use serde_json::{Map, Value};

/// Key of an object that wraps arguments which are no object.
const TEXT_KEY: &str = "_arguments";

/// Returns arguments as text: the JSON as it came, or the content of a JSON string.
pub(crate) fn to_text(arguments: &RawJson) -> String {
    let text = arguments.as_str();
    let inner = match text.starts_with('"') {
        true => serde_json::from_str::<String>(text).ok(),
        false => None,
    };
    inner.unwrap_or_else(|| text.to_owned())
}

/// Reads arguments that came as text. JSON stays as it is. Any other text becomes a JSON string, so that a model's
/// wrong call is kept and sent back word for word.
pub(crate) fn from_text(text: &str) -> RawJson {
    let json = RawJson::parse(text).ok();
    // A JSON string is reserved for text that is not JSON.
    json.filter(|json| json.as_str() == text && !text.starts_with('"'))
        .unwrap_or_else(|| string(text))
}

/// Returns arguments as the text of a JSON object. An object stays as it came. Anything else becomes text under one key,
/// because servers parse the arguments of earlier calls, and refuse a request with a text that is no object.
pub(crate) fn to_object_text(arguments: &RawJson) -> String {
    let text = to_text(arguments);
    match RawObject::parse(&text) {
        Some(object) if !is_wrapper(&object) => text,
        _ => Value::Object(wrapped(text)).to_string(),
    }
}

/// Reads arguments that came as the text of a JSON object. This is the inverse of [`to_object_text`].
pub(crate) fn from_object_text(text: &str) -> RawJson {
    let inner = RawObject::parse(text)
        .filter(is_wrapper)
        .and_then(|object| object.string(TEXT_KEY));
    from_text(inner.as_deref().unwrap_or(text))
}

/// Returns arguments as a JSON object. Arguments that are no object, or that have a number that would lose digits,
/// become text under one key.
pub(crate) fn to_object(arguments: &RawJson) -> Value {
    let text = to_text(arguments);
    let object = match serde_json::from_str::<Value>(&text) {
        Ok(Value::Object(object)) if !is_wrapped(&object) && numbers_are_exact(&text) => object,
        _ => wrapped(text),
    };
    Value::Object(object)
}

/// Reads arguments that came as a JSON value. This is the inverse of [`to_object`].
pub(crate) fn from_value(value: &Value) -> RawJson {
    match value {
        Value::Object(object) if is_wrapped(object) => {
            let text = object.get(TEXT_KEY).and_then(Value::as_str);
            from_text(text.unwrap_or_default())
        }
        value => from_text(&value.to_string()),
    }
}

fn wrapped(text: String) -> Map<String, Value> {
    Map::from_iter([(TEXT_KEY.to_owned(), Value::String(text))])
}

fn is_wrapper(object: &RawObject<'_>) -> bool {
    object.members.len() == 1 && object.string(TEXT_KEY).is_some()
}

fn is_wrapped(object: &Map<String, Value>) -> bool {
    object.len() == 1 && object.get(TEXT_KEY).is_some_and(Value::is_string)
}

fn string(text: &str) -> RawJson {
    let quoted = Value::from(text).to_string();
    // The text of a `Value` is always JSON. The empty string only satisfies the types.
    RawJson::parse(quoted)
        .or_else(|_| RawJson::parse("\"\""))
        .unwrap_or_else(|_| RawJson::from_raw(serde_json::value::RawValue::NULL))
}

/// Returns whether a [`Value`] can hold every number of a JSON text exactly. It can hold integers of 64 bits, and
/// doubles of up to 17 significant digits.
fn numbers_are_exact(json: &str) -> bool {
    let mut rest = json;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        let found = rest.get(at..).unwrap_or_default();
        if found.starts_with('"') {
            rest = after_string(found);
            continue;
        }
        let is_part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
        let end = found.find(|c| !is_part(c)).unwrap_or(found.len());
        let (number, after) = found.split_at(end);
        if !is_exact(number) {
            return false;
        }
        rest = after;
    }
    true
}

fn is_exact(number: &str) -> bool {
    if number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return true;
    }
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    let digits = mantissa.trim_start_matches(['-', '0', '.']);
    let digits = digits.bytes().filter(u8::is_ascii_digit).count();
    digits <= 17 && number.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Returns the text behind the JSON string at the beginning of a text.
fn after_string(json: &str) -> &str {
    let mut escaped = false;
    for (at, byte) in json.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return json.get(at + 1..).unwrap_or_default(),
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text).unwrap()
    }

    #[test]
    fn text_comes_back_byte_for_byte() {
        for text in [
            r#"{"a": 1.00,"a":2}"#,
            r#"{"path": "src"#,
            "",
            " {}",
            "\"quoted\"",
            "[1]",
            "null",
            "\u{0}",
        ] {
            assert_eq!(to_text(&from_text(text)), text, "{text}");
        }
    }

    #[test]
    fn objects_come_back_and_everything_else_is_wrapped() {
        for json in [
            r#"{"a":[1,-2.5,"x"]}"#,
            "{}",
            "[1]",
            "7",
            r#""{\"path\": \"src""#,
            r#"{"_arguments":"x"}"#,
            r#"{"n":123456789012345678901234567890}"#,
            r#"{"n":0.12345678901234567890}"#,
        ] {
            let object = to_object(&raw(json));
            assert!(object.is_object());
            assert_eq!(from_value(&object), raw(json), "{json}");
        }
        assert_eq!(
            to_object(&raw("[1]")),
            serde_json::json!({"_arguments": "[1]"})
        );
    }

    #[test]
    fn servers_get_the_text_of_an_object_and_give_the_words_back() {
        for json in [
            r#""{\"path\": \"src""#,
            r#""{\"i\": 1, \"phase\": Later}""#,
            "\"\"",
            "[1,2]",
            "null",
            "7",
            r#""*** Begin Patch\n+x""#,
            r#"{"_arguments":"x"}"#,
            r#"{ "_arguments" : "x" }"#,
        ] {
            let text = to_object_text(&raw(json));
            let sent: Value = serde_json::from_str(&text).unwrap();
            assert!(sent.is_object(), "{text}");
            assert_eq!(from_object_text(&text), raw(json), "{text}");
        }
        for object in [
            r#"{ "a": 1.00, "a": 2 }"#,
            r#"{"n":1e999}"#,
            "{}",
            r#"{"_arguments":1}"#,
        ] {
            assert_eq!(to_object_text(&raw(object)), object);
            assert_eq!(from_object_text(object), raw(object));
        }
    }

    #[test]
    fn numbers_inside_of_strings_do_not_count() {
        assert!(numbers_are_exact(
            r#"{"12345678901234567890123":"\"123456789012345678901"}"#
        ));
        assert!(!numbers_are_exact(r#"{"a":"x","b":[1e999]}"#));
    }
}
