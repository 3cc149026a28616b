//! What the crate needs of a message type, and what it reads of messages.

use std::fmt::Debug;

use memory_model::Message;
use turn_map::{EditableMessage, MessageView, PartView, Role};

/// A message type that blocks can be made of.
///
/// The crate reads messages through [`MessageView`], shortens tool output through
/// [`EditableMessage`], and adds messages of its own, which speak as the user.
pub trait LoopMessage: EditableMessage + Clone + Debug + Send + Sync + 'static {
    /// Returns a user's message of one text, without a turn.
    fn user(text: String) -> Self;
}

impl LoopMessage for Message {
    fn user(text: String) -> Self {
        Message::user(text)
    }
}

/// What a one-liner and the planner look at in a message.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Text parts, joined by spaces, white space collapsed, at most as long as was asked for.
    pub(crate) text: String,
    /// Number of tool calls.
    pub(crate) calls: usize,
    /// Number of tool results.
    pub(crate) results: usize,
}

/// Reads a message; the text is cut to `max_bytes`.
pub(crate) fn facts(message: &impl MessageView, max_bytes: usize) -> Facts {
    let mut facts = Facts::default();
    message.parts(&mut |part| match part {
        PartView::Text(text) => push_text(&mut facts.text, text, max_bytes),
        PartView::ToolCall { .. } => facts.calls += 1,
        PartView::ToolResult { .. } => facts.results += 1,
        _ => {}
    });
    facts
}

/// Adds the words of `text` as far as they may belong to the first `max_bytes`; one byte more tells
/// that something was left out.
pub(crate) fn push_text(line: &mut String, text: &str, max_bytes: usize) {
    for word in text.split_whitespace() {
        if line.len() > max_bytes {
            return;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
}

/// Whether a user speaks: no note, and no tool result in the user's name.
pub(crate) fn user_speaks(message: &impl MessageView) -> bool {
    message.role() == Role::User && !message.is_note() && facts(message, 0).results == 0
}
