//! The data that the planner keeps of a log entry.

use memory_model::{Accounting, LogEntry, Message, Seq};
use turn_map::{MessageView, PartView, Role, TrimPolicy};

use crate::lines::push_words;

/// A log entry with only the beginning of its text, which is enough for a one-line summary.
#[derive(Debug, Clone)]
pub(crate) struct LightEntry {
    pub(crate) seq: Seq,
    /// Cost of the entry, in tokens.
    pub(crate) tokens: u64,
    /// Cost of the entry with shortened tool output, in tokens.
    pub(crate) trimmed: u64,
    /// Id of the loop (run of the agent) that the message belongs to. `None` if the message names no loop.
    pub(crate) loop_id: Option<String>,
    role: Role,
    is_note: bool,
    turn: Option<u64>,
    response: Option<String>,
    text: String,
    calls: Vec<String>,
    results: Vec<String>,
}

impl LightEntry {
    pub(crate) fn new(entry: &LogEntry, trim: TrimPolicy, accounting: &dyn Accounting) -> Self {
        let message: &Message = &entry.message;
        let (mut text, mut calls, mut results) = (String::new(), Vec::new(), Vec::new());
        entry.parts(&mut |part| match part {
            PartView::Text(words) => push_words(&mut text, words),
            PartView::ToolCall { id, .. } => calls.push(id.to_owned()),
            PartView::ToolResult { call_id, .. } => results.push(call_id.to_owned()),
            _ => {}
        });
        let trimmed = match results.is_empty() {
            true => None,
            false => {
                let pointer = format!("message:{}", entry.seq);
                trim.trim(message, &pointer, accounting.estimator())
            }
        };
        Self {
            seq: entry.seq,
            tokens: entry.tokens,
            trimmed: trimmed.map_or(entry.tokens, |short| accounting.message(&short)),
            loop_id: message.turn.as_ref().map(|turn| turn.loop_id.clone()),
            role: entry.role(),
            is_note: entry.is_note(),
            turn: entry.turn(),
            response: message.response.clone(),
            text,
            calls,
            results,
        }
    }
}

impl LightEntry {
    /// Returns whether the entry is a prompt of the user: neither a note nor a tool result with the user's role.
    pub(crate) fn is_prompt(&self) -> bool {
        self.role == Role::User && !self.is_note && self.results.is_empty()
    }
}

impl MessageView for LightEntry {
    fn role(&self) -> Role {
        self.role
    }

    fn parts(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        if !self.text.is_empty() {
            visit(PartView::Text(&self.text));
        }
        for id in &self.calls {
            visit(PartView::ToolCall {
                id,
                name: "",
                arguments: "",
            });
        }
        for call_id in &self.results {
            visit(PartView::ToolResult {
                call_id,
                name: None,
                content: &[],
                is_error: false,
            });
        }
    }

    fn turn(&self) -> Option<u64> {
        self.turn
    }

    fn response(&self) -> Option<&str> {
        self.response.as_deref()
    }

    fn is_note(&self) -> bool {
        self.is_note
    }
}
