//! The crate's error.

use std::fmt;

/// Category of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The source could not be read.
    Io,
    /// The source has no content.
    Empty,
    /// The source is not text: it has bytes that text cannot have, and none of its lines is a JSON object.
    NotText,
    /// The source is text in an encoding other than UTF-8. The error names the encoding.
    Encoding,
    /// No format claims the source.
    UnknownFormat,
    /// The source is damaged in a way that its format cannot pass over.
    Invalid,
}

/// Error of reading a transcript. Its text names the source and says how to go ahead.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    name: String,
    message: String,
    source: Option<std::io::Error>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, name: &str) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            message: String::new(),
            source: None,
        }
    }

    pub(crate) fn encoding(name: &str, encoding: &str) -> Self {
        Self {
            message: encoding.to_owned(),
            ..Self::new(ErrorKind::Encoding, name)
        }
    }

    /// Creates an error of kind [`ErrorKind::Io`] for the source with this name.
    pub fn io(name: &str, source: std::io::Error) -> Self {
        Self {
            source: Some(source),
            ..Self::new(ErrorKind::Io, name)
        }
    }

    /// Creates an error of kind [`ErrorKind::Invalid`] for the source with this name. The message says what is wrong
    /// and what to do.
    pub fn invalid(name: &str, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::new(ErrorKind::Invalid, name)
        }
    }

    /// Returns the category of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match self.kind {
            ErrorKind::Io => write!(
                f,
                "cannot read {name}: check that it is a file and that you may read it"
            ),
            ErrorKind::Empty => write!(
                f,
                "{name} is empty: give a transcript with at least one message"
            ),
            ErrorKind::NotText => write!(
                f,
                "{name} is not text: give a transcript of one JSON object a line, unpacked"
            ),
            ErrorKind::Encoding => {
                write!(f, "{name} is {} text: convert it to UTF-8", self.message)
            }
            ErrorKind::Invalid => write!(f, "{name} cannot be read: {}", self.message),
            ErrorKind::UnknownFormat => write!(
                f,
                "{name} holds no line of a known format: give a transcript of a coding agent \
                 (Claude Code, Codex, Gemini CLI, opencode, pi, Qwen Code and others), or lines such as \
                 {{\"role\":\"user\",\"content\":\"…\"}}"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}
