//! Cursors that are bound to a conversation and a question.

use std::fmt::Display;

use memory_model::{FieldHasher, SessionKey};

use crate::error::{Error, Result};
use crate::text::short;

/// Number of hexadecimal digits of the hash in a cursor.
const TAG_DIGITS: usize = 8;

/// Binding of cursors to a conversation and a question (a tool and its arguments). A cursor consists of a position,
/// `@`, and the first digits of a hash of the conversation's key and the question, such as `x12@01234567`.
#[derive(Debug)]
pub(crate) struct Binding {
    tag: String,
}

impl Binding {
    /// Creates the binding for a session key and a question. The question is the tool and the arguments on which the
    /// answer depends.
    pub(crate) fn new(session: &SessionKey, question: &str) -> Self {
        let mut hasher = FieldHasher::new("agent-memory cursor 1");
        hasher.bytes(session.as_str().as_bytes());
        hasher.bytes(question.as_bytes());
        let hash = hasher.finish().to_string();
        Self {
            tag: hash.chars().take(TAG_DIGITS).collect(),
        }
    }

    /// Returns the cursor for a position.
    pub(crate) fn cursor(&self, position: &impl Display) -> String {
        format!("{position}@{}", self.tag)
    }

    /// Returns the position in a cursor.
    ///
    /// # Errors
    /// `Invalid` if the text is not a cursor, or if it belongs to another conversation or question.
    pub(crate) fn position<'a>(&self, cursor: &'a str) -> Result<&'a str> {
        match cursor.trim().rsplit_once('@') {
            Some((position, tag)) if tag == self.tag => Ok(position),
            Some(_) => Err(foreign(cursor)),
            None => Err(Error::invalid(format!(
                "{} is not a cursor: pass one from an earlier answer",
                short(cursor)
            ))),
        }
    }
}

/// Returns the error for a cursor that belongs to another question.
pub(crate) fn foreign(cursor: &str) -> Error {
    Error::invalid(format!(
        "the cursor {} belongs to another call: pass it in the session and with the arguments of \
         the answer that gave it, or start without a cursor",
        short(cursor)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_only_accepted_for_its_question() {
        let binding =
            |session: &str, question: &str| Binding::new(&SessionKey::new(session), question);
        let own = binding("a", "grep x both");
        let cursor = own.cursor(&"m7");
        assert_eq!(own.position(&format!(" {cursor} ")).unwrap(), "m7");
        for other in [
            binding("b", "grep x both"),
            binding("a", "grep y both"),
            binding("a", "grep x messages"),
            binding("a", "expand x both"),
        ] {
            let error = other.position(&cursor).unwrap_err().to_string();
            assert!(error.contains(&cursor) && error.contains("another call"));
        }
        assert!(own.position("m7").is_err());
    }
}
