use std::fmt;

/// Error returned when an estimator cannot be found or an id is malformed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    given: String,
}

/// Kind of an [`Error`], for matching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text is not of the form `name@version`.
    MalformedId,
    /// No estimator in this build has that name or id.
    UnknownEstimator,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, given: &str) -> Self {
        Self {
            kind,
            given: given.to_owned(),
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
            ErrorKind::MalformedId => write!(
                f,
                "{:?} is not an estimator id: write NAME@VERSION, where NAME is made of lower-case \
                 letters, digits and hyphens and VERSION is a number from 1, as in anna@1",
                self.given
            ),
            ErrorKind::UnknownEstimator => {
                write!(f, "there is no estimator {:?}: choose one of", self.given)?;
                for (n, name) in crate::estimator_names().enumerate() {
                    write!(f, "{} {name}", if n == 0 { "" } else { "," })?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for Error {}
