//! Files folder by folder: what a short form of a summary says of them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use token_estimate::TokenEstimator;

use crate::frame::FILES;
use crate::item::FileStat;

/// Beginning of the line that names the folder of all lines below it.
pub(crate) const BELOW: &str = "Files below ";
/// Beginning of a line of files in a folder.
pub(crate) const IN_FOLDER: &str = "Files in ";
/// Maximum number of files of a line.
const FILES_A_LINE: usize = 8;

/// Returns lines of files, each named by its last two components at least: changed files first, newest first, with the
/// number of changes. Folders are relative to that of the first line. Empty where that is not shorter than the whole paths.
pub(crate) fn lines(
    files: &BTreeMap<String, FileStat>,
    room: u64,
    estimator: &dyn TokenEstimator,
) -> Vec<String> {
    let root = root(files.keys().map(String::as_str));
    let mut folders: BTreeMap<&str, Vec<Entry<'_>>> = BTreeMap::new();
    for (path, stat) in files {
        let path = path.strip_prefix(root).unwrap_or(path);
        let at = path.rmatch_indices('/').nth(1).map_or(0, |(at, _)| at + 1);
        let (folder, name) = path.split_at(at);
        folders.entry(folder).or_default().push((name, path, stat));
    }
    let mut alone: Vec<Entry<'_>> = Vec::new();
    let mut groups: Vec<(Reverse<(bool, usize)>, String)> = Vec::new();
    for (folder, mut list) in folders {
        if list.len() < 2 || folder.is_empty() {
            alone.extend(list.into_iter().map(|(_, path, stat)| (path, path, stat)));
        } else {
            add_groups(&format!("{IN_FOLDER}{folder}: "), &mut list, &mut groups);
        }
    }
    add_groups(FILES, &mut alone, &mut groups);
    groups.sort();
    let below = Some(format!("{BELOW}{root}:")).filter(|_| !root.is_empty());
    let lines: Vec<String> = below
        .into_iter()
        .chain(groups.into_iter().map(|(_, line)| line))
        .collect();
    let cost = |line: &String| estimator.text(line) + 1;
    let whole: u64 = files.keys().map(|path| estimator.text(path) + 1).sum();
    if lines.iter().map(cost).sum::<u64>() >= whole {
        return Vec::new();
    }
    let mut spent = 0;
    let fits = |line: &String| {
        spent += cost(line);
        spent <= room
    };
    let mut lines: Vec<String> = lines.into_iter().take_while(fits).collect();
    if lines.len() == 1 && !root.is_empty() {
        // The folder alone says nothing.
        lines.clear();
    }
    lines
}

/// A file's name in its line, its path, and what was done to it.
type Entry<'a> = (&'a str, &'a str, &'a FileStat);

/// Adds the lines of a folder, each with whether a file of it was changed and when the last one was touched.
fn add_groups(
    start: &str,
    files: &mut [Entry<'_>],
    groups: &mut Vec<(Reverse<(bool, usize)>, String)>,
) {
    files.sort_by_key(|(name, _, stat)| (stat.changed == 0, Reverse(stat.last), *name));
    for part in files.chunks(FILES_A_LINE) {
        let changed = part.iter().any(|(_, _, stat)| stat.changed > 0);
        let last = part.iter().map(|(_, _, stat)| stat.last).max().unwrap_or(0);
        groups.push((Reverse((changed, last)), line(start, part)));
    }
}

fn line(start: &str, files: &[Entry<'_>]) -> String {
    let mut line = start.to_owned();
    let mut before = "";
    for (name, _, stat) in files {
        let (word, times) = match stat.changed {
            0 => ("read ", stat.read),
            changed => ("changed ", changed),
        };
        if line.len() > start.len() {
            line.push_str(if word == before { ", " } else { "; " });
        }
        if word != before {
            line.push_str(word);
            before = word;
        }
        line.push_str(name);
        if times > 1 && stat.changed > 0 {
            line.push_str(&format!(" ×{times}"));
        }
    }
    line
}

/// The folder that at least half of the paths share and that, named once, saves most; none where that is short.
fn root<'a>(paths: impl Iterator<Item = &'a str>) -> &'a str {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut total = 0_usize;
    for path in paths {
        total += 1;
        // A file keeps two components.
        let folders = path.match_indices('/').map(|(at, _)| at);
        let folders: Vec<usize> = folders.skip(1).collect();
        for at in folders.iter().rev().skip(1) {
            *counts.entry(path.get(..=*at).unwrap_or("")).or_default() += 1;
        }
    }
    counts
        .into_iter()
        .filter(|(folder, count)| count * 2 >= total && total > 1 && folder.len() > 12)
        .max_by_key(|(folder, count)| folder.len() * count)
        .map_or("", |(folder, _)| folder)
}

#[cfg(test)]
mod tests {
    use token_estimate::HeuristicEstimator;

    use super::*;

    #[test]
    fn a_folder_is_not_named_alone() {
        let names = ["mod", "cursor", "tokens", "words"];
        let paths = names.map(|name| format!("/srv/projects/crumb/src/lexer/{name}.rs"));
        let files = paths.map(|path| (path, FileStat::default()));
        let files = BTreeMap::from(files);
        let all = lines(&files, 1_000, &HeuristicEstimator::Bytes4);
        assert_eq!(all.len(), 2);
        let room = HeuristicEstimator::Bytes4.text(&all[0]) + 1;
        assert_eq!(lines(&files, room, &HeuristicEstimator::Bytes4), [""; 0]);
    }

    #[test]
    fn files_are_named_by_two_components_below_a_common_folder() {
        let paths = [
            ("/srv/projects/crumb/src/lexer/mod.rs", 3, 1),
            ("/srv/projects/crumb/src/lexer/cursor.rs", 0, 2),
            ("/srv/projects/crumb/src/lexer/tokens.rs", 0, 1),
            ("/srv/projects/crumb/docs/guide/intro.md", 0, 1),
            ("/srv/projects/crumb/docs/guide/names.md", 0, 1),
            ("/etc/hosts", 1, 0),
        ];
        let files: BTreeMap<String, FileStat> = paths
            .into_iter()
            .enumerate()
            .map(|(last, (path, changed, read))| {
                let stat = FileStat {
                    changed,
                    read,
                    last,
                };
                (path.to_owned(), stat)
            })
            .collect();
        assert_eq!(
            lines(&files, 1_000, &HeuristicEstimator::Bytes4),
            [
                "Files below /srv/projects/crumb/:",
                "Files: changed /etc/hosts",
                "Files in src/: changed lexer/mod.rs ×3; read lexer/tokens.rs, lexer/cursor.rs",
                "Files in docs/: read guide/names.md, guide/intro.md",
            ]
        );
    }
}
