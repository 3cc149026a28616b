//! Helpers that read the calls, the results and the author of a message.

use token_estimate::{MessageView, PartView, Role};

/// Calls `visit` with the id of every tool call in the message, in order.
pub(crate) fn calls(message: &impl MessageView, visit: &mut dyn FnMut(&str)) {
    message.parts(&mut |part| {
        if let PartView::ToolCall { id, .. } = part {
            visit(id);
        }
    });
}

/// Calls `visit` with the call id of every tool result in the message, in order.
pub(crate) fn results(message: &impl MessageView, visit: &mut dyn FnMut(&str)) {
    message.parts(&mut |part| {
        if let PartView::ToolResult { call_id, .. } = part {
            visit(call_id);
        }
    });
}

pub(crate) fn has_calls(message: &impl MessageView) -> bool {
    let mut any = false;
    calls(message, &mut |_| any = true);
    any
}

/// Returns whether the message was written by the user: a user message that is no note and has no tool results.
pub(crate) fn user_speaks(message: &impl MessageView) -> bool {
    let mut any_result = false;
    results(message, &mut |_| any_result = true);
    message.role() == Role::User && !message.is_note() && !any_result
}
