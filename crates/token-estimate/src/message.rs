/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Role {
    /// Instructions.
    System,
    /// The person, or whatever stands in for one.
    User,
    /// The model.
    Assistant,
    /// The answers of tools, where a format gives them a role of their own.
    Tool,
}

/// One countable piece of a message, borrowed from whatever holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Piece<'a> {
    /// Text that is said, and the text inside a tool result.
    Text(&'a str),
    /// Text that is thought: reasoning that is sent back to the model.
    Reasoning(&'a str),
    /// A call of a tool.
    ToolCall {
        /// The tool's name.
        name: &'a str,
        /// The arguments as they are written on the wire, usually JSON.
        arguments: &'a str,
    },
    /// Opens the answer to a call. Its content follows as pieces of its own, up to the next
    /// `ToolResult` or the end of the message.
    ToolResult {
        /// The tool's name, where the format repeats it.
        name: Option<&'a str>,
    },
    /// A picture.
    Image {
        /// The length of the base64 text in bytes; 0 when the picture is given by its address.
        base64_len: usize,
    },
    /// A document.
    File {
        /// The length of the base64 text in bytes; 0 when the document is given by its address.
        base64_len: usize,
    },
    /// Anything else, as raw text.
    Other(&'a str),
}

/// A message that can be counted. Implement it for your own type: nothing is copied.
pub trait CountedMessage {
    /// Who speaks.
    fn role(&self) -> Role;

    /// Hands over every piece, in order.
    fn pieces(&self, visit: &mut dyn FnMut(Piece<'_>));
}

impl<M: CountedMessage + ?Sized> CountedMessage for &M {
    fn role(&self) -> Role {
        (**self).role()
    }

    fn pieces(&self, visit: &mut dyn FnMut(Piece<'_>)) {
        (**self).pieces(visit);
    }
}

/// A message put together from pieces that live elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct MessageParts<'a> {
    role: Role,
    pieces: &'a [Piece<'a>],
}

impl<'a> MessageParts<'a> {
    /// A message of these pieces.
    pub const fn new(role: Role, pieces: &'a [Piece<'a>]) -> Self {
        Self { role, pieces }
    }
}

impl CountedMessage for MessageParts<'_> {
    fn role(&self) -> Role {
        self.role
    }

    fn pieces(&self, visit: &mut dyn FnMut(Piece<'_>)) {
        self.pieces.iter().copied().for_each(visit);
    }
}
