//! Finds the values of JSON text, which may be damaged.

use std::ops::Range;

/// A value, by its place in the text.
#[derive(Debug, Clone)]
pub(super) struct Value {
    pub(super) bytes: Range<usize>,
    /// Start of the value's key, if it is in an object.
    pub(super) key: Option<usize>,
}

/// The values of any number of JSON texts, inner ones first.
pub(super) fn values(text: &[u8]) -> Vec<Value> {
    let mut found = Vec::new();
    let mut open: Vec<(usize, Option<usize>)> = Vec::new();
    let mut key = None;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'{' | b'[' => open.push((start, key.take())),
            b'}' | b']' => {
                if let Some((start, key)) = open.pop() {
                    found.push(Value {
                        bytes: start..at,
                        key,
                    });
                }
            }
            b'"' => {
                at = end_of_string(text, at);
                let behind = text.get(at..).unwrap_or_default();
                match behind.iter().position(|byte| !byte.is_ascii_whitespace()) {
                    Some(colon) if behind.get(colon) == Some(&b':') => {
                        key = Some(start);
                        at += colon + 1;
                    }
                    _ => found.push(Value {
                        bytes: start..at,
                        key: key.take(),
                    }),
                }
            }
            b'-' | b'0'..=b'9' | b'a'..=b'z' => {
                let rest = text.get(at..).unwrap_or_default();
                let is_end = |byte: &u8| !byte.is_ascii_alphanumeric() && !b"+-.".contains(byte);
                at += rest.iter().position(is_end).unwrap_or(rest.len());
                found.push(Value {
                    bytes: start..at,
                    key: key.take(),
                });
            }
            _ => {}
        }
    }
    found
}

/// The place behind the quote that ends a string.
fn end_of_string(text: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = text.get(at) {
        at += match byte {
            b'"' => return at + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    text.len()
}
