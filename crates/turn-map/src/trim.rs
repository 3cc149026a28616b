use std::fmt;
use std::str::FromStr;

use token_estimate::{MessageView, PartView, TokenEstimator};

use crate::clip::{clip_chars, clip_lines, clip_tokens, is_clipped, stub_text};
use crate::id::{Id, write_id};
use crate::{Edit, Error};

/// How a message is shortened: a pure function of the message, the estimator and the pointer.
///
/// Its text, as in `tool-output-lines/50@1`, is a stable name that may be stored: what it stands for
/// never changes, another rule gets another version. No policy makes a message larger, and none
/// touches a call, so trimmed messages pair as they did. Applying one twice gives what applying it
/// once does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)
)]
#[non_exhaustive]
pub enum TrimPolicy {
    /// Of a result with more lines, the first half and the last (phi-core's rule).
    /// `tool-output-lines/50@1`
    ToolOutputLines {
        /// Lines that are shown. 50, phi-core's default.
        #[cfg_attr(feature = "serde", serde(default = "fifty"))]
        lines: usize,
    },
    /// Of a result that costs more, the beginning and the end. `tool-output-tokens/2000@1`
    ToolOutputTokens {
        /// The most that a result costs, in tokens, if that leaves room for the marker.
        tokens: u64,
    },
    /// Of a long result the first and last characters, of a middling one nothing (Operator-Use's
    /// rule, in which the middling one shows less than the long one).
    /// `tool-output-chars/200-2000-200@1`
    ToolOutputChars {
        /// Results up to this long stay whole, in characters.
        #[cfg_attr(feature = "serde", serde(default = "two_hundred"))]
        untouched: usize,
        /// Of results up to this long nothing stays, in characters.
        #[cfg_attr(feature = "serde", serde(default = "two_thousand"))]
        left_out: usize,
        /// Characters of a longer result that are shown at either end.
        #[cfg_attr(feature = "serde", serde(default = "two_hundred"))]
        shown: usize,
    },
    /// A result that costs so much is left out whole. `tool-output-stub/50@1`
    ToolOutputStub {
        /// The least that a result costs to be left out, in tokens.
        tokens: u64,
    },
    /// Of a text or a result that costs more, the beginning and the end. `block/8000@1`
    Block {
        /// The most that a text or a result costs, in tokens, if that leaves room for the marker.
        tokens: u64,
    },
}

#[cfg(feature = "serde")]
const fn fifty() -> usize {
    50
}

#[cfg(feature = "serde")]
const fn two_hundred() -> usize {
    200
}

#[cfg(feature = "serde")]
const fn two_thousand() -> usize {
    2_000
}

const NAMES: [&str; 5] = [
    "tool-output-lines/LINES@1",
    "tool-output-tokens/TOKENS@1",
    "tool-output-chars/UNTOUCHED-LEFTOUT-SHOWN@1",
    "tool-output-stub/TOKENS@1",
    "block/TOKENS@1",
];

impl TrimPolicy {
    /// phi-core's rule with its default: 50 lines.
    pub const PHI_CORE: Self = Self::ToolOutputLines { lines: 50 };
    /// Operator-Use's rule with its defaults: up to 200 characters stay, up to 2,000 go, of more
    /// than that 200 are shown at either end.
    pub const OPERATOR_USE: Self = Self::ToolOutputChars {
        untouched: 200,
        left_out: 2_000,
        shown: 200,
    };

    /// A result's text, shortened; none when it stays as it is.
    ///
    /// `pointer` is what to give a tool that expands the message; it goes into the marker unless
    /// it is empty.
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

    /// A text's, shortened; none when it stays as it is. Only [`Block`](Self::Block) looks at what
    /// is no result.
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

    /// How to shorten the message at a position. A note stays as it is.
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
            Self::ToolOutputLines { lines } => {
                write_id(f, "tool-output-lines", &[lines as u64], None)
            }
            Self::ToolOutputTokens { tokens } => write_id(f, "tool-output-tokens", &[tokens], None),
            Self::ToolOutputChars {
                untouched,
                left_out,
                shown,
            } => {
                let numbers = [untouched as u64, left_out as u64, shown as u64];
                write_id(f, "tool-output-chars", &numbers, None)
            }
            Self::ToolOutputStub { tokens } => write_id(f, "tool-output-stub", &[tokens], None),
            Self::Block { tokens } => write_id(f, "block", &[tokens], None),
        }
    }
}

impl FromStr for TrimPolicy {
    type Err = Error;

    fn from_str(id: &str) -> Result<Self, Error> {
        let id = Id::read(id, &NAMES)?;
        let policy = match id.name {
            "tool-output-lines" => {
                let [lines] = id.numbers()?;
                let lines = id.size(lines)?;
                Self::ToolOutputLines { lines }
            }
            "tool-output-tokens" => {
                let [tokens] = id.numbers()?;
                Self::ToolOutputTokens { tokens }
            }
            "tool-output-chars" => {
                let [untouched, left_out, shown] = id.numbers()?;
                Self::ToolOutputChars {
                    untouched: id.size(untouched)?,
                    left_out: id.size(left_out)?,
                    shown: id.size(shown)?,
                }
            }
            "tool-output-stub" => {
                let [tokens] = id.numbers()?;
                Self::ToolOutputStub { tokens }
            }
            "block" => {
                let [tokens] = id.numbers()?;
                Self::Block { tokens }
            }
            _ => return Err(id.unknown()),
        };
        id.no_rest().map(|()| policy)
    }
}
