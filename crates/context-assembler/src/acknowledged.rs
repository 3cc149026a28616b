//! Summaries as a user's message that an assistant acknowledges.

use memory_model::{Accounting, Part, Role};

use crate::accounting::cost;
use crate::context::{Context, ContextMessage, MessageOrigin};
use crate::degrade::total;

/// Words that begin a summary.
const MARK: &str = "[Previous conversation summary]";
/// The answer to a summary.
const REPLY: &str = "Understood. I go on from there.";

impl Context {
    /// Replaces each summary by two messages and counts the context again: a message of the user that holds the
    /// summary's text, and a message of the assistant that acknowledges it. Returns `None` if the result costs more
    /// than the budget allows.
    ///
    /// The text of a summary stays escaped, so that it cannot be taken for a message of another speaker. It no longer
    /// says how to expand the summary.
    pub fn with_acknowledged_summaries(mut self, accounting: &dyn Accounting) -> Option<Self> {
        let mut messages = Vec::with_capacity(self.messages.len());
        for message in std::mem::take(&mut self.messages) {
            let Some(text) = summary_text(&message) else {
                messages.push(message);
                continue;
            };
            for (role, text) in [
                (Role::User, format!("{MARK}\n\n{text}")),
                (Role::Assistant, REPLY.to_owned()),
            ] {
                let parts = vec![Part::text(text)];
                let mut written = ContextMessage::new(role, message.source.clone(), parts);
                written.tokens = cost(accounting, &written);
                messages.push(written);
            }
        }
        let tokens = total(&messages);
        let left = self
            .receipt
            .limit
            .saturating_sub(self.tokens + self.receipt.tools_tokens);
        (tokens.saturating_sub(self.tokens) <= left).then_some(Self {
            tokens,
            messages,
            ..self
        })
    }
}

/// The text of a summary in XML, between its tags.
fn summary_text(message: &ContextMessage) -> Option<&str> {
    let (MessageOrigin::Summary { .. }, [Part::Text { text }]) = (&message.source, &*message.parts)
    else {
        return None;
    };
    let inside = match text.split_once("<content>\n") {
        Some((_, inside)) => inside.rsplit_once("</content>")?.0,
        None => text.split_once(">\n")?.1.rsplit_once("\n</summary>")?.0,
    };
    Some(inside.trim_end_matches('\n'))
}
