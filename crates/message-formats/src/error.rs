//! The crate's error.

use std::fmt;

/// What went wrong; see [`Error::kind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The source could not be read.
    Io,
    /// The source holds nothing.
    Empty,
    /// The source is not text: no line of it is JSON, and it holds bytes that text does not.
    NotText,
    /// The source is text, but no line of it belongs to a format that can be read.
    UnknownFormat,
}

/// Why a transcript could not be read. The text names the source and says what to do.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    name: String,
    source: Option<std::io::Error>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, name: &str) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            source: None,
        }
    }

    pub(crate) fn io(name: &str, source: std::io::Error) -> Self {
        Self {
            source: Some(source),
            ..Self::new(ErrorKind::Io, name)
        }
    }

    /// What went wrong.
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
            ErrorKind::UnknownFormat => write!(
                f,
                "{name} holds no line of a known format: give a Claude Code or pi session, or \
                 lines such as {{\"role\":\"user\",\"content\":\"…\"}}"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}
