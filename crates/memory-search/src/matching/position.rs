//! Cursors of searches with hits in the order of the log.

use memory_model::{Seq, SummaryId};

use crate::error::{Error, ErrorKind, Result};
use crate::hits::HitTarget;

/// Message or summary that a search found. A cursor contains the position of the last hit of an answer, and the next
/// answer continues with the hit after it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Position {
    /// A message.
    Message(Seq),
    /// A summary.
    Summary(SummaryId),
}

impl Position {
    /// Returns the position of a hit.
    pub(crate) fn of(target: &HitTarget) -> Self {
        match target {
            HitTarget::Message { seq, .. } => Position::Message(*seq),
            HitTarget::Summary { id, .. } => Position::Summary(id.clone()),
        }
    }

    /// Returns the cursor of this position: `m` and the position of the message, or `s` and the id of the summary.
    pub(crate) fn to_cursor(&self) -> String {
        match self {
            Position::Message(seq) => format!("m{seq}"),
            Position::Summary(id) => format!("s{id}"),
        }
    }

    /// Parses a cursor.
    ///
    /// # Errors
    /// `Invalid` if the text was not returned by [`Position::to_cursor`].
    pub(crate) fn from_cursor(cursor: &str) -> Result<Self> {
        if let Some(seq) = cursor
            .strip_prefix('m')
            .and_then(|digits| digits.parse().ok())
        {
            return Ok(Position::Message(Seq(seq)));
        }
        match cursor.strip_prefix('s') {
            Some(id) if id.starts_with("sum_") => Ok(Position::Summary(SummaryId::new(id))),
            _ => Err(Error::new(
                ErrorKind::Invalid,
                format!("{cursor:?} is not a search cursor: pass one that a search returned"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_read_back() {
        for position in [
            Position::Message(Seq(7)),
            Position::Summary("sum_ab".into()),
        ] {
            let cursor = position.to_cursor();
            assert_eq!(Position::from_cursor(&cursor).unwrap(), position);
        }
        for text in ["x7", "", "m", "m-1", "s", "s7", "m4294967296"] {
            let error = Position::from_cursor(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{text:?}");
        }
    }
}
