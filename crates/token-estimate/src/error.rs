use std::fmt;

/// Error returned if an estimator or a model is not found, or an id or a table of models is malformed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    given: String,
    /// Known names, or for malformed input the reason.
    rest: Vec<String>,
}

/// Kind of an [`Error`], for matching in code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A text is not an id of the form `name@version`.
    MalformedId,
    /// This build has no estimator with the requested name or id.
    UnknownEstimator,
    /// The table of models has no row with the requested name.
    UnknownModel,
    /// A row of a table of models contradicts itself, or the text of the table is malformed.
    InvalidModel,
}

impl Error {
    /// Creates the error for a text that is not of the form `name@version`.
    pub(crate) fn malformed_id(given: &str) -> Self {
        Self::new(ErrorKind::MalformedId, given, Vec::new())
    }

    /// Creates the error for a name or id of no known estimator.
    pub(crate) fn unknown_estimator<'a>(
        given: &str,
        known_names: impl Iterator<Item = &'a str>,
    ) -> Self {
        let names = known_names.map(str::to_owned).collect();
        Self::new(ErrorKind::UnknownEstimator, given, names)
    }

    /// Creates the error for a name of no model in a table.
    pub(crate) fn unknown_model(given: &str, nearest_names: Vec<String>) -> Self {
        Self::new(ErrorKind::UnknownModel, given, nearest_names)
    }

    /// Creates the error for an invalid row, or for an invalid text of rows.
    pub(crate) fn invalid_model(given: &str, reason: String) -> Self {
        Self::new(ErrorKind::InvalidModel, given, vec![reason])
    }

    fn new(kind: ErrorKind, given: &str, rest: Vec<String>) -> Self {
        Self {
            kind,
            given: given.to_owned(),
            rest,
        }
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rest = self.rest.join(", ");
        match self.kind {
            ErrorKind::MalformedId => write!(
                f,
                "{:?} is not an estimator id: write NAME@VERSION, where NAME is made of lower-case \
                 letters, digits and hyphens and VERSION is a number from 1, as in anna@1",
                self.given
            ),
            ErrorKind::UnknownEstimator => {
                write!(
                    f,
                    "there is no estimator {:?}: choose one of {rest}",
                    self.given
                )
            }
            ErrorKind::UnknownModel => {
                write!(f, "the table of models has no {:?}: ", self.given)?;
                if !rest.is_empty() {
                    write!(f, "the nearest names are {rest}; ")?;
                }
                f.write_str(
                    "add another model with ModelTable::with, or with a TOML file and \
                     ModelTable::extended_by_toml",
                )
            }
            ErrorKind::InvalidModel => {
                write!(
                    f,
                    "the model {:?} cannot be added to the table: {rest}",
                    self.given
                )
            }
        }
    }
}

impl std::error::Error for Error {}
