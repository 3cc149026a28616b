use std::collections::HashMap;
use std::fmt;

use token_estimate::{MessageView, PartView, TokenEstimator};

use crate::clip::stub_text;
use crate::{Edit, TrimPolicy};

/// Rule that replaces old tool results by a short marker and keeps the latest ones: a pure function of a list of
/// messages.
///
/// Unlike a [`TrimPolicy`] it depends on later messages, so more is cleared as the list grows. Calls and the ids of
/// results stay. Cleared results are not changed again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClearPolicy {
    /// Number of the latest results to keep, at any cost. Default 6.
    pub keep: usize,
    /// Minimum cost of a result to be cleared, in tokens; smaller results are kept. Default 50.
    pub min_tokens: u64,
    /// Minimum number of messages in the list, not counting notes. Results of a shorter list are not cleared. Default
    /// 8.
    pub min_messages: usize,
    /// Names of the tools with results to clear and to count. Empty, the default, means all tools.
    pub tools: Vec<String>,
}

impl Default for ClearPolicy {
    fn default() -> Self {
        Self {
            keep: 6,
            min_tokens: 50,
            min_messages: 8,
            tools: Vec::new(),
        }
    }
}

impl ClearPolicy {
    /// Returns the edits that clear the old results of a list, in order. `pointer` returns, for a message's position,
    /// the argument with which a tool can expand the message; the marker does not mention an empty one.
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
                    let text = stub_text(text, &pointer, estimator);
                    edits.extend(text.map(|text| Edit::SetContent {
                        message,
                        part,
                        text,
                    }));
                }
                part += 1;
            });
        }
        edits
    }

    /// Returns the locations of all results in a list that are to be cleared, in order, including results that were
    /// cleared earlier.
    pub fn clears(&self, scan: &ResultScan) -> Vec<ResultPlace> {
        if scan.messages < self.min_messages {
            return Vec::new();
        }
        let is_named = |at: &&ResultAt| {
            let named = |tool: &String| self.tools.contains(tool);
            self.tools.is_empty() || at.tool.as_ref().is_some_and(named)
        };
        let results = scan.results.iter().filter(is_named);
        let old = results.clone().count().saturating_sub(self.keep);
        let large = results.take(old).filter(|at| at.tokens >= self.min_tokens);
        large.map(|at| at.place).collect()
    }

    /// Returns the policy that shortens a single message by clearing all its results. It also keeps results that cost
    /// less than `min_tokens`.
    pub fn trim(&self) -> TrimPolicy {
        TrimPolicy::ToolOutputStub {
            tokens: self.min_tokens,
        }
    }
}

/// Location of a result in a list of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResultPlace {
    /// Position of the message that contains the result, counted from 0.
    pub message: usize,
    /// Index of the result among the message's parts, counted from 0.
    pub part: usize,
}

/// Sizes, tools and locations of the results in a list, for [`ClearPolicy::clears`]. Add the list's messages one by
/// one; their text is not kept.
#[derive(Debug, Clone, Default)]
pub struct ResultScan {
    results: Vec<ResultAt>,
    /// Name of the tool of the latest call with an id.
    tools: HashMap<String, String>,
    /// Position of the next message.
    next: usize,
    /// Number of messages that are not notes.
    messages: usize,
}

#[derive(Debug, Clone)]
struct ResultAt {
    place: ResultPlace,
    tokens: u64,
    /// Name of the tool of the latest earlier call with its id.
    tool: Option<String>,
}

impl ResultScan {
    /// Adds the next message of the list. `estimator` determines the cost of its results.
    pub fn push(&mut self, message: &impl MessageView, estimator: &dyn TokenEstimator) {
        let position = self.next;
        self.next += 1;
        if message.is_note() {
            return;
        }
        self.messages += 1;
        let mut part = 0;
        message.parts(&mut |view| {
            match view {
                PartView::ToolCall { id, name, .. } => {
                    self.tools.insert(id.to_owned(), name.to_owned());
                }
                PartView::ToolResult { call_id, .. } => self.results.push(ResultAt {
                    place: ResultPlace {
                        message: position,
                        part,
                    },
                    tokens: estimator.text(&view.text()),
                    tool: self.tools.get(call_id).cloned(),
                }),
                _ => {}
            }
            part += 1;
        });
    }
}

/// Its id, such as `clear-old/6-50-8:Bash,Read@1`: policies with different effects have different ids.
impl fmt::Display for ClearPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (keep, tokens, messages) = (self.keep, self.min_tokens, self.min_messages);
        write!(f, "clear-old/{keep}-{tokens}-{messages}")?;
        for (n, tool) in self.tools.iter().enumerate() {
            let tool = tool.replace('%', "%25").replace(',', "%2C");
            write!(f, "{}{tool}", if n == 0 { ":" } else { "," })?;
        }
        write!(f, "@1")
    }
}
