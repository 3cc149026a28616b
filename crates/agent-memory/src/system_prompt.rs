//! The system prompt and the tools of a session's requests.

use context_assembler::ContextAccounting;
use memory_model::{Accounting as _, ToolDefinition};
use token_estimate::TokenEstimatorExt as _;

/// The system prompt and the tools that each request of a session contains.
#[derive(Debug)]
pub(crate) struct SystemPrompt {
    text: String,
    tools: Vec<ToolDefinition>,
    tools_tokens: u64,
}

impl SystemPrompt {
    pub(crate) fn new(
        text: String,
        tools: Vec<ToolDefinition>,
        accounting: &ContextAccounting,
    ) -> Self {
        let views = tools.iter().map(ToolDefinition::view);
        Self {
            tools_tokens: accounting.estimator().tools(views),
            text,
            tools,
        }
    }

    /// Returns the system prompt; `None` if it is empty.
    pub(crate) fn text(&self) -> Option<&str> {
        Some(self.text.as_str()).filter(|text| !text.is_empty())
    }

    pub(crate) fn tools(&self) -> &[ToolDefinition] {
        &self.tools
    }

    /// Returns the cost of the tools' definitions, in tokens.
    pub(crate) fn tools_tokens(&self) -> u64 {
        self.tools_tokens
    }
}
