//! Finds binary data in JSON text: encrypted and signed values, data URLs, long Base64.

use std::ops::Range;

/// Minimum length of a run of Base64 that counts as binary data anywhere in a text, in characters. Hashes, ids and
/// paths are shorter.
const LONG_BASE64: usize = 256;
/// Minimum length of Base64 that counts as binary data in a data URL or under one of [`KEYS_OF_BYTES`], in characters.
const NAMED_BASE64: usize = 64;
/// Minimum length of Base64 that counts as a picture or a document in a text of words, in characters. People and models
/// read shorter Base64, such as a token or a certificate.
const LONG_IN_TEXT: usize = 1_024;
/// Keys of signatures in JSON objects.
const KEYS_OF_SIGNATURES: [&str; 4] = [
    "signature",
    "thinkingSignature",
    "thoughtSignature",
    "thought_signature",
];
/// Keys of JSON objects that usually have other binary data as their value.
const KEYS_OF_BYTES: [&str; 6] = ["data", "file_data", "blob", "bytes", "base64", "b64_json"];
/// Beginnings of pictures in Base64: PNG, JPEG (also with an escaped slash), GIF, WebP.
const PICTURES: [&str; 5] = ["iVBORw0KGgo", "/9j/", "/9j\\/", "R0lGOD", "UklGR"];
/// Beginning of a PDF in Base64.
pub(crate) const PDF: &str = "JVBERi";

/// What binary data is, which decides its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BinaryKind {
    /// A value that only the provider can read: encrypted reasoning, a signature.
    Sealed,
    /// A picture.
    Picture,
    /// A document, a sound, or other data.
    Data,
}

/// Binary data in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BinaryRun {
    /// Place of the data in the text, in bytes. In JSON, the place is inside of the quotes of a string.
    pub range: Range<usize>,
    /// What the data is.
    pub kind: BinaryKind,
}

/// Calls `found` with each piece of binary data in JSON text, in order: encrypted and signed values, data URLs, and long
/// Base64. Accepts any text, and allocates no memory.
///
/// ```
/// let json = format!(r#"{{"mimeType":"image/png","data":"iVBORw0KGgo{}"}}"#, "A".repeat(500));
/// let mut sizes = Vec::new();
/// token_estimate::binary_in_json(&json, &mut |run| sizes.push(run.range.len()));
/// assert_eq!(sizes, [511]);
/// ```
pub fn binary_in_json(json: &str, found: &mut dyn FnMut(BinaryRun)) {
    let mut at = 0;
    let mut key = "";
    let redacted = json.contains("\"redacted_thinking\"");
    while let Some(open) = json.get(at..).and_then(|rest| rest.find('"')) {
        let start = at + open + 1;
        let Some(body) = json.get(start..) else {
            break;
        };
        let end = start + string_end(body);
        let inside = json.get(start..end).unwrap_or_default();
        at = end + 1;
        let after = json.get(at..).unwrap_or_default();
        if after.trim_start().starts_with(':') {
            key = inside;
            continue;
        }
        let sealed = key.starts_with("encrypted") || (redacted && key == "data");
        in_string(key, sealed, inside, &mut |run| {
            found(BinaryRun {
                range: start + run.range.start..start + run.range.end,
                ..run
            });
        });
    }
}

/// Calls `found` with each long picture, document or sound in a text of words, in order: the Base64 of data URLs, and
/// Base64 that begins as a picture or a PDF. Other Base64 is text that somebody may want to read.
pub fn binary_in_text(text: &str, found: &mut dyn FnMut(BinaryRun)) {
    if text.len() < LONG_IN_TEXT {
        return;
    }
    runs(text, &mut |range, data, before| {
        let is_known = || is_picture(data, before) || data.starts_with(PDF);
        if data.len() >= LONG_IN_TEXT && (before.ends_with(";base64,") || is_known()) {
            found(BinaryRun {
                kind: kind(data, before),
                range,
            });
        }
    });
}

/// Returns whether a text is one long run of Base64.
pub(crate) fn is_sealed(text: &str) -> bool {
    text.len() >= LONG_BASE64 && text.bytes().all(is_base64)
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

/// Returns whether a byte can belong to Base64 text of either alphabet. A backslash counts, because in a JSON string it
/// may escape a slash or a line end.
fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=-_\\".contains(&byte)
}

/// Calls `found` with each run of Base64 characters of a text: its range, its text, and the text before it.
fn runs<'a>(text: &'a str, found: &mut dyn FnMut(Range<usize>, &'a str, &'a str)) {
    let mut start = 0;
    for end in 0..=text.len() {
        let byte = text.as_bytes().get(end).copied();
        if byte.is_some_and(is_base64) {
            continue;
        }
        if start < end {
            let run = text.get(start..end).unwrap_or_default();
            found(start..end, run, text.get(..start).unwrap_or_default());
        }
        start = end + 1;
    }
}

/// Calls `found` with the binary data in a JSON string that still has its escapes. `key` is the key of the string. If
/// `sealed` is true, the whole string is binary data.
fn in_string(key: &str, sealed: bool, inside: &str, found: &mut dyn FnMut(BinaryRun)) {
    let signed = KEYS_OF_SIGNATURES.contains(&key);
    let named = (signed || KEYS_OF_BYTES.contains(&key)) && inside.len() >= NAMED_BASE64;
    if (sealed && !inside.is_empty()) || (named && inside.bytes().all(is_base64)) {
        let kind = match sealed || signed {
            true => BinaryKind::Sealed,
            false => kind(inside, ""),
        };
        return found(BinaryRun {
            range: 0..inside.len(),
            kind,
        });
    }
    runs(inside, &mut |range, run, before| {
        let of_url = before.ends_with(";base64,");
        let kinds: [fn(&u8) -> bool; 3] = [
            u8::is_ascii_uppercase,
            u8::is_ascii_lowercase,
            u8::is_ascii_digit,
        ];
        let mixed = || {
            let has = |kind: &&fn(&u8) -> bool| run.bytes().any(|byte| kind(&byte));
            kinds.iter().filter(has).count() > 1
        };
        if (of_url && run.len() >= NAMED_BASE64) || (run.len() >= LONG_BASE64 && mixed()) {
            found(BinaryRun {
                kind: kind(run, before),
                range,
            });
        }
    });
}

fn kind(data: &str, before: &str) -> BinaryKind {
    match is_picture(data, before) {
        true => BinaryKind::Picture,
        false => BinaryKind::Data,
    }
}

/// Maximum length of the beginning of a data URL, up to its data, in bytes.
const LONGEST_HEAD: usize = 256;

/// Returns whether Base64 is a picture, by its beginning or by the media type of the data URL that ends `before`.
fn is_picture(data: &str, before: &str) -> bool {
    // In a JSON string, a slash may have a backslash before it.
    let data = data.strip_prefix('\\').unwrap_or(data);
    let is_known = PICTURES.iter().any(|picture| data.starts_with(picture));
    is_known || {
        let before = before.strip_suffix(";base64,").unwrap_or_default();
        let near = before.as_bytes();
        let near = near.get(near.len().saturating_sub(LONGEST_HEAD)..);
        let near = near.unwrap_or_default().utf8_chunks().last();
        let near = near.map_or("", |chunk| chunk.valid());
        near.rsplit_once("data:")
            .is_some_and(|(_, head)| head.starts_with("image"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(json: &str) -> Vec<(usize, BinaryKind)> {
        let mut all = Vec::new();
        binary_in_json(json, &mut |run| all.push((run.range.len(), run.kind)));
        all
    }

    #[test]
    fn data_is_told_apart() {
        let words = "aB3/".repeat(100);
        for (json, expected) in [
            (
                format!(r#"{{"type":"image_generation_call","result":"iVBORw0KGgo{words}"}}"#),
                (411, BinaryKind::Picture),
            ),
            (
                format!(r#"{{"image_url":"data:image\/heic;base64,{words}"}}"#),
                (400, BinaryKind::Picture),
            ),
            (
                format!(r#"{{"inlineData":{{"data":"\/9j\/{words}","mimeType":"image/jpeg"}}}}"#),
                (406, BinaryKind::Picture),
            ),
            (
                format!(r#"{{"blob":"{words}","mimeType":"audio/wav"}}"#),
                (400, BinaryKind::Data),
            ),
            (
                format!(r#"{{"type":"reasoning","encrypted_content":"{words}"}}"#),
                (400, BinaryKind::Sealed),
            ),
            (
                format!(r#"{{"thoughtSignature":"{words}"}}"#),
                (400, BinaryKind::Sealed),
            ),
        ] {
            assert_eq!(found(&json), [expected], "{json}");
        }
        assert_eq!(found(r#"{"data":"a word","id":"srvtoolu_01WYG3"}"#), []);
    }

    /// Each run looks only at the text directly before it, so a text of many short runs takes linear time.
    #[test]
    fn a_data_url_has_a_short_head() {
        let words = "aB3/".repeat(300);
        for (between, expected) in [
            ("", true),
            (";charset=utf-8", true),
            (&"é".repeat(200), false),
        ] {
            let before = format!("é data:image/heic{between};base64,");
            assert_eq!(is_picture(&words, &before), expected, "{before}");
        }
        assert!(!is_picture(&words, "data:image/heic"));
    }

    #[test]
    fn in_words_only_long_pictures_and_data_urls_are_data() {
        let found = |text: &str| {
            let mut all = Vec::new();
            binary_in_text(text, &mut |run| all.push((run.range.start, run.range.end)));
            all
        };
        let long = "aB3/".repeat(300);
        let text = format!("See ![tide](data:image/png;base64,{long}) and\n{long}");
        assert_eq!(found(&text), [(34, 1_234)]);
        assert_eq!(found(&format!("/9j/{long} é")), [(0, 1_204)]);
        let short = format!("data:image/png;base64,{}", "aB3/".repeat(200));
        assert!(found(&short).is_empty() && found(&long).is_empty());
    }
}
