//! Material of an extract: items (candidate lines) with weights, files and names.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use memory_model::{Seq, SeqRange};
use serde::{Deserialize, Serialize};

use crate::later::Later;
use crate::ran::Ran;

/// Maximum length of a user's message that counts as typed, in bytes. A longer message counts as a document.
pub const TYPED_BYTES: usize = 3_000;

/// Weight of a user's rule with a value. The next constant is the weight of a rule without a value.
pub(crate) const VALUED: u32 = 120;
pub(crate) const RULE: u32 = 110;
/// Weight of a text that a user typed.
pub(crate) const TYPED: u32 = 100;
/// Weight of a user's sentence that a later sentence replaces.
pub(crate) const REPLACED: u32 = 30;
/// Weight of the state of a list of tasks.
pub(crate) const TASKS: u32 = 51;
/// Minimum weight of the assistant's last text before the user's turn.
pub(crate) const LAST_WORD: u32 = 60;
/// Weight of a document in a user's message.
pub(crate) const PASTED: u32 = 50;
/// Weight of a program's text in a user's message.
pub(crate) const INJECTED: u32 = 20;

/// Label of a text that a program put into a user's message, and of one in which a person wrote down instructions.
pub(crate) const INJECTED_LABEL: &str = "Injected";
pub(crate) const INSTRUCTIONS: &str = "Instructions";
/// Label of a listing that a user pasted.
pub(crate) const PASTED_LABEL: &str = "Pasted";
/// Text after the label of a user's message that is too long to count as typed.
pub(crate) const LONG: &str = " (long)";
/// Label of the line that shows a user's answers to questions.
pub(crate) const ASKED: &str = "Asked";
/// Label of a call that runs a command, instead of the tool's name.
pub(crate) const COMMAND: &str = "$";

/// Kind of an item (a candidate line of an extract).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// A user's words.
    User,
    /// Words of a program in a user's message.
    Injected,
    /// An assistant's words.
    Reply,
    /// A failed tool call.
    Error,
    /// A tool call. If it failed, an item of kind `Error` is printed instead.
    Act,
    /// A system message, a tool's message, or a line of a summary that is not an extract.
    Note,
}

impl Kind {
    /// Returns whether items (candidate lines) of this kind come from a user's message.
    pub(crate) fn users(self) -> bool {
        matches!(self, Kind::User | Kind::Injected)
    }
}

/// A candidate for a line of an extract, such as a user's or assistant's words, a call, or an error.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Item {
    pub(crate) range: SeqRange,
    pub(crate) kind: Kind,
    pub(crate) label: String,
    /// File that the call reads or changes.
    pub(crate) file: Option<String>,
    /// Words or action of the item, line by line, verbatim.
    pub(crate) lines: Vec<String>,
    /// Outcome of a call, printed after an arrow.
    pub(crate) outcome: Vec<String>,
    /// Bodies and output of a call, printed only if there is room.
    pub(crate) detail: Vec<String>,
    /// Position of a later message that the printed item names. For an error, it is the message of the later call that
    /// resolved it. For a user's words, it is the later message that replaces them.
    pub(crate) later: Option<Seq>,
    /// Value that the later message sets in place of this item's value.
    pub(crate) instead: Option<String>,
    /// Whether a user's message before this one was left out, or kept in part.
    pub(crate) after_gap: bool,
    /// Importance, from 0 to about 100. An item with 0 is not printed.
    pub(crate) weight: u32,
    /// Sentences with which the user asks for something. They are read when a state first asks for them.
    #[serde(skip)]
    pub(crate) wanted: OnceLock<Wanted>,
}

/// Sentences with which a user asks for something.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    /// Rules for the work to come.
    pub(crate) rules: Vec<String>,
    /// Other sentences that extracts keep as rules.
    pub(crate) wishes: Vec<String>,
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
            later: None,
            instead: None,
            after_gap: false,
            weight,
            wanted: OnceLock::new(),
        }
    }

    pub(crate) fn with_lines(mut self, lines: Vec<String>) -> Self {
        self.lines = lines;
        self
    }

    /// Returns whether the item is a call that ran a command.
    pub(crate) fn runs(&self) -> bool {
        self.kind == Kind::Act && self.label == COMMAND
    }

    /// Returns whether the item comes from a user's message that is too long to count as typed.
    pub(crate) fn is_pasted(&self) -> bool {
        self.kind == Kind::User && (PASTED..TYPED).contains(&self.weight) && self.label != ASKED
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lines.iter().map(String::len).sum()
    }
}

/// Use of a file: number of changes, number of reads, and the place of its last change among the uses of all files. For
/// a file without changes, the place is that of its last read.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct FileStat {
    pub(crate) changed: u32,
    pub(crate) read: u32,
    pub(crate) last: usize,
    /// Previous value of `last`.
    pub(crate) before: usize,
}

/// All material gathered from a source.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Gathered {
    pub(crate) items: Vec<Item>,
    /// Number of items if others followed them and were left out, and 0 otherwise. The last item is then not the last thing said.
    pub(crate) gap: usize,
    /// Sentences of assistants' replies that a later message replaces or contradicts.
    #[serde(skip)]
    pub(crate) forgotten: Vec<Forgotten>,
    pub(crate) files: BTreeMap<String, FileStat>,
    /// Commands in the order in which they ran. Commands that changed something lasting are also items.
    #[serde(skip)]
    pub(crate) ran: Vec<Ran>,
    /// Searched patterns, in order.
    pub(crate) searches: Vec<String>,
    /// Subjects that summaries in the source offer for expansion.
    #[serde(skip)]
    pub(crate) topics: Vec<String>,
    pub(crate) messages: u64,
    pub(crate) calls: u64,
    /// Number of errors that summaries in the source count but do not show.
    pub(crate) unlisted_errors: u64,
    pub(crate) images: u64,
    /// Number of recorded uses of files so far.
    pub(crate) uses: usize,
}

impl Gathered {
    pub(crate) fn push(&mut self, item: Item) {
        if !item.lines.is_empty() {
            self.items.push(item);
        }
    }

    pub(crate) fn file(&mut self, path: &str, changed: u32, read: u32) {
        self.uses += 1;
        self.file_at(path, changed, read, self.uses);
    }

    /// Records a use of a file at an earlier place in the order of uses.
    pub(crate) fn file_at(&mut self, path: &str, changed: u32, read: u32, place: usize) {
        let stat = self.files.entry(path.to_owned()).or_default();
        stat.changed += changed;
        stat.read += read;
        // For a changed file, the place of the last change counts.
        let counts = changed > 0 || stat.changed == 0;
        if counts && place > stat.last {
            stat.before = std::mem::replace(&mut stat.last, place);
        }
    }

    /// Removes a recorded use of a file, because the call failed.
    pub(crate) fn unused(&mut self, path: &str, changed: u32, read: u32) {
        if let Some(stat) = self.files.get_mut(path) {
            stat.changed = stat.changed.saturating_sub(changed);
            stat.read = stat.read.saturating_sub(read);
            // The place before can be restored, because a call gets its result before its file is used again.
            if changed > 0 || stat.changed == 0 {
                stat.last = stat.before;
            }
            if stat.changed + stat.read == 0 {
                self.files.remove(path);
            }
        }
    }
}

/// Returns whether a user's line contains no request to the assistant: an interruption, a refusal without a reason, or
/// a command to the program.
pub(crate) fn is_mark(item: &Item) -> bool {
    let [line] = item.lines.as_slice() else {
        return false;
    };
    let line = line.trim();
    let bracketed = line.starts_with(['[', '(']) && line.ends_with([']', ')']);
    bracketed || line.starts_with("! ") || (line.starts_with('/') && !line.contains(' '))
}

/// A sentence of an assistant's reply that a later message replaces or contradicts.
#[derive(Debug, Clone)]
pub(crate) struct Forgotten {
    pub(crate) range: SeqRange,
    pub(crate) sentence: String,
    pub(crate) later: Later,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_change_of_a_file_is_one_that_worked() {
        let mut gathered = Gathered::default();
        gathered.file_at("a.rs", 1, 0, 1);
        gathered.file_at("b.rs", 1, 0, 2);
        gathered.file_at("a.rs", 1, 0, 3);
        gathered.unused("a.rs", 1, 0);
        gathered.file_at("a.rs", 0, 1, 4);
        let stat = |path: &str| {
            gathered
                .files
                .get(path)
                .map(|stat| (stat.changed, stat.last))
        };
        assert_eq!((stat("a.rs"), stat("b.rs")), (Some((1, 1)), Some((1, 2))));
    }
}
