//! The tools for a model: their declarations, and calls that report failures as answers.

use std::sync::LazyLock;

use memory_model::ToolDefinition;
use serde_json::{Map, Value, json};

use crate::anthropic::MemoryArgs;
use crate::arguments::{Arguments as _, nearest, or};
use crate::codex;
use crate::describe::DescribeArgs;
use crate::error::{Error, Result};
use crate::expand::ExpandArgs;
use crate::files::FilesArgs;
use crate::grep::GrepArgs;
use crate::identity::{IdentityArgs, IdentityFiles};
use crate::notes::ToolNames;
use crate::recall::RecallArgs;
use crate::requests::RequestsArgs;
use crate::retrieval::Retrieval;
use crate::text::{clip, short};
use crate::tool::{Call, Tool, ToolAnswer};

/// Prefix of the names of all tools.
const PREFIX: &str = "memory_";

/// Maximum length of the pattern or query that an answer repeats, in characters.
const ECHO_CHARS: usize = 500;

/// Declarations of the tools that every tool set has.
static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    vec![
        Tool::of::<GrepArgs>(),
        Tool::of::<DescribeArgs>(),
        Tool::of::<ExpandArgs>(),
        Tool::of::<RecallArgs>(),
        Tool::of::<FilesArgs>(),
        Tool::of::<RequestsArgs>(),
    ]
});

/// Declaration of the tool that edits identity files.
static EDITING: LazyLock<Tool> = LazyLock::new(Tool::of::<IdentityArgs>);

/// Declarations of the tools with the names of Codex.
static CODEX: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    vec![
        Tool::of::<codex::WindowsArgs>(),
        Tool::of::<codex::ItemsArgs>(),
        Tool::of::<codex::ReadItemArgs>(),
        Tool::of::<codex::SearchArgs>(),
        Tool::of::<codex::ListNotesArgs>(),
        Tool::of::<codex::ReadNoteArgs>(),
        Tool::of::<codex::SearchNotesArgs>(),
        Tool::of::<codex::AppendNoteArgs>(),
        Tool::of::<codex::WriteNoteArgs>(),
    ]
});

/// Declaration of the tool with the name of Anthropic.
static ANTHROPIC: LazyLock<Vec<Tool>> = LazyLock::new(|| vec![Tool::of::<MemoryArgs>()]);

/// The tools that a tool set has in addition to the retrieval tools.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Extra {
    pub(crate) identity: bool,
    pub(crate) names: Option<ToolNames>,
}

impl Call for GrepArgs {
    async fn answer(self, tools: &Retrieval) -> Result<ToolAnswer> {
        let mut answer = tools.grep(self).await?;
        echo(&mut answer.pattern);
        ToolAnswer::new(answer.to_text(), &answer)
    }
}

impl Call for DescribeArgs {
    async fn answer(self, tools: &Retrieval) -> Result<ToolAnswer> {
        let answer = tools.describe(&self.summary_id.into()).await?;
        ToolAnswer::new(answer.to_text(), &answer)
    }
}

impl Call for ExpandArgs {
    async fn answer(self, tools: &Retrieval) -> Result<ToolAnswer> {
        let answer = tools.expand(self).await?;
        ToolAnswer::new(answer.to_text(), &answer)
    }
}

impl Call for RecallArgs {
    async fn answer(self, tools: &Retrieval) -> Result<ToolAnswer> {
        let mut answer = tools.recall(self).await?;
        answer.query.as_mut().into_iter().for_each(echo);
        ToolAnswer::new(answer.to_text(), &answer)
    }
}

impl Call for FilesArgs {
    async fn answer(self, tools: &Retrieval) -> Result<ToolAnswer> {
        let mut answer = tools.files(self).await?;
        answer.path.as_mut().into_iter().for_each(echo);
        answer.command.as_mut().into_iter().for_each(echo);
        ToolAnswer::new(answer.to_text(), &answer)
    }
}

impl Call for RequestsArgs {
    async fn answer(self, tools: &Retrieval) -> Result<ToolAnswer> {
        let answer = tools.requests(self).await?;
        ToolAnswer::new(answer.to_text(), &answer)
    }
}

impl Call for IdentityArgs {
    async fn answer(self, tools: &Retrieval) -> Result<ToolAnswer> {
        tools.grant.begin(Self::NAME, 0)?.end(0);
        let files = tools.identity.as_ref();
        let files = files.ok_or_else(|| no_tool(Self::NAME, tools.extra()))?;
        let name = self.file;
        let shown = |content: &str, advice: &str| {
            let text = match content.trim() {
                "" => format!("{name} has no text: write it with content.\n"),
                _ => format!("{name}:\n{content}"),
            };
            let answer = ToolAnswer::new(text, &json!({"content": content, "file": name}))?;
            match tools.room(u64::MAX).holds(&answer.text) {
                true => Ok(answer),
                false => Err(Error::invalid(format!(
                    "{name} is too long for an answer: {advice}"
                ))),
            }
        };
        // A model replaces only a text that it can read whole, and writes only such a text.
        let old = shown(&files.read(&name)?, "ask the user to shorten it")?;
        let Some(content) = self.content else {
            return Ok(old);
        };
        shown(&content, "shorten content")?;
        files.write(&name, &content)?;
        let (bytes, next) = (content.len(), "the next context begins with it");
        let text = format!("{name} now has {bytes} bytes; {next}.\n");
        ToolAnswer::new(text, &json!({"bytes": bytes, "file": name}))
    }
}

/// Shortens a pattern or query for repetition in an answer.
pub(crate) fn echo(text: &mut String) {
    *text = clip(text, ECHO_CHARS);
}

/// Returns the declarations of the retrieval tools and of the additional ones.
pub(crate) fn offered(extra: Extra) -> impl Iterator<Item = &'static Tool> {
    let named: &'static [Tool] = match extra.names {
        None => &[],
        Some(ToolNames::Codex) => &CODEX,
        Some(ToolNames::Anthropic) => &ANTHROPIC,
    };
    let editing = extra.identity.then(|| &*EDITING);
    TOOLS.iter().chain(editing).chain(named)
}

/// Returns the declaration of the tool with this name.
pub(crate) fn tool(name: &str, extra: Extra) -> Result<&'static Tool> {
    offered(extra)
        .find(|tool| tool.name == name)
        .ok_or_else(|| no_tool(name, extra))
}

/// Returns the error for a name that no tool has.
pub(crate) fn no_tool(name: &str, extra: Extra) -> Error {
    let mut message = format!("there is no tool {}", short(name));
    let names: Vec<&str> = offered(extra).map(|tool| tool.name).collect();
    // Most names share this prefix, so it is left out of the comparison.
    let own = |name| str::trim_start_matches(name, PREFIX);
    if let Some(near) = nearest(own(name), names.iter().copied().map(own))
        && let Some(near) = names.iter().find(|name| own(name) == near)
    {
        message.push_str(&format!(", did you mean {near}"));
    }
    Error::invalid(format!("{message}: call {}", or(&names)))
}

impl IdentityFiles {
    /// Returns the definition of the tool `memory_identity`, by which a model reads and writes the files. A tool set
    /// answers its calls after [`Retrieval::with_identity`].
    pub fn definition() -> ToolDefinition {
        ToolDefinition::from(&*EDITING)
    }
}

impl Retrieval {
    /// Returns the definitions of the [retrieval tools](Self::tools), to send to a model together with the tools of the
    /// application.
    pub fn definitions() -> impl Iterator<Item = ToolDefinition> {
        Self::tools().iter().map(ToolDefinition::from)
    }

    /// Returns the tools that this tool set has in addition to the retrieval tools.
    pub(crate) fn extra(&self) -> Extra {
        Extra {
            identity: self.identity.is_some(),
            names: self.notes.as_ref().map(|(names, _)| *names),
        }
    }

    /// Returns whether a tool of this tool set has this name, so that [`call`](Self::call) can answer a call of this
    /// tool.
    pub fn has_tool(&self, name: &str) -> bool {
        tool(name, self.extra()).is_ok()
    }

    /// Returns the declarations of the retrieval tools, which every tool set has and which never write.
    pub fn tools() -> &'static [Tool] {
        &TOOLS
    }

    /// Answers a model's tool call. `arguments` are the arguments of the call as JSON text. If the call fails, the
    /// answer is an error text that says how to correct the call.
    pub async fn call(&self, name: &str, arguments: &str) -> ToolAnswer {
        let tool = tool(name, self.extra());
        let answer = match tool.and_then(|tool| Ok((tool, tool.declared.object(arguments.into())?)))
        {
            Ok((tool, given)) => self.answer(tool, given).await,
            Err(error) => Err(error),
        };
        answer.unwrap_or_else(ToolAnswer::from)
    }

    pub(crate) async fn answer(
        &self,
        tool: &Tool,
        given: Map<String, Value>,
    ) -> Result<ToolAnswer> {
        (tool.call)(tool, self, given).await
    }
}
