//! The strings of a JSON text.

use std::borrow::Cow;

use agent_memory::RawJson;
use serde::de::IgnoredAny;

use super::signs;

pub(super) fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[', '"'])
        && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Returns the JSON string that begins at this quote, with its quotes.
pub(super) fn string_at(json: &str, start: usize) -> &str {
    let rest = json.get(start..).unwrap_or_default();
    let mut is_escaped = false;
    let end = rest.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    end.and_then(|end| rest.get(..end + 2)).unwrap_or(rest)
}

/// Decodes a JSON string. Lone surrogates become U+FFFD.
pub(super) fn decoded(token: &str) -> Cow<'_, str> {
    let inside = token
        .strip_prefix('"')
        .and_then(|token| token.strip_suffix('"'));
    match inside {
        Some(inside) if !inside.contains('\\') => Cow::Borrowed(inside),
        _ => match RawJson::parse(token) {
            Ok(raw) => {
                let text = raw.decoded_strings();
                let signs = |text: &str| text.chars().filter(|c| signs::is_sign(*c)).count();
                // Escapes must not make signs.
                match signs(&text) == signs(token) {
                    true => Cow::Owned(text),
                    false => Cow::Owned(signs::without(&text).into_owned()),
                }
            }
            Err(_) => Cow::Borrowed(token),
        },
    }
}
