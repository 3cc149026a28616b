//! Values that were found in one text, and are replaced in all texts.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use aho_corasick::{AhoCorasick, MatchKind};

use super::signs;

/// Minimum length of a value that is replaced wherever it occurs, in characters. Shorter values are parts of words.
const LEAST: usize = 6;
/// Minimum length of a line of a private key that is replaced without the others, in characters.
const LEAST_LINE: usize = 16;
/// Minimum length of the beginning or the end of a value that was cut, in characters.
const LEAST_CUT: usize = 8;
/// Stands where an extract left something out.
const CUT: char = '…';

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
    /// The forms of values, each with the number of the value.
    texts: Vec<(String, usize)>,
    /// Finds the first characters of values, and the last ones.
    firsts: AhoCorasick,
    lasts: AhoCorasick,
}

impl Known {
    pub(super) fn of(secrets: &[Secret]) -> Self {
        let forms = |words: bool| {
            let of_kind = |(_, secret): &(usize, &Secret)| WORDS.contains(&secret.kind) == words;
            let secrets = secrets.iter().enumerate().filter(of_kind);
            let texts = secrets.flat_map(|(number, secret)| {
                forms(secret).into_iter().map(move |form| (form, number))
            });
            Forms::of(texts.collect())
        };
        Self {
            anywhere: forms(false),
            words: forms(true),
        }
    }

    /// Replaces the values in a text by their signs; `None` if it has none.
    pub(super) fn replaced(&self, text: &str) -> Option<String> {
        let secrets = self.anywhere.as_ref();
        let secrets = secrets.and_then(|forms| forms.replaced(text, |_| true));
        let text = secrets.as_deref().unwrap_or(text);
        let words = self.words.as_ref();
        let words = words.and_then(|forms| forms.replaced(text, |c| !c.is_alphanumeric()));
        words.or(secrets)
    }
}

impl Forms {
    /// Returns `None` without texts, and if they have more than 2 GB.
    fn of(texts: Vec<(String, usize)>) -> Option<Self> {
        let all = || texts.iter().map(|(text, _)| text.as_str());
        let search = |kind, texts: Vec<&str>| AhoCorasick::builder().match_kind(kind).build(texts);
        let firsts = all().map(|text| split(text, LEAST_CUT).0).collect();
        let lasts = all().map(|text| {
            let rest = text.chars().count().saturating_sub(LEAST_CUT);
            split(text, rest).1
        });
        let firsts = search(MatchKind::Standard, firsts).ok()?;
        let lasts = search(MatchKind::Standard, lasts.collect()).ok()?;
        let search = search(MatchKind::LeftmostLongest, all().collect()).ok()?;
        (!texts.is_empty()).then_some(Self {
            search,
            texts,
            firsts,
            lasts,
        })
    }

    /// Replaces the values between characters that may be next to them.
    fn replaced(&self, text: &str, is_gap: impl Fn(char) -> bool) -> Option<String> {
        let mut found: Vec<(usize, usize, usize)> = Vec::new();
        for whole in self.search.find_iter(text) {
            let (_, number) = self.texts.get(whole.pattern().as_usize())?;
            found.push((whole.start(), whole.end(), *number));
        }
        found.extend(self.cut(text));
        // The longest of those that begin at the same place.
        found.sort_by_key(|(start, end, _)| (*start, usize::MAX - end));
        let mut out = String::new();
        let mut copied = 0;
        for (start, end, number) in found {
            let (before, after) = (text.get(..start), text.get(end..));
            if let (Some(before), Some(after)) = (before, after)
                && start >= copied
                && before.chars().next_back().is_none_or(&is_gap)
                && after.chars().next().is_none_or(&is_gap)
            {
                out.push_str(before.get(copied..).unwrap_or_default());
                out.push_str(&signs::of(number));
                copied = end;
            }
        }
        (copied > 0).then(|| out + text.get(copied..).unwrap_or_default())
    }

    /// Returns the places of beginnings of values before a cut or the end of the text, and of ends of values after a cut.
    fn cut(&self, text: &str) -> Vec<(usize, usize, usize)> {
        let mut found = Vec::new();
        for first in self.firsts.find_overlapping_iter(text) {
            let rest = text.get(first.start()..).unwrap_or_default();
            let Some((value, number)) = self.texts.get(first.pattern().as_usize()) else {
                continue;
            };
            let part = rest.get(..rest.floor_char_boundary(value.len()));
            let part = part
                .unwrap_or_default()
                .split(CUT)
                .next()
                .unwrap_or_default();
            let is_last = part.len() == rest.len();
            // A whole word at the end of a text is a word.
            let is_word = is_last && part.bytes().all(|byte| byte.is_ascii_lowercase());
            let is_cut = is_last
                || rest
                    .get(part.len()..)
                    .is_some_and(|rest| rest.starts_with(CUT));
            if is_cut && !is_word && part.len() < value.len() && value.starts_with(part) {
                found.push((first.start(), first.start() + part.len(), *number));
            }
        }
        for last in self.lasts.find_overlapping_iter(text) {
            let before = text.get(..last.end()).unwrap_or_default();
            let Some((value, number)) = self.texts.get(last.pattern().as_usize()) else {
                continue;
            };
            let window = before.ceil_char_boundary(before.len().saturating_sub(value.len() + 8));
            let window = before.get(window..).unwrap_or_default();
            if let Some((_, part)) = window.rsplit_once(CUT) {
                let part = part.trim_start();
                if part.chars().count() >= LEAST_CUT && value.ends_with(part) {
                    found.push((last.end() - part.len(), last.end(), *number));
                }
            }
        }
        found
    }
}

/// Splits a text behind its first `chars` characters.
fn split(text: &str, chars: usize) -> (&str, &str) {
    let at = text
        .char_indices()
        .nth(chars)
        .map_or(text.len(), |(at, _)| at);
    text.split_at_checked(at).unwrap_or((text, ""))
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
