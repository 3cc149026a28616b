use std::fmt;
use std::str::FromStr;

use token_estimate::{MessageView, PartView, TokenEstimator};

use crate::clip::{clip_chars, clip_lines, clip_tokens, is_clipped, stub_text};
use crate::id::{Id, write_id};
use crate::{Edit, Error};

/// Rule that shortens a message: a pure function of the message, the estimator and the pointer.
///
/// Its id, as in `tool-output-lines/50@1`, may be stored: the rule of an id never changes, another rule
/// gets another version. No policy makes a message larger, and none changes a call, so the calls and
/// results of trimmed messages pair as before. Applying a policy twice equals applying it once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)
)]
#[non_exhaustive]
pub enum TrimPolicy {
    /// Keeps the first and the last lines of a result. The preset phi-core.
    /// `tool-output-lines/50@1`
    ToolOutputLines {
        /// Maximum number of lines. Default 50.
        #[cfg_attr(feature = "serde", serde(default = "fifty"))]
        lines: usize,
    },
    /// Keeps the beginning and the end of a result. `tool-output-tokens/2000@1`
    ToolOutputTokens {
        /// Maximum cost of a result in tokens, if that leaves room for the marker.
        tokens: u64,
    },
    /// Keeps the first and the last characters of a long result and nothing of one of medium length.
    /// The preset Operator-Use.
    /// `tool-output-chars/200-2000-200@1`
    ToolOutputChars {
        /// Maximum length of a result that stays whole, in characters. Default 200.
        #[cfg_attr(feature = "serde", serde(default = "two_hundred"))]
        untouched: usize,
        /// Maximum length of a result that is left out whole, in characters. Default 2,000.
        #[cfg_attr(feature = "serde", serde(default = "two_thousand"))]
        left_out: usize,
        /// Number of characters of a longer result that are shown at either end. Default 200.
        #[cfg_attr(feature = "serde", serde(default = "two_hundred"))]
        shown: usize,
    },
    /// Leaves out results from a cost on. `tool-output-stub/50@1`
    ToolOutputStub {
        /// Minimum cost of a result that is left out, in tokens.
        tokens: u64,
    },
    /// Keeps the beginning and the end of a text or a result. `block/8000@1`
    Block {
        /// Maximum cost of a text or a result in tokens, if that leaves room for the marker.
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
    /// The preset phi-core: 50 lines.
    pub const PHI_CORE: Self = Self::ToolOutputLines { lines: 50 };
    /// The preset Operator-Use: results of up to 200 characters stay, those of up to 2,000 are left
    /// out, and of longer ones 200 characters are shown at either end.
    pub const OPERATOR_USE: Self = Self::ToolOutputChars {
        untouched: 200,
        left_out: 2_000,
        shown: 200,
    };

    /// Returns a result's text shortened; `None` when it stays as it is.
    ///
    /// `pointer` is the argument of the tool that expands the message; an empty one is not mentioned.
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

    /// Returns a text part's text shortened; `None` when it stays as it is, as under every policy but
    /// [`Block`](Self::Block).
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

    /// Returns the edits that shorten the message at a position. A note stays as it is.
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
