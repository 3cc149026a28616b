//! The tree of the root conversation's lines, and its branches by turns that were taken back.

use std::collections::HashMap;
use std::num::NonZeroU32;

use memory_model::Part;

use crate::blocks::{Dialect, only_results};
use crate::raw::{MetaBuilder, RawObject};
use crate::session::{Digest16, digest};

/// Prefixes of texts that the program writes in the user's name for a command of the user.
const COMMANDS: [&str; 3] = ["<command-", "<local-command-", "<bash-"];

/// Prefix of the text that the program writes in the user's name if the user stops it.
const INTERRUPT: &str = "[Request interrupted by user";

/// Number of a uuid or of a session's id. Lines name each other by it, because it needs less memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Name(NonZeroU32);

/// The names so far.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<Digest16, Name>);

impl Names {
    /// Returns the name of an id, and gives it one if it has none.
    pub(super) fn of(&mut self, id: &str) -> Name {
        let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        let next = Name(NonZeroU32::MIN.saturating_add(next));
        *self.0.entry(digest(id)).or_insert(next)
    }
}

/// The lines of the root conversation and its forks, by uuid.
#[derive(Debug, Default)]
pub(super) struct Lines(Vec<Option<TreeLine>>);

impl Lines {
    pub(super) fn get(&self, uuid: Name) -> Option<&TreeLine> {
        self.0.get(uuid.0.get() as usize)?.as_ref()
    }

    /// Adds a line in the place of any other line with the uuid.
    pub(super) fn insert(&mut self, uuid: Name, line: TreeLine) {
        let at = uuid.0.get() as usize;
        if self.0.len() <= at {
            self.0.resize_with(at + 1, || None);
        }
        if let Some(slot) = self.0.get_mut(at) {
            *slot = Some(line);
        }
    }

    /// Returns the greatest number of steps from a line up to a root.
    pub(super) fn depth(&self) -> usize {
        self.0.len()
    }
}

/// A line in the tree of the root conversation.
#[derive(Debug, Clone)]
pub(super) struct TreeLine {
    /// Uuid of the parent, or `None` at a root of the tree.
    pub(super) parent: Option<Name>,
    /// Index of the chain, and the line's place among the lines that the chain shows. `None` for noise.
    pub(super) place: Option<(u32, u32)>,
    pub(super) kind: LineKind,
    /// Session that the line names.
    pub(super) session: Option<Name>,
}

impl TreeLine {
    /// Returns the index of the line's chain, and the line's place there.
    pub(super) fn place(&self) -> Option<(usize, usize)> {
        self.place.map(|(chain, at)| (chain as usize, at as usize))
    }
}

/// A line of the root conversation or of a fork.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) uuid: Option<Name>,
    /// Uuid of the nearest line above that is not noise.
    pub(super) above: Option<Name>,
    /// Whether the line is a root of the tree.
    pub(super) is_root: bool,
    pub(super) kind: LineKind,
    /// Session that the line names.
    pub(super) session: Option<Name>,
    /// Whether the line repeats an earlier one.
    pub(super) is_copy: bool,
}

impl Step {
    /// Creates the step of a line that is not in the tree.
    pub(super) fn beside_the_tree() -> Self {
        Self {
            uuid: None,
            above: None,
            is_root: false,
            kind: LineKind::Aside,
            session: None,
            is_copy: false,
        }
    }
}

/// Kind of a line, by its part in turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    /// The user's words. A turn begins.
    Prompt,
    /// A command of the user, or a text of the program in the user's name. A turn begins if the assistant answers.
    Command,
    Assistant,
    /// A result, an interruption or a summary.
    Other,
    /// A note of the program between messages.
    Aside,
    /// The program's mark that it compacted the conversation.
    Boundary,
}

impl LineKind {
    pub(super) fn of(object: &RawObject<'_>, tag: &str) -> Self {
        match tag {
            "assistant" => Self::Assistant,
            "user" if object.is_true("isCompactSummary") => Self::Other,
            "user" => {
                let inner = object.object("message");
                let value = inner.as_ref().and_then(|message| message.get("content"));
                let parts =
                    value.map(|value| Dialect::Claude.content(value, &mut MetaBuilder::default()));
                let parts = parts.unwrap_or_default();
                let text = parts.iter().find_map(|part| match part {
                    Part::Text { text } => Some(text.trim_start()),
                    _ => None,
                });
                let begins = |with: &str| text.is_some_and(|text| text.starts_with(with));
                if only_results(&parts) || begins(INTERRUPT) {
                    Self::Other
                } else if object.is_true("isMeta") || COMMANDS.iter().any(|tag| begins(tag)) {
                    Self::Command
                } else {
                    Self::Prompt
                }
            }
            _ if is_boundary(object, tag) => Self::Boundary,
            _ => Self::Aside,
        }
    }

    pub(super) fn may_begin_turn(self) -> bool {
        matches!(self, Self::Prompt | Self::Command)
    }

    /// Returns whether the line is part of the conversation, and not a note or a mark of the program.
    pub(super) fn is_said(self) -> bool {
        !matches!(self, Self::Aside | Self::Boundary)
    }
}

/// Returns whether a line is the mark of a compaction.
pub(super) fn is_boundary(object: &RawObject<'_>, tag: &str) -> bool {
    tag == "system" && object.string("subtype").as_deref() == Some("compact_boundary")
}
