//! Settings in an assistant's replies: sentences that give a name of code a value, such as "`width` is now `80`".

use std::collections::BTreeMap;

use memory_model::Seq;

use crate::item::{Forgotten, Item, Kind};
use crate::later::Later;
use crate::replies::take_out;

/// Words that may be between a name and its value.
const SETS: [&str; 10] = [
    ":",
    "=",
    "→",
    "->",
    "to",
    "is now",
    "now",
    "set to",
    "is now set to",
    "now uses",
];
/// Maximum length of a name or a value, in bytes.
const MOST: usize = 48;

/// Removes sentences from replies if a later reply sets the same name to another value. Returns the removed sentences.
pub(crate) fn forget_overtaken(items: &mut [Item]) -> Vec<Forgotten> {
    let mut later: BTreeMap<String, (Seq, String)> = BTreeMap::new();
    let mut forgotten = Vec::new();
    let has_code = |item: &Item| item.lines.iter().any(|line| line.contains('`'));
    for item in items.iter_mut().rev() {
        if item.kind != Kind::Reply || !has_code(item) {
            continue;
        }
        let seq = item.range.first;
        let mut own: BTreeMap<String, (Seq, String)> = BTreeMap::new();
        take_out(item, &mut forgotten, |sentence| {
            let set = settings(sentence);
            let overtaken = set.iter().find_map(|(name, value)| {
                let (seq, now) = later.get(*name)?;
                (now != value).then(|| Later {
                    seq: *seq,
                    in_part: false,
                    value: Some(now.clone()),
                })
            });
            own.extend(
                set.into_iter()
                    .map(|(name, value)| (name.to_owned(), (seq, value.to_owned()))),
            );
            overtaken
        });
        for (name, set) in own {
            later.entry(name).or_insert(set);
        }
    }
    forgotten
}

/// Returns the names that a sentence sets, with their values.
fn settings(sentence: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = sentence.split('`').collect();
    let code = |n: usize| parts.get(n).copied().filter(|_| n + 1 < parts.len());
    let between = |n: usize| {
        parts
            .get(n)
            .map_or("", |text| text.trim_matches([' ', '*']))
    };
    let mut found = Vec::new();
    for n in (1..parts.len()).step_by(2) {
        let Some(name) = code(n).filter(|name| is_name(name)) else {
            continue;
        };
        // In "from `58` to `66`", the second value counts.
        let at = if between(n + 1) == "from" { n + 2 } else { n };
        if let Some(value) = code(at + 2).filter(|value| is_literal(value))
            && SETS.contains(&between(at + 1))
        {
            found.push((name, value));
        }
    }
    found
}

fn is_name(text: &str) -> bool {
    text.len() <= MOST
        && text.starts_with(|first: char| first.is_alphabetic())
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || "_.-".contains(c))
}

/// Returns whether a text is a literal: a number, a color, a quoted text or a truth value. Names do not count.
fn is_literal(text: &str) -> bool {
    text.len() <= MOST
        && (text.starts_with(|first: char| first.is_ascii_digit() || "#\"'".contains(first))
            || matches!(text, "true" | "false" | "null" | "None"))
}

#[cfg(test)]
mod tests {
    use memory_model::SeqRange;

    use super::*;

    #[test]
    fn values_of_names_are_read() {
        for (sentence, expected) in [
            ("Fixed! `width` is now `72`.", vec![("width", "72")]),
            ("- `width`: `#8abeb7` (teal)", vec![("width", "#8abeb7")]),
            ("- **`width`**: `80`", vec![("width", "80")]),
            (
                "Changed `dim` from `#585858` to `#666666`.",
                vec![("dim", "#666666")],
            ),
            ("`a` = `1`, `b` = `true`", vec![("a", "1"), ("b", "true")]),
            ("- `src/main.rs`: `parse` is new", vec![]),
            ("- `main`: `parse` is new", vec![]),
            ("`width` is like `72`", vec![]),
            ("`width` is now `72", vec![]),
        ] {
            assert_eq!(settings(sentence), expected, "{sentence}");
        }
    }

    #[test]
    fn an_earlier_value_is_taken_out_and_the_latest_stays() {
        let reply = |seq: u32, lines: &[&str]| {
            let lines = lines.iter().map(|line| (*line).to_owned()).collect();
            Item::new(SeqRange::single(Seq(seq)), Kind::Reply, "Assistant", 9).with_lines(lines)
        };
        let mut items = vec![
            reply(2, &["Done. `width` is now `72`."]),
            reply(4, &["Done:", "- `width`: `80`", "- `height`: `20`"]),
            reply(6, &["`height` stays: `height` is now `20`."]),
        ];
        let forgotten = forget_overtaken(&mut items);
        let [one] = forgotten.as_slice() else {
            panic!("{forgotten:?}");
        };
        assert_eq!(
            (one.later.seq, one.later.value.as_deref()),
            (Seq(4), Some("80"))
        );
        assert_eq!(items[0].lines, ["Done. …"]);
        assert_eq!(items[1].lines.len(), 3);
        assert_eq!(items[2].lines.len(), 1);
    }
}
