use std::collections::HashMap;
use std::fmt;

use token_estimate::{MessageView, PartView, TokenEstimator};

use crate::clip::stub_text;
use crate::{Edit, TrimPolicy};

/// Rule that replaces the content of old tool results by a short marker and keeps the latest results.
///
/// The rule is a pure function of a list of messages. Unlike a [`TrimPolicy`], it depends on later messages, so more
/// results are cleared as the list grows. Calls and the ids of results are kept. Cleared results are not changed again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClearPolicy {
    /// Number of the latest tool results that are never cleared. Default 6.
    pub keep: usize,
    /// Minimum cost of a tool result to be cleared, in tokens. Smaller results are kept. Default 50.
    pub min_tokens: u64,
    /// Minimum number of messages in the list. Notes, which are never sent to a model, do not count. Tool results of a
    /// shorter list are not cleared. Default 8.
    pub min_messages: usize,
    /// Names of the tools whose results are counted and cleared. An empty list, the default, means all tools.
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
    /// Returns the edits that clear the old tool results of a list, in order.
    ///
    /// `pointer` returns, for the position of a message, the text that names the message for a tool that can show it in
    /// full, such as `message:7`. The marker contains the pointer unless it is empty.
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

    /// Returns the locations of all tool results to clear, in order. Includes results that were cleared earlier.
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

    /// Returns a policy for single messages that clears every tool result with a cost of at least `min_tokens` tokens.
    pub fn trim(&self) -> TrimPolicy {
        TrimPolicy::ToolOutputStub {
            tokens: self.min_tokens,
        }
    }
}

/// Location of a tool result in a list of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResultPlace {
    /// Position of the message that contains the tool result, counted from 0.
    pub message: usize,
    /// Index of the tool result among the message's parts, counted from 0.
    pub part: usize,
}

/// Sizes, tools and locations of the tool results in a list, as input of [`ClearPolicy::clears`]. Add the list's
/// messages one by one. Their text is not kept.
#[derive(Debug, Clone, Default)]
pub struct ResultScan {
    results: Vec<ResultAt>,
    /// Tool name of the latest call with each id.
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
    /// Tool name of the latest earlier call with the result's id.
    tool: Option<String>,
}

impl ResultScan {
    /// Adds the next message of the list. `estimator` returns the cost of the message's tool results.
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

/// Writes the id of the policy, such as `clear-old/6-50-8:Bash,Read@1`. Policies with different effects have different
/// ids.
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
