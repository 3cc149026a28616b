//! How an item is printed, at some length.

use super::call::is_error_line;
use super::gather::{Item, Kind, LAST_WORD};
use super::text::{clip, digest, sentences, squeeze};

/// Stands between what was done and how it ended.
pub(super) const ARROW: &str = " → ";
/// Begins a line that belongs to the item before.
pub(super) const MORE: &str = "  ";
/// Begins a line of detail.
pub(super) const DETAIL: &str = "    ";
/// A line of detail is cut after this many characters.
const DETAIL_CHARS: usize = 240;

/// How much of an item is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Length {
    /// About how many characters of what was said, and of how it ended.
    pub(super) chars: usize,
    /// How many lines of detail.
    pub(super) detail: usize,
}

impl Length {
    pub(super) const FULL: Self = Self::chars(usize::MAX);

    pub(super) const fn chars(chars: usize) -> Self {
        Self { chars, detail: 0 }
    }
}

/// `- [12] User: ` and what the item says.
pub(super) fn item(item: &Item, length: Length) -> String {
    let mut out = beginning(item);
    let chars = length.chars;
    let said = count(&item.lines);
    let ended = count(&item.outcome);
    if said.saturating_add(ended) <= chars {
        out.push_str(&item.lines.join(&format!("\n{MORE}")));
        if !item.outcome.is_empty() {
            out.push_str(ARROW);
            let short = item.outcome.len() <= 3 && ended <= 200;
            let between = if short { " | " } else { "\n  " };
            out.push_str(&item.outcome.join(between));
        }
    } else {
        let half = chars / 2;
        let about = match item.outcome.is_empty() {
            true => chars,
            false => half.max(chars.saturating_sub(ended)),
        };
        let about = match item.kind {
            Kind::Act | Kind::Error => clip(&item.lines.join(" "), about),
            Kind::Injected => clip(&squeeze(&item.lines.join(" ")), about),
            Kind::User | Kind::Note => digest(&sentences(&item.lines.join("\n")), about, true),
            Kind::Reply => {
                // In the midst of work it is the findings that count.
                let last_word = item.weight >= LAST_WORD;
                digest(&sentences(&item.lines.join("\n")), about, last_word)
            }
        };
        let room = chars.saturating_sub(about.chars().count()).max(half);
        out.push_str(&about);
        if !item.outcome.is_empty() {
            out.push_str(ARROW);
            out.push_str(&ending(item, room));
        }
    }
    for line in some(&item.detail, length.detail) {
        out.push('\n');
        out.push_str(DETAIL);
        out.push_str(&clip(line.trim_end(), DETAIL_CHARS));
    }
    out.truncate(out.trim_end().len());
    out
}

/// What a line about an item begins with.
pub(super) fn beginning(item: &Item) -> String {
    let range = if item.range.first == item.range.last {
        item.range.first.to_string()
    } else {
        item.range.to_string()
    };
    let silent = item.lines.iter().all(String::is_empty) && item.outcome.is_empty();
    let colon = if item.label.is_empty() || silent {
        ""
    } else {
        ": "
    };
    format!("- [{range}] {}{colon}", item.label)
}

/// Characters of some lines and of what stands between them.
fn count(lines: &[String]) -> usize {
    lines.iter().map(|line| line.chars().count() + 2).sum()
}

/// How a thing ended, shortened: its first line, those that report errors, then the others.
fn ending(item: &Item, chars: usize) -> String {
    let mut order: Vec<usize> = vec![0];
    let errors = |n: &usize| item.outcome.get(*n).is_some_and(|line| is_error_line(line));
    order.extend((1..item.outcome.len()).filter(errors));
    if item.kind == Kind::Act && item.outcome.len() > 3 {
        // A report: what it says is told as what somebody said.
        return digest(&sentences(&item.outcome.join("\n")), chars, true);
    }
    order.extend(1..item.outcome.len());
    let mut taken = std::collections::BTreeMap::new();
    let mut room = chars;
    for n in order {
        let Some(line) = item.outcome.get(n) else {
            continue;
        };
        if room < 16 || taken.contains_key(&n) {
            continue;
        }
        let line = clip(&squeeze(line), room);
        room = room.saturating_sub(line.chars().count() + 3);
        taken.insert(n, line);
    }
    let kept: Vec<String> = taken.into_values().collect();
    kept.join(" | ")
}

/// At most `most` of the lines: from the start and from the end, `…` between them.
fn some(lines: &[String], most: usize) -> Vec<&str> {
    let all = lines.iter().map(String::as_str);
    if lines.len() <= most {
        return all.collect();
    }
    if most == 0 {
        return Vec::new();
    }
    let tail = most / 3;
    let head = most - tail;
    let mut kept: Vec<&str> = all.clone().take(head).collect();
    kept.push("…");
    kept.extend(all.skip(lines.len() - tail));
    kept
}
