//! Other texts of a JSON value, as the common libraries write it.

use serde_json::value::RawValue;

use crate::raw::{RawObject, list, string};

/// Maximum nesting of a value. The common libraries read no deeper one.
const MAX_DEPTH: usize = 128;

/// Way in which a library writes JSON.
#[derive(Debug, Clone, Copy)]
struct Writing {
    /// Whether a blank follows each comma and colon.
    is_spaced: bool,
    /// Whether all characters outside of ASCII are escaped.
    is_ascii: bool,
    order: Order,
}

#[derive(Debug, Clone, Copy)]
enum Order {
    AsItCame,
    Rising,
    Falling,
}

/// Returns the texts of a JSON value in the ways of the common libraries, without the text itself. Empty if the value
/// has keys twice, text that is not Unicode, or more than [`MAX_DEPTH`] levels.
pub(crate) fn others(json: &str) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    if depth(json) > MAX_DEPTH {
        return texts;
    }
    for order in [Order::AsItCame, Order::Rising, Order::Falling] {
        for is_spaced in [false, true] {
            for is_ascii in [false, true] {
                let writing = Writing {
                    is_spaced,
                    is_ascii,
                    order,
                };
                let mut text = String::with_capacity(json.len());
                let value = serde_json::from_str::<&RawValue>(json).ok();
                let written = value.and_then(|value| writing.write(value, &mut text));
                if written.is_some() && text != json && !texts.contains(&text) {
                    texts.push(text);
                }
            }
        }
    }
    texts
}

/// Returns how deeply the arrays and objects of a JSON text are nested.
fn depth(json: &str) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    let (mut in_string, mut is_escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            b'"' if !is_escaped => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        is_escaped = in_string && byte == b'\\' && !is_escaped;
        most = depth.max(most);
    }
    most
}

impl Writing {
    fn write(self, value: &RawValue, out: &mut String) -> Option<()> {
        let (comma, colon) = match self.is_spaced {
            true => (", ", ": "),
            false => (",", ":"),
        };
        match value.get().as_bytes().first()? {
            b'{' => {
                let object = RawObject::parse(value.get()).filter(|object| !object.repeats())?;
                let mut members: Vec<_> = object.members.iter().collect();
                match self.order {
                    Order::AsItCame => {}
                    Order::Rising => members.sort_by(|one, other| one.name.cmp(&other.name)),
                    Order::Falling => members.sort_by(|one, other| other.name.cmp(&one.name)),
                }
                out.push('{');
                for (nth, member) in members.into_iter().enumerate() {
                    out.push_str(if nth > 0 { comma } else { "" });
                    self.text(&member.name, out);
                    out.push_str(colon);
                    self.write(member.value, out)?;
                }
                out.push('}');
            }
            b'[' => {
                out.push('[');
                for (nth, item) in list(value)?.into_iter().enumerate() {
                    out.push_str(if nth > 0 { comma } else { "" });
                    self.write(item, out)?;
                }
                out.push(']');
            }
            b'"' => self.text(&string(value)?, out),
            _ => out.push_str(value.get()),
        }
        Some(())
    }

    fn text(self, text: &str, out: &mut String) {
        let quoted = serde_json::Value::from(text).to_string();
        for character in quoted.chars() {
            match self.is_ascii && !character.is_ascii() {
                true => {
                    let mut units = [0; 2];
                    let units = character.encode_utf16(&mut units).iter();
                    out.extend(units.map(|unit| format!("\\u{unit:04x}")));
                }
                false => out.push(character),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_library_finds_the_texts_of_the_others() {
        let texts = [
            r#"{"role":"user","content":"Où? 🦀\n"}"#,
            r#"{"role": "user", "content": "O\u00f9? \ud83e\udd80\n"}"#,
            r#"{"role": "user", "content": "Où? 🦀\n"}"#,
            r#"{"content":"Où? 🦀\n","role":"user"}"#,
        ];
        for text in texts {
            let found = others(text);
            for other in texts.iter().filter(|other| **other != text) {
                assert!(found.contains(&(*other).to_owned()), "{text}: {other}");
            }
            assert!(!found.contains(&text.to_owned()));
        }
        assert_eq!(others(r#"{"a":1,"a":2}"#), Vec::<String>::new());
        assert_eq!(others(r#"{"a":"\ud800"}"#), Vec::<String>::new());
        let nested = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(others(&nested(10_000)), Vec::<String>::new());
        assert_eq!(depth(&nested(3)), 3);
        assert_eq!(depth(r#"{"a\"[[":["]}"]}"#), 2);
        assert!(
            others(r#"{"a":[1.00,{"b":null}]}"#)
                .contains(&r#"{"a": [1.00, {"b": null}]}"#.to_owned())
        );
    }
}
