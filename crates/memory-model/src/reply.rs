//! A model's reply to a request.

use token_estimate::Usage;

use crate::message::Message;
use crate::tool::ToolCall;

/// A model's reply to one request: its messages, and the tokens that the provider reported for it.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Reply {
    /// Messages of the reply, in order.
    pub messages: Vec<Message>,
    /// Name of the model that answered, as the provider gives it; `None` if it is unknown.
    pub model: Option<String>,
    /// Tokens of the request and of the reply; `None` if the provider reported none.
    pub usage: Option<Usage>,
}

impl Reply {
    /// Returns the tool calls in the reply, in order. A reply without calls ends a turn.
    pub fn calls(&self) -> impl Iterator<Item = ToolCall<'_>> {
        self.messages.iter().flat_map(Message::tool_calls)
    }

    /// Returns the text of the reply's messages, without reasoning.
    pub fn text(&self) -> String {
        let texts = self.messages.iter().map(Message::text);
        let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
        texts.join("\n\n")
    }
}

/// Copies the reply.
impl From<&Reply> for Reply {
    fn from(reply: &Reply) -> Self {
        reply.clone()
    }
}

/// Creates a reply with one message and without usage.
impl From<Message> for Reply {
    fn from(message: Message) -> Self {
        Self::from(vec![message])
    }
}

/// Creates a reply with these messages and without usage.
impl From<Vec<Message>> for Reply {
    fn from(messages: Vec<Message>) -> Self {
        Self {
            messages,
            ..Self::default()
        }
    }
}
