//! What an extract could say: items with a weight each, and the files and names beside them.

use std::collections::BTreeMap;

use memory_model::SeqRange;

use crate::text::{visit_names, window};

/// A user's message longer than this is a document that was handed over rather than something
/// typed, in bytes.
pub(crate) const TYPED_BYTES: usize = 3_000;

/// The weight of what a user typed.
pub(crate) const TYPED: u32 = 100;
/// What the assistant says last before the user's turn weighs at least as much.
pub(crate) const LAST_WORD: u32 = 60;
/// The weight of a document that a user's message holds.
pub(crate) const PASTED: u32 = 50;
/// The weight of what a program put into a user's message.
pub(crate) const INJECTED: u32 = 20;

/// What kind of thing a line tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// What the user said.
    User,
    /// What a program said in the user's place.
    Injected,
    /// What the assistant concluded.
    Reply,
    /// What went wrong.
    Error,
    /// What a tool did.
    Act,
    /// A line of a summary that another wrote.
    Note,
}

impl Kind {
    /// Whether it came in as the user's.
    pub(crate) fn users(self) -> bool {
        matches!(self, Kind::User | Kind::Injected)
    }
}

/// Something that an extract could say.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) range: SeqRange,
    pub(crate) kind: Kind,
    pub(crate) label: String,
    /// The file that a call reads or changes.
    pub(crate) file: Option<String>,
    /// What was said or done, line by line, to the letter.
    pub(crate) lines: Vec<String>,
    /// How the thing ended: printed after an arrow.
    pub(crate) outcome: Vec<String>,
    /// What can be told beyond that when there is room: bodies, output.
    pub(crate) detail: Vec<String>,
    /// 0 to about 100.
    pub(crate) weight: u32,
}

impl Item {
    pub(crate) fn new(range: SeqRange, kind: Kind, label: &str, weight: u32) -> Self {
        Self {
            range,
            kind,
            label: label.to_owned(),
            file: None,
            lines: Vec::new(),
            outcome: Vec::new(),
            detail: Vec::new(),
            weight,
        }
    }

    pub(crate) fn with_lines(mut self, lines: Vec<String>) -> Self {
        self.lines = lines;
        self
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lines.iter().map(String::len).sum()
    }
}

/// How often a file was changed and read, and when last.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FileStat {
    pub(crate) changed: u32,
    pub(crate) read: u32,
    pub(crate) last: usize,
}

/// How often something was named, and when last.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NameStat {
    pub(crate) count: u32,
    pub(crate) last: usize,
}

/// All that was found.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) items: Vec<Item>,
    pub(crate) files: BTreeMap<String, FileStat>,
    pub(crate) names: BTreeMap<String, NameStat>,
    /// Subjects that summaries said are to be had by expanding them.
    pub(crate) topics: Vec<String>,
    pub(crate) messages: u64,
    pub(crate) calls: u64,
    pub(crate) images: u64,
    /// Number of pieces read; the time of a file's or name's last use.
    pub(crate) now: usize,
}

impl Gathered {
    pub(crate) fn push(&mut self, item: Item) {
        if !item.lines.is_empty() {
            self.items.push(item);
        }
    }

    pub(crate) fn name(&mut self, text: &str) {
        let now = self.now;
        let (head, tail) = window(text, 16 * 1024, 4 * 1024);
        for part in [head, tail] {
            visit_names(part, &mut |name| {
                let stat = self.names.entry(name.to_owned()).or_default();
                stat.count += 1;
                stat.last = now;
            });
        }
    }

    pub(crate) fn file(&mut self, path: &str, changed: u32, read: u32) {
        let stat = self.files.entry(path.to_owned()).or_default();
        stat.changed += changed;
        stat.read += read;
        stat.last = self.now;
    }
}
