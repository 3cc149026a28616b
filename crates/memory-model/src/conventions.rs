//! Conventions of agent programs: the effects of their tools, and the texts that they add to messages.
//!
//! Agents differ in the names and arguments of their tools, and in the words that they add to tool results and to a
//! user's text. [`AgentConventions`] translates these conventions into typed facts. Code that reads a conversation,
//! such as an extractive summarizer, depends only on the facts.

use std::borrow::Cow;
use std::fmt::Debug;

use serde_json::Value;

use crate::{EntryKind, Message, Part, RawJson, Role};

/// Knowledge of an agent program's conventions: the effects of its tools, and the texts that it adds to messages.
///
/// The default methods know no agent: they recognize common names of a tool's arguments and leave texts unchanged.
pub trait AgentConventions: Send + Sync + Debug {
    /// Returns the name and version of the conventions, such as `known-agents@1`. Recipes of summaries contain it, so
    /// conventions that may give different results need different ids.
    fn id(&self) -> &str;

    /// Returns the effect of a tool call from the tool's name and the call's arguments, which are JSON text.
    fn tool_use(&self, name: &str, arguments: &str) -> ToolUse {
        let _ = name;
        ToolArguments::parse(arguments).tool_use()
    }

    /// Returns the outcome of a tool call, read from its result. `call` is the effect of the call, if known.
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

    /// Returns the id of the task that a call created, read from the call's result; `None` if there is no id in it.
    fn created_task<'a>(&self, call: &ToolUse, result: &'a str) -> Option<&'a str> {
        let _ = (call, result);
        None
    }

    /// Returns the folder in which the tool calls of a message run, as an absolute path; `None` if it is unknown.
    /// `meta` is the message's metadata.
    fn working_folder<'a>(&self, meta: Option<&'a RawJson>) -> Option<Cow<'a, str>> {
        let _ = meta;
        None
    }

    /// Returns a text without the reminders that programs put before and behind it, such as a note for the model behind
    /// the content of a file. Empty if there is nothing else.
    fn without_reminders<'a>(&self, text: &'a str) -> &'a str {
        text
    }

    /// Returns whether a text that a program put into a user's message has instructions for the agent that a person wrote
    /// down, such as the file `AGENTS.md` of a project.
    fn is_instructions(&self, injected: &str) -> bool {
        let _ = injected;
        false
    }

    /// Divides the text of a user's message into the part that a person typed and the texts that programs added. `meta`
    /// is the message's metadata.
    fn user_text<'a>(&self, text: &'a str, meta: Option<&RawJson>) -> UserText<'a> {
        let _ = meta;
        UserText {
            typed: Cow::Borrowed(text),
            injected: Vec::new(),
            is_document: false,
        }
    }
}

/// Conventions for an unknown agent: the default methods of [`AgentConventions`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GenericConventions;

impl AgentConventions for GenericConventions {
    fn id(&self) -> &str {
        "generic@1"
    }
}

/// Kind of action that a tool call performs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ToolAction {
    /// Runs a command in a shell. [`ToolUse::subject`] is the command line.
    RunCommand,
    /// Reads a file or a page, without changes.
    Read,
    /// Searches or lists files, without changes.
    Search,
    /// Changes a file.
    Edit,
    /// Asks the user questions. [`ToolOutcome::text`] has a line `question → answer` for each question.
    AskUser,
    /// Replaces a whole list of tasks.
    UpdateTasks,
    /// Creates or changes one task of a list; [`ToolUse::task`] describes the change.
    ChangeTask,
    /// Gives work to another agent. The call's result is the report of that agent.
    Delegate,
    /// Any other kind of action.
    #[default]
    Other,
}

/// Effect of a tool call: its kind, its subject, and the files and tasks that it changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolUse {
    /// Kind of action that the call performs.
    pub action: ToolAction,
    /// Subject of the call: a command line, a path, a query, a question, or a text such as a plan. Empty if unknown.
    pub subject: String,
    /// Files that the call reads or changes.
    pub files: Vec<FileAccess>,
    /// Texts that the call replaces in its files.
    pub edits: Vec<TextEdit>,
    /// Name and text of each argument except the subject, in order.
    pub arguments: Vec<(String, String)>,
    /// The task that the call creates or changes; `None` for any other call.
    pub task: Option<TaskChange>,
    /// Shell in which the call's command runs.
    pub shell: Shell,
}

/// Shell in which a command runs. The folder of the command depends on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shell {
    /// Unknown shell: a `cd` of an earlier call may still apply.
    #[default]
    Unknown,
    /// New shell, which starts in the agent's working folder.
    New,
    /// New shell, which starts in the given folder.
    In(String),
}

/// A change of one task of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskChange {
    /// Id of the task; `None` for a new task, because its id is in the call's result
    /// ([`AgentConventions::created_task`]).
    pub id: Option<String>,
    /// New text of the task; `None` leaves the text unchanged.
    pub subject: Option<String>,
    /// New state of the task; `None` leaves the state unchanged.
    pub state: Option<TaskState>,
}

/// State of a task in an agent's list of tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TaskState {
    /// Work on the task is in progress.
    Doing,
    /// Work on the task has not begun.
    #[default]
    Open,
    /// The task is done.
    Done,
    /// The task was abandoned.
    Dropped,
}

/// A file that a tool call uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileAccess {
    /// Path of the file, as the call writes it.
    pub path: String,
    /// Whether the call changes the file.
    pub changed: bool,
}

/// Replacement of a text in a file by a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextEdit {
    /// Text before the replacement; empty if the call writes a whole file.
    pub old: String,
    /// Text after the replacement.
    pub new: String,
}

/// Outcome of a tool call, read from its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutcome<'a> {
    /// Text of the tool result, without the words that the agent's program adds around it.
    pub text: Cow<'a, str>,
    /// Whether the call failed.
    pub is_error: bool,
    /// Refusal of the call by the user; `None` if the user did not refuse it.
    pub rejection: Option<Rejection<'a>>,
    /// Whether the call was ended before it succeeded or failed: by the user, or because another call failed.
    pub is_interrupted: bool,
}

/// Refusal of a tool call by the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rejection<'a> {
    /// Words in which the agent's program reports the refusal.
    pub notice: &'a str,
    /// Words in which the user explains the refusal; empty if the user gave no reason.
    pub reason: &'a str,
}

/// Text of a user's message, divided by author: a person, or a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserText<'a> {
    /// Text that a person typed. A shell command that the user ran is written `! command`.
    pub typed: Cow<'a, str>,
    /// Texts that a program put into the message, verbatim.
    pub injected: Vec<String>,
    /// Whether the typed text is a document, such as a summary of an earlier conversation.
    pub is_document: bool,
}

/// Returns the request in a user's message: the words that a person typed. Returns `None` for a note, a message of
/// another role, a document such as a summary, a mark in brackets, a command without arguments, and a text without a
/// letter or digit.
pub fn request(message: &Message, conventions: &dyn AgentConventions) -> Option<String> {
    if message.kind == EntryKind::Note || message.role != Role::User {
        return None;
    }
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let said = texts.collect::<Vec<_>>().join("\n");
    let text = conventions.user_text(&said, message.meta.as_ref());
    let typed = text.typed.trim();
    let is_mark = !typed.contains('\n')
        && (typed.starts_with('[') && typed.ends_with(']')
            || typed.starts_with('/') && !typed.contains(' '));
    let asks = !text.is_document && !is_mark && typed.chars().any(char::is_alphanumeric);
    asks.then(|| typed.to_owned())
}

/// Names of the tools with which a model searches its memory. Their results repeat earlier messages, so a search skips
/// these calls and results unless the caller requests them.
pub const MEMORY_TOOLS: &[&str] = &[
    "memory_grep",
    "memory_describe",
    "memory_expand",
    "memory_recall",
    "memory_files",
    "memory_requests",
    "history_list_windows",
    "history_list_items",
    "history_read_item",
    "history_search_contents",
];

/// Returns whether `called`, the name in a tool call, names the tool `tool`. The two names are equal, or `called` has
/// the name of a server before the tool's name, as clients of the Model Context Protocol write it (`mcp__server__tool`,
/// `server__tool`, `mcp_server_tool`, `server.tool`, `server/tool`, `server:tool`).
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
    // After `mcp_` or `mcp-`, a single `_` or `-` is enough between server and tool, but not after `mcp__`.
    let is_marked = (server.starts_with("mcp_") || server.starts_with("mcp-"))
        && !server.starts_with("mcp__")
        && server.ends_with(['_', '-']);
    server.is_empty()
        || !tool.is_empty()
            && (server.ends_with("__") || server.ends_with(['.', '/', ':']) || is_marked)
}

/// Returns whether a tool call with this name calls one of [`MEMORY_TOOLS`].
pub fn is_memory_tool(name: &str) -> bool {
    MEMORY_TOOLS.iter().any(|tool| names_tool(name, tool))
}

/// Names of arguments that hold a command line.
const COMMAND_KEYS: [&str; 3] = ["command", "cmd", "script"];
/// Names of arguments that hold a path.
const PATH_KEYS: [&str; 4] = ["file_path", "path", "filename", "file"];
/// Names of arguments that hold the subject of a call, such as a command or a path. The first name that occurs is used.
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
    /// Parses a call's arguments: JSON, or a JSON string that holds JSON. Text that is neither gives empty arguments.
    /// Names are in alphabetical order.
    pub fn parse(arguments: &str) -> Self {
        let value = serde_json::from_str::<Value>(arguments).unwrap_or_default();
        let inner = value
            .as_str()
            .and_then(|text| serde_json::from_str::<Value>(text).ok());
        let mut value = inner.filter(Value::is_object).unwrap_or(value);
        // Sorts the names, because the order in a map depends on features that other crates enable.
        value.sort_all_objects();
        Self(value)
    }

    /// Returns the arguments as a JSON value.
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// Returns the text of the argument `name`: a string that is not blank, or a list of strings joined by spaces.
    /// `None` for any other value, and if there is no such argument.
    pub fn text(&self, name: &str) -> Option<String> {
        flat(self.0.get(name)?)
    }

    /// Returns the name of the call's subject argument, and its text. The subject is the first argument of `names` with
    /// a text, otherwise the first argument with a text. The name is `None` if the arguments are one string, which is
    /// then the subject, or have no text.
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

    /// Returns the name and text of each argument except `except`. A text inside an object has the name of its field.
    pub fn others(&self, except: Option<&str>) -> Vec<(String, String)> {
        let mut out = Vec::new();
        if let Value::Object(map) = &self.0 {
            let others = map.iter().filter(|(name, _)| Some(name.as_str()) != except);
            others.for_each(|(name, value)| collect(name, value, &mut out));
        }
        out
    }

    /// Returns the edits that the arguments describe, at most one for each JSON object. The old text is the first text
    /// with a name that begins with `old`, and the new text is the first with a name that begins with `new`, in any
    /// case of letters. If an object lacks one of the two, the first name of `content` with a text gives the new text
    /// of a whole file, and the old text is empty. Objects and lists inside an object are searched only if the object
    /// itself describes no edit.
    pub fn edits(&self, content: &[&str]) -> Vec<TextEdit> {
        let mut out = Vec::new();
        find_edits(&self.0, content, &mut out);
        out
    }

    /// Returns the effect of a call with these arguments, as far as the names of the arguments determine it.
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

/// Returns whether a text may be a path: one short line with a separator or a dot, and not a URL.
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
            "mcp__memory__history_read_item",
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
