//! The rollouts that a rollout continues.
//!
//! Once a user edits a message or forks a thread, Codex begins a new file. Its `history_base` names another rollout, and
//! the part of it that both share: by the first number of a line (`ordinal`) that is not shared, and by the number of
//! bytes. A rollout is named at the end of its file's name: `rollout-TIME-THREAD` for the first of a thread, and
//! `rollout-TIME-THREAD_ROLLOUT` for later ones.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::ReadOptions;
use crate::lines::{Found, Limits, next_line};
use crate::raw::RawObject;
use crate::unpack::Unpacked;

/// Folders in Codex' home with rollouts.
pub(super) const FOLDERS: [&str; 2] = ["sessions", "archived_sessions"];

/// Most levels of folders below these.
const DEPTH: usize = 4;

/// Length of the ids in a file's name.
const ID: usize = 36;

/// The part of another rollout that a rollout continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Base {
    /// Id of the other rollout.
    pub(super) rollout: String,
    end_ordinal: Option<u64>,
    end_byte: Option<u64>,
}

impl Base {
    /// Reads the base in the payload of a `session_meta`.
    pub(super) fn of(meta: &RawObject<'_>) -> Option<Self> {
        let base = meta.object("history_base")?;
        Some(Self {
            rollout: base.id("thread_id")?,
            end_ordinal: number(&base, "end_ordinal_exclusive"),
            end_byte: number(&base, "end_byte_offset"),
        })
    }

    /// Returns whether a line of the other rollout belongs to the shared part. `end` is the number of bytes up to its
    /// end.
    pub(super) fn has(&self, line: &RawObject<'_>, end: u64) -> bool {
        match (number(line, "ordinal"), self.end_ordinal, self.end_byte) {
            (Some(ordinal), Some(first), _) => ordinal < first,
            (_, _, Some(bytes)) => end <= bytes,
            _ => true,
        }
    }

    /// Returns a name for a rollout that continues here, if its file has none.
    pub(super) fn name(&self) -> String {
        let at = self.end_ordinal.or(self.end_byte).unwrap_or_default();
        format!("{}-{at}", self.rollout)
    }
}

fn number(object: &RawObject<'_>, name: &str) -> Option<u64> {
    object.get(name)?.get().parse().ok()
}

/// Returns the id of the rollout in a file.
pub(super) fn rollout_of(path: &Path) -> Option<String> {
    let stem = stem(path)?;
    let id = match stem.rsplit_once('_') {
        Some((_, id)) => id,
        None => stem.get(stem.len().checked_sub(ID)?..)?,
    };
    stem.starts_with("rollout-").then(|| id.to_owned())
}

/// Returns the name of a file without its ends, such as `.jsonl.zst`.
fn stem(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()?.split('.').next()
}

/// A rollout that is read with another.
#[derive(Debug)]
pub(super) struct Rollout {
    pub(super) path: PathBuf,
    /// Index of the rollout that it continues, and the part that both share.
    pub(super) parent: Option<(usize, Base)>,
}

/// Returns the rollouts that a rollout continues, and the first one of its thread with those that that one goes on
/// from, so that the same sessions are found from each file. A rollout comes behind its parent, and the given one at
/// the end. One whose parent's file cannot be found has no parent.
pub(super) fn family(path: &Path, options: &ReadOptions) -> Vec<Rollout> {
    let mut family: Vec<Rollout> = Vec::new();
    let Some((thread, base)) = head(path, options) else {
        return family;
    };
    let is_later = |thread: &String| base.is_some() && rollout_of(path).as_ref() != Some(thread);
    let first = thread.filter(is_later);
    let first = first.and_then(|thread| file_of(&thread, path));
    for end in first.as_deref().into_iter().chain([path]) {
        let mut parent = None;
        let way = way(end, options);
        let is_known = |(path, _): &(PathBuf, _)| family.iter().any(|known| known.path == *path);
        // The first rollout may be of other descent if a file is missing.
        if end == path && !family.is_empty() && !way.first().is_some_and(is_known) {
            family.clear();
        }
        for (path, base) in way {
            let known = family.iter().position(|known| known.path == path);
            parent = Some(known.unwrap_or_else(|| {
                let parent = parent.zip(base);
                family.push(Rollout { path, parent });
                family.len() - 1
            }));
        }
    }
    // Damaged files may name each other.
    if family.last().is_none_or(|last| last.path != path) {
        let path = path.to_path_buf();
        return vec![Rollout { path, parent: None }];
    }
    family
}

/// Returns the files that lead to a rollout, oldest first, each with its base.
fn way(path: &Path, options: &ReadOptions) -> Vec<(PathBuf, Option<Base>)> {
    let mut way: Vec<(PathBuf, Option<Base>)> = Vec::new();
    let mut next = Some(path.to_path_buf());
    while let Some(path) = next.filter(|next| way.iter().all(|(path, _)| path != next)) {
        let base = head(&path, options).and_then(|(_, base)| base);
        let rollout = base.as_ref().map(|base| base.rollout.clone());
        next = rollout.and_then(|rollout| file_of(&rollout, &path));
        way.push((path, base));
    }
    way.reverse();
    way
}

/// Reads the thread and the base of the rollout in a file. A pipe is not opened a second time.
fn head(path: &Path, options: &ReadOptions) -> Option<(Option<String>, Option<Base>)> {
    let mut reader = open(path, options)?.reader;
    let limits = Limits {
        line: options.max_line_bytes,
        give_up: options.max_line_bytes,
    };
    let mut line = Vec::new();
    while let Ok(Found::Line { ended }) = next_line(&mut reader, &mut line, limits) {
        if !line.trim_ascii().is_empty() || !ended {
            break;
        }
    }
    let line = RawObject::parse(std::str::from_utf8(&line).ok()?)?;
    let meta = line.object("payload")?;
    Some((meta.id("id"), Base::of(&meta)))
}

/// Opens a rollout, which may be compressed.
pub(super) fn open(path: &Path, options: &ReadOptions) -> Option<Unpacked<'static>> {
    let file = path.is_file().then(|| File::open(path).ok())??;
    Unpacked::new(BufReader::with_capacity(1 << 16, file), options, |_| false).ok()
}

/// Finds the file of a rollout: next to another rollout, or else in the folders of Codex' home.
fn file_of(rollout: &str, beside: &Path) -> Option<PathBuf> {
    // A relative path may have no folder.
    let beside = std::path::absolute(beside).ok()?;
    let folder = beside.parent()?;
    let is = |path: &Path| {
        let before = stem(path).and_then(|stem| stem.strip_suffix(rollout));
        before.is_some_and(|before| before.ends_with(['-', '_']))
    };
    if let Some(found) = find(folder, &is, 0) {
        return Some(found);
    }
    let name = |folder: &Path| folder.file_name()?.to_str().map(str::to_owned);
    let home = folder.ancestors().take(DEPTH + 1).find(|folder| {
        let name = name(folder);
        name.is_some_and(|name| FOLDERS.contains(&name.as_str()))
    })?;
    let home = home.parent()?;
    FOLDERS
        .iter()
        .find_map(|name| find(&home.join(name), &is, DEPTH))
}

/// Returns the first file of a folder by name, or of its folders.
fn find(folder: &Path, is: &impl Fn(&Path) -> bool, depth: usize) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let file = paths.iter().find(|path| is(path) && path.is_file());
    let below = || {
        let mut folders = paths.iter().filter(|path| depth > 0 && path.is_dir());
        folders.find_map(|folder| find(folder, is, depth - 1))
    };
    file.cloned().or_else(below)
}

/// Counts the bytes that were taken from a reader.
pub(super) struct Counted<R> {
    pub(super) reader: R,
    pub(super) taken: std::rc::Rc<std::cell::Cell<u64>>,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let read = self.reader.read(out)?;
        self.taken.set(self.taken.get() + read as u64);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        self.reader.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.taken.set(self.taken.get() + amount as u64);
        self.reader.consume(amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_its_rollout() {
        let (thread, other) = (
            "01a30000-0000-7111-8111-0000000000aa",
            "01a30000-0000-7111-8111-0000000000bb",
        );
        let time = "rollout-2026-10-03T09-00-00";
        for (name, id) in [
            (format!("{time}-{thread}.jsonl"), Some(thread)),
            (format!("{time}-{thread}.jsonl.zst"), Some(thread)),
            (format!("{time}-{thread}_{other}.jsonl"), Some(other)),
            ("mine.jsonl".to_owned(), None),
            (format!("copy-{thread}.jsonl"), None),
        ] {
            assert_eq!(rollout_of(Path::new(&name)).as_deref(), id, "{name}");
        }
    }

    #[test]
    fn numbers_of_lines_tell_the_shared_part_and_else_bytes() {
        let meta = |base: &str| {
            let text = format!("{{\"history_base\":{base}}}");
            Base::of(&RawObject::parse(&text)?)
        };
        let line = |text| RawObject::parse(text).unwrap();
        let base = meta(r#"{"thread_id":"t","end_ordinal_exclusive":4,"end_byte_offset":100}"#);
        let base = base.unwrap();
        assert!(base.has(&line(r#"{"ordinal": 3}"#), 500));
        assert!(!base.has(&line(r#"{"ordinal":4}"#), 50));
        assert!(base.has(&line("{}"), 100) && !base.has(&line("{}"), 101));
        assert_eq!(base.name(), "t-4");
        assert_eq!(meta("null"), None);
        assert_eq!(meta(r#"{"end_byte_offset":1}"#), None);
    }
}
