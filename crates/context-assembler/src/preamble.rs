//! Texts at the beginning of every request of a conversation.

use memory_model::{Accounting, Part, Role};

use crate::accounting::cost;
use crate::context::{ContextMessage, MessageOrigin};

/// Texts at the beginning of every request of a conversation, before the messages of the view (the compacted log).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Preamble<'a> {
    /// System prompt of the application, which is the first message of the request. `None` for none.
    pub system: Option<&'a str>,
    /// Text about the agent itself, in a system message after the system prompt. `None` for none.
    /// [`render_identity`](crate::render_identity) creates this text.
    pub identity: Option<&'a str>,
    /// Cost of the tool definitions sent with the request, in tokens.
    pub tools_tokens: u64,
}

impl Preamble<'_> {
    /// Returns the messages of the preamble, with their costs.
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

    /// Returns the cost of a request without the messages of the view (the compacted log), in tokens: the preamble and
    /// the overhead of a request.
    pub fn tokens(&self, accounting: &dyn Accounting) -> u64 {
        let messages = self.messages(accounting).into_iter();
        messages
            .map(|message| message.tokens)
            .chain([self.tools_tokens, accounting.estimator().request_overhead()])
            .fold(0, u64::saturating_add)
    }
}
