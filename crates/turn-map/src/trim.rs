use std::fmt;
use std::str::FromStr;

use token_estimate::{MessageView, PartView, TokenEstimator};

use crate::Edit;
use crate::clip::{clip_chars, clip_lines, clip_tokens, is_clipped, stub_text};

/// Rule that shortens the texts and tool results of a single message, independently of other messages.
///
/// The id of a policy, such as `tool-output-lines/50@1`, may be stored: an id always means the same rule, and a changed
/// rule gets a new version. No policy makes a message larger. Calls are never changed, so results still match them.
/// Applying a policy a second time changes nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TrimPolicy {
    /// Keeps the first and the last lines of a long tool result. Id: `tool-output-lines/50@1`.
    ToolOutputLines {
        /// Maximum number of lines of a tool result.
        lines: usize,
    },
    /// Keeps the beginning and the end of a tool result. Id: `tool-output-tokens/2000@1`.
    ToolOutputTokens {
        /// Maximum cost of a tool result, in tokens. May be exceeded if it is too small for the marker of the omitted
        /// text.
        tokens: u64,
    },
    /// Keeps the first and the last characters of a long result. Omits a result of medium length as a whole, and keeps
    /// a short one. Id: `tool-output-chars/200-2000-200@1`.
    ToolOutputChars {
        /// Maximum length of a tool result that is kept unchanged, in characters.
        untouched: usize,
        /// Maximum length of a tool result that is omitted as a whole, in characters. Of longer results, both ends are
        /// shown.
        left_out: usize,
        /// Number of characters shown from the beginning of a long tool result, and also from its end.
        shown: usize,
    },
    /// Omits tool results that cost at least `tokens`. Id: `tool-output-stub/50@1`.
    ToolOutputStub {
        /// Minimum cost of a tool result to be omitted, in tokens.
        tokens: u64,
    },
    /// Keeps the beginning and the end of a text or a tool result. Id: `block/8000@1`.
    Block {
        /// Maximum cost of a text or a tool result, in tokens. May be exceeded if it is too small for the marker of the
        /// omitted text.
        tokens: u64,
    },
}

const NAMES: [&str; 5] = [
    "tool-output-lines/LINES@1",
    "tool-output-tokens/TOKENS@1",
    "tool-output-chars/UNTOUCHED-LEFTOUT-SHOWN@1",
    "tool-output-stub/TOKENS@1",
    "block/TOKENS@1",
];

impl TrimPolicy {
    /// Returns the shortened text of a tool result. `None` if the policy does not change the text.
    ///
    /// `pointer` names the message for a tool that can show it in full, such as `message:7`. The marker of the omitted
    /// text contains the pointer unless it is empty.
    pub fn trim_result(
        &self,
        text: &str,
        pointer: &str,
        estimator: &dyn TokenEstimator,
    ) -> Option<String> {
        match *self {
            Self::ToolOutputLines { lines } => clip_lines(text, lines, pointer, estimator),
            Self::ToolOutputTokens { tokens } | Self::Block { tokens } => {
                clip_tokens(text, tokens, pointer, estimator)
            }
            Self::ToolOutputChars {
                untouched,
                left_out,
                shown,
            } => {
                let longer = |chars| text.chars().nth(chars).is_some();
                if !longer(untouched) || is_clipped(text, shown) {
                    None
                } else if longer(left_out) {
                    clip_chars(text, shown, shown, pointer, estimator)
                } else {
                    stub_text(text, pointer, estimator)
                }
            }
            Self::ToolOutputStub { tokens } => (estimator.text(text) >= tokens)
                .then(|| stub_text(text, pointer, estimator))
                .flatten(),
        }
    }

    /// Returns the shortened text of a text part. `None` if the policy does not change the text. Only
    /// [`Block`](Self::Block) shortens text parts. `pointer` is the same as in [`trim_result`](Self::trim_result).
    pub fn trim_text(
        &self,
        text: &str,
        pointer: &str,
        estimator: &dyn TokenEstimator,
    ) -> Option<String> {
        match *self {
            Self::Block { tokens } => clip_tokens(text, tokens, pointer, estimator),
            _ => None,
        }
    }

    /// Returns the edits that shorten a message. `position` is the position of the message in its list. `pointer` is
    /// the same as in [`trim_result`](Self::trim_result). Returns no edits for a note.
    pub fn edits(
        &self,
        position: usize,
        message: &impl MessageView,
        pointer: &str,
        estimator: &dyn TokenEstimator,
    ) -> Vec<Edit> {
        let mut edits = Vec::new();
        if message.is_note() {
            return edits;
        }
        let mut part = 0;
        message.parts(&mut |view| {
            let text = match view {
                PartView::Text(text) => self.trim_text(text, pointer, estimator),
                PartView::ToolResult { .. } => self.trim_result(&view.text(), pointer, estimator),
                _ => None,
            };
            edits.extend(text.map(|text| Edit::SetText {
                message: position,
                part,
                text,
            }));
            part += 1;
        });
        edits
    }
}

impl fmt::Display for TrimPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ToolOutputLines { lines } => write!(f, "tool-output-lines/{lines}@1"),
            Self::ToolOutputTokens { tokens } => write!(f, "tool-output-tokens/{tokens}@1"),
            Self::ToolOutputChars {
                untouched,
                left_out,
                shown,
            } => write!(f, "tool-output-chars/{untouched}-{left_out}-{shown}@1"),
            Self::ToolOutputStub { tokens } => write!(f, "tool-output-stub/{tokens}@1"),
            Self::Block { tokens } => write!(f, "block/{tokens}@1"),
        }
    }
}

/// Error returned if a text is not the id of a [`TrimPolicy`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownTrimPolicy(String);

impl fmt::Display for UnknownTrimPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (given, known) = (&self.0, NAMES.join(" or "));
        write!(
            f,
            "this build has no trim policy {given:?}: choose {known}, with numbers for the words in capitals"
        )
    }
}

impl std::error::Error for UnknownTrimPolicy {}

impl FromStr for TrimPolicy {
    type Err = UnknownTrimPolicy;

    fn from_str(id: &str) -> Result<Self, UnknownTrimPolicy> {
        let parsed = || {
            let (name, numbers) = id.strip_suffix("@1")?.split_once('/')?;
            let numbers: Result<Vec<u64>, _> = numbers.split('-').map(str::parse).collect();
            let size = |number: u64| usize::try_from(number).ok();
            let policy = match (name, numbers.ok()?.as_slice()) {
                ("tool-output-lines", [lines]) => Self::ToolOutputLines {
                    lines: size(*lines)?,
                },
                ("tool-output-tokens", [tokens]) => Self::ToolOutputTokens { tokens: *tokens },
                ("tool-output-chars", [untouched, left_out, shown]) => Self::ToolOutputChars {
                    untouched: size(*untouched)?,
                    left_out: size(*left_out)?,
                    shown: size(*shown)?,
                },
                ("tool-output-stub", [tokens]) => Self::ToolOutputStub { tokens: *tokens },
                ("block", [tokens]) => Self::Block { tokens: *tokens },
                _ => return None,
            };
            // Equal policies must have equal ids, so a number has only one accepted spelling.
            (policy.to_string() == id).then_some(policy)
        };
        parsed().ok_or_else(|| UnknownTrimPolicy(id.to_owned()))
    }
}
