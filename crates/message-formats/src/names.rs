//! Files, identifiers, hashes and numbers that calls of tools name, and lists of names in texts.

use std::collections::BTreeSet;

use regex::Regex;
use serde_json::Value;

/// The kinds of names.
pub const NAME_KINDS: [&str; 4] = ["files", "identifiers", "hashes", "numbers"];
const FILE: usize = 0;
const IDENTIFIER: usize = 1;
const HASH: usize = 2;
const NUMBER: usize = 3;

/// Arguments with texts that a call writes, has just read or sends to another agent.
const WRITTEN: [&str; 9] = [
    "content",
    "new_string",
    "old_string",
    "newText",
    "oldText",
    "todos",
    "description",
    "prompt",
    "edits",
];

/// Something that a call of a tool names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CalledName {
    /// A number of [`NAME_KINDS`].
    pub kind: usize,
    /// The name; of a file its last two components.
    pub name: String,
}

/// The patterns by which names are found.
#[derive(Debug)]
pub struct NamePatterns {
    identifier: Regex,
    path: Regex,
    hash: Regex,
    number: Regex,
}

impl NamePatterns {
    /// Creates the patterns; `None` if this build cannot compile them.
    pub fn new() -> Option<Self> {
        let regex = |pattern: &str| Regex::new(pattern).ok();
        let hump = "[A-Za-z][a-z0-9]*[A-Z][A-Za-z0-9]{2,}";
        let underscore = "[A-Za-z][A-Za-z0-9]*_[A-Za-z0-9_]{2,}";
        Some(Self {
            identifier: regex(&format!(r"\b(?:{hump}|{underscore})\b"))?,
            path: regex(r"[\w.@-]*(?:/[\w.@-]+)+\.\w{1,6}\b")?,
            hash: regex(r"\b[0-9a-f]{7,40}\b")?,
            number: regex(r"[\w.]+")?,
        })
    }

    /// Returns the names in the arguments of a call. Texts that the call writes, has just read or sends to another agent
    /// do not count.
    pub fn names(&self, arguments: &Value) -> BTreeSet<CalledName> {
        let mut out = BTreeSet::new();
        let arguments = arguments.as_object().into_iter().flatten();
        for (key, value) in arguments.filter(|(key, _)| !WRITTEN.contains(&key.as_str())) {
            let mut texts = Vec::new();
            strings(value, &mut texts);
            for text in texts {
                let end = text.char_indices().nth(2_000).map_or(text.len(), |c| c.0);
                let text = text.get(..end).unwrap_or(text);
                let mut add = |kind: usize, name: &str| {
                    let name = name.to_owned();
                    out.insert(CalledName { kind, name })
                };
                let is_path = matches!(key.as_str(), "file_path" | "path" | "notebook_path");
                let whole = (is_path && text.contains('/')).then_some(text);
                for path in self.path.find_iter(text).map(|m| m.as_str()).chain(whole) {
                    add(FILE, last_two(path));
                }
                let rest = self.path.replace_all(text, " ");
                for name in self.identifier.find_iter(&rest) {
                    add(IDENTIFIER, name.as_str());
                }
                for hash in self.hash.find_iter(&rest).map(|m| m.as_str()) {
                    let digits = hash.bytes().filter(u8::is_ascii_digit).count();
                    if (1..hash.len()).contains(&digits) {
                        add(HASH, hash);
                    }
                }
                for number in self.number.find_iter(&rest).map(|m| m.as_str()) {
                    if number.len() >= 3 && number.bytes().all(|b| b.is_ascii_digit()) {
                        add(NUMBER, number);
                    }
                }
            }
        }
        out
    }

    /// Returns a text without its lists of names, and their share of the text.
    pub fn without_lists(&self, text: &str) -> (String, f64) {
        let is_name = |word: &&str| word.contains('/') || self.identifier.is_match(word);
        let is_list = |line: &&str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let names = words.iter().copied().filter(is_name).count();
            words.len() >= 6 && names * 10 >= words.len() * 7
        };
        let (lists, rest): (Vec<&str>, Vec<&str>) = text.split('\n').partition(is_list);
        let listed: usize = lists.iter().map(|line| line.chars().count()).sum();
        let share = listed as f64 / text.chars().count().max(1) as f64;
        (rest.join("\n"), share)
    }

    /// Returns the number of names of each kind that a text has, and the share of lists of names in it. Identifiers in
    /// these lists do not count.
    pub fn shown(&self, names: &BTreeSet<CalledName>, text: &str) -> ([usize; 4], f64) {
        let (prose, share) = self.without_lists(text);
        let mut shown = [0; NAME_KINDS.len()];
        for name in names {
            if let Some(shown) = shown.get_mut(name.kind) {
                *shown += usize::from(name.is_in(text, &prose));
            }
        }
        (shown, share)
    }
}

impl CalledName {
    /// Returns whether a text has the name. `prose` is the text without its lists of names, which show no identifier.
    pub fn is_in(&self, text: &str, prose: &str) -> bool {
        let text = if self.kind == IDENTIFIER { prose } else { text };
        text.contains(&self.name)
    }
}

/// Collects all strings of a value.
pub fn strings<'a>(value: &'a Value, out: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => out.push(text),
        Value::Array(list) => list.iter().for_each(|value| strings(value, out)),
        Value::Object(map) => map.values().for_each(|value| strings(value, out)),
        _ => {}
    }
}

/// The last two components of a path.
fn last_two(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    let mut slashes = path.rmatch_indices('/');
    slashes
        .nth(1)
        .and_then(|(at, _)| path.get(at + 1..))
        .unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_names_things_by_what_it_reads() {
        let patterns = NamePatterns::new().unwrap();
        let call = serde_json::json!({
            "command": "grep parse_line src/a/b.rs 0f3a9c1 deadbeef 8080 v1.100 12",
            "file_path": "/home/x/Makefile",
            "new_string": "fn other_name() {}",
        });
        let things = patterns.names(&call);
        let things: Vec<_> = things.iter().map(|t| (t.kind, t.name.as_str())).collect();
        let expected = [
            (FILE, "a/b.rs"),
            (FILE, "x/Makefile"),
            (IDENTIFIER, "parse_line"),
            (HASH, "0f3a9c1"),
            (NUMBER, "8080"),
        ];
        assert_eq!(things, expected);
    }

    #[test]
    fn identifiers_in_lists_of_names_do_not_count() {
        let patterns = NamePatterns::new().unwrap();
        let list = "one_name two_name three_name four_name five_name six_name";
        let text = format!("We call parse_line.\n{list}");
        let thing = |kind, name: &str| CalledName {
            kind,
            name: name.to_owned(),
        };
        let needed = BTreeSet::from([
            thing(IDENTIFIER, "parse_line"),
            thing(IDENTIFIER, "six_name"),
        ]);
        let (shown, share) = patterns.shown(&needed, &text);
        assert_eq!(shown, [0, 1, 0, 0]);
        assert!((share - list.len() as f64 / text.len() as f64).abs() < 1e-9);
    }
}
