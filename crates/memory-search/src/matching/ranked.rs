//! Cursors of ranked answers. The order of ranked hits depends on the whole conversation.

use memory_model::Seq;

use crate::error::{Error, ErrorKind, Result};

/// The part of a conversation that a ranking covers.
///
/// A cursor contains this state. All pages of an answer therefore come from the same ranking, even if the conversation
/// grows between two pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RankedUpTo {
    /// Position of the first ranked message. This is not the first position of the log if the ranking continues one
    /// that was stopped.
    pub first: Seq,
    /// Position of the last ranked message.
    pub head: Seq,
    /// Number of ranked summaries, counted in the order of their creation.
    pub summaries: usize,
    /// Position of the last message with a vector that is used. `None` if the ranking uses only words.
    pub vectors: Option<Seq>,
    /// Whether the search was stopped before it read everything. The messages after `head` and all summaries are then
    /// ranked separately, and their hits follow.
    pub stopped: bool,
}

/// Position of a page in a ranked answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RankedCursor {
    /// The part of the conversation that the ranking covers.
    pub state: RankedUpTo,
    /// Number of hits before this page.
    pub begin: usize,
}

impl RankedCursor {
    /// Returns the cursor: `r`, the position of the last ranked message, the number of summaries, the number of hits
    /// before the page and, if vectors are used, the position of the last message with a vector. The cursor of a
    /// stopped ranking begins with `w` and the position of the first message. The cursor of the ranking after it begins
    /// with `e` and the position of the first message. In that cursor, the position of the last message is 0 until the
    /// messages are read.
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

    /// Returns the cursor of the next page in a ranking with `found` hits. After the last page of a stopped ranking,
    /// returns the cursor of the ranking of the remaining messages. `None` if no page follows.
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

    /// Returns whether the ranking was already made for an earlier page. All its pages cover the same messages.
    pub(crate) fn is_read(&self) -> bool {
        self.state.head > Seq::NONE
    }

    /// Parses a cursor.
    ///
    /// # Errors
    /// `Invalid` if the text was not returned by [`RankedCursor::to_cursor`].
    pub(crate) fn from_cursor(cursor: &str) -> Result<Self> {
        read_cursor(cursor).ok_or_else(|| {
            let message = format!(
                "{cursor:?} is not a cursor of a ranked answer: pass one that a search returned"
            );
            Error::new(ErrorKind::Invalid, message)
        })
    }
}

/// Parses the text that [`RankedCursor::to_cursor`] returns.
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
