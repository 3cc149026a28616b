//! Tools over an explicit set of conversations.

use memory_model::SessionKey;
#[cfg(feature = "mcp")]
use memory_search::SearchStop;

use crate::arguments::{or, take_out};
use crate::error::{Error, ErrorKind, Result};
use crate::grep::GrepArgs;
#[cfg(feature = "mcp")]
use crate::limits::RetrievalLimits;
use crate::narrowing::Narrowing;
use crate::retrieval::{GREP, Retrieval};
use crate::schema::{Parameter, Tool};
use crate::text::short;
use crate::tools::{ToolAnswer, echo, no_tool};
use crate::typed::ToolArguments as _;

/// Name of the argument that chooses a conversation of a set.
const SESSION: &str = "session";

/// Maximum number of sessions that an error names.
const NAMED: usize = 10;

/// The retrieval tools of some conversations, by value: whoever has the set can reach these conversations and
/// no others. With more than one, each tool has the argument `session`, which chooses among them; `memory_grep`
/// searches all of them without it.
#[derive(Debug, Clone)]
pub struct RetrievalSet {
    members: Vec<(SessionKey, Retrieval)>,
}

impl RetrievalSet {
    /// The tools of one conversation.
    pub fn new(key: impl Into<SessionKey>, tools: Retrieval) -> Self {
        Self {
            members: vec![(key.into(), tools)],
        }
    }

    /// Adds a conversation. One with the same key is replaced.
    pub fn with(mut self, key: impl Into<SessionKey>, tools: Retrieval) -> Self {
        let key = key.into();
        self.members.retain(|(known, _)| *known != key);
        self.members.push((key, tools));
        self
    }

    /// The conversations: their keys and tools.
    pub fn members(&self) -> impl Iterator<Item = (&SessionKey, &Retrieval)> {
        self.members.iter().map(|(key, tools)| (key, tools))
    }

    /// Derives a set of which each conversation's tools see and spend less.
    ///
    /// # Errors
    /// As [`Retrieval::narrow`].
    pub async fn narrow(&self, by: &Narrowing) -> Result<Self> {
        let mut members = Vec::with_capacity(self.members.len());
        for (key, tools) in &self.members {
            members.push((key.clone(), tools.narrow(by).await?));
        }
        Ok(Self { members })
    }

    /// Derives a set of fewer conversations: those with these keys.
    ///
    /// # Errors
    /// `NotFound` for a key that the set does not have, or when no key is given.
    pub fn only(&self, keys: &[SessionKey]) -> Result<Self> {
        let members = keys.iter().map(|key| {
            let found = self.members.iter().find(|(known, _)| known == key);
            found.cloned().ok_or_else(|| self.no_session(key.as_str()))
        });
        match members.collect::<Result<Vec<_>>>()?.as_slice() {
            [] => Err(Error::invalid("no session is given: name at least one")),
            members => Ok(Self {
                members: members.to_vec(),
            }),
        }
    }

    /// Returns the tools. With more than one conversation each has the argument `session`.
    pub fn tools(&self) -> Vec<Tool> {
        let offered = |name: &str| self.members.iter().any(|(_, tools)| tools.allows(name));
        let tools = Retrieval::tools().into_iter();
        let tools = tools.filter(|tool| offered(tool.name));
        tools.map(|tool| self.declare(tool)).collect()
    }

    /// Answers a model's tool call, as [`Retrieval::call`] does. `memory_grep` without a session searches all.
    pub async fn call(&self, name: &str, arguments: &str) -> ToolAnswer {
        match self.call_across(name, arguments).await {
            Ok(None) => {}
            Ok(Some(answer)) => return answer,
            Err(error) => return ToolAnswer::error(&error),
        }
        match self.choose(name, arguments) {
            Ok((tools, arguments)) => tools.call(name, &arguments).await,
            Err(error) => ToolAnswer::error(&error),
        }
    }

    /// Answers a call that asks all conversations; `None` for another.
    async fn call_across(&self, name: &str, arguments: &str) -> Result<Option<ToolAnswer>> {
        if name != GREP || self.members.len() < 2 {
            return Ok(None);
        }
        let (session, rest) = take_out(arguments, &self.declare(GrepArgs::tool()), SESSION)?;
        if session.is_some() {
            return Ok(None);
        }
        let mut answer = self.grep(GrepArgs::from_json(&rest)?).await?;
        echo(&mut answer.pattern);
        ToolAnswer::new(answer.to_text(), &answer).map(Some)
    }

    /// The same conversations within lower limits, with searches that end early.
    #[cfg(feature = "mcp")]
    pub(crate) fn within(&self, limits: &RetrievalLimits, stop: &SearchStop) -> Self {
        let members = self.members.iter();
        let within = |tools: &Retrieval| {
            let tools = tools.clone().with_stop(stop.clone());
            let limits = tools.limits().within(limits);
            tools.with_limits(limits)
        };
        Self {
            members: members
                .map(|(key, tools)| (key.clone(), within(tools)))
                .collect(),
        }
    }

    /// The tools of the conversation that a call chooses, and the call's other arguments.
    pub(crate) fn choose(&self, name: &str, arguments: &str) -> Result<(&Retrieval, String)> {
        if let [(_, only)] = self.members.as_slice() {
            return Ok((only, arguments.to_owned()));
        }
        let tool = Retrieval::tools()
            .into_iter()
            .find(|tool| tool.name == name);
        let tool = self.declare(tool.ok_or_else(|| no_tool(name))?);
        let (session, arguments) = take_out(arguments, &tool, SESSION)?;
        let session = session
            .ok_or_else(|| Error::invalid(format!("session is required: give {}", self.names())))?;
        let found = self.members.iter().find(|(key, _)| key.as_str() == session);
        let found = found.map(|(_, tools)| tools);
        Ok((found.ok_or_else(|| self.no_session(&session))?, arguments))
    }

    fn declare(&self, tool: Tool) -> Tool {
        match self.members.len() {
            0 | 1 => tool,
            _ => {
                let keys = self.members.iter().map(|(key, _)| key.as_str());
                if tool.name == GREP {
                    let what = "The session to look into; all if not given.";
                    return tool.with(Parameter::one_of(SESSION, keys, what));
                }
                let session = Parameter::one_of(SESSION, keys, "The session to look into.");
                tool.with(session.required())
            }
        }
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
