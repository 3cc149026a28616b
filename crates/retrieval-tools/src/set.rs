//! Retrieval tools of several conversations.

use memory_model::SessionKey;
#[cfg(feature = "mcp")]
use memory_search::SearchStop;

use serde_json::{Value, json};

use crate::arguments::Arguments as _;
use crate::arguments::{or, read, take_text};
use crate::error::{Error, ErrorKind, Result};
use crate::grep::GrepArgs;
use crate::identity::IdentityArgs;
use crate::retrieval::Retrieval;
use crate::text::short;
use crate::tools::{self, Tool, ToolAnswer, echo};

/// Name of the argument that selects a conversation of a set.
const SESSION: &str = "session";

/// Maximum number of sessions that an error message lists.
const NAMED: usize = 10;

/// The retrieval tools of several conversations. Calls can reach only these conversations. In a set of more than one
/// conversation, each tool has an additional argument `session`, which selects one of them by its key. A call of
/// `memory_grep` without this argument searches all of them.
#[derive(Debug, Clone)]
pub struct RetrievalSet {
    members: Vec<(SessionKey, Retrieval)>,
}

impl RetrievalSet {
    /// Creates a set with the tools of one conversation. `key` is the value of the argument `session` for this
    /// conversation.
    pub fn new(key: impl Into<SessionKey>, tools: Retrieval) -> Self {
        Self {
            members: vec![(key.into(), tools)],
        }
    }

    /// Adds the tools of a conversation. Replaces the tools that were added with the same key.
    pub fn with(mut self, key: impl Into<SessionKey>, tools: Retrieval) -> Self {
        let key = key.into();
        self.members.retain(|(known, _)| *known != key);
        self.members.push((key, tools));
        self
    }

    /// Returns the key and the tools of each conversation.
    pub fn members(&self) -> impl Iterator<Item = (&SessionKey, &Retrieval)> {
        self.members.iter().map(|(key, tools)| (key, tools))
    }

    /// Returns the declarations of the tools that are permitted for at least one conversation. In a set of more than
    /// one conversation, each retrieval tool has the additional argument `session`.
    pub fn tools(&self) -> Vec<Tool> {
        let offered = |tool: &&'static Tool| {
            self.members
                .iter()
                .any(|(_, tools)| tools.grant.allows(tool.name))
        };
        let tools = tools::offered(self.editor().is_some()).filter(offered);
        tools.map(|tool| self.declare(tool)).collect()
    }

    /// Answers a model's tool call like [`Retrieval::call`]. A call of `memory_grep` without the argument `session`
    /// searches all conversations of the set.
    pub async fn call(&self, name: &str, arguments: &str) -> ToolAnswer {
        let answer = self.answer(name, arguments.into()).await;
        answer.unwrap_or_else(ToolAnswer::from)
    }

    /// Answers a call. `given` is a JSON object with the arguments, or a JSON string that contains one.
    pub(crate) async fn answer(&self, name: &str, given: Value) -> Result<ToolAnswer> {
        let editor = self.editor();
        let tool = self.declare(tools::tool(name, editor.is_some())?);
        let mut given = tool.declared.object(given)?;
        if let [(_, only)] = self.members.as_slice() {
            return only.answer(&tool, given).await;
        }
        if let Some(editor) = editor.filter(|_| name == IdentityArgs::NAME) {
            return editor.answer(&tool, given).await;
        }
        tool.declared.check(&given)?;
        let Some(session) = take_text(&mut given, SESSION)? else {
            if name == GrepArgs::NAME {
                let mut answer = self.grep(read::<GrepArgs>(&tool.declared, given)?).await?;
                echo(&mut answer.pattern);
                return ToolAnswer::new(answer.to_text(), &answer);
            }
            let message = format!("session is required: give {}", self.names());
            return Err(Error::invalid(message));
        };
        let mut members = self.members.iter();
        match members.find(|(key, _)| key.as_str() == session) {
            Some((_, tools)) => tools.answer(&tool, given).await,
            None => Err(self.no_session(&session)),
        }
    }

    /// Returns the same tools with two limits: `stop` ends searches early, and the text of an answer has at most `reply`
    /// tokens. A fifth of them is kept for the lines around the content of `expand`.
    #[cfg(feature = "mcp")]
    pub(crate) fn within(mut self, reply: u64, stop: &SearchStop) -> Self {
        for (_, tools) in &mut self.members {
            tools.reply = Some(reply);
            tools.stop = Some(stop.clone());
            tools.limits.expand_tokens = tools.limits.expand_tokens.min(reply / 5 * 4);
        }
        self
    }

    /// Returns the first tool set that edits identity files. The files do not depend on the conversation.
    fn editor(&self) -> Option<&Retrieval> {
        let mut tools = self.members.iter().map(|(_, tools)| tools);
        tools.find(|tools| tools.identity.is_some())
    }

    fn declare(&self, tool: &Tool) -> Tool {
        let mut tool = tool.clone();
        if self.members.len() > 1 && tool.name != IdentityArgs::NAME {
            let keys: Vec<&str> = self.members.iter().map(|(key, _)| key.as_str()).collect();
            let all = match tool.name {
                GrepArgs::NAME => "; all if not given",
                _ => {
                    tool.declared.required.insert(0, SESSION.to_owned());
                    ""
                }
            };
            let description = format!("The session to look into{all}.");
            let schema = json!({"description": description, "enum": keys, "type": "string"});
            tool.declared.arguments.insert(SESSION.to_owned(), schema);
        }
        tool
    }

    fn names(&self) -> String {
        let named = self.members.iter().take(NAMED);
        let mut keys: Vec<String> = named.map(|(key, _)| short(key.as_str())).collect();
        if self.members.len() > NAMED {
            keys.push(format!("one of {} more", self.members.len() - NAMED));
        }
        or(&keys.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn no_session(&self, key: &str) -> Error {
        let message = format!("there is no session {}: give {}", short(key), self.names());
        Error::new(ErrorKind::NotFound, message)
    }
}
