//! Codex's tools for history and notes, under names with `_`: see [`ToolNames::Codex`](crate::ToolNames::Codex).

mod history;
mod notes;

pub(crate) use self::history::{ItemsArgs, ReadItemArgs, SearchArgs, WindowsArgs};
pub(crate) use self::notes::{
    AppendNoteArgs, ListNotesArgs, ReadNoteArgs, SearchNotesArgs, WriteNoteArgs,
};

/// Default maximum number of windows, items or files in an answer.
const LIMIT: usize = 20;
/// Default maximum length of an item in a list, in characters.
const ITEM_CHARS: usize = 400;

fn or_default(given: usize, default: usize) -> usize {
    match given {
        0 => default,
        given => given,
    }
}
