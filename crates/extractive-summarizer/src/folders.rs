//! Lists of files by folder, for contexts that show only some lines of a summary.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use token_estimate::TokenEstimator;

use crate::frame::FILES;
use crate::item::FileStat;

/// Beginning of the line that names a common folder. Relative paths in the lines below are relative to this folder.
pub(crate) const BELOW: &str = "Files below ";
/// Beginning of a line that lists files in one folder.
pub(crate) const IN_FOLDER: &str = "Files in ";
/// Cost of a line of files without the files and the folder, in tokens.
const LINE: u64 = 7;
/// Maximum number of files in one line.
const FILES_A_LINE: usize = 8;

/// Lines that list files by folder.
#[derive(Debug, Default)]
pub(crate) struct Folded<'a> {
    pub(crate) lines: Vec<String>,
    /// Paths of the listed files.
    pub(crate) listed: BTreeSet<&'a str>,
}

/// Returns lines that list files by folder. Changed files come first, latest first, with the number of changes. Each
/// file has at least the last two components of its path. One line may name a common folder, and relative paths in the
/// lines below it are relative to this folder. Relative paths that may lie elsewhere come before that line. Empty if
/// the lines are no shorter than whole paths.
pub(crate) fn lines<'a>(
    files: &'a BTreeMap<String, FileStat>,
    room: u64,
    estimator: &dyn TokenEstimator,
) -> Folded<'a> {
    let root = root(files.keys().map(String::as_str));
    let mut folded = Folded::default();
    // The line of the common folder already names this folder and the folders that contain it.
    let is_above = |path: &str| {
        let rest = root.strip_prefix(path);
        rest.is_some_and(|rest| rest.starts_with('/'))
    };
    let (above, below): (Vec<File<'_>>, Vec<File<'_>>) = files
        .iter()
        .map(|(path, stat)| (path.as_str(), stat))
        .partition(|(path, _)| is_above(path));
    folded
        .listed
        .extend(above.into_iter().map(|(path, _)| path));
    let is_loose = |path: &str| !is_absolute(path) && !path.starts_with(root);
    let (loose, below): (Vec<File<'_>>, Vec<File<'_>>) =
        below.into_iter().partition(|(path, _)| is_loose(path));
    let loose = groups(&loose, "", estimator);
    let below = groups(&below, root, estimator);
    let cost = |line: &str| estimator.text(line) + 1;
    let title = Some(format!("{BELOW}{root}:")).filter(|_| !root.is_empty() && !below.is_empty());
    let mut spent = title.as_deref().map_or(0, cost);
    let whole: u64 = files.keys().map(|path| cost(path)).sum();
    let all: u64 = loose
        .iter()
        .chain(&below)
        .map(|group| cost(&group.line))
        .sum();
    if spent + all >= whole {
        return Folded::default();
    }
    let mut take = |groups: Vec<Group<'a>>, folded: &mut Folded<'a>| {
        let mut lines = Vec::new();
        for group in groups {
            spent += cost(&group.line);
            if spent > room {
                break;
            }
            lines.push(group.line);
            folded.listed.extend(group.paths);
        }
        lines
    };
    let below = take(below, &mut folded);
    folded.lines = take(loose, &mut folded);
    // The line with the common folder is useless without lines below it.
    if !below.is_empty() {
        folded.lines.extend(title);
        folded.lines.extend(below);
    }
    if folded.lines.is_empty() {
        return Folded::default();
    }
    folded
}

/// Path of a file, with its numbers of changes and reads.
type File<'a> = (&'a str, &'a FileStat);

/// Returns the lines of files in order, with folders relative to `root`.
fn groups<'a>(files: &[File<'a>], root: &str, estimator: &dyn TokenEstimator) -> Vec<Group<'a>> {
    let mut folders: BTreeMap<&str, Vec<Entry<'_>>> = BTreeMap::new();
    let mut beside: Vec<Entry<'_>> = Vec::new();
    for (path, stat) in files.iter().copied() {
        let below = match path.strip_prefix(root) {
            // A file directly in the common folder is listed by the name of this folder, relative to the parent folder.
            Some(name) if !name.contains('/') && is_absolute(root) => {
                let name = path.strip_prefix(above(root)).unwrap_or(path);
                beside.push(Entry {
                    name,
                    below: path,
                    path,
                    stat,
                });
                continue;
            }
            below => below.unwrap_or(path),
        };
        let at = below.rmatch_indices('/').nth(1).map_or(0, |(at, _)| at + 1);
        let (folder, name) = below.split_at(at);
        let entry = Entry {
            name,
            below,
            path,
            stat,
        };
        folders.entry(folder).or_default().push(entry);
    }
    let mut alone: Vec<Entry<'_>> = Vec::new();
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (folder, mut list) in folders {
        // Naming the folder once must save more than the cost of its line.
        let saved = estimator.text(folder) * (list.len() as u64 - 1);
        if saved < LINE {
            alone.extend(list.into_iter().map(Entry::alone));
        } else {
            add_groups(&format!("{IN_FOLDER}{folder}: "), &mut list, &mut groups);
        }
    }
    add_groups(FILES, &mut alone, &mut groups);
    add_groups(
        &format!("{IN_FOLDER}{}: ", above(root)),
        &mut beside,
        &mut groups,
    );
    groups.sort_by(|a, b| (a.order, &a.line).cmp(&(b.order, &b.line)));
    groups
}

/// Returns whether a path is absolute.
fn is_absolute(path: &str) -> bool {
    path.starts_with(['/', '~'])
        || path
            .get(1..3)
            .is_some_and(|drive| drive == ":\\" || drive == ":/")
}

/// Returns the parent of a folder.
fn above(folder: &str) -> &str {
    let name = folder.trim_end_matches('/').rfind('/');
    name.and_then(|at| folder.get(..=at)).unwrap_or("")
}

/// A file in a list by folder.
struct Entry<'a> {
    /// Name of the file in its line.
    name: &'a str,
    /// Path relative to the common folder.
    below: &'a str,
    path: &'a str,
    stat: &'a FileStat,
}

impl Entry<'_> {
    /// Returns the file for a line with files of several folders, with its folder in its name.
    fn alone(self) -> Self {
        Self {
            name: self.below,
            ..self
        }
    }
}

/// A line that lists files.
struct Group<'a> {
    /// Order of the lines: lines with a changed file first, then by the last use of a file, latest first.
    order: Reverse<(bool, usize)>,
    line: String,
    paths: Vec<&'a str>,
}

/// Sorts files, and adds lines that list them to `groups`, each with up to eight files. Each line begins with `start`,
/// such as `Files in src/: `. Changed files come before files that were only read.
fn add_groups<'a>(start: &str, files: &mut [Entry<'a>], groups: &mut Vec<Group<'a>>) {
    files.sort_by_key(|file| (file.stat.changed == 0, Reverse(file.stat.last), file.name));
    for part in files.chunks(FILES_A_LINE) {
        let changed = part.iter().any(|file| file.stat.changed > 0);
        let last = part.iter().map(|file| file.stat.last).max().unwrap_or(0);
        groups.push(Group {
            order: Reverse((changed, last)),
            line: line(start, part),
            paths: part.iter().map(|file| file.path).collect(),
        });
    }
}

fn line(start: &str, files: &[Entry<'_>]) -> String {
    let mut line = start.to_owned();
    let mut before = "";
    for Entry { name, stat, .. } in files {
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

/// Returns the common folder of at least half of the paths that saves the most characters if it is named once. Short
/// folders do not count. A relative folder counts only if it is the folder of all relative paths, so that each printed
/// path stays unambiguous. Empty if no folder counts.
fn root<'a>(paths: impl Iterator<Item = &'a str>) -> &'a str {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut total, mut relative) = (0_usize, 0_usize);
    for path in paths {
        total += 1;
        relative += usize::from(!is_absolute(path));
        // Two components of a file's path stay in its line.
        let folders = path.match_indices('/').map(|(at, _)| at);
        let folders: Vec<usize> = folders.skip(1).collect();
        for at in folders.iter().rev().skip(1) {
            *counts.entry(path.get(..=*at).unwrap_or("")).or_default() += 1;
        }
    }
    counts
        .into_iter()
        .filter(|(folder, count)| count * 2 >= total && total > 1 && folder.len() > 12)
        .filter(|(folder, count)| is_absolute(folder) || *count == relative)
        .max_by_key(|(folder, count)| folder.len() * count)
        .map_or("", |(folder, _)| folder)
}

#[cfg(test)]
mod tests {
    use token_estimate::HeuristicEstimator;

    use super::*;

    fn of(paths: &[&str]) -> BTreeMap<String, FileStat> {
        let stat = FileStat {
            read: 1,
            ..FileStat::default()
        };
        paths
            .iter()
            .map(|path| ((*path).to_owned(), stat))
            .collect()
    }

    #[test]
    fn a_relative_path_is_not_told_below_a_folder() {
        let files = of(&[
            "/srv/projects/crumb/src/lexer/mod.rs",
            "/srv/projects/crumb/src/lexer/words.rs",
            "/srv/projects/crumb/src/lexer/cursor.rs",
            "packages/agent/src/theme/dark.json",
        ]);
        assert_eq!(
            lines(&files, 1_000, &HeuristicEstimator::Bytes4).lines,
            [
                "Files: read packages/agent/src/theme/dark.json",
                "Files below /srv/projects/crumb/src/:",
                "Files: read lexer/cursor.rs, lexer/mod.rs, lexer/words.rs",
            ]
        );
        // A relative folder is named if it is the folder of all relative paths.
        let names = ["theme/dark.json", "theme/light.json", "tui/footer.ts"];
        let names = names.map(|name| format!("packages/agent/src/{name}"));
        let mut paths = names.each_ref().map(String::as_str).to_vec();
        let files = of(&paths);
        let all = lines(&files, 1_000, &HeuristicEstimator::Bytes4).lines;
        assert_eq!(all[0], "Files below packages/agent/src/:");
        paths.push("packages/tui/src/text.ts");
        let files = of(&paths);
        let all = lines(&files, 1_000, &HeuristicEstimator::Bytes4).lines;
        assert!(!all.iter().any(|line| line.starts_with(BELOW)), "{all:?}");
    }

    #[test]
    fn a_folder_is_not_named_alone() {
        let names = ["mod", "cursor", "tokens", "words"];
        let paths = names.map(|name| format!("/srv/projects/crumb/src/lexer/{name}.rs"));
        let files = paths.map(|path| (path, FileStat::default()));
        let files = BTreeMap::from(files);
        let all = lines(&files, 1_000, &HeuristicEstimator::Bytes4).lines;
        assert_eq!(all.len(), 2);
        let room = HeuristicEstimator::Bytes4.text(&all[0]) + 1;
        let folded = lines(&files, room, &HeuristicEstimator::Bytes4);
        assert!(folded.lines.is_empty() && folded.listed.is_empty());
    }

    #[test]
    fn files_are_named_by_two_components_below_a_common_folder() {
        let paths = [
            ("/srv/projects/crumb/crates/reader/src/lexer/mod.rs", 3, 1),
            (
                "/srv/projects/crumb/crates/reader/src/lexer/cursor.rs",
                0,
                2,
            ),
            (
                "/srv/projects/crumb/crates/reader/src/lexer/tokens.rs",
                0,
                1,
            ),
            ("/srv/projects/crumb/docs/guide/intro.md", 0, 1),
            ("/srv/projects/crumb/docs/guide/names.md", 0, 1),
            ("/srv/projects/crumb/README.md", 0, 1),
            ("/srv/projects/crumb", 0, 1),
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
                    ..FileStat::default()
                };
                (path.to_owned(), stat)
            })
            .collect();
        assert_eq!(
            lines(&files, 1_000, &HeuristicEstimator::Bytes4).lines,
            [
                "Files below /srv/projects/crumb/:",
                "Files: changed /etc/hosts; read docs/guide/names.md, docs/guide/intro.md",
                "Files in crates/reader/src/: changed lexer/mod.rs ×3; read lexer/tokens.rs, lexer/cursor.rs",
                "Files in /srv/projects/: read crumb/README.md",
            ]
        );
    }
}
