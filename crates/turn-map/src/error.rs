use std::fmt;

/// Error returned when the id of a policy cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    given: String,
    known: &'static [&'static str],
}

/// Kind of an [`Error`], for matching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text is not of the form `name/parameters@version`, or the parameters are not those of the
    /// policy.
    MalformedId,
    /// No policy of this build has that name and version.
    UnknownPolicy,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, given: &str, known: &'static [&'static str]) -> Self {
        Self {
            kind,
            given: given.to_owned(),
            known,
        }
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ErrorKind::MalformedId => {
                write!(f, "{:?} is not the id of a policy: write ", self.given)?;
            }
            ErrorKind::UnknownPolicy => {
                write!(f, "this build has no policy {:?}: choose ", self.given)?;
            }
        }
        for (n, name) in self.known.iter().enumerate() {
            write!(f, "{}{name}", if n == 0 { "" } else { " or " })?;
        }
        write!(f, ", with numbers for the words in capitals")
    }
}

impl std::error::Error for Error {}
