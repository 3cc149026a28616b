//! Printing of an item (a candidate line of an extract) at a given length.

use std::cmp::Reverse;

use crate::failure;
use crate::item::{COMMAND, Item, Kind, LAST_WORD, LONG};
use crate::later::Later;
use crate::shell::anywhere;
use crate::text::{clip, digest, is_step, sentences, squeeze};
use crate::tool_call::lasting;

/// Separator between an action and its outcome.
pub(crate) const ARROW: &str = " → ";
/// Beginning of a line that continues the line before it.
pub(crate) const MORE: &str = "  ";
/// Beginning of a line of detail.
pub(crate) const DETAIL: &str = "    ";
/// Maximum length of a line of detail, in characters.
const DETAIL_CHARS: usize = 240;
/// Beginning and end of the note in an error's line that names a later call, in which the same command succeeded.
pub(crate) const MENDED: (&str, &str) = (" (ok at [", "])");

/// Shell syntax that passes a message of several lines to a command. It is left out of some shortened commands.
const HEREDOC: &str = "\"$(cat <<'EOF' ";
/// Maximum length of an exclamation without content, in characters.
const CRY_CHARS: usize = 24;

/// Maximum length of a printed item (a candidate line of an extract).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Length {
    /// Approximate number of characters of the item's lines and outcome.
    pub(crate) chars: usize,
    /// Number of lines of detail.
    pub(crate) detail: usize,
}

impl Length {
    pub(crate) const FULL: Self = Self::chars(usize::MAX);

    pub(crate) const fn chars(chars: usize) -> Self {
        Self { chars, detail: 0 }
    }
}

/// Returns the length of an item (a candidate line) without its lines of detail, in characters.
pub(crate) fn size(item: &Item) -> usize {
    count(&item.lines).saturating_add(count(&item.outcome))
}

/// Returns the text of an item (a candidate line) in an extract: its position and label, such as `[12] User: `, and its
/// lines.
pub(crate) fn item(item: &Item, length: Length) -> String {
    let mut out = beginning(item);
    let chars = length.chars;
    let said = count(&item.lines);
    let ended = count(&item.outcome);
    if said.saturating_add(ended) <= chars {
        out.push_str(&item.lines.join(&format!("\n{MORE}")));
        add_note(item, &mut out);
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
            // The command line gets most of the length of a command.
            false if item.runs() => chars,
            // The message gets most of the length of an error.
            false if item.kind == Kind::Error => (chars / 2).max(chars.saturating_sub(ended)),
            false => half.max(chars.saturating_sub(ended)),
        };
        let about = match item.kind {
            Kind::Act | Kind::Error => short_about(item, about),
            Kind::Injected => clip(&squeeze(&item.lines.join(" ")), about),
            Kind::User | Kind::Note => digest(&sentences(&item.lines.join("\n")), about, true),
            Kind::Reply => {
                // In replies other than the last one of a turn, findings count most.
                let last_word = item.weight >= LAST_WORD;
                digest(&findings(item, last_word), about, last_word)
            }
        };
        let room = chars.saturating_sub(about.chars().count()).max(half);
        out.push_str(&about);
        add_note(item, &mut out);
        if !item.outcome.is_empty() {
            out.push_str(ARROW);
            out.push_str(&ending(item, room));
        }
    }
    for line in excerpt(&item.detail, length.detail) {
        out.push('\n');
        out.push_str(DETAIL);
        out.push_str(&clip(line.trim_end(), DETAIL_CHARS));
    }
    out.truncate(out.trim_end().len());
    out
}

/// Appends the note that names a later message, if the item has one.
pub(crate) fn add_note(item: &Item, out: &mut String) {
    let Some(seq) = item.later else { return };
    match item.kind {
        Kind::Error => {
            let (begins, ends) = MENDED;
            out.push_str(&format!("{begins}{seq}{ends}"));
        }
        Kind::User => {
            let later = Later {
                seq,
                in_part: false,
                value: item.instead.clone(),
            };
            out.push_str(&later.to_string());
        }
        _ => {}
    }
}

/// Returns the shortened subject of a call: the end of a path, a command without its folder, or a digest of a text.
fn short_about(item: &Item, chars: usize) -> String {
    if item.lines.len() > 2 {
        return digest(&sentences(&item.lines.join("\n")), chars, true);
    }
    let line = item.lines.join(" ");
    if line.chars().count() <= chars {
        return line;
    }
    if item.file.as_deref() == Some(line.as_str()) {
        let skip = line.chars().count() + 1 - chars.max(1);
        return format!("…{}", line.chars().skip(skip).collect::<String>());
    }
    let (name, about) = match item.kind {
        Kind::Error => match line.strip_prefix("$ ") {
            Some(about) => ("$ ", about),
            None => line.split_at(line.find(": ").map_or(0, |at| at + 2)),
        },
        _ => ("", line.as_str()),
    };
    let bare = anywhere(lasting(about));
    if bare.len() < about.len() {
        let bare = bare.replacen(HEREDOC, "\"…", 1);
        return clip(&format!("{name}… {bare}"), chars);
    }
    clip(&line, chars)
}

/// Returns the informative sentences of an assistant's text. Short exclamations are left out. Announcements of a call
/// are left out unless the text is the last one before the user's turn. If no sentence remains, all are kept.
pub(crate) fn findings(item: &Item, last_word: bool) -> Vec<String> {
    let mut all = sentences(&item.lines.join("\n"));
    let tells = |sentence: &String| {
        let cry = sentence.ends_with(['!', '！']) && sentence.chars().count() <= CRY_CHARS;
        let announces = !last_word && (is_step(sentence) || sentence.ends_with([':', '：']));
        !cry && !announces
    };
    if all.iter().any(tells) {
        all.retain(tells);
    }
    all
}

/// Returns the beginning of the line of an item: the position of its message and a label, such as `[12] User: `.
pub(crate) fn beginning(item: &Item) -> String {
    let range = if item.range.first == item.range.last {
        item.range.first.to_string()
    } else {
        item.range.to_string()
    };
    let silent = item.lines.iter().all(String::is_empty) && item.outcome.is_empty();
    let colon = match item.label.as_str() {
        "" => "",
        _ if silent => "",
        COMMAND => " ",
        _ => ": ",
    };
    let long = if item.is_pasted() { LONG } else { "" };
    format!("[{range}] {}{long}{colon}", item.label)
}

/// Returns a line without the position and label at its start: see [`beginning`].
pub(crate) fn said(line: &str) -> &str {
    let rest = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "));
    rest.map_or(line, |(_, said)| said)
}

/// Returns the length of lines with their separators, in characters.
fn count(lines: &[String]) -> usize {
    lines.iter().map(|line| line.chars().count() + 2).sum()
}

/// Returns the shortened outcome of an item (such as the output of a command): first the lines that name an error, then
/// the others from the first one on.
pub(crate) fn ending(item: &Item, chars: usize) -> String {
    let mut order: Vec<usize> = Vec::new();
    if item.kind == Kind::Error {
        let tells = |n: &usize| item.outcome.get(*n).map_or(0, |line| failure::tells(line));
        order.extend(0..item.outcome.len());
        order.sort_by_cached_key(|n| Reverse(tells(n)));
        // If not all lines fit, lines that do not name the error are left out.
        if order.first().is_some_and(|n| tells(n) > 2) && count(&item.outcome) > chars {
            order.retain(|n| tells(n) > 1);
        }
    }
    let edit = item.kind == Kind::Act && item.file.is_some();
    if edit {
        // Added lines are more informative than removed ones.
        let comes = |n: &usize| item.outcome.get(*n).is_some_and(|l| l.starts_with("+ "));
        order.extend((0..item.outcome.len()).filter(comes).take(1));
    }
    if item.kind == Kind::Act && !edit && item.outcome.len() > 3 {
        // A report is printed like a person's words.
        let mut said = sentences(&item.outcome.join("\n"));
        said.retain(|sentence| sentence.chars().any(char::is_alphabetic));
        return digest(&said, chars, true);
    }
    if order.is_empty() || edit {
        order.extend(0..item.outcome.len());
    }
    let mut taken = std::collections::BTreeMap::new();
    let mut room = chars;
    for n in order {
        let Some(line) = item.outcome.get(n) else {
            continue;
        };
        if room < 16 || taken.contains_key(&n) {
            continue;
        }
        let most = if edit && taken.is_empty() {
            room * 2 / 3
        } else {
            room
        };
        let line = clip(&squeeze(line), most);
        room = room.saturating_sub(line.chars().count() + 3);
        taken.insert(n, line);
    }
    let kept: Vec<String> = taken.into_values().collect();
    kept.join(" | ")
}

/// Returns at most `most` lines from the start and the end, with `…` between them.
fn excerpt(lines: &[String], most: usize) -> Vec<&str> {
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

#[cfg(test)]
mod tests {
    use memory_model::{Seq, SeqRange};

    use super::*;

    fn told(kind: Kind, lines: &[&str]) -> Item {
        let lines = lines.iter().map(|&line| line.to_owned()).collect();
        Item::new(SeqRange::single(Seq(1)), kind, "x", 10).with_lines(lines)
    }

    fn ended(kind: Kind, outcome: &[&str]) -> Item {
        let mut item = told(kind, &["y"]);
        item.outcome = outcome.iter().map(|&line| line.to_owned()).collect();
        item
    }

    #[test]
    fn cries_and_announcements_tell_nothing() {
        let said = "Perfect! The cache is stale. Let me look at it:";
        let item = told(Kind::Reply, &[said]);
        assert_eq!(findings(&item, false), ["The cache is stale."]);
        assert_eq!(
            findings(&item, true),
            ["The cache is stale.", "Let me look at it:"]
        );
        assert_eq!(findings(&told(Kind::Reply, &["Done!"]), true), ["Done!"]);
    }

    #[test]
    fn of_an_error_the_lines_that_report_it_come_first() {
        let lines = [
            "Exit code 1",
            "> build",
            "> tsc",
            "a.ts(1,2): error TS2305: none",
            "the end",
        ];
        let item = ended(Kind::Error, &lines);
        assert_eq!(ending(&item, 52), "a.ts(1,2): error TS2305: none | the end");
        assert_eq!(ending(&item, 200), lines.join(" | "));
    }

    #[test]
    fn of_an_edit_what_comes_is_told_before_what_goes() {
        let mut item = ended(
            Kind::Act,
            &[
                "- the old line of code",
                "+ the new line of code",
                "+3 -1 lines",
            ],
        );
        item.file = Some("a.rs".to_owned());
        assert_eq!(
            ending(&item, 45),
            "- the old line of… | + the new line of code"
        );
    }

    #[test]
    fn of_a_path_the_end_is_told_and_of_a_command_what_runs() {
        let mut item = told(Kind::Act, &["/very/long/way/to/the/file.rs"]);
        item.file = Some("/very/long/way/to/the/file.rs".to_owned());
        assert_eq!(short_about(&item, 12), "…the/file.rs");
        let item = told(Kind::Error, &["$ cd /very/long/way && npm test"]);
        assert_eq!(short_about(&item, 20), "$ … npm test");
        let item = told(Kind::Act, &["git -C /very/long/way push origin main"]);
        assert_eq!(short_about(&item, 24), "… git push origin main");
    }
}
