//! Editing and trimming of [`memory_model::Message`]s.

use memory_model::{Message, Part, ResultContent, Role};
use token_estimate::TokenEstimator;

use crate::{EditableMessage, TrimPolicy, apply};

impl EditableMessage for Message {
    type Part = Part;

    fn take_parts(&mut self) -> Vec<Part> {
        std::mem::take(&mut self.parts)
    }

    fn put_parts(&mut self, parts: Vec<Part>) {
        self.parts = parts;
    }

    fn set_role(&mut self, role: Role) {
        self.role = role;
    }

    fn results_behind(&self, parts: Vec<Part>) -> Vec<Self> {
        vec![Message::new(Role::Tool, parts).with_created_at(self.created_at)]
    }

    fn result_part(call_id: String, text: String) -> Part {
        Part::ToolResult {
            call_id,
            content: ResultContent::Text(text),
            is_error: None,
        }
    }

    fn set_text(part: &mut Part, text: String) {
        match part {
            Part::Text { text: old } => *old = text,
            Part::ToolResult {
                content: ResultContent::Text(old),
                ..
            } => *old = text,
            Part::ToolResult {
                content: ResultContent::Parts(parts),
                ..
            } => {
                // One text replaces all parts that `ResultContent::text` reads, at the position of the first one.
                let is_text =
                    |part: &Part| matches!(part, Part::Text { .. } | Part::Unknown { .. });
                let first = parts.iter().position(is_text).unwrap_or(parts.len());
                parts.retain(|part| !is_text(part));
                parts.insert(first.min(parts.len()), Part::Text { text });
            }
            _ => {}
        }
    }

    fn set_content(part: &mut Part, text: String) {
        if let Part::ToolResult { content, .. } = part {
            *content = ResultContent::Text(text);
        }
    }

    fn set_id(part: &mut Part, id: String) {
        match part {
            Part::ToolCall { id: old, .. } | Part::ToolResult { call_id: old, .. } => *old = id,
            _ => {}
        }
    }

    fn result_to_text(part: Part, heading: String) -> Vec<Part> {
        match part {
            Part::ToolResult {
                content: ResultContent::Text(text),
                ..
            } => vec![Part::text(format!("{heading}\n{text}"))],
            Part::ToolResult {
                content: ResultContent::Parts(parts),
                ..
            } => {
                let parts = parts.into_iter().map(|part| match part {
                    Part::ToolCall { .. } | Part::ToolResult { .. } => Part::text("[left out]"),
                    part => part,
                });
                std::iter::once(Part::text(heading)).chain(parts).collect()
            }
            part => vec![Part::text(heading), part],
        }
    }
}

impl TrimPolicy {
    /// Returns the message with shortened tool results or texts. `None` if the message would not change or would cost
    /// more.
    ///
    /// `pointer` names the message for a tool that can show it in full, such as `message:7`. The marker of omitted text
    /// contains the pointer unless it is empty.
    pub fn trim(
        &self,
        message: &Message,
        pointer: &str,
        estimator: &dyn TokenEstimator,
    ) -> Option<Message> {
        let edits = self.edits(0, message, pointer, estimator);
        if edits.is_empty() {
            return None;
        }
        let trimmed = apply(vec![message.clone()], &edits).pop()?;
        (estimator.message(&trimmed) <= estimator.message(message)).then_some(trimmed)
    }
}
