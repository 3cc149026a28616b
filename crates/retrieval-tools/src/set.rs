//! Retrieval tools of several conversations.

use memory_model::{SessionKey, SummaryId};
#[cfg(feature = "mcp")]
use memory_search::SearchStop;

use serde_json::{Map, Value, json};

use crate::arguments::{Arguments as _, Reach, or, read, take_text};
use crate::describe::DescribeArgs;
use crate::error::{Error, ErrorKind, Result};
use crate::expand::{ExpandArgs, Target};
use crate::grep::GrepArgs;
use crate::retrieval::{Retrieval, no_summary};
use crate::text::short;
use crate::tool::{Tool, ToolAnswer};
use crate::tools::{self, Extra, echo};

/// Name of the argument that selects a conversation of a set.
const SESSION: &str = "session";

/// Name of the argument that selects the conversation of an agent.
const AGENT: &str = "agent_name";

/// Maximum number of sessions that a declaration lists.
const LISTED: usize = 20;

/// Maximum number of sessions that an error message lists.
const NAMED: usize = 10;

/// The retrieval tools of several conversations. Calls can reach only these conversations. In a set of more than one
/// conversation, each tool has an additional argument `session`, which selects one of them by its key. A call of
/// `memory_grep` without this argument searches all of them.
///
/// A set without conversations declares the same tools, and answers that nothing was recorded yet.
#[derive(Debug, Clone, Default)]
pub struct RetrievalSet {
    members: Vec<(SessionKey, Retrieval)>,
    /// Whether a call without the argument `session` reads the first conversation.
    has_default: bool,
    /// Conversations that only the argument `agent_name` selects.
    agents: Vec<(SessionKey, Retrieval)>,
}

impl RetrievalSet {
    /// Creates a set with the tools of one conversation. `key` is the value of the argument `session` for this
    /// conversation.
    pub fn new(key: impl Into<SessionKey>, tools: Retrieval) -> Self {
        Self {
            members: vec![(key.into(), tools)],
            ..Self::default()
        }
    }

    /// Lets calls without the argument `session` read the first conversation. Calls that name a summary read the
    /// conversation that has it. A position of a message names one in each conversation: calls about it fail without
    /// the argument.
    pub fn with_default(mut self) -> Self {
        self.has_default = true;
        self
    }

    /// Adds the tools of a conversation. Replaces the tools that were added with the same key.
    pub fn with(mut self, key: impl Into<SessionKey>, tools: Retrieval) -> Self {
        let key = key.into();
        self.members.retain(|(known, _)| *known != key);
        self.members.push((key, tools));
        self
    }

    /// Adds the conversation of a sub-agent. Only tools with the argument `agent_name` can read it, see
    /// [`ToolNames::Codex`](crate::ToolNames::Codex).
    pub fn with_agent(mut self, key: impl Into<SessionKey>, tools: Retrieval) -> Self {
        self.agents.push((key.into(), tools));
        self
    }

    /// Returns the key and the tools of each conversation, without the sub-agents.
    pub fn members(&self) -> impl Iterator<Item = (&SessionKey, &Retrieval)> {
        self.members.iter().map(|(key, tools)| (key, tools))
    }

    /// Returns the declarations of the tools that are permitted for at least one conversation. In a set of more than
    /// one conversation, each retrieval tool has the additional argument `session`.
    pub fn tools(&self) -> Vec<Tool> {
        let offered = |tool: &&'static Tool| {
            let mut members = self.members.iter();
            self.members.is_empty() || members.any(|(_, tools)| tools.grant.allows(tool.name))
        };
        let tools = tools::offered(self.extra()).filter(offered);
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
        let tool = self.declare(tools::tool(name, self.extra())?);
        let mut given = tool.declared.object(given)?;
        tool.declared.check(&given)?;
        if self.members.is_empty() {
            let message = "no conversation was recorded here yet: go on without the memory";
            return Err(Error::new(ErrorKind::NotFound, message.to_owned()));
        }
        if tool.reach == Reach::Agent {
            let agent = take_text(&mut given, AGENT)?.unwrap_or_default();
            return self.agent(&agent)?.answer(&tool, given).await;
        }
        if let [(_, only)] = self.members.as_slice() {
            return only.answer(&tool, given).await;
        }
        let mut members = self.members.iter().map(|(_, tools)| tools);
        if tool.reach == Reach::Set
            && let Some(one) = members.find(|one| one.has_tool(name))
        {
            return one.answer(&tool, given).await;
        }
        let Some(session) = take_text(&mut given, SESSION)? else {
            if name == GrepArgs::NAME {
                let mut answer = self.grep(read::<GrepArgs>(&tool.declared, given)?).await?;
                echo(&mut answer.pattern);
                return ToolAnswer::new(answer.to_text(), &answer);
            }
            return self.answer_unnamed(&tool, given).await;
        };
        let mut members = self.members.iter();
        match members.find(|(key, _)| key.as_str() == session) {
            Some((_, tools)) => tools.answer(&tool, given).await,
            None => Err(self.no_session(&session)),
        }
    }

    /// Answers a call without the argument `session`: from the conversation that has the named summary, else from the
    /// first one if the set has a default. A position of a message names one in each conversation, so it is an error.
    /// The answer names its conversation, which a call about it must give.
    async fn answer_unnamed(&self, tool: &Tool, given: Map<String, Value>) -> Result<ToolAnswer> {
        let all = names(self.members.iter());
        let default = self.members.first().filter(|_| self.has_default);
        let Some(mut chosen) = default else {
            return Err(Error::invalid(format!("session is required: give {all}")));
        };
        let is_pointing = [DescribeArgs::NAME, ExpandArgs::NAME].contains(&tool.name);
        let pointer = given.get("summary_id").and_then(Value::as_str);
        if let Some(pointer) = pointer.filter(|_| is_pointing) {
            chosen = match pointer.parse()? {
                Target::Summary(id) => self.with_summary(&id).await?,
                // No session answers this.
                Target::Messages(_) if tool.name == DescribeArgs::NAME => chosen,
                target @ Target::Messages(_) => {
                    let count = self.members.len();
                    return Err(Error::invalid(format!(
                        "{target} is another in each of {count} sessions: give session, which is {all}, the one in \
                         use last first"
                    )));
                }
            };
        }
        let (key, tools) = chosen;
        let heading = format!("Session {}:\n", short(key.as_str()));
        let mut tools = tools.clone();
        let cost = tools.accounting.text(&heading) + 1;
        tools.reply = tools.reply.map(|reply| reply.saturating_sub(cost));
        let mut answer = tools.answer(tool, given).await?;
        answer.text.insert_str(0, &heading);
        if let Some(fields) = answer.json.as_object_mut() {
            fields.insert(SESSION.to_owned(), key.as_str().into());
        }
        Ok(answer)
    }

    /// Returns the first conversation that has this summary.
    async fn with_summary(&self, id: &SummaryId) -> Result<&(SessionKey, Retrieval)> {
        for member in &self.members {
            match member.1.summary(id).await {
                Ok(_) => return Ok(member),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(no_summary(
            &format!("the {} sessions have", self.members.len()),
            id,
        ))
    }

    /// Returns the same tools with two limits: `stop` ends searches early, and the text of an answer has at most `reply`
    /// tokens. A fifth of them is kept for the lines around the content of `expand`.
    #[cfg(feature = "mcp")]
    pub(crate) fn within(mut self, reply: u64, stop: &SearchStop) -> Self {
        for (_, tools) in self.members.iter_mut().chain(&mut self.agents) {
            tools.reply = Some(reply);
            tools.stop = Some(stop.clone());
            tools.limits.expand_tokens = tools.limits.expand_tokens.min(reply / 5 * 4);
        }
        self
    }

    /// Returns the tools that the set has in addition to the retrieval tools.
    fn extra(&self) -> Extra {
        let extra = self.members.iter().map(|(_, tools)| tools.extra());
        extra.fold(Extra::default(), |all, one| Extra {
            identity: all.identity || one.identity,
            names: all.names.or(one.names),
        })
    }

    /// Returns the tools of the conversation of an agent, named by its key or by the end of it. The first conversation
    /// of the set is the one of `root`, and of an empty name.
    fn agent(&self, name: &str) -> Result<&Retrieval> {
        let name = name.trim().trim_matches('/');
        let mut all = self.members.iter().chain(&self.agents);
        let found = match name {
            "" | "root" => all.next(),
            _ => {
                let ends = |key: &str| {
                    let rest = key.strip_suffix(name);
                    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with(['/', '-', ':']))
                };
                let same = all.clone().find(|(key, _)| key.as_str() == name);
                same.or_else(|| all.find(|(key, _)| ends(key.as_str())))
            }
        };
        let found = found.map(|(_, tools)| tools);
        found.ok_or_else(|| {
            let message = format!(
                "there is no agent {}: give {}",
                short(name),
                self.agent_names()
            );
            Error::new(ErrorKind::NotFound, message)
        })
    }

    fn agent_names(&self) -> String {
        names(self.members.iter().chain(&self.agents))
    }

    fn declare(&self, tool: &Tool) -> Tool {
        let mut tool = tool.clone();
        let mut add = |name: &str, description: String, keys: Option<Vec<&str>>| {
            let mut schema = json!({"description": description, "type": "string"});
            if let Some(keys) = keys {
                schema["enum"] = keys.into();
            }
            tool.declared.arguments.insert(name.to_owned(), schema);
        };
        match tool.reach {
            Reach::Agent => {
                let agents = self.agent_names();
                add(
                    AGENT,
                    format!("The agent: {agents}; the first if not given."),
                    None,
                );
            }
            Reach::Session if self.members.len() > 1 => {
                let keys = self.members.iter().map(|(key, _)| key.as_str());
                let keys: Vec<&str> = keys.take(LISTED).collect();
                let (none, is_required) = match tool.name {
                    GrepArgs::NAME => ("; all if not given", false),
                    DescribeArgs::NAME if self.has_default => {
                        ("; the one that has the summary if not given", false)
                    }
                    ExpandArgs::NAME if self.has_default => (
                        "; the one that has the summary if not given, always needed for messages",
                        false,
                    ),
                    _ if self.has_default => ("; the one in use last if not given", false),
                    _ => ("", true),
                };
                let (more, keys) = match self.members.len() {
                    ..=LISTED => (String::new(), Some(keys)),
                    all => (
                        format!(" The last {LISTED} of {all}: {}.", keys.join(", ")),
                        None,
                    ),
                };
                add(
                    SESSION,
                    format!("The session to look into{none}.{more}"),
                    keys.filter(|_| !self.has_default),
                );
                if is_required {
                    tool.declared.required.insert(0, SESSION.to_owned());
                }
            }
            Reach::Session | Reach::Set => {}
        }
        tool
    }

    fn no_session(&self, key: &str) -> Error {
        let message = format!(
            "there is no session {}: give {}",
            short(key),
            names(self.members.iter())
        );
        Error::new(ErrorKind::NotFound, message)
    }
}

/// Returns the first keys, for an error message.
fn names<'a>(members: impl Iterator<Item = &'a (SessionKey, Retrieval)> + Clone) -> String {
    let count = members.clone().count();
    let mut keys: Vec<String> = members
        .take(NAMED)
        .map(|(key, _)| short(key.as_str()))
        .collect();
    if count > NAMED {
        keys.push(format!("one of {} more", count - NAMED));
    }
    or(&keys.iter().map(String::as_str).collect::<Vec<_>>())
}
