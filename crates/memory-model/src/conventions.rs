//! Conventions of agents: their tools and the texts that their programs write, as typed facts.
//!
//! Agents differ in the names and arguments of their tools, and in the words around results and around a user's text.
//! [`AgentConventions`] translates them into facts. Code that reads a conversation, such as an extractive summarizer,
//! depends on the facts alone.

use std::borrow::Cow;
use std::fmt::Debug;

use serde_json::Value;

use crate::RawJson;

/// Translates an agent's conventions into facts.
///
/// The default methods know no agent: they look at the common names of arguments and leave texts as
/// they are.
pub trait AgentConventions: Send + Sync + Debug {
    /// Returns the name and version, such as `known-agents@1`. It goes into recipes: two
    /// conventions that may give different facts have different ids.
    fn id(&self) -> &str;

    /// Returns the effect of a tool call.
    fn tool_use(&self, name: &str, arguments: &str) -> ToolUse {
        let _ = name;
        ToolArguments::parse(arguments).tool_use()
    }

    /// Returns the outcome in a tool's result. `call` is the effect of its call, if known.
    fn tool_result<'a>(
        &self,
        call: Option<&ToolUse>,
        text: &'a str,
        is_error: bool,
    ) -> ToolOutcome<'a> {
        let _ = call;
        ToolOutcome {
            text: Cow::Borrowed(text),
            is_error,
            rejection: None,
            is_interrupted: false,
        }
    }

    /// Returns the id of the task that a call created, from its result.
    fn created_task<'a>(&self, call: &ToolUse, result: &'a str) -> Option<&'a str> {
        let _ = (call, result);
        None
    }

    /// Returns the folder in which the calls of a message run, as an absolute path. `meta` is the message's metadata;
    /// `None` if it is unknown.
    fn working_folder<'a>(&self, meta: Option<&'a RawJson>) -> Option<Cow<'a, str>> {
        let _ = meta;
        None
    }

    /// Returns the part of a user's message that a person typed. `meta` is the message's metadata.
    fn user_text<'a>(&self, text: &'a str, meta: Option<&RawJson>) -> UserText<'a> {
        let _ = meta;
        UserText {
            typed: Cow::Borrowed(text),
            injected: Vec::new(),
            is_document: false,
        }
    }
}

/// Conventions that know no agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GenericConventions;

impl AgentConventions for GenericConventions {
    fn id(&self) -> &str {
        "generic@1"
    }
}

/// Kind of a tool call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ToolAction {
    /// Runs a command in a shell; the subject is the command line.
    RunCommand,
    /// Reads a file or a page, without changes.
    Read,
    /// Searches or lists files, without changes.
    Search,
    /// Changes a file.
    Edit,
    /// Asks the user; the text of the outcome has a line `question → answer` for each question.
    AskUser,
    /// Replaces the state of a list of tasks.
    UpdateTasks,
    /// Creates or changes one task of a list: [`ToolUse::task`].
    ChangeTask,
    /// Has another agent work; the result is its report.
    Delegate,
    /// Anything else.
    #[default]
    Other,
}

/// Effect of a tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolUse {
    /// Kind of the call.
    pub action: ToolAction,
    /// Subject of the call: a command line, a path, a query, a question, or a text such as a plan. Empty if unknown.
    pub subject: String,
    /// Files that the call reads or changes.
    pub files: Vec<FileAccess>,
    /// Texts that the call replaces in its files.
    pub edits: Vec<TextEdit>,
    /// The other arguments: name and text, in order.
    pub arguments: Vec<(String, String)>,
    /// The task that the call creates or changes.
    pub task: Option<TaskChange>,
    /// The shell of a command.
    pub shell: Shell,
}

/// Shell of a command, for finding the folder in which it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shell {
    /// Unknown: a `cd` of an earlier call may still apply.
    #[default]
    Unknown,
    /// In a new shell, in the agent's working folder.
    New,
    /// In a new shell, in this folder.
    In(String),
}

/// A change of one task of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskChange {
    /// Id of the task; `None` for a new one: its result has the id ([`AgentConventions::created_task`]).
    pub id: Option<String>,
    /// The new text of the task; `None` leaves it unchanged.
    pub subject: Option<String>,
    /// The new state; `None` leaves it unchanged.
    pub state: Option<TaskState>,
}

/// State of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TaskState {
    /// In progress.
    Doing,
    /// Not begun.
    #[default]
    Open,
    /// It is done.
    Done,
    /// Abandoned.
    Dropped,
}

/// A file that a tool call uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileAccess {
    /// Path, as the call names it.
    pub path: String,
    /// Whether the call changes the file.
    pub changed: bool,
}

/// A text that a tool call replaces by another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextEdit {
    /// The text before; empty if a whole file is written.
    pub old: String,
    /// The text after.
    pub new: String,
}

/// Outcome in a tool's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutcome<'a> {
    /// The result without the text that the agent's program puts around it.
    pub text: Cow<'a, str>,
    /// Whether the call failed.
    pub is_error: bool,
    /// Set if the user refused the call.
    pub rejection: Option<Rejection<'a>>,
    /// Whether the call neither failed nor succeeded, because the user or another call's failure ended it.
    pub is_interrupted: bool,
}

/// A tool call that the user refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rejection<'a> {
    /// The words in which the agent's program reports it.
    pub notice: &'a str,
    /// The user's words; empty if the user gave no reason.
    pub reason: &'a str,
}

/// A user's message, divided by author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserText<'a> {
    /// Text that a person typed. A shell command that the user ran is written `! command`.
    pub typed: Cow<'a, str>,
    /// Texts that a program put into the message, verbatim.
    pub injected: Vec<String>,
    /// Whether the typed text is a document, such as a summary of an earlier conversation.
    pub is_document: bool,
}

/// Names of the tools with which a model searches its memory. Their answers repeat earlier messages, so a search leaves
/// out these calls and results unless it is asked for them.
pub const MEMORY_TOOLS: &[&str] = &[
    "memory_grep",
    "memory_describe",
    "memory_expand",
    "memory_recall",
    "memory_files",
];

/// Returns whether a call of the name `called` is one of the tool `tool`: the name is equal, or is the tool's name
/// after the name of a server, as clients of the Model Context Protocol write it (`mcp__server__tool`, `server__tool`,
/// `mcp_server_tool`, `server.tool`, `server/tool`, `server:tool`).
///
/// ```
/// use memory_model::conventions::names_tool;
///
/// assert!(names_tool("mcp__notes__search", "search"));
/// assert!(!names_tool("research", "search"));
/// ```
pub fn names_tool(called: &str, tool: &str) -> bool {
    let Some(server) = called.strip_suffix(tool) else {
        return false;
    };
    // One mark is enough between server and tool unless the whole name is written with two.
    let is_marked = (server.starts_with("mcp_") || server.starts_with("mcp-"))
        && !server.starts_with("mcp__")
        && server.ends_with(['_', '-']);
    server.is_empty()
        || !tool.is_empty()
            && (server.ends_with("__") || server.ends_with(['.', '/', ':']) || is_marked)
}

/// Returns whether a tool of this name is one of [`MEMORY_TOOLS`].
pub fn is_memory_tool(name: &str) -> bool {
    MEMORY_TOOLS.iter().any(|tool| names_tool(name, tool))
}

/// Names of arguments that hold a command line.
const COMMAND_KEYS: [&str; 3] = ["command", "cmd", "script"];
/// Names of arguments that hold a path.
const PATH_KEYS: [&str; 4] = ["file_path", "path", "filename", "file"];
/// Names of arguments that hold the subject of a call, most specific first.
const SUBJECT_KEYS: [&str; 18] = [
    "command",
    "cmd",
    "script",
    "file_path",
    "path",
    "filename",
    "file",
    "uri",
    "url",
    "query",
    "pattern",
    "title",
    "description",
    "name",
    "question",
    "message",
    "text",
    "input",
];
/// Names of arguments that hold the content of a whole file.
const CONTENT_KEYS: [&str; 3] = ["content", "contents", "file_text"];

/// The parsed arguments of a tool call, for implementations of [`AgentConventions`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolArguments(Value);

impl ToolArguments {
    /// Parses arguments: JSON, or a JSON string that holds JSON. Arguments that are neither are empty. Names are in
    /// alphabetical order.
    pub fn parse(arguments: &str) -> Self {
        let value = serde_json::from_str::<Value>(arguments).unwrap_or_default();
        let inner = value
            .as_str()
            .and_then(|text| serde_json::from_str::<Value>(text).ok());
        let mut value = inner.filter(Value::is_object).unwrap_or(value);
        // Whether a map keeps the source's order depends on features that other crates turn on.
        value.sort_all_objects();
        Self(value)
    }

    /// Returns the arguments as JSON.
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// Returns the text of an argument: a string that is not blank, or a list of strings joined by
    /// spaces.
    pub fn text(&self, name: &str) -> Option<String> {
        flat(self.0.get(name)?)
    }

    /// Returns the subject and the name of its argument: the first of these arguments that has a text, else the first
    /// text.
    pub fn subject(&self, names: &[&str]) -> (Option<&str>, String) {
        if let Value::String(text) = &self.0 {
            return (None, text.clone());
        }
        let Value::Object(map) = &self.0 else {
            return (None, String::new());
        };
        let known = names.iter().filter_map(|name| map.get_key_value(*name));
        let found = known
            .filter_map(|(name, value)| Some((name, flat(value)?)))
            .next();
        let any = || {
            map.iter()
                .find_map(|(name, value)| Some((name, first_text(value)?)))
        };
        match found.or_else(any) {
            Some((name, text)) => (Some(name.as_str()), text),
            None => (None, String::new()),
        }
    }

    /// Returns the texts of all arguments but one, nested ones by their own names.
    pub fn others(&self, except: Option<&str>) -> Vec<(String, String)> {
        let mut out = Vec::new();
        if let Value::Object(map) = &self.0 {
            let others = map.iter().filter(|(name, _)| Some(name.as_str()) != except);
            others.for_each(|(name, value)| collect(name, value, &mut out));
        }
        out
    }

    /// Returns the edits: pairs of arguments with names that begin with `old` and `new`, and contents of whole files,
    /// which are the arguments of the names in `content`.
    pub fn edits(&self, content: &[&str]) -> Vec<TextEdit> {
        let mut out = Vec::new();
        find_edits(&self.0, content, &mut out);
        out
    }

    /// Returns the effect of a call with these arguments, as far as their names determine it.
    pub fn tool_use(&self) -> ToolUse {
        let (key, subject) = self.subject(&SUBJECT_KEYS);
        let path = PATH_KEYS.iter().find_map(|name| self.text(name));
        let path = path.filter(|path| is_path(path));
        let edits = match path {
            Some(_) => self.edits(&CONTENT_KEYS),
            None => Vec::new(),
        };
        let changed = !edits.is_empty();
        let action = match () {
            () if COMMAND_KEYS.iter().any(|name| self.text(name).is_some()) => {
                ToolAction::RunCommand
            }
            () if changed => ToolAction::Edit,
            () if self.text("query").is_some() || self.text("pattern").is_some() => {
                ToolAction::Search
            }
            () if path.is_some() => ToolAction::Read,
            () => ToolAction::Other,
        };
        let files = path.map(|path| FileAccess { path, changed });
        ToolUse {
            action,
            arguments: self.others(key),
            subject,
            files: files.into_iter().collect(),
            edits,
            ..ToolUse::default()
        }
    }
}

/// Returns whether a text may be a path: one short line with a separator or a dot, and no URL.
pub fn is_path(text: &str) -> bool {
    text.len() < 300
        && !text.contains('\n')
        && !text.contains("://")
        && text.contains(['/', '\\', '.'])
}

fn flat(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Array(items) => {
            let words: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            (!words.is_empty() && words.len() == items.len()).then(|| words.join(" "))
        }
        _ => None,
    }
}

fn first_text(value: &Value) -> Option<String> {
    match value {
        Value::Array(items) => items.iter().find_map(first_text),
        Value::Object(map) => map.values().find_map(first_text),
        _ => flat(value),
    }
}

fn collect(name: &str, value: &Value, out: &mut Vec<(String, String)>) {
    match value {
        Value::String(text) if !text.trim().is_empty() => {
            out.push((name.to_owned(), text.clone()));
        }
        Value::Array(list) => list.iter().for_each(|value| collect(name, value, out)),
        Value::Object(map) => map
            .iter()
            .for_each(|(name, value)| collect(name, value, out)),
        _ => {}
    }
}

fn find_edits(value: &Value, content: &[&str], out: &mut Vec<TextEdit>) {
    match value {
        Value::Object(map) => {
            let text = |start: &str| {
                let mut named = map
                    .iter()
                    .filter(|(key, _)| key.get(..3).is_some_and(|k| k.eq_ignore_ascii_case(start)));
                named.find_map(|(_, value)| value.as_str())
            };
            let whole = || content.iter().find_map(|key| map.get(*key)?.as_str());
            let replaced = text("old").zip(text("new"));
            if let Some((old, new)) = replaced.or_else(|| Some(("", whole()?))) {
                let (old, new) = (old.to_owned(), new.to_owned());
                out.push(TextEdit { old, new });
            } else {
                let values = map.values();
                values.for_each(|value| find_edits(value, content, out));
            }
        }
        Value::Array(list) => list
            .iter()
            .for_each(|value| find_edits(value, content, out)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arguments: &str) -> ToolUse {
        GenericConventions.tool_use("anything", arguments)
    }

    #[test]
    fn generic_conventions_look_at_arguments_alone() {
        let run = of(r#"{"command":["sh","-c","ls"],"timeout":"9"}"#);
        assert_eq!(
            (run.action, &*run.subject),
            (ToolAction::RunCommand, "sh -c ls")
        );
        assert_eq!(run.arguments, [("timeout".to_owned(), "9".to_owned())]);
        let read = of(r#"{"path":"src/a.rs"}"#);
        assert_eq!(read.action, ToolAction::Read);
        assert!(!read.files[0].changed);
        let edit = of(r#"{"path":"src/a.rs","old_string":"a","new_string":"b"}"#);
        assert_eq!(edit.action, ToolAction::Edit);
        assert!(edit.files[0].changed);
        assert_eq!((&*edit.edits[0].old, &*edit.edits[0].new), ("a", "b"));
        assert_eq!(of(r#"{"query":"x"}"#).action, ToolAction::Search);
        let nested = of(r#""{\"n\":1,\"zz\":\"some\"}""#);
        assert_eq!(
            (nested.action, &*nested.subject),
            (ToolAction::Other, "some")
        );
        for nothing in ["not json", "[]", "7"] {
            assert_eq!(of(nothing), ToolUse::default());
        }
    }

    #[test]
    fn tools_are_known_behind_the_name_of_a_server() {
        for name in [
            "memory_grep",
            "mcp__agent-memory__memory_grep",
            "mcp_agent-memory_memory_recall",
            "agent-memory.memory_expand",
            "memory/memory_files",
        ] {
            assert!(is_memory_tool(name), "{name}");
        }
        for name in [
            "",
            "grep",
            "memory_grep_all",
            "team_memory_files",
            "Memory_grep",
            "mcp__memory_grep__list",
        ] {
            assert!(!is_memory_tool(name), "{name}");
        }
        assert!(names_tool("Read", "Read") && !names_tool("mcp__files__Read", ""));
    }

    #[test]
    fn generic_conventions_leave_texts_as_they_are() {
        let text = "<system-reminder>x</system-reminder>";
        let user = GenericConventions.user_text(text, None);
        assert_eq!((&*user.typed, user.injected.len()), (text, 0));
        let result = GenericConventions.tool_result(None, text, true);
        assert!(result.is_error && result.rejection.is_none() && result.text == text);
    }
}
