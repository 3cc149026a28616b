use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use token_estimate::{MessageView, PartView, TokenEstimator};

use crate::clip::stub_text;
use crate::id::{Id, write_id};
use crate::message::user_speaks;
use crate::{Edit, Error, TrimPolicy};

/// Rule that clears old results: a pure function of a list of messages.
///
/// Unlike a [`TrimPolicy`] it depends on what came later, so more is cleared as the list grows.
/// Calls and the ids of results stay. What was cleared already is left alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)
)]
#[non_exhaustive]
pub enum ClearPolicy {
    /// Clears the results of tools that can be called again, except the newest. The preset koda.
    /// `clear-old/6-50-8:Bash,Read@1`
    Old {
        /// Number of the tools' newest results that stay, whatever they cost. Default 6.
        #[cfg_attr(feature = "serde", serde(default = "six"))]
        keep: usize,
        /// Minimum cost of a result that is cleared, in tokens. Default 50.
        #[cfg_attr(feature = "serde", serde(default = "fifty"))]
        min_tokens: u64,
        /// Minimum number of messages without notes of a list in which results are cleared. Default 8.
        #[cfg_attr(feature = "serde", serde(default = "eight"))]
        min_messages: usize,
        /// Names of the tools; none means all. Default: the preset's list of tools that only look.
        #[cfg_attr(feature = "serde", serde(default = "koda_tools"))]
        tools: Vec<String>,
    },
    /// Clears large results before the last message in which the user speaks. The preset anna. `clear-before-last-user/2000@1`
    BeforeLastUser {
        /// Maximum cost of a result that stays, in tokens. Default 2,000.
        #[cfg_attr(feature = "serde", serde(default = "two_thousand"))]
        over_tokens: u64,
    },
    /// Shortens the results before the newest ones that cost `protected_tokens` together; errors
    /// stay. The preset Operator-Use.
    /// `clear-unprotected/40000:tool-output-chars/200-2000-200@1`
    Unprotected {
        /// Maximum cost of the newest results that stay, together, in tokens. Default 40,000.
        #[cfg_attr(feature = "serde", serde(default = "forty_thousand"))]
        protected_tokens: u64,
        /// Policy that shortens the older results. Default: [`TrimPolicy::OPERATOR_USE`].
        #[cfg_attr(feature = "serde", serde(default = "operator_use"))]
        trim: TrimPolicy,
    },
}

const fn six() -> usize {
    6
}

const fn fifty() -> u64 {
    50
}

const fn eight() -> usize {
    8
}

const fn two_thousand() -> u64 {
    2_000
}

const fn forty_thousand() -> u64 {
    40_000
}

#[cfg(feature = "serde")]
const fn operator_use() -> TrimPolicy {
    TrimPolicy::OPERATOR_USE
}

fn koda_tools() -> Vec<String> {
    [
        "Bash",
        "Glob",
        "Grep",
        "ListFiles",
        "Read",
        "WebFetch",
        "WebSearch",
    ]
    .map(str::to_owned)
    .into()
}

const NAMES: [&str; 3] = [
    "clear-old/KEEP-TOKENS-MESSAGES:TOOL,TOOL@1",
    "clear-before-last-user/TOKENS@1",
    "clear-unprotected/TOKENS:TRIMPOLICY@1",
];

impl ClearPolicy {
    /// Returns the preset koda.
    pub fn koda() -> Self {
        Self::Old {
            keep: six(),
            min_tokens: fifty(),
            min_messages: eight(),
            tools: koda_tools(),
        }
    }

    /// Returns the preset anna.
    pub fn anna() -> Self {
        Self::BeforeLastUser {
            over_tokens: two_thousand(),
        }
    }

    /// Returns the preset Operator-Use.
    pub fn operator_use() -> Self {
        Self::Unprotected {
            protected_tokens: forty_thousand(),
            trim: TrimPolicy::OPERATOR_USE,
        }
    }

    /// Returns the edits that clear a list, in order. `pointer` returns the argument of the tool that
    /// expands the message at a position; an empty one is not mentioned.
    pub fn edits<M: MessageView>(
        &self,
        messages: &[M],
        pointer: impl Fn(usize) -> String,
        estimator: &dyn TokenEstimator,
    ) -> Vec<Edit> {
        let mut scan = ResultScan::default();
        messages
            .iter()
            .for_each(|message| scan.push(message, estimator));
        let mut edits: Vec<Edit> = Vec::new();
        for place in self.clears(&scan) {
            let Some(message) = messages.get(place.message) else {
                continue;
            };
            let pointer = pointer(place.message);
            let mut part = 0;
            message.parts(&mut |view| {
                if part == place.part {
                    let text = &*view.text();
                    let ResultPlace { message, part } = place;
                    edits.extend(match self {
                        Self::Unprotected { trim, .. } => {
                            let text = trim.trim_result(text, &pointer, estimator);
                            text.map(|text| Edit::SetText {
                                message,
                                part,
                                text,
                            })
                        }
                        _ => stub_text(text, &pointer, estimator).map(|text| Edit::SetContent {
                            message,
                            part,
                            text,
                        }),
                    });
                }
                part += 1;
            });
        }
        edits
    }

    /// Returns the results of a list that are cleared, in order, those among them that were cleared before.
    pub fn clears(&self, scan: &ResultScan) -> Vec<ResultPlace> {
        let results = &scan.results;
        let place = |at: &ResultAt| at.place;
        match self {
            Self::Old {
                keep,
                min_tokens,
                min_messages,
                tools,
            } => {
                if scan.messages < *min_messages {
                    return Vec::new();
                }
                let again = |at: &&ResultAt| {
                    tools.is_empty() || at.tool.as_ref().is_some_and(|tool| tools.contains(tool))
                };
                let old = results.iter().filter(again).count().saturating_sub(*keep);
                results
                    .iter()
                    .filter(again)
                    .take(old)
                    .filter(|at| at.tokens >= *min_tokens)
                    .map(place)
                    .collect()
            }
            Self::BeforeLastUser { over_tokens } => results
                .iter()
                .filter(|at| at.place.message < scan.last_user && at.tokens > *over_tokens)
                .map(place)
                .collect(),
            Self::Unprotected {
                protected_tokens, ..
            } => {
                let mut left = Some(*protected_tokens);
                let protected = results
                    .iter()
                    .rev()
                    .take_while(|at| {
                        left = left.and_then(|left| left.checked_sub(at.tokens));
                        left.is_some()
                    })
                    .count();
                results
                    .iter()
                    .take(results.len() - protected)
                    .filter(|at| !at.is_error)
                    .map(place)
                    .collect()
            }
        }
    }

    /// Returns the policy that shortens a message whose results are all cleared. A result that costs too
    /// little to be cleared stays under it.
    pub fn trim(&self) -> TrimPolicy {
        match self {
            Self::Old { min_tokens, .. } => TrimPolicy::ToolOutputStub {
                tokens: *min_tokens,
            },
            Self::BeforeLastUser { over_tokens } => TrimPolicy::ToolOutputStub {
                tokens: over_tokens.saturating_add(1),
            },
            Self::Unprotected { trim, .. } => *trim,
        }
    }
}

/// Place of a result in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResultPlace {
    /// Position of its message, from 0.
    pub message: usize,
    /// Position of the part in its message, from 0.
    pub part: usize,
}

/// The results of a list, as far as a [`ClearPolicy`] depends on them. It is fed message by message, and
/// keeps no text.
#[derive(Debug, Clone, Default)]
pub struct ResultScan {
    results: Vec<ResultAt>,
    /// Name of the tool of the newest call with an id.
    tools: HashMap<String, String>,
    /// Position of the next message.
    next: usize,
    /// Number of messages that are no notes.
    messages: usize,
    /// Position of the last message in which the user speaks; 0 without one.
    last_user: usize,
}

#[derive(Debug, Clone)]
struct ResultAt {
    place: ResultPlace,
    tokens: u64,
    is_error: bool,
    /// Name of the tool of the newest call before it with its id.
    tool: Option<String>,
}

impl ResultScan {
    /// Adds the next message of the list.
    pub fn push(&mut self, message: &impl MessageView, estimator: &dyn TokenEstimator) {
        let position = self.next;
        self.next += 1;
        if message.is_note() {
            return;
        }
        if user_speaks(message) {
            self.last_user = position;
        }
        self.messages += 1;
        let mut part = 0;
        message.parts(&mut |view| {
            match view {
                PartView::ToolCall { id, name, .. } => {
                    self.tools.insert(id.to_owned(), name.to_owned());
                }
                PartView::ToolResult {
                    call_id, is_error, ..
                } => self.results.push(ResultAt {
                    place: ResultPlace {
                        message: position,
                        part,
                    },
                    tokens: estimator.text(&view.text()),
                    is_error,
                    tool: self.tools.get(call_id).cloned(),
                }),
                _ => {}
            }
            part += 1;
        });
    }

    /// Number of messages that were added, notes included: the position of the next one.
    pub fn position(&self) -> usize {
        self.next
    }
}

impl fmt::Display for ClearPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Old {
                keep,
                min_tokens,
                min_messages,
                tools,
            } => {
                let numbers = [*keep as u64, *min_tokens, *min_messages as u64];
                let tools: Vec<String> = tools.iter().map(|tool| escaped(tool)).collect();
                let tools = (!tools.is_empty()).then(|| tools.join(","));
                write_id(f, "clear-old", &numbers, tools.as_deref())
            }
            Self::BeforeLastUser { over_tokens } => {
                write_id(f, "clear-before-last-user", &[*over_tokens], None)
            }
            Self::Unprotected {
                protected_tokens,
                trim,
            } => {
                let trim = trim.to_string();
                let trim = trim.strip_suffix("@1").unwrap_or(&trim);
                write_id(f, "clear-unprotected", &[*protected_tokens], Some(trim))
            }
        }
    }
}

/// A tool's name with the characters escaped that separate names in an id.
fn escaped(tool: &str) -> String {
    tool.replace('%', "%25").replace(',', "%2C")
}

impl FromStr for ClearPolicy {
    type Err = Error;

    fn from_str(id: &str) -> Result<Self, Error> {
        let id = Id::read(id, &NAMES)?;
        match id.name {
            "clear-old" => {
                let [keep, min_tokens, min_messages] = id.numbers()?;
                let plain = |tool: &str| tool.replace("%2C", ",").replace("%25", "%");
                Ok(Self::Old {
                    keep: id.size(keep)?,
                    min_tokens,
                    min_messages: id.size(min_messages)?,
                    tools: id
                        .rest
                        .into_iter()
                        .flat_map(|t| t.split(','))
                        .map(plain)
                        .collect(),
                })
            }
            "clear-before-last-user" => {
                let [over_tokens] = id.numbers()?;
                id.no_rest().map(|()| Self::BeforeLastUser { over_tokens })
            }
            "clear-unprotected" => {
                let [protected_tokens] = id.numbers()?;
                let trim = id.rest.ok_or_else(|| id.malformed())?;
                let trim = format!("{trim}@1").parse().map_err(|_| id.malformed())?;
                Ok(Self::Unprotected {
                    protected_tokens,
                    trim,
                })
            }
            _ => Err(id.unknown()),
        }
    }
}
