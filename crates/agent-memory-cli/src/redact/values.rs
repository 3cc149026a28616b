//! The values that were found, numbered, and the marks in their places.

use std::collections::{BTreeMap, HashMap};

use super::known::Secret;

/// Begins every mark.
pub(super) const MARK: &str = "[redacted:";

/// The values that were found.
#[derive(Default)]
pub(super) struct Values {
    /// Numbers of values by their texts without white space and escapes.
    numbers: HashMap<String, usize>,
    pub(super) all: Vec<Secret>,
    /// Number of values of each kind that were shown as marks.
    pub(super) counts: BTreeMap<&'static str, usize>,
}

impl Values {
    /// Returns the number of a value.
    pub(super) fn number(&mut self, kind: &'static str, value: &str) -> usize {
        // A key of several lines is the same with other line ends, and with escapes for them.
        let text = value.replace("\\n", "").replace("\\r", "");
        let text = text.replace(|c: char| c == '\\' || c.is_whitespace(), "");
        let all = &mut self.all;
        let new = || {
            all.push(Secret {
                kind,
                text: value.to_owned(),
                shown: None,
            });
            all.len() - 1
        };
        *self.numbers.entry(text).or_insert_with(new)
    }

    /// Returns the mark that replaces a value.
    pub(super) fn shown(&mut self, number: usize) -> String {
        let Some(secret) = self.all.get_mut(number) else {
            return String::new();
        };
        let kind = secret.kind;
        let new = || {
            let count = self.counts.entry(kind).or_default();
            *count += 1;
            format!("{MARK}{kind} {count}]")
        };
        secret.shown.get_or_insert_with(new).clone()
    }
}
