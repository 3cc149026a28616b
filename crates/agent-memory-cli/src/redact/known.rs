//! Values that were found in one text, and are replaced in all texts.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use aho_corasick::{AhoCorasick, MatchKind};

use super::signs;

/// Minimum length of a value that is replaced wherever it occurs, in characters. Shorter values are parts of words.
const LEAST: usize = 6;
/// Minimum length of a line of a private key that is replaced without the others, in characters.
const LEAST_LINE: usize = 16;

/// Kinds with values that may be words of a text, so they are replaced only where they are whole words.
pub(super) const WORDS: [&str; 4] = ["email", "id", "ip", "user"];

/// A value that was found.
pub(super) struct Secret {
    pub(super) kind: &'static str,
    pub(super) text: String,
    /// The mark in its place; `None` until it is shown for the first time.
    pub(super) shown: Option<String>,
}

/// Values in all forms in which texts have them.
#[derive(Default)]
pub(super) struct Known {
    anywhere: Option<Forms>,
    words: Option<Forms>,
}

struct Forms {
    search: AhoCorasick,
    /// Number of the value of each form.
    numbers: Vec<usize>,
}

impl Known {
    pub(super) fn of(secrets: &[Secret]) -> Self {
        let forms = |words: bool| {
            let mut texts = Vec::new();
            let mut numbers = Vec::new();
            for (number, secret) in secrets.iter().enumerate() {
                if WORDS.contains(&secret.kind) == words {
                    for form in forms(secret) {
                        texts.push(form);
                        numbers.push(number);
                    }
                }
            }
            let mut search = AhoCorasick::builder();
            // It fails only for more than 2 GB of values.
            let search = search.match_kind(MatchKind::LeftmostLongest).build(texts);
            let search = search.ok().filter(|_| !numbers.is_empty());
            search.map(|search| Forms { search, numbers })
        };
        Self {
            anywhere: forms(false),
            words: forms(true),
        }
    }

    /// Replaces the values in a text by their signs; `None` if it has none.
    pub(super) fn replaced(&self, text: &str) -> Option<String> {
        let secrets = self.anywhere.as_ref();
        let secrets = secrets.and_then(|forms| forms.replaced(text, |_, _| true));
        let text = secrets.as_deref().unwrap_or(text);
        let words = self.words.as_ref();
        let words = words.and_then(|forms| {
            forms.replaced(text, |before, after| {
                !before.ends_with(char::is_alphanumeric)
                    && !after.starts_with(char::is_alphanumeric)
            })
        });
        words.or(secrets)
    }
}

impl Forms {
    fn replaced(&self, text: &str, is_one: impl Fn(&str, &str) -> bool) -> Option<String> {
        let mut out = String::new();
        let mut copied = 0;
        for found in self.search.find_iter(text) {
            let (before, after) = (text.get(..found.start()), text.get(found.end()..));
            let number = self.numbers.get(found.pattern().as_usize());
            if let (Some(before), Some(after), Some(number)) = (before, after, number)
                && is_one(before, after)
            {
                out.push_str(before.get(copied..).unwrap_or_default());
                out.push_str(&signs::of(*number));
                copied = found.end();
            }
        }
        (copied > 0).then(|| out + text.get(copied..).unwrap_or_default())
    }
}

/// Returns the forms of a value: as it is, in JSON, in JSON inside of JSON, and in an address.
fn forms(secret: &Secret) -> BTreeSet<String> {
    let pieces: Vec<&str> = match secret.kind {
        "private-key" => {
            let is_part = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
            let lines = secret.text.split(|c| !is_part(c));
            lines.filter(|line| line.len() >= LEAST_LINE).collect()
        }
        _ => vec![secret.text.as_str()],
    };
    let mut forms = BTreeSet::new();
    for piece in pieces
        .into_iter()
        .filter(|piece| piece.chars().count() >= LEAST)
    {
        let json = in_json(piece);
        forms.extend([
            in_json(&json),
            ascii(&json),
            in_address(piece),
            json,
            piece.to_owned(),
        ]);
        forms.extend(from_address(piece));
    }
    forms
}

/// Returns a text as it is between the quotes of a JSON string.
fn in_json(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    json.get(1..json.len() - 1).unwrap_or_default().to_owned()
}

/// Returns a text of JSON with escapes in place of all other characters than those of ASCII.
fn ascii(json: &str) -> String {
    let mut out = String::new();
    for c in json.chars() {
        match c.is_ascii() {
            true => out.push(c),
            false => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out
}

fn in_address(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// Returns the text that an address has in this form; `None` if it is the same.
fn from_address(text: &str) -> Option<String> {
    let (first, rest) = text.split_once('%')?;
    let mut bytes = first.as_bytes().to_vec();
    for piece in rest.split('%') {
        bytes.push(u8::from_str_radix(piece.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(piece.get(2..)?.as_bytes());
    }
    let text = String::from_utf8(bytes).ok();
    text.filter(|text| text.chars().count() >= LEAST)
}
