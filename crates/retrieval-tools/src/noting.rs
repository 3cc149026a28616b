//! Answers about notes, and the rows of other answers.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::notes::Notes;
use crate::retrieval::Retrieval;
use crate::room::{Room, longest};
use crate::text::visible;

impl Notes {
    /// Creates notes that are kept in the session of these tools. The session must have no other purpose. `random` is a
    /// secret of 32 random bytes, which is stored beside the notes if they have none yet. Only entries that were marked
    /// with it count as notes, and the entries that were there before it.
    pub fn new(session: &Retrieval, random: [u8; 32]) -> Self {
        Self {
            random,
            store: Arc::clone(&session.store),
            session: session.conversation,
            accounting: Arc::clone(&session.accounting),
            known: Arc::default(),
        }
    }
}

impl Retrieval {
    /// Returns the notes for a tool.
    pub(crate) fn notes(&self, tool: &str) -> Result<&Notes> {
        self.grant.begin(tool, 0)?.end(0);
        let notes = self.notes.as_ref().map(|(_, notes)| notes);
        notes.ok_or_else(|| Error::invalid(format!("{tool} has no notes: call another tool")))
    }
}

/// Returns `head` and the numbered lines of a note from line `first` on, as many as fit, and the number of the last one.
pub(crate) fn numbered(
    tools: &Retrieval,
    head: String,
    lines: &[&str],
    first: usize,
) -> (String, usize) {
    let (mut out, mut room) = begun(tools, head);
    let begin = out.len();
    let mut last = first.saturating_sub(1);
    let row = |number: usize, line: &str| {
        let mut row = format!("{number:>6}\t");
        visible(&mut row, line);
        row + "\n"
    };
    for (number, line) in (first..).zip(lines) {
        if room.take(&row(number, line)) {
            out.push_str(&row(number, line));
        } else if out.len() == begin {
            let end = longest(line, |cut| room.holds(&row(number, &format!("{cut}…"))));
            let cut = line.get(..end).unwrap_or_default();
            return (out + &row(number, &format!("{cut}…")), number);
        } else {
            break;
        }
        last = number;
    }
    (out, last)
}

/// Returns `head` and the rows that fit, and a line with the number of the others of `count`.
pub(crate) fn rows_that_fit(
    tools: &Retrieval,
    head: String,
    count: usize,
    rows: impl Iterator<Item = String>,
) -> String {
    let (mut out, mut room) = begun(tools, head);
    let rows: Vec<String> = rows.take_while(|row| room.take(row)).collect();
    out.extend(rows.iter().map(String::as_str));
    if rows.len() < count {
        let _ = writeln!(out, "Left out: {}", count - rows.len());
    }
    out
}

/// Returns the beginning of an answer, and the room for its rows. A part stays for its last line.
fn begun(tools: &Retrieval, head: String) -> (String, Room<'_>) {
    let mut room = tools.room(tools.limits().answer_tokens.max(1)).without(8);
    room.spend(&head);
    (head, room)
}
