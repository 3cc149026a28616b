//! Beginning of every request of a conversation.

use memory_model::{Accounting, Part, Role};

use crate::accounting::cost;
use crate::context::{ContextMessage, MessageOrigin};

/// Texts that precede the messages of a view in every request of a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Preamble<'a> {
    /// The application's system prompt, the first message of the request; `None` for none.
    pub system: Option<&'a str>,
    /// The agent's identity, in a system message after the system prompt; `None` for none. See
    /// [`render_identity`](crate::render_identity).
    pub identity: Option<&'a str>,
    /// Cost of the definitions of tools that are sent with the request, in tokens.
    pub tools_tokens: u64,
}

impl Preamble<'_> {
    /// Returns the messages, with their costs.
    pub(crate) fn messages(&self, accounting: &dyn Accounting) -> Vec<ContextMessage> {
        let texts = [
            (self.system, MessageOrigin::System),
            (self.identity, MessageOrigin::Identity),
        ];
        let messages = texts.into_iter().filter_map(|(text, source)| {
            let parts = vec![Part::text(text?)];
            let mut message = ContextMessage::new(Role::System, source, parts);
            message.tokens = cost(accounting, &message);
            Some(message)
        });
        messages.collect()
    }

    /// Returns the cost of a request before the first message of the view, in tokens: the preamble and the overhead of
    /// a request.
    pub fn tokens(&self, accounting: &dyn Accounting) -> u64 {
        let messages = self.messages(accounting).into_iter();
        messages
            .map(|message| message.tokens)
            .chain([self.tools_tokens, accounting.estimator().request_overhead()])
            .fold(0, u64::saturating_add)
    }
}
