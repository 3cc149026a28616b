//! Messages that a compaction writes again behind its boundary.

use memory_model::{EntryKind, Message, Part, Role};

use super::contents::Contents;
use super::line::{repeat, whole};
use super::tree::{LineKind, is_boundary};
use crate::json_lines::Line;
use crate::session::{SessionBuilder, is_own};

/// Whether the lines since a compaction's boundary were all written by the compaction.
#[derive(Debug, Default)]
pub(super) struct Rewriting(pub(super) bool);

impl Rewriting {
    /// Returns the note in place of the message of a line that a compaction wrote: a line that repeats an earlier
    /// message of the chain, or text in place of older messages.
    pub(super) fn note(
        &mut self,
        line: &Line<'_>,
        tag: &str,
        message: &Message,
        (log, contents): (&SessionBuilder, &Contents),
    ) -> Option<Message> {
        let object = &line.object;
        self.0 |= is_boundary(object, tag);
        if !self.0 || message.kind == EntryKind::Note || is_own(message) {
            return None;
        }
        let inner = object.object("message");
        let is_made = object.string("rowSource").as_deref() == Some("hook")
            || inner.and_then(|inner| inner.string("model")).as_deref() == Some("<synthetic>");
        let is_alike = |one: &Message| one.kind == EntryKind::Message && one.role == message.role;
        let is_same = |one: &Message| {
            is_alike(one)
                && one.parts == message.parts
                && (is_made || one.created_at == message.created_at)
                && message.created_at.is_known()
        };
        let kept = &log.messages;
        // Messages in the overflow are read if their contents are known from a hash.
        let found = |at: &usize| {
            let one = log.message(kept.len() + at)?;
            Some(one.into_owned())
        };
        let mut later = contents.with_all_of(message);
        let same = later.find_map(|at| found(&at).filter(is_same));
        if let Some(same) = same
            .as_ref()
            .or_else(|| kept.iter().rfind(|one| is_same(one)))
        {
            return Some(repeat(line, tag, same.external_id.as_deref()?));
        }
        let is_known = |part: &Part| {
            let has = |one: &Message| is_alike(one) && one.parts.iter().any(|p| is_again(part, p));
            let mut later = contents.with(message.role, part);
            later.any(|at| found(&at).is_some_and(|one| has(&one))) || kept.iter().any(has)
        };
        let is_text = || message.role == Role::User && LineKind::of(object, tag).may_begin_turn();
        if is_made && (is_text() || message.parts.iter().all(is_known)) {
            return Some(whole(line, tag));
        }
        self.0 = false;
        None
    }
}

/// Returns whether a part is an earlier part again. A compaction can shorten the content of a result.
fn is_again(part: &Part, earlier: &Part) -> bool {
    match (part, earlier) {
        (Part::ToolCall { id, .. }, Part::ToolCall { id: known, .. })
        | (Part::ToolResult { call_id: id, .. }, Part::ToolResult { call_id: known, .. }) => {
            id == known
        }
        _ => part == earlier,
    }
}
