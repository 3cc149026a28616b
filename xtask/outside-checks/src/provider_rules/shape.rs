//! What all providers have in common: fields with types, and texts with a grammar.

use serde_json::Value;

use super::finding::{Finding, Rule, rule};

/// The rules that hold for every provider: each object has the fields of the provider's own types.
pub const RULES: &[Rule] = &[
    rule("not-an-object", "the value is a JSON object"),
    rule("missing-field", "a field that the type requires is there"),
    rule(
        "unknown-field",
        "no field is there that the type does not have, or that the provider has deprecated",
    ),
    rule("wrong-type", "a field has the JSON type that it should"),
    rule(
        "unknown-value",
        "a field with a closed list of values has one of them",
    ),
];

/// What a field may hold.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Text,
    Flag,
    Object,
    List,
    TextOrList,
    Any,
    OneOf(&'static [&'static str]),
}

/// A field of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    name: &'static str,
    kind: Kind,
    required: bool,
    nullable: bool,
}

pub(super) const fn required(name: &'static str, kind: Kind) -> Field {
    Field {
        name,
        kind,
        required: true,
        nullable: false,
    }
}

pub(super) const fn optional(name: &'static str, kind: Kind) -> Field {
    Field {
        name,
        kind,
        required: false,
        nullable: false,
    }
}

impl Field {
    pub(super) const fn or_null(mut self) -> Field {
        self.nullable = true;
        self
    }
}

/// Collects findings.
#[derive(Debug, Default)]
pub(super) struct Judge {
    pub(super) findings: Vec<Finding>,
}

impl Judge {
    pub(super) fn report(&mut self, path: &str, rule: &'static str, detail: impl Into<String>) {
        self.findings.push(Finding {
            path: path.to_owned(),
            rule,
            detail: detail.into(),
        });
    }

    /// Reports a broken rule unless `holds`.
    pub(super) fn demand(&mut self, holds: bool, path: &str, rule: &'static str, detail: &str) {
        if !holds {
            self.report(path, rule, detail);
        }
    }

    /// Checks an object's fields against a closed list.
    pub(super) fn fields(&mut self, path: &str, value: &Value, fields: &[Field]) {
        let Some(object) = value.as_object() else {
            return self.report(path, "not-an-object", format!("this is {value}"));
        };
        for (name, value) in object {
            let path = format!("{path}/{name}");
            match fields.iter().find(|field| field.name == name) {
                Some(field) if field.nullable && value.is_null() => {}
                Some(field) => self.kind(&path, value, field.kind),
                None => self.report(&path, "unknown-field", "the type has no such field"),
            }
        }
        for field in fields.iter().filter(|field| field.required) {
            if !object.contains_key(field.name) {
                let path = format!("{path}/{}", field.name);
                self.report(&path, "missing-field", "the type requires this field");
            }
        }
    }

    fn kind(&mut self, path: &str, value: &Value, kind: Kind) {
        let (fits, expected) = match kind {
            Kind::Text | Kind::OneOf(_) => (value.is_string(), "a string"),
            Kind::Flag => (value.is_boolean(), "a boolean"),
            Kind::Object => (value.is_object(), "an object"),
            Kind::List => (value.is_array(), "a list"),
            Kind::Any => (true, "anything"),
            Kind::TextOrList => (value.is_string() || value.is_array(), "a string or a list"),
        };
        if !fits {
            self.report(path, "wrong-type", format!("this is not {expected}"));
        } else if let (Kind::OneOf(values), Some(text)) = (kind, value.as_str())
            && !values.contains(&text)
        {
            let detail = format!("`{text}` is none of {}", values.join(", "));
            self.report(path, "unknown-value", detail);
        }
    }
}

/// The items of a list field, each with its path; none where the field is no list.
pub(super) fn items<'v>(path: &str, object: &'v Value, field: &str) -> Vec<(String, &'v Value)> {
    let list = object.get(field).and_then(Value::as_array);
    let list = list.into_iter().flatten().enumerate();
    list.map(|(at, item)| (format!("{path}/{field}/{at}"), item))
        .collect()
}

/// A field's text, if it holds one.
pub(super) fn text<'v>(object: &'v Value, field: &str) -> Option<&'v str> {
    object.get(field).and_then(Value::as_str)
}

/// Whether a field is there and not null.
pub(super) fn has(object: &Value, field: &str) -> bool {
    object.get(field).is_some_and(|value| !value.is_null())
}

/// Whether a text is `^[a-zA-Z0-9_-]{1,max}$`.
pub(super) fn is_name(text: &str, max: usize) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    (1..=max).contains(&text.len()) && text.bytes().all(allowed)
}

/// Whether a text is base64 of at least one byte, in the standard alphabet with padding.
pub(super) fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/".contains(&byte);
    text.len().is_multiple_of(4)
        && !digits.is_empty()
        && text.len() - digits.len() <= 2
        && digits.bytes().all(digit)
}

/// Whether a text is an `http` or `https` URL with a host.
pub(super) fn is_web_url(text: &str) -> bool {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
    host.is_some_and(|host| !host.is_empty())
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Whether a text is `data:TYPE/SUBTYPE;base64,DATA`.
pub(super) fn is_data_url(text: &str) -> bool {
    let rest = text.strip_prefix("data:");
    let parts = rest.and_then(|rest| rest.split_once(";base64,"));
    parts.is_some_and(|(mime, data)| is_mime_type(mime) && is_base64(data))
}

/// The media type of a data URL; `None` for any other text.
pub(super) fn data_url_type(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("data:")?;
    rest.split_once(";base64,").map(|(mime, _)| mime)
}

/// Whether a text is `type/subtype`, in the characters of RFC 6838.
pub(super) fn is_mime_type(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
    let name = |name: &str| !name.is_empty() && name.bytes().all(allowed);
    text.split_once('/')
        .is_some_and(|(kind, subtype)| name(kind) && name(subtype))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_a_grammar() {
        assert!(is_name("a-Z_9", 5) && !is_name("a-Z_9", 4));
        assert!(!is_name("", 5) && !is_name("a.b", 5) && !is_name("é", 5));
        assert!(is_base64("aGk=") && is_base64("aGV5"));
        for bad in ["", "=", "====", "aGk", "a===", "aG k", "aG-_", "=aGk"] {
            assert!(!is_base64(bad), "{bad}");
        }
        assert!(is_web_url("https://a.b/c?d#e") && is_web_url("http://localhost"));
        for bad in ["https://", "https:///x", "ftp://a.b", "https://a b", "a.b"] {
            assert!(!is_web_url(bad), "{bad}");
        }
        assert!(is_data_url("data:image/png;base64,aGk="));
        for bad in [
            "data:;base64,aGk=",
            "data:image/png,aGk=",
            "data:image/png;base64,",
        ] {
            assert!(!is_data_url(bad), "{bad}");
        }
        assert_eq!(data_url_type("data:image/png;base64,?"), Some("image/png"));
        assert_eq!(data_url_type("https://a.b/c;base64,d"), None);
        assert!(is_mime_type("image/svg+xml"));
        assert!(!is_mime_type("image") && !is_mime_type("image/") && !is_mime_type("a/b/c"));
    }
}
