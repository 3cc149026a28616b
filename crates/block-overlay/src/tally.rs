//! What a context leaves out before what it shows.

use crate::omission::Omission;
use crate::session::LoopRun;

/// What is left out before the first turn that is shown, as far as the text in its place names it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// The text of the only part.
    only: String,
    first_loop: String,
    last_loop: String,
    parts: usize,
    messages: usize,
}

impl Tally {
    /// Counts from the loops out of scope.
    pub(crate) fn new(older: Option<&LoopRun>) -> Self {
        older.map_or_else(Self::default, |older| Self {
            only: older.to_string(),
            first_loop: older.first_loop_id.clone(),
            last_loop: older.last_loop_id.clone(),
            parts: 1,
            messages: older.messages,
        })
    }

    pub(crate) fn push(&mut self, omission: &Omission) {
        if self.parts == 0 {
            self.only = omission.to_string();
            self.first_loop.clone_from(&omission.loop_id);
        }
        self.last_loop.clone_from(&omission.loop_id);
        self.parts += 1;
        self.messages += omission.messages;
    }

    /// Text that names where it begins and ends and counts all; `None` when nothing is left out.
    pub(crate) fn text(&self) -> Option<String> {
        let Self {
            only,
            first_loop,
            last_loop,
            parts,
            messages,
        } = self;
        match parts {
            0 => None,
            1 => Some(format!("[… left out: {only} …]")),
            _ if first_loop == last_loop => Some(format!(
                "[… left out: {parts} parts of loop {first_loop}, {messages} messages …]"
            )),
            _ => Some(format!(
                "[… left out: from loop {first_loop} to loop {last_loop}, {messages} messages …]"
            )),
        }
    }
}
