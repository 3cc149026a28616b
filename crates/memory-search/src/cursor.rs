//! The cursor of an incomplete answer.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The place where an incomplete answer stopped.
///
/// Its text belongs to the search that returned it. Pass it back with the same query; only the
/// limit may change.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(String);

impl Cursor {
    /// Wraps the text of a cursor, as a search made it or as a caller kept it.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The cursor's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for Cursor {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Cursor {
    fn from(text: String) -> Self {
        Self(text)
    }
}
