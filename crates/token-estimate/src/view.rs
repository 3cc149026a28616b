//! The borrowed view of a message, as input of estimators and of crates that group, shorten and render messages.

use std::borrow::Cow;
use std::fmt;

use crate::media;

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Role {
    /// The developer of the application or the provider: the messages are instructions to the model.
    System,
    /// The user of the application.
    User,
    /// The model.
    Assistant,
    /// A tool: the messages are tool results. Used by formats with a separate role for them.
    Tool,
}

impl Role {
    /// Returns the role's name in lower case, as transcripts and providers write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }

    /// Returns the role with this lower-case name; `None` for any other text.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::System, Self::User, Self::Assistant, Self::Tool]
            .into_iter()
            .find(|role| role.as_str() == name)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One part of a message, borrowed from the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartView<'a> {
    /// A text of the message or of a tool result.
    Text(&'a str),
    /// Reasoning of the model that is sent back to the model.
    Reasoning(&'a str),
    /// A call of a tool, made by the model.
    ToolCall {
        /// Id of the call, which the result repeats.
        id: &'a str,
        /// Name of the called tool.
        name: &'a str,
        /// Arguments of the call as the model wrote them, usually JSON text.
        arguments: &'a str,
    },
    /// Result of a tool call.
    ToolResult {
        /// Id of the call that the result answers.
        call_id: &'a str,
        /// Name of the tool; `None` if the tool result does not contain the name.
        name: Option<&'a str>,
        /// Content of the tool result. Nested results come last: each is a `ToolResult` without content, followed by
        /// its parts.
        content: &'a [PartView<'a>],
        /// Whether the tool call failed.
        is_error: bool,
    },
    /// An image. Only its size is known.
    Image {
        /// Length of the image's base64 text, in bytes. 0 for an image given by a URL.
        base64_len: usize,
    },
    /// A document, a sound or another file.
    File {
        /// Base64 text of the file, or its data URL. Empty for a file given by another URL.
        data: &'a str,
    },
    /// A part of any other kind, as raw JSON text.
    Other(&'a str),
}

impl<'a> PartView<'a> {
    /// Returns the text of the part. For a result, returns the texts and raw parts of the content, joined by newlines,
    /// without nested results. Empty for calls, images and files.
    pub fn text(&self) -> Cow<'a, str> {
        match *self {
            Self::Text(text) | Self::Reasoning(text) | Self::Other(text) => Cow::Borrowed(text),
            Self::ToolResult { content, .. } => {
                let own = content
                    .iter()
                    .take_while(|part| !matches!(part, PartView::ToolResult { .. }));
                let texts: Vec<&str> = own
                    .filter_map(|part| match *part {
                        PartView::Text(text) | PartView::Other(text) => Some(text),
                        _ => None,
                    })
                    .collect();
                match texts.as_slice() {
                    [] => Cow::Borrowed(""),
                    [text] => Cow::Borrowed(text),
                    _ => Cow::Owned(texts.join("\n")),
                }
            }
            Self::ToolCall { .. } | Self::Image { .. } | Self::File { .. } => Cow::Borrowed(""),
        }
    }

    /// Calls `visit` with the part, then with every part of a result's content. The flag is true for parts inside of a
    /// result.
    pub(crate) fn each(&self, visit: &mut dyn FnMut(&PartView<'_>, bool)) {
        self.each_within(false, visit);
    }

    fn each_within(&self, in_result: bool, visit: &mut dyn FnMut(&PartView<'_>, bool)) {
        visit(self, in_result);
        if let Self::ToolResult { content, .. } = self {
            for part in *content {
                part.each_within(true, visit);
            }
        }
    }

    /// Calls `add` with the texts of the part that are counted, and returns the cost of the binary data in them, in
    /// tokens. Tool results, images and files have no texts and other rules.
    pub(crate) fn counted(&self, add: &mut dyn FnMut(&str)) -> u64 {
        match *self {
            Self::Text(text) => media::text(text, add),
            Self::Other(json) => media::json(json, add),
            Self::Reasoning(text) => media::reasoning(text, add),
            Self::ToolCall {
                name, arguments, ..
            } => {
                add(name);
                add(arguments);
                0
            }
            Self::ToolResult { .. } | Self::Image { .. } | Self::File { .. } => 0,
        }
    }
}

/// A borrowed view of a message. Implement this trait for your own message type. No content is copied.
///
/// `token-estimate` counts the tokens of messages, and `turn-map` groups, cuts, shortens and repairs lists of them. If
/// a format stores a model response as several messages, return the same [`response`](Self::response) id for each of
/// them.
pub trait MessageView {
    /// Returns the author of the message.
    fn role(&self) -> Role;

    /// Calls `visit` with every part, in order.
    fn parts(&self, visit: &mut dyn FnMut(PartView<'_>));

    /// Returns the index of the turn that contains the message. `None` if the format does not number turns.
    fn turn(&self) -> Option<u64> {
        None
    }

    /// Returns the id of the model response that the message is a part of. `None` without an id: each assistant message
    /// is then a separate response.
    fn response(&self) -> Option<&str> {
        None
    }

    /// Returns whether the message is a note in the log, such as a model change or a label. A note is never sent to a
    /// model. It costs 0 tokens, and its calls and results are ignored.
    fn is_note(&self) -> bool {
        false
    }
}

impl<M: MessageView + ?Sized> MessageView for &M {
    fn role(&self) -> Role {
        (**self).role()
    }

    fn parts(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        (**self).parts(visit);
    }

    fn turn(&self) -> Option<u64> {
        (**self).turn()
    }

    fn response(&self) -> Option<&str> {
        (**self).response()
    }

    fn is_note(&self) -> bool {
        (**self).is_note()
    }
}

/// A message with borrowed parts.
#[derive(Debug, Clone, Copy)]
pub struct MessageParts<'a> {
    role: Role,
    parts: &'a [PartView<'a>],
}

impl<'a> MessageParts<'a> {
    /// Creates a message from its role and parts.
    pub const fn new(role: Role, parts: &'a [PartView<'a>]) -> Self {
        Self { role, parts }
    }
}

impl MessageView for MessageParts<'_> {
    fn role(&self) -> Role {
        self.role
    }

    fn parts(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        self.parts.iter().copied().for_each(visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_parse_from_their_names() {
        for role in [Role::System, Role::User, Role::Assistant, Role::Tool] {
            assert_eq!(Role::parse(role.as_str()), Some(role));
            assert_eq!(role.to_string(), role.as_str());
        }
        assert_eq!(Role::parse("model"), None);
    }

    #[test]
    fn result_text_joins_own_text_and_raw_parts() {
        let nested = PartView::ToolResult {
            call_id: "y",
            name: None,
            content: &[],
            is_error: false,
        };
        let content = [
            PartView::Text("a"),
            PartView::Image { base64_len: 4 },
            PartView::Other("b"),
            nested,
            PartView::Text("of the nested result"),
        ];
        let result = |content| PartView::ToolResult {
            call_id: "x",
            name: None,
            content,
            is_error: false,
        };
        assert_eq!(result(&content).text(), "a\nb");
        assert_eq!(result(&content[..1]).text(), "a");
        assert_eq!(result(&[]).text(), "");
        let mut inside = Vec::new();
        result(&content).each(&mut |_, in_result| inside.push(in_result));
        assert_eq!(inside, [false, true, true, true, true, true]);
    }
}
