//! Messages that a compaction writes again behind its boundary.

use memory_model::{EntryKind, Message, Part, Role};

use super::line::{repeat, whole};
use super::tree::{LineKind, is_boundary};
use crate::json_lines::Line;

/// Whether the lines since a compaction's boundary were all written by the compaction.
#[derive(Debug, Default)]
pub(super) struct Rewriting(bool);

impl Rewriting {
    /// Returns the note in place of the message of a line that a compaction wrote: a line that repeats one of the
    /// `earlier` messages, or text in place of older messages.
    pub(super) fn note(
        &mut self,
        line: &Line<'_>,
        tag: &str,
        message: &Message,
        earlier: &[Message],
    ) -> Option<Message> {
        let object = &line.object;
        self.0 |= is_boundary(object, tag);
        if !self.0 || message.kind == EntryKind::Note {
            return None;
        }
        let inner = object.object("message");
        let is_made = object.string("rowSource").as_deref() == Some("hook")
            || inner.and_then(|inner| inner.string("model")).as_deref() == Some("<synthetic>");
        let is_alike = |one: &&Message| one.kind == EntryKind::Message && one.role == message.role;
        let earlier = earlier.iter().rev().filter(is_alike);
        let is_same = |one: &Message| {
            one.parts == message.parts
                && (is_made || one.created_at == message.created_at)
                && message.created_at.is_known()
        };
        if let Some(same) = earlier.clone().find(|one| is_same(one)) {
            return Some(repeat(line, tag, same.external_id.as_deref()?));
        }
        let is_known = |part: &Part| {
            let mut parts = earlier.clone().flat_map(|one| &one.parts);
            parts.any(|known| is_again(part, known))
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
