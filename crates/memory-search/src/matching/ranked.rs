//! Answers of queries that rank: the hits depend on the whole conversation.

use memory_model::Seq;

use crate::error::{Error, ErrorKind, Result};

/// The state of a conversation that a ranking is made of.
///
/// A cursor names it, so that all pages of an answer come from one ranking, however the conversation
/// grows between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RankedUpTo {
    /// Position of the first ranked message. It is not the first of the log if the ranking continues one that was
    /// stopped.
    pub first: Seq,
    /// Position of the last ranked message.
    pub head: Seq,
    /// Number of ranked summaries: the first ones in the order in which they were made.
    pub summaries: usize,
    /// Position of the last message with a vector that is used; `None` if the ranking uses words alone.
    pub vectors: Option<Seq>,
    /// Whether the search was stopped before it read everything. The messages after `head` and all summaries are then
    /// ranked separately, and their hits follow.
    pub stopped: bool,
}

/// Position of a page in a ranked answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RankedCursor {
    /// The messages and summaries that were ranked.
    pub state: RankedUpTo,
    /// Number of hits before the page that the cursor leads to.
    pub begin: usize,
}

impl RankedCursor {
    /// Returns the cursor: `r`, the head, the number of summaries, the number of hits before the page and, if vectors
    /// count, the last message with a vector that counts. The cursor of a stopped ranking begins with `w` and the first
    /// message. The cursor of the last ranking behind it begins with `e` and the first message; its head is 0 until it
    /// is read.
    pub(crate) fn to_cursor(self) -> String {
        let RankedUpTo {
            first,
            head,
            summaries,
            vectors,
            stopped,
        } = self.state;
        let kind = match (stopped, first > Seq::FIRST) {
            (true, _) => format!("w{first}-"),
            (false, true) => format!("e{first}-"),
            (false, false) => "r".to_owned(),
        };
        let vectors = vectors.map_or_else(String::new, |last| format!(".{}", last.0));
        format!("{kind}{}.{summaries}.{}{vectors}", head.0, self.begin)
    }

    /// Returns the cursor of the next page in a ranking of `found` hits, or of the messages behind it if it was
    /// stopped; `None` if no page follows.
    pub(crate) fn behind(self, found: usize) -> Option<String> {
        if self.begin < found {
            return Some(self.to_cursor());
        }
        let next = RankedUpTo {
            first: self.state.head.next(),
            head: Seq::NONE,
            summaries: 0,
            vectors: None,
            stopped: false,
        };
        let next = Self {
            state: next,
            begin: 0,
        };
        self.state.stopped.then(|| next.to_cursor())
    }

    /// Whether the ranking was made before, so that its pages are of the same messages.
    pub(crate) fn is_read(&self) -> bool {
        self.state.head > Seq::NONE
    }

    /// Reads a cursor.
    ///
    /// # Errors
    /// `Invalid` when [`RankedCursor::to_cursor`] did not make it.
    pub(crate) fn from_cursor(cursor: &str) -> Result<Self> {
        read_cursor(cursor).ok_or_else(|| {
            let message = format!(
                "{cursor:?} is not a cursor of a ranked answer: pass one that a search returned"
            );
            Error::new(ErrorKind::Invalid, message)
        })
    }
}

/// Parses the text of [`RankedCursor::to_cursor`].
fn read_cursor(text: &str) -> Option<RankedCursor> {
    let (first, numbers) = match text.split_at_checked(1)? {
        ("r", numbers) => (Seq::FIRST, numbers),
        ("w" | "e", rest) => {
            let (first, numbers) = rest.split_once('-')?;
            (Seq(first.parse().ok()?), numbers)
        }
        _ => return None,
    };
    let numbers: Option<Vec<u32>> = numbers.split('.').map(|one| one.parse().ok()).collect();
    match numbers.as_deref()? {
        [head, summaries, begin, vectors @ ..] if vectors.len() <= 1 => Some(RankedCursor {
            state: RankedUpTo {
                first,
                head: Seq(*head),
                summaries: *summaries as usize,
                vectors: vectors.first().map(|last| Seq(*last)),
                stopped: text.starts_with('w'),
            },
            begin: *begin as usize,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_read_back() {
        for text in [
            "r12.3.20",
            "r12.3.20.9",
            "w1-40.0.20",
            "e41-0.0.0",
            "e41-90.2.5.7",
        ] {
            let cursor = RankedCursor::from_cursor(text).unwrap();
            assert_eq!(cursor.to_cursor(), text);
        }
        for text in [
            "",
            "r",
            "r1.2",
            "w1.0.20",
            "e-1.0.0",
            "é",
            "r1.2.3.4.5",
            "x1.2.3",
        ] {
            let error = RankedCursor::from_cursor(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{text:?}");
        }
    }
}
