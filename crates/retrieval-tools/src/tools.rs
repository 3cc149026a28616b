//! The tools as a model sees them: declarations, and calls that never fail.

use memory_model::RawJson;
use serde::Serialize;
use serde_json::json;

use crate::arguments::{nearest, or};
use crate::error::{Error, Result};
use crate::expand::ExpandArgs;
use crate::files::FilesArgs;
use crate::grep::GrepArgs;
use crate::recall::RecallArgs;
use crate::retrieval::{DESCRIBE, EXPAND, FILES, GREP, RECALL, Retrieval};
use crate::schema::{Tool, null};
use crate::text::short;
use crate::typed::{DescribeArgs, ToolArguments};

/// The names of all tools.
const NAMES: [&str; 5] = [GREP, DESCRIBE, EXPAND, RECALL, FILES];

/// What the names of all tools begin with.
const PREFIX: &str = "memory_";

/// Length up to which an answer of a call repeats the pattern or the query, in characters.
const ECHO_CHARS: usize = 500;

/// Answer of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolAnswer {
    /// Text to send to the model.
    pub text: String,
    /// JSON for programs; `{"error":{"kind","message"}}` for an error. It repeats no more than the beginning of
    /// a pattern or a query.
    pub json: RawJson,
    /// Whether the call failed; `text` then says what to do.
    pub is_error: bool,
}

impl ToolAnswer {
    pub(crate) fn new<T: Serialize>(text: String, answer: &T) -> Result<Self> {
        let json = RawJson::from_value(answer).map_err(|error| {
            Error::invalid(format!("the answer cannot be written as JSON: {error}"))
        })?;
        Ok(Self {
            text,
            json,
            is_error: false,
        })
    }

    pub(crate) fn error(error: &Error) -> Self {
        let kind = error.kind().as_str();
        let json = json!({"error": {"kind": kind, "message": error.to_string()}});
        Self {
            text: format!("Error: {error}\n"),
            json: RawJson::from_value(&json).unwrap_or_else(|_| null()),
            is_error: true,
        }
    }
}

/// The beginning of what a call asked for.
pub(crate) fn echo(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(ECHO_CHARS) {
        text.truncate(end);
        text.push('…');
    }
}

/// The error of a tool that does not exist.
pub(crate) fn no_tool(name: &str) -> Error {
    let mut message = format!("there is no tool {}", short(name));
    // What all names begin with says nothing of which is meant.
    let own = |name: &'static str| name.trim_start_matches(PREFIX);
    let asked = name.trim_start_matches(PREFIX);
    if let Some(near) = nearest(asked, NAMES.into_iter().map(own)) {
        message.push_str(&format!(", did you mean {PREFIX}{near}"));
    }
    Error::invalid(format!("{message}: call {}", or(&NAMES)))
}

impl Retrieval {
    /// Returns the definitions of all tools, to be sent to a model beside the tools of the application.
    pub fn definitions() -> [memory_model::ToolDefinition; 5] {
        Self::tools().map(Into::into)
    }

    /// Whether a tool of this name is one of those that [`call`](Self::call) answers.
    pub fn has_tool(name: &str) -> bool {
        NAMES.contains(&name)
    }

    /// Returns all tools.
    pub fn tools() -> [Tool; 5] {
        [
            GrepArgs::tool(),
            DescribeArgs::tool(),
            ExpandArgs::tool(),
            RecallArgs::tool(),
            FilesArgs::tool(),
        ]
    }

    /// Returns the tools that this tool set has; a derived one may have fewer.
    pub fn offered(&self) -> Vec<Tool> {
        let mut tools = Vec::from(Self::tools());
        tools.retain(|tool| self.allows(tool.name));
        tools
    }

    /// Answers a model's tool call. `arguments` is the JSON text that came with the call. Never fails:
    /// a call that cannot be answered gets an error answer that says what to do.
    pub async fn call(&self, name: &str, arguments: &str) -> ToolAnswer {
        let answer = match name {
            GREP => self.call_grep(arguments).await,
            DESCRIBE => self.call_describe(arguments).await,
            EXPAND => self.call_expand(arguments).await,
            RECALL => self.call_recall(arguments).await,
            FILES => self.call_files(arguments).await,
            _ => Err(no_tool(name)),
        };
        answer.unwrap_or_else(|error| ToolAnswer::error(&error))
    }

    async fn call_grep(&self, arguments: &str) -> Result<ToolAnswer> {
        let mut answer = self.grep(GrepArgs::from_json(arguments)?).await?;
        echo(&mut answer.pattern);
        ToolAnswer::new(answer.to_text(), &answer)
    }

    async fn call_describe(&self, arguments: &str) -> Result<ToolAnswer> {
        let args = DescribeArgs::from_json(arguments)?;
        let answer = self.describe(&args.summary_id).await?;
        ToolAnswer::new(answer.to_text(), &answer)
    }

    async fn call_expand(&self, arguments: &str) -> Result<ToolAnswer> {
        let answer = self.expand(ExpandArgs::from_json(arguments)?).await?;
        ToolAnswer::new(answer.to_text(), &answer)
    }

    async fn call_recall(&self, arguments: &str) -> Result<ToolAnswer> {
        let mut answer = self.recall(RecallArgs::from_json(arguments)?).await?;
        answer.query.as_mut().into_iter().for_each(echo);
        ToolAnswer::new(answer.to_text(), &answer)
    }

    async fn call_files(&self, arguments: &str) -> Result<ToolAnswer> {
        let mut answer = self.files(FilesArgs::from_json(arguments)?).await?;
        answer.path.as_mut().into_iter().for_each(echo);
        answer.command.as_mut().into_iter().for_each(echo);
        ToolAnswer::new(answer.to_text(), &answer)
    }
}
