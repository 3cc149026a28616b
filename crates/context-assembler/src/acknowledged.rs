//! Shows summaries as user messages, each acknowledged by an assistant message.

use memory_model::{Accounting, Part, Role};

use crate::accounting::cost;
use crate::context::{Context, ContextMessage, MessageOrigin};
use crate::degrade::total;

/// Beginning of a summary's text.
const MARK: &str = "[Previous conversation summary]";
/// Text of the assistant message after a summary.
const REPLY: &str = "Understood. I go on from there.";

impl Context {
    /// Replaces each summary by two messages: a message of the user with the summary's text, and a message of the
    /// assistant that acknowledges it. Then counts the context again. Returns `None` if the result costs more than the
    /// budget allows.
    ///
    /// The text of a summary stays escaped, so that it cannot look like a message of another speaker. The result does
    /// not contain the instruction for expanding the summary.
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

/// Returns the text of a summary without its XML tags. `None` if the message is not a summary in XML.
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
