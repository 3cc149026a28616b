//! Lines before and after the items (lines about single messages) of an extract: header, files, and the subjects that
//! were left out.

use std::collections::{BTreeMap, BTreeSet};

use token_estimate::TokenEstimator;

use crate::item::{FileStat, Gathered, Item, Kind};
use crate::source::{self, Source, minute};
use crate::text::clip;

/// Beginning of an extract's first line.
pub(crate) const HEADER: &str = "Extract of messages ";
/// Beginning of the line of files.
pub(crate) const FILES: &str = "Files: ";
/// Beginning of an extract's last line, the subjects that were left out.
pub(crate) const EXPAND: &str = "Expand for details about: ";

/// Returns the first line of an extract: the range, times and counts of its source.
pub(crate) fn header(gathered: &Gathered, pieces: &[Source<'_>]) -> String {
    let mut line = HEADER.to_owned();
    if let Some(range) = source::range(pieces) {
        line.push_str(&range.to_string());
    }
    if let Some((first, last)) = source::times(pieces)
        && first.0 != 0
    {
        let (first, last) = (minute(first), minute(last));
        let same_day = first.get(..11) == last.get(..11);
        let last = if same_day {
            last.get(11..).unwrap_or(&last)
        } else {
            &last
        };
        line.push_str(&format!(", {first} to {last}"));
    }
    let errors = gathered
        .items
        .iter()
        .filter(|item| item.kind == Kind::Error)
        .count() as u64
        + gathered.unlisted_errors;
    let mut counts = vec![plural(gathered.messages, "message")];
    for (count, what) in [
        (gathered.calls, "tool call"),
        (errors, "error"),
        (gathered.images, "image"),
    ] {
        if count > 0 {
            counts.push(plural(count, what));
        }
    }
    line.push_str(&format!(
        " ({}); [n] is the message to expand.",
        counts.join(", ")
    ));
    line
}

/// Counts in the first line of an extract.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) messages: u64,
    pub(crate) calls: u64,
    pub(crate) errors: u64,
    pub(crate) images: u64,
}

/// Parses the counts in a line that [`header`] wrote; `None` if the line has none.
pub(crate) fn counts(line: &str) -> Option<Counts> {
    let (_, listed) = line.split_once(" (")?;
    let (listed, _) = listed.split_once(')')?;
    let mut counts = Counts::default();
    for one in listed.split(", ") {
        let (count, what) = one.split_once(' ')?;
        let count = count.parse().ok()?;
        match what.strip_suffix('s').unwrap_or(what) {
            "message" => counts.messages = count,
            "tool call" => counts.calls = count,
            "error" => counts.errors = count,
            "image" => counts.images = count,
            _ => return None,
        }
    }
    Some(counts)
}

fn plural(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Returns the line that lists files, and the paths in it. Changed files come first, latest first. Paths are whole if
/// they fit. Otherwise the folder that most files share is named once, and left out of their paths.
pub(crate) fn files<'a>(
    files: &'a BTreeMap<String, FileStat>,
    room: u64,
    estimator: &dyn TokenEstimator,
) -> Option<(String, BTreeSet<&'a str>)> {
    if files.is_empty() {
        return None;
    }
    let folder = common_folder(files.keys().map(String::as_str));
    let folder = if folder.len() > 12 { folder } else { "" };
    let all = files
        .keys()
        .filter(|path| !holds_another(path, files))
        .count();
    let full = list_files(files, "", room, estimator);
    let (line, listed) = match &full {
        Some((_, listed)) if listed.len() < all && !folder.is_empty() => {
            list_files(files, folder, room, estimator)?
        }
        _ => full?,
    };
    let line = match all.saturating_sub(listed.len()) {
        0 => line,
        more => format!("{line}; {more} more"),
    };
    Some((line, listed))
}

fn list_files<'a>(
    files: &'a BTreeMap<String, FileStat>,
    folder: &str,
    room: u64,
    estimator: &dyn TokenEstimator,
) -> Option<(String, BTreeSet<&'a str>)> {
    let mut sorted: Vec<(&String, &FileStat)> = files.iter().collect();
    sorted.sort_by_key(|(path, stat)| (std::cmp::Reverse(stat.last), path.as_str()));
    let (changed, read): (Vec<_>, Vec<_>) =
        sorted.into_iter().partition(|(_, stat)| stat.changed > 0);
    let mut line = FILES.to_owned();
    if !folder.is_empty() {
        line.push_str(&format!("(under {folder}) "));
    }
    let start = line.len();
    // The cost is added piece by piece, so that many files take little time. The cost of the whole extract is checked
    // later.
    let mut cost = estimator.text(&line) + 4;
    let mut listed = BTreeSet::new();
    for (word, list) in [("changed", changed), ("read", read)] {
        let mut first = true;
        for (path, stat) in list {
            // A folder is skipped, because the paths of its files name it.
            if holds_another(path, files) {
                continue;
            }
            let mut piece = match (first, line.len() > start) {
                (true, true) => format!("; {word} "),
                (true, false) => format!("{word} "),
                (false, _) => ", ".to_owned(),
            };
            piece.push_str(path.strip_prefix(folder).unwrap_or(path));
            let times = if stat.changed > 0 {
                stat.changed
            } else {
                stat.read
            };
            if times > 1 {
                piece.push_str(&format!(" ×{times}"));
            }
            let more = estimator.text(&piece);
            if cost.saturating_add(more) > room {
                break;
            }
            cost += more;
            line.push_str(&piece);
            first = false;
            listed.insert(path.as_str());
        }
    }
    (!listed.is_empty()).then_some((line, listed))
}

/// Returns whether a path is the folder of another file in `files`.
fn holds_another(path: &str, files: &BTreeMap<String, FileStat>) -> bool {
    let below = format!("{path}/");
    let next = files.range(below.clone()..).next();
    next.is_some_and(|(next, _)| next.starts_with(&below))
}

/// Returns the shortest end of a path, in whole components, that no other file's path ends with.
pub(crate) fn short_name<'a>(path: &'a str, files: &BTreeMap<String, FileStat>) -> &'a str {
    let cuts = path.rmatch_indices(['/', '\\']).map(|(at, _)| at);
    for at in cuts {
        let (end, name) = (path.get(at..), path.get(at + 1..));
        let others = files.keys().filter(|other| {
            end.is_some_and(|end| other.ends_with(end)) || name == Some(other.as_str())
        });
        if let Some(name) = name.filter(|name| !name.is_empty())
            && others.take(2).all(|other| other == path)
        {
            return name;
        }
    }
    path
}

/// Returns the longest folder that at least three quarters of the paths share. Empty if a path is relative, so that
/// each printed path stays unambiguous.
pub(crate) fn common_folder<'a>(paths: impl Iterator<Item = &'a str>) -> &'a str {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut total = 0_usize;
    for path in paths {
        if !path.starts_with('/') {
            return "";
        }
        total += 1;
        for (at, _) in path.match_indices('/').skip(1) {
            *counts.entry(path.get(..=at).unwrap_or("")).or_default() += 1;
        }
    }
    if total < 2 {
        return "";
    }
    counts
        .into_iter()
        .filter(|(_, count)| count * 4 >= total * 3)
        .map(|(folder, _)| folder)
        .max_by_key(|folder| folder.len())
        .unwrap_or("")
}

/// Returns the last line of an extract: the subjects that were left out.
pub(crate) fn expand(
    gathered: &Gathered,
    items: &[&Item],
    shown: &BTreeSet<usize>,
    room: u64,
    estimator: &dyn TokenEstimator,
) -> Option<String> {
    let told = gathered.topics.iter().rev().take(12);
    let mut topics: Vec<String> = told.map(|topic| clip(topic, 80)).collect();
    let mut acts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for (at, item) in items.iter().enumerate() {
        if shown.contains(&at) || item.weight == 0 {
            continue;
        }
        match item.kind {
            Kind::Act if item.runs() => *kinds.entry("command").or_default() += 1,
            Kind::Act => *acts.entry(&item.label).or_default() += 1,
            Kind::User => *kinds.entry("user message").or_default() += 1,
            Kind::Injected => *kinds.entry("injected text").or_default() += 1,
            Kind::Reply => *kinds.entry("assistant message").or_default() += 1,
            Kind::Error => *kinds.entry("error").or_default() += 1,
            Kind::Note => *kinds.entry("note").or_default() += 1,
        }
    }
    for (what, count) in kinds.into_iter().rev() {
        topics.push(plural_more(count, what));
    }
    let mut acts: Vec<(&str, u64)> = acts.into_iter().collect();
    acts.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    for (name, count) in acts.into_iter().take(6) {
        topics.push(plural_more(count, &format!("{name} call")));
    }
    let mut line = EXPAND.to_owned();
    for (n, topic) in topics.iter().enumerate() {
        let length = line.len();
        if n > 0 {
            line.push_str(", ");
        }
        line.push_str(topic);
        if estimator.text(&line) + 1 > room {
            line.truncate(length);
            break;
        }
    }
    (line.len() > EXPAND.len()).then_some(line)
}

fn plural_more(count: u64, what: &str) -> String {
    format!("{count} more {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_what_it_counts() {
        let line = "Extract of messages 1-9, 2026-03-02T09:00Z to 09:12Z (8 messages, 1 tool call, 2 errors, 3 images); [n] is x.";
        let counts = counts(line).unwrap();
        assert_eq!(
            (counts.messages, counts.calls, counts.errors, counts.images),
            (8, 1, 2, 3)
        );
        assert_eq!(super::counts("Extract of messages 1-9"), None);
        assert_eq!(super::counts("Extract of messages 1-9 (8 apples)"), None);
    }

    #[test]
    fn a_short_name_names_one_file() {
        let paths = [
            "/a/b/mod.rs",
            "/a/c/mod.rs",
            "/a/c/one.rs",
            "mod.rs",
            "sub\\two.rs",
        ];
        let files: BTreeMap<String, FileStat> = paths
            .iter()
            .map(|path| ((*path).to_owned(), FileStat::default()))
            .collect();
        let names = paths.map(|path| short_name(path, &files));
        assert_eq!(
            names,
            ["b/mod.rs", "c/mod.rs", "one.rs", "mod.rs", "two.rs"]
        );
    }
}
