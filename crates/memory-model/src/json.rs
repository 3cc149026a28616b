//! JSON values that keep their original text.

use std::borrow::Cow;
use std::fmt;

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use token_estimate::BinaryRun;

use crate::transcode::{self, TEXT_KEY};

/// A JSON value that keeps its original text. Key order, duplicate keys, `1.00`, big integers and lone surrogate
/// escapes stay unchanged.
///
/// `serde_json` reads and writes the value byte for byte. Every other format carries the text in a map with one entry,
/// `{"$json": "the text"}`, so that no format changes it. Reading needs a self-describing format (TOML, CBOR,
/// MessagePack, YAML), not bincode or postcard.
///
/// Under `#[serde(flatten)]`, serde parses the JSON before this type reads it. The result is an equal value with the
/// same order of keys, but without white space, and with numbers in their shortest form.
#[derive(Clone)]
pub struct RawJson(Box<RawValue>);

impl RawJson {
    /// Checks that `text` is one JSON value, and keeps the text unchanged.
    ///
    /// # Errors
    /// If the text is not JSON.
    pub fn parse(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text.into()).map(Self)
    }

    /// Serialises a value as JSON text.
    ///
    /// # Errors
    /// If the value cannot be written as JSON.
    pub fn from_value<T: Serialize>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// Wraps a raw JSON value unchanged.
    pub fn from_raw(raw: &RawValue) -> Self {
        Self(raw.to_owned())
    }

    /// Returns the value as a [`RawValue`].
    pub(crate) fn as_raw(&self) -> &RawValue {
        &self.0
    }

    /// Returns the original JSON text, byte for byte.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Returns whether two JSON texts have the same value: they may differ in white space, in the order of keys and in
    /// escapes. Texts that no JSON value holds exactly, with lone surrogates or numbers of more than 15 digits, must be
    /// equal byte for byte.
    pub fn has_same_value(&self, other: &Self) -> bool {
        is_same_value(self.as_str(), other.as_str())
    }

    /// Returns all strings in the JSON value, decoded, one on each line. Keys of objects are strings too. Lone
    /// surrogates become U+FFFD.
    ///
    /// Search reads these strings in addition to the JSON text. A word is then found even if the JSON text writes it
    /// with escapes.
    pub fn decoded_strings(&self) -> String {
        decoded_strings(self.as_str())
    }

    /// Returns the JSON text with each piece of binary data replaced by a note of its size, such as `[about 225
    /// bytes]`. Binary data are encrypted or signed values, data URLs and long Base64. All other text stays unchanged.
    /// Use this form for a model or a person who reads the text.
    pub fn without_bytes(&self) -> Cow<'_, str> {
        without_bytes(self.as_str())
    }
}

/// Maximum number of digits of a number that every reader of JSON keeps exactly.
const EXACT_DIGITS: usize = 15;

/// Returns whether two texts are equal, or are JSON with the same value.
pub(crate) fn is_same_value(one: &str, other: &str) -> bool {
    one == other
        || (has_exact_numbers(one)
            && has_exact_numbers(other)
            && match (
                serde_json::from_str::<Value>(one),
                serde_json::from_str::<Value>(other),
            ) {
                (Ok(one), Ok(other)) => one == other,
                _ => false,
            })
}

/// Returns whether no number outside of the strings of a JSON text has more digits than [`EXACT_DIGITS`].
fn has_exact_numbers(json: &str) -> bool {
    let (mut in_string, mut is_escaped, mut digits) = (false, false, 0_usize);
    json.bytes().all(|byte| {
        let is_quote = byte == b'"' && !is_escaped;
        is_escaped = in_string && byte == b'\\' && !is_escaped;
        in_string ^= is_quote;
        digits = match (in_string, byte) {
            (false, b'0'..=b'9') => digits + 1,
            (false, b'.') => digits,
            _ => 0,
        };
        digits <= EXACT_DIGITS
    })
}

/// Implements [`RawJson::without_bytes`].
fn without_bytes(json: &str) -> Cow<'_, str> {
    noted(json, token_estimate::binary_in_json)
}

/// Returns a text with each long picture, document or sound in it replaced by a note of its size, such as `[about
/// 30000 bytes]`: the Base64 of data URLs, and Base64 that begins as a picture or a PDF. All other text stays
/// unchanged, other Base64 too.
pub fn text_without_bytes(text: &str) -> Cow<'_, str> {
    noted(text, token_estimate::binary_in_text)
}

/// Replaces each piece of binary data that `find` finds by a note of its size.
fn noted(text: &str, find: fn(&str, &mut dyn FnMut(BinaryRun))) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    find(text, &mut |run| {
        out.push_str(text.get(copied..run.range.start).unwrap_or_default());
        // Four characters of Base64 are three bytes.
        out.push_str(&format!("[about {} bytes]", run.range.len() / 4 * 3));
        copied = run.range.end;
    });
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(out)
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

/// Returns all strings in a JSON text, decoded, as [`RawJson::decoded_strings`] does. Accepts any text and never fails.
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

/// Returns the byte offset of the closing quote of a JSON string. `body` begins after the opening quote.
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

/// Decodes the inside of a JSON string and appends it to `out`. Invalid parts become U+FFFD.
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

/// Returns JSON text in which the escape of U+FFFD replaces each escape of a lone surrogate.
pub fn without_half_pairs(json: &str) -> Cow<'_, str> {
    if !json.contains("\\u") {
        return Cow::Borrowed(json);
    }
    let unit = |at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(found) = json.get(at..).and_then(|rest| rest.find('\\')) {
        at += found;
        let Some(code) = unit(at) else {
            // Another escape: skips the backslash and the next character.
            at += 1 + json
                .get(at + 1..)
                .and_then(|rest| rest.chars().next())
                .map_or(0, char::len_utf8);
            continue;
        };
        let is_pair =
            matches!(code, 0xD800..0xDC00) && matches!(unit(at + 6), Some(0xDC00..0xE000));
        if is_pair {
            at += 12;
            continue;
        }
        if matches!(code, 0xD800..0xE000) {
            out.push_str(json.get(copied..at).unwrap_or_default());
            out.push_str("\\ufffd");
            copied = at + 6;
        }
        at += 6;
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    out.push_str(json.get(copied..).unwrap_or_default());
    Cow::Owned(out)
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
    fn values_are_equal_in_any_writing() {
        let same = |one: &str, other: &str| is_same_value(one, other) && is_same_value(other, one);
        for (one, other) in [
            (r#"{"a":1,"b":"é"}"#, r#"{ "b" : "\u00e9", "a" : 1 }"#),
            (
                r#"[1.50,"1234567890123456789"]"#,
                r#"[1.5, "1234567890123456789"]"#,
            ),
            (r#""\ud800""#, r#""\ud800""#),
            ("no JSON", "no JSON"),
        ] {
            assert!(same(one, other), "{one} {other}");
        }
        for (one, other) in [
            (r#"{"a":1}"#, r#"{"a":2}"#),
            ("[1,2]", "[2,1]"),
            ("1", "\"1\""),
            ("12345678901234567890001", "12345678901234567890002"),
            ("0.12345678901234567", "0.12345678901234568"),
            (r#""\ud800""#, r#""\ud801""#),
            ("[]", "no JSON"),
        ] {
            assert!(!same(one, other), "{one} {other}");
        }
    }

    #[test]
    fn only_bytes_are_left_out() {
        let shown = |json: &str| RawJson::parse(json).unwrap().without_bytes().into_owned();
        let bytes = "aB3/".repeat(75);
        for (json, expected) in [
            (
                format!(r#"{{"title":"Tides","encrypted_content":"{bytes}","url":"https://a.b"}}"#),
                r#"{"title":"Tides","encrypted_content":"[about 225 bytes]","url":"https://a.b"}"#,
            ),
            (
                r#"{"encrypted_index": "Eo8"}"#.to_owned(),
                r#"{"encrypted_index": "[about 0 bytes]"}"#,
            ),
            (
                r#"{"type":"redacted_thinking","data":"Eo8DCioI"}"#.to_owned(),
                r#"{"type":"redacted_thinking","data":"[about 6 bytes]"}"#,
            ),
            (
                format!(
                    r#"[1,"see {bytes} and data:image/png;base64,{}!"]"#,
                    "QUJD".repeat(20)
                ),
                r#"[1,"see [about 225 bytes] and data:image/png;base64,[about 60 bytes]!"]"#,
            ),
            (
                format!(r#"{{"blob":"{}"}}"#, "QUJD\\/".repeat(12)),
                r#"{"blob":"[about 54 bytes]"}"#,
            ),
            (format!(r#""{bytes}""#), r#""[about 225 bytes]""#),
        ] {
            assert_eq!(shown(&json), expected);
        }
        for json in [
            r#"{"data":"a word and another","signature":"short","id":"srvtoolu_01WYG3ziw53XMcoyKL4XcZmE"}"#,
            r#"{"a":"\ud800 \"x\"","n":[1e400,null,""]}"#,
            "7",
            &format!("\"{}\"", "a long word of prose, ".repeat(40)),
            &format!("\"{}\"", "=".repeat(400)),
            &format!("\"{}\"", "/usr/share/doc".repeat(10)),
        ] {
            assert!(matches!(
                RawJson::parse(json).unwrap().without_bytes(),
                Cow::Borrowed(_)
            ));
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

    #[test]
    fn half_pairs_become_replacement_characters() {
        for (json, expected) in [
            (r#""plain""#, r#""plain""#),
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""\uDC00x""#, r#""\ufffdx""#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (
                r#""\ude00\ud83d\ude00\ud83d""#,
                r#""\ufffd\ud83d\ude00\ufffd""#,
            ),
            (r#""\\ud83d\"\ud83dé""#, r#""\\ud83d\"\ufffdé""#),
            (r#""\u00e9\ud8""#, r#""\u00e9\ud8""#),
            (r#""\é\ud83d"#, r#""\é\ufffd"#),
            ("\\", "\\"),
        ] {
            assert_eq!(without_half_pairs(json), expected);
        }
    }
}
