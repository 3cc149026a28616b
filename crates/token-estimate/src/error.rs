use std::fmt;

/// Error returned when an estimator cannot be found or an id is malformed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    given: String,
    /// Names of this build's estimators; empty for a malformed id.
    known_names: Vec<&'static str>,
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
    /// The error for a text that is no `name@version`.
    pub(crate) fn malformed_id(given: &str) -> Self {
        Self {
            kind: ErrorKind::MalformedId,
            given: given.to_owned(),
            known_names: Vec::new(),
        }
    }

    /// The error for a name or id that none of the known estimators has.
    pub(crate) fn unknown_estimator(given: &str, known_names: Vec<&'static str>) -> Self {
        Self {
            kind: ErrorKind::UnknownEstimator,
            given: given.to_owned(),
            known_names,
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
                for (n, name) in self.known_names.iter().enumerate() {
                    write!(f, "{} {name}", if n == 0 { "" } else { "," })?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for Error {}
