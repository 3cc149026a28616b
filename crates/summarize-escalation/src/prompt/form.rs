//! How a prompt writes messages.

use serde::{Deserialize, Serialize};

/// How the messages of a source are written in a prompt. Summaries stand between tags in every form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SourceForm {
    /// Between tags that name position, role and time. The default.
    #[default]
    Xml,
    /// Behind labels, as pi writes them: `[User]:`, `[Assistant thinking]:`, `[Assistant]:`, `[Assistant tool calls]:`,
    /// `[Tool result]:`. A line of a message that begins as a label does is escaped by a backslash.
    Labels,
}

impl SourceForm {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
