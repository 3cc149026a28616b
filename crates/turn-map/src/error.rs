use std::fmt;

/// Why a policy's id could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    given: String,
    known: &'static [&'static str],
}

/// The meaning of an [`Error`], for code that has to decide.
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

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ErrorKind::MalformedId => {
                write!(f, "{:?} is not a policy's id: write ", self.given)?;
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
