//! JSON kept as it came.

use std::fmt;

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::transcode::{self, TEXT_KEY};

/// A JSON value as the text it came in: key order, duplicate keys, `1.00`, big integers and lone
/// surrogate escapes all survive.
///
/// `serde_json` writes and reads it as that JSON value, byte for byte. Every other format carries
/// the text in a map with one entry, `{"$json": "the text"}`, so that no format changes it. Reading
/// needs a self-describing format (TOML, CBOR, MessagePack, YAML), not bincode or postcard.
///
/// Under `#[serde(flatten)]` serde parses JSON into values before this type sees it: what comes
/// back is the same value with the same order of keys, but compact, and with numbers in their
/// shortest form.
#[derive(Clone)]
pub struct RawJson(Box<RawValue>);

impl RawJson {
    /// Checks that `text` is one JSON value and keeps it as it is.
    ///
    /// # Errors
    /// When the text is not JSON.
    pub fn parse(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text.into()).map(Self)
    }

    /// The JSON text of a serialisable value.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub fn from_value<T: Serialize>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// Takes a raw value as it is.
    pub fn from_raw(raw: &RawValue) -> Self {
        Self(raw.to_owned())
    }

    /// The raw value itself.
    pub(crate) fn as_raw(&self) -> &RawValue {
        &self.0
    }

    /// The JSON text, byte for byte as it came.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// All strings in the value (keys too), decoded, one a line; lone surrogates become U+FFFD.
    ///
    /// Search reads this beside the JSON text, so that a word is found whether or not the source
    /// wrote it with escapes.
    pub fn decoded_strings(&self) -> String {
        decoded_strings(self.as_str())
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for RawJson {}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if transcode::is_json_serializer::<S>() {
            return self.0.serialize(serializer);
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(TEXT_KEY, self.as_str())?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if transcode::is_json_deserializer::<D>() {
            return Box::<RawValue>::deserialize(deserializer).map(Self);
        }
        let text = transcode::to_json(deserializer)?;
        Self::parse(text).map_err(serde::de::Error::custom)
    }
}

/// See [`RawJson::decoded_strings`]; works on any text and never fails.
pub fn decoded_strings(json: &str) -> String {
    let mut out = String::new();
    let mut rest = json;
    while let Some(open) = rest.find('"') {
        let Some(body) = rest.get(open + 1..) else {
            break;
        };
        let end = string_end(body);
        let (inside, after) = body.split_at(end);
        if !out.is_empty() {
            out.push('\n');
        }
        decode_string(inside, &mut out);
        rest = after.get(1..).unwrap_or("");
    }
    out
}

/// Byte offset of the quote that closes a JSON string whose opening quote was just read.
fn string_end(body: &str) -> usize {
    let mut escaped = false;
    for (offset, byte) in body.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return offset,
            _ => {}
        }
    }
    body.len()
}

/// Decodes the inside of a JSON string; what is not valid becomes U+FFFD.
fn decode_string(inside: &str, out: &mut String) {
    let mut chars = inside.chars();
    let mut high: Option<u32> = None;
    while let Some(c) = chars.next() {
        let mut unit = None;
        let decoded = if c != '\\' {
            c
        } else {
            match chars.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                Some('u') => {
                    let digits: String = chars.by_ref().take(4).collect();
                    let code = u32::from_str_radix(&digits, 16).unwrap_or(0xfffd);
                    unit = Some(code);
                    char::from_u32(code).unwrap_or('\u{fffd}')
                }
                Some(other) => other,
                None => break,
            }
        };
        match (high.take(), unit) {
            (Some(h), Some(low)) if (0xdc00..0xe000).contains(&low) => {
                let code = 0x10000 + ((h - 0xd800) << 10) + (low - 0xdc00);
                out.push(char::from_u32(code).unwrap_or('\u{fffd}'));
                continue;
            }
            (Some(_), _) => out.push('\u{fffd}'),
            (None, _) => {}
        }
        match unit {
            Some(code) if (0xd800..0xdc00).contains(&code) => high = Some(code),
            _ => out.push(decoded),
        }
    }
    if high.is_some() {
        out.push('\u{fffd}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_text_survives() {
        for text in [
            r#"{"b":1.00,"a":1,"a":2}"#,
            "1e400",
            r#""\ud800""#,
            "123456789012345678901234567890",
            "[ 1 ]",
        ] {
            let raw = RawJson::parse(text).unwrap();
            assert_eq!(raw.as_str(), text);
            let again: RawJson =
                serde_json::from_str(&serde_json::to_string(&raw).unwrap()).unwrap();
            assert_eq!(again.as_str(), text);
        }
    }

    #[test]
    fn strings_are_decoded() {
        assert_eq!(
            decoded_strings(r#"{"k\u00e9y":"a\"b\n","z":[1,"\ud83d\ude00","\ud800x"]}"#),
            "kéy\na\"b\n\nz\n😀\n\u{fffd}x"
        );
        assert_eq!(decoded_strings("no strings"), "");
        assert_eq!(decoded_strings("\"open"), "open");
        assert_eq!(decoded_strings("\"open\\"), "open");
        assert_eq!(decoded_strings("\"\\ud800"), "\u{fffd}");
    }
}
