//! What a summary of a transcript should keep, by the transcript's structure alone: who speaks,
//! which results are errors, what tools were called with. Knows nothing of any summarizer.

use std::collections::BTreeSet;

use memory_model::{EntryKind, Message, Part, Role};
use serde_json::Value;

/// The columns, in the order of the tables.
pub(super) const COLUMNS: [&str; 7] = [
    "directives",
    "typed",
    "error lines",
    "paths",
    "identifiers",
    "numbers",
    "commands",
];

/// Longer lines and commands are asked for up to this many characters.
const LONGEST: usize = 200;

/// Everything that is to be kept, column by column.
#[derive(Default)]
pub(super) struct Gold {
    items: [BTreeSet<String>; 7],
}

impl Gold {
    pub(super) fn of(messages: &[Message]) -> Self {
        let mut gold = Self::default();
        for message in messages.iter().filter(|m| m.kind == EntryKind::Message) {
            for part in &message.parts {
                match part {
                    Part::Text { text } => {
                        if message.role == Role::User {
                            sentences(text, &mut |s| gold.add(0, s));
                            if !by_program(message, text) {
                                sentences(text, &mut |s| gold.add(1, s));
                            }
                        }
                        gold.words(text);
                    }
                    Part::ToolCall { arguments, .. } => {
                        if let Ok(value) = serde_json::from_str(arguments.as_str()) {
                            gold.arguments("", &value);
                        }
                    }
                    Part::ToolResult {
                        content,
                        is_error: Some(true),
                        ..
                    } => {
                        for line in content.text().lines() {
                            let line = clip(&spaced(line));
                            if line.chars().filter(|c| c.is_alphanumeric()).count() >= 4 {
                                gold.add(2, &line);
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        gold
    }

    fn add(&mut self, column: usize, item: &str) {
        self.items[column].insert(item.to_owned());
    }

    fn arguments(&mut self, key: &str, value: &Value) {
        match value {
            Value::String(text) => {
                if matches!(key, "command" | "cmd" | "script") {
                    let command = clip(&spaced(text));
                    self.add(6, &command);
                    self.words(&command);
                } else if is_path(text) {
                    self.add(3, text);
                } else if text.len() <= LONGEST {
                    self.words(text);
                }
            }
            Value::Array(list) => list.iter().for_each(|v| self.arguments(key, v)),
            Value::Object(map) => map.iter().for_each(|(key, v)| self.arguments(key, v)),
            _ => {}
        }
    }

    /// Identifiers and numbers.
    fn words(&mut self, text: &str) {
        for word in words(text) {
            let digits = word.chars().filter(char::is_ascii_digit).count();
            if digits == word.chars().filter(|c| *c != '.').count() {
                if digits >= 2 {
                    self.add(5, word);
                }
            } else if is_identifier(word) {
                self.add(4, word);
            }
        }
    }

    /// How many items a column has.
    pub(super) fn len(&self, column: usize) -> usize {
        self.items[column].len()
    }

    /// The share of each column that a text keeps; `None` where there is nothing to keep.
    pub(super) fn kept(&self, text: &str) -> [Option<f64>; 7] {
        let flat = spaced(text);
        let there: BTreeSet<&str> = words(text).collect();
        std::array::from_fn(|column| {
            let items = &self.items[column];
            let kept = items.iter().filter(|item| match column {
                3 => whole(&flat, item),
                4 | 5 => there.contains(item.as_str()),
                _ => flat.contains(item.as_str()),
            });
            (!items.is_empty()).then(|| kept.count() as f64 / items.len() as f64)
        })
    }

    /// What of a column a text does not keep.
    pub(super) fn missing(&self, column: usize, text: &str) -> Vec<&str> {
        let flat = spaced(text);
        let items = self.items[column].iter().map(String::as_str);
        items.filter(|item| !flat.contains(item)).collect()
    }
}

/// Whether a program wrote a user's text: it is marked so, or begins with a tag.
fn by_program(message: &Message, text: &str) -> bool {
    let marked = |mark: &str| {
        message
            .meta
            .as_ref()
            .is_some_and(|m| m.as_str().contains(mark))
    };
    text.trim_start().starts_with('<')
        || marked("\"isMeta\":true")
        || marked("\"isCompactSummary\":true")
}

/// A text with single spaces.
pub(crate) fn spaced(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

fn clip(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

/// The sentences of a text, with single spaces; those of fewer than four characters are none.
fn sentences(text: &str, f: &mut dyn FnMut(&str)) {
    for line in text.lines() {
        let line = spaced(line);
        let mut start = 0;
        let ends = line.char_indices().filter_map(|(at, c)| {
            let end = at + c.len_utf8();
            let after = &line[end..];
            let ends = match c {
                '.' | '!' | '?' => after.starts_with(' '),
                '。' | '！' | '？' => true,
                _ => false,
            };
            ends.then_some(end)
        });
        for end in ends.chain([line.len()]) {
            let sentence = line[start..end].trim();
            if sentence.chars().filter(|c| c.is_alphanumeric()).count() >= 4 {
                f(sentence);
            }
            start = end;
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'))
        .map(|word| word.trim_matches('.'))
        .filter(|word| !word.is_empty())
}

/// A name with an underscore, a hump, or letters and digits mixed.
pub(crate) fn is_identifier(word: &str) -> bool {
    let hump = word
        .as_bytes()
        .windows(2)
        .any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    let digit = word.bytes().any(|b| b.is_ascii_digit());
    let letter = word.bytes().any(|b| b.is_ascii_alphabetic());
    (4..=60).contains(&word.len())
        && letter
        && (hump || digit || word.trim_matches('_').contains('_'))
}

fn is_path(text: &str) -> bool {
    text.len() <= 300
        && text.contains('/')
        && !text.contains("://")
        && !text.contains(['*', '|', '(', '\\', '^'])
        && !text.contains(char::is_whitespace)
        && text.chars().any(char::is_alphanumeric)
}

/// Whether a text holds a path that is not a part of a longer one.
fn whole(text: &str, path: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/');
    text.match_indices(path).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + path.len()..].chars().next();
        !before.is_some_and(inside) && !after.is_some_and(inside)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The column of users' directives.
    const DIRECTIVES: usize = 0;

    fn gold(items: &[&str]) -> Gold {
        let mut gold = Gold::default();
        items.iter().for_each(|item| gold.add(DIRECTIVES, item));
        gold
    }

    #[test]
    fn what_is_kept_is_there_to_the_letter() {
        let gold = gold(&["Keep the name.", "Ship it today!"]);
        assert_eq!(gold.kept("- Keep  the\nname.")[DIRECTIVES], Some(0.5));
        assert_eq!(
            gold.missing(DIRECTIVES, "Keep the name."),
            ["Ship it today!"]
        );
        assert_eq!(gold.kept("keep names, ship today")[DIRECTIVES], Some(0.0));
    }
}
