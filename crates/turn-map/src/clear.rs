use std::collections::HashMap;
use std::fmt;

use token_estimate::{MessageView, PartView, TokenEstimator};

use crate::clip::stub_text;
use crate::{Edit, TrimPolicy};

/// Rule that clears old results and keeps the latest ones: a pure function of a list of messages.
///
/// Unlike a [`TrimPolicy`] it depends on later messages, so more is cleared as the list grows. Calls and the ids of
/// results stay. Cleared results are not changed again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClearPolicy {
    /// Number of latest results that stay, at any cost. Default 6.
    pub keep: usize,
    /// Minimum cost of a result that is cleared, in tokens. Default 50.
    pub min_tokens: u64,
    /// Minimum number of messages without notes of a list in which results are cleared. Default 8.
    pub min_messages: usize,
    /// Names of the tools with results that are cleared and counted; none, the default, means all.
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

    /// Returns the results of a list that are cleared, in order, including earlier cleared ones.
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

    /// Returns the policy that shortens a message if all its results are cleared. A result that costs too little to be
    /// cleared stays whole.
    pub fn trim(&self) -> TrimPolicy {
        TrimPolicy::ToolOutputStub {
            tokens: self.min_tokens,
        }
    }
}

/// Location of a result in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResultPlace {
    /// Position of its message, from 0.
    pub message: usize,
    /// Position of the part in its message, from 0.
    pub part: usize,
}

/// Facts about the results of a list that a [`ClearPolicy`] depends on. It is fed message by message, and keeps no
/// text.
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
    /// Adds the next message of the list.
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
