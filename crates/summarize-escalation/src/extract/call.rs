//! What a tool call did, in a line, and what its result says.

use serde_json::Value;

use super::text::{squeeze, verbatim, window};

/// How much of a result's start and end is looked through, in bytes each.
pub(super) const RESULT_BYTES: usize = 16 * 1024;
/// How much of what a call is about is read, in bytes.
const ABOUT_BYTES: usize = 4_000;

/// Argument keys that hold what a call is about, most telling first.
const KEYS: [&str; 22] = [
    "command",
    "cmd",
    "script",
    "file_path",
    "notebook_path",
    "path",
    "filename",
    "file",
    "uri",
    "url",
    "query",
    "pattern",
    "subject",
    "title",
    "description",
    "skill",
    "name",
    "question",
    "prompt",
    "message",
    "text",
    "input",
];
const PATH_KEYS: [&str; 7] = [
    "file_path",
    "notebook_path",
    "path",
    "filename",
    "file",
    "target_file",
    "relative_path",
];
const COMMAND_KEYS: [&str; 3] = ["command", "cmd", "script"];

/// Command words that change something beyond a file.
const LASTING: &[&str] = &[
    "commit",
    "push",
    "merge",
    "rebase",
    "deploy",
    "publish",
    "release",
    "install",
    "migrate",
    " pr ",
    "issue",
    "rm ",
    "mv ",
    "tag ",
    "checkout -b",
    "restart",
    "kill",
    "curl -x",
    "docker",
    "terraform",
    "kubectl",
    "apply",
];

/// How commands begin that only look at something.
const LOOKING: &[&str] = &[
    "cat ",
    "ls",
    "grep ",
    "rg ",
    "find ",
    "head ",
    "tail ",
    "sed -n",
    "awk ",
    "tree",
    "jq ",
    "pwd",
    "which ",
    "wc ",
    "echo ",
    "nl ",
    "less ",
    "stat ",
    "file ",
    "du ",
    "git status",
    "git diff",
    "git log",
    "git show",
    "git branch",
    "git remote",
    "gh pr view",
    "gh pr diff",
    "gh pr list",
    "gh pr checks",
    "gh issue view",
    "gh issue list",
    "gh api",
    "gh run view",
];

/// Whether a file was changed or only read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileUse {
    Changed,
    Read,
}

/// A tool call, understood as far as needed.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) about: String,
    /// What else it was called with, line by line.
    pub(super) detail: Vec<String>,
    pub(super) files: Vec<(String, FileUse)>,
    /// It ran a command, so that its output may hold errors and an outcome.
    pub(super) command: bool,
    /// It asked the user, so that its result is the user's word.
    pub(super) asks: bool,
    /// It only looked at something.
    pub(super) looks: bool,
    /// It changed something that lasts.
    pub(super) lasting: bool,
    /// It wrote down the state of a list of tasks, which the next such call replaces.
    pub(super) tasks: bool,
    /// It had somebody else work, whose report is its result.
    pub(super) delegates: bool,
}

impl Call {
    pub(super) fn new(name: &str, arguments: &str) -> Self {
        let lower = name.to_lowercase();
        let value = match serde_json::from_str::<Value>(arguments) {
            Ok(Value::String(text)) => serde_json::from_str(&text)
                .ok()
                .filter(Value::is_object)
                .unwrap_or(Value::String(text)),
            Ok(value) => value,
            Err(_) => Value::Null,
        };
        let text = |key: &&str| value.get(*key).and_then(flat);
        let command = COMMAND_KEYS.iter().find_map(&text);
        let tasks = tasks(&value);
        let mut key = KEYS.into_iter().find(|key| text(key).is_some());
        let mut about = key.and_then(|key| text(&key));
        if let Value::String(text) = &value {
            about = Some(text.clone());
        } else if let Value::Object(map) = &value
            && about.is_none()
        {
            key = map
                .iter()
                .find(|(_, v)| first_text(v).is_some())
                .map(|(key, _)| key.as_str());
            about = map.values().find_map(first_text);
        }
        let about = about.unwrap_or_default();
        let mut files = patched(&about);
        if files.is_empty()
            && let Some(kind) = file_use(&lower)
        {
            let path = PATH_KEYS.iter().find_map(&text);
            files.extend(path.filter(|path| is_path(path)).map(|path| (path, kind)));
        }
        let mut detail = Vec::new();
        if tasks.is_none()
            && let Value::Object(map) = &value
        {
            let rest = map.iter().filter(|(name, _)| Some(name.as_str()) != key);
            rest.for_each(|(name, value)| argument(name, value, &mut detail));
        }
        let searched = match text(&"pattern") {
            Some(pattern) if key != Some("pattern") => format!("{} in ", squeeze(&pattern)),
            _ => String::new(),
        };
        // A task that moves on is told by its number and where it is now.
        let moved = text(&"taskId").zip(text(&"status"));
        let moved = moved.map(|(task, status)| format!("{task}: {status}"));
        let about = match (tasks.as_ref().or(moved.as_ref()), &command) {
            (Some(tasks), _) => tasks.clone(),
            (None, Some(command)) => one_line(command),
            (None, None) => format!("{searched}{}", one_line(&about)),
        };
        let command = command.is_some();
        let looks = match command {
            true => is_look(&about),
            false => [
                "read", "grep", "glob", "search", "list", "view", "find", "ls", "fetch",
            ]
            .iter()
            .any(|word| lower.contains(word)),
        };
        let about_lower = about.to_lowercase();
        Self {
            name: squeeze(name),
            lasting: command && !looks && LASTING.iter().any(|word| about_lower.contains(word)),
            command,
            looks,
            asks: lower.contains("ask") && lower.contains("question") || lower.contains("ask_user"),
            delegates: matches!(lower.as_str(), "task" | "agent" | "delegate" | "subagent")
                || value.get("subagent_type").is_some(),
            tasks: tasks.is_some(),
            about,
            detail,
            files,
        }
    }
}

/// A list of tasks with a state each, in a line: what is open first.
fn tasks(value: &Value) -> Option<String> {
    let list = ["todos", "plan", "tasks"]
        .iter()
        .find_map(|key| value.get(key)?.as_array())?;
    let text = |task: &Value, keys: &[&str]| {
        let text = keys.iter().find_map(|key| task.get(key)?.as_str());
        text.map(squeeze)
    };
    let mut groups: [(&str, Vec<String>); 3] = [
        ("doing", Vec::new()),
        ("open", Vec::new()),
        ("done", Vec::new()),
    ];
    for task in list {
        let what = text(task, &["content", "step", "text", "title", "subject"])?;
        let state = text(task, &["status", "state"]).unwrap_or_default();
        let group = match state.as_str() {
            "completed" | "done" => 2,
            "in_progress" | "doing" => 0,
            _ => 1,
        };
        if let Some((_, tasks)) = groups.get_mut(group) {
            tasks.push(what);
        }
    }
    let told = groups.iter().filter(|(_, tasks)| !tasks.is_empty());
    let told: Vec<String> = told
        .map(|(state, tasks)| format!("{state}: {}", tasks.join("; ")))
        .collect();
    (!told.is_empty()).then(|| told.join(" | "))
}

/// Adds an argument's texts, line by line.
fn argument(name: &str, value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) if !text.trim().is_empty() => {
            let lines = verbatim(text, RESULT_BYTES, RESULT_BYTES);
            match lines.as_slice() {
                [line] => out.push(format!("{name}: {}", line.trim())),
                _ => {
                    out.push(format!("{name}:"));
                    out.extend(lines);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| argument(name, value, out)),
        Value::Object(map) => map
            .iter()
            .for_each(|(name, value)| argument(name, value, out)),
        _ => {}
    }
}

/// Whether a command only looks at something; a `cd` before it does not count.
fn is_look(command: &str) -> bool {
    let mut command = command;
    if command.starts_with("cd ")
        && let Some((_, after)) = command.split_once("&&")
    {
        command = after.trim_start();
    }
    LOOKING.iter().any(|start| command.starts_with(start))
}

/// A string, or a list of strings as one line.
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

/// The first text in a value.
fn first_text(value: &Value) -> Option<String> {
    match value {
        Value::Array(items) => items.iter().find_map(first_text),
        Value::Object(map) => map.values().find_map(first_text),
        _ => flat(value),
    }
}

/// A command, or what else a call is about, on one line and otherwise to the letter.
fn one_line(text: &str) -> String {
    let mut rest = window(text, ABOUT_BYTES, 0).0.trim();
    for shell in ["bash -lc ", "bash -c ", "sh -c "] {
        rest = rest.strip_prefix(shell).unwrap_or(rest).trim();
    }
    let words: Vec<&str> = rest.split_whitespace().collect();
    words.join(" ")
}

fn file_use(tool: &str) -> Option<FileUse> {
    let has = |words: &[&str]| words.iter().any(|word| tool.contains(word));
    if has(&[
        "write", "edit", "create", "patch", "replace", "insert", "delete", "remove", "rename",
        "move",
    ]) {
        Some(FileUse::Changed)
    } else if has(&["read", "view", "open", "cat"]) {
        Some(FileUse::Read)
    } else {
        None
    }
}

fn is_path(text: &str) -> bool {
    text.len() < 300
        && !text.contains('\n')
        && !text.contains("://")
        && text.contains(['/', '\\', '.'])
}

/// The files of a patch in the `*** Update File:` form.
fn patched(text: &str) -> Vec<(String, FileUse)> {
    if !text.contains("*** ") {
        return Vec::new();
    }
    text.lines()
        .filter_map(|line| {
            ["*** Update File: ", "*** Add File: ", "*** Delete File: "]
                .iter()
                .find_map(|mark| line.strip_prefix(mark))
        })
        .map(|path| (path.trim().to_owned(), FileUse::Changed))
        .collect()
}

/// What a tool's output says about how it went.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// Lines that report an error, first ones first, at most three.
    pub(super) errors: Vec<String>,
    /// The last line.
    pub(super) last: String,
}

/// Looks through a result, at its head and its tail.
pub(super) fn output(text: &str) -> Output {
    let (head, tail) = window(text, RESULT_BYTES, RESULT_BYTES);
    let mut out = Output::default();
    for line in head.lines().chain(tail.lines()) {
        if line.len() > 4_000 && !line.get(..200).is_some_and(is_error_line) {
            continue;
        }
        if out.errors.len() < 3 && is_error_line(line) {
            let line = squeeze(window(line, 400, 0).0);
            if !out.errors.contains(&line) {
                out.errors.push(line);
            }
        }
    }
    let end = if tail.is_empty() { head } else { tail };
    out.last = end
        .lines()
        .rev()
        .map(|line| squeeze(window(line, 400, 0).0))
        .find(|line| line.chars().any(char::is_alphanumeric))
        .unwrap_or_default();
    out
}

/// Whether a line of a command's output reports an error, and does not merely speak of one.
pub(super) fn is_error_line(line: &str) -> bool {
    let line = line.trim_start();
    if line.is_empty() {
        return false;
    }
    let starts = [
        "error",
        "Error",
        "ERROR",
        "fatal",
        "FATAL",
        "panic",
        "FAIL",
        "--- FAIL",
        "Traceback",
        "Exception",
        "thread '",
        "ERR!",
        "npm ERR",
        "E   ",
        "✗",
        "✖",
        "❌",
        "Exit code",
        "exit code",
        "exit status",
        "Command failed",
        "Segmentation",
    ];
    let holds = [
        "panicked at",
        ": error:",
        "error[E",
        "Error:",
        "Exception:",
        "exit status ",
        "exit code ",
        "command not found",
        "No such file",
        "Permission denied",
        "permission denied",
        "CONFLICT (",
        "FAILED",
        "cannot find",
        "undefined:",
        "timed out",
    ];
    let found = starts.iter().any(|mark| line.starts_with(mark))
        || holds.iter().any(|mark| line.contains(mark));
    let harmless = [
        "0 failed",
        "0 errors",
        "no error",
        "No error",
        "exit code 0",
        "exit status 0",
        "Exit code 0",
        "0 error",
        "errors.New",
        "Error: 0",
        "errors: 0",
    ];
    found && !harmless.iter().any(|mark| line.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(name: &str, arguments: &str) -> String {
        Call::new(name, arguments).about
    }

    #[test]
    fn a_call_is_told_by_what_it_is_about() {
        assert_eq!(
            about(
                "bash",
                r#"{"description":"Run","command":"cd /a/b && cargo test -p x\n\necho"}"#
            ),
            "cd /a/b && cargo test -p x echo"
        );
        assert_eq!(
            about("shell", r#"{"command":["bash","-lc","ls  -l"]}"#),
            "ls -l"
        );
        assert_eq!(about("x", r#""{\"path\":\"a.rs\"}""#), "a.rs");
        assert_eq!(about("x", r#"{"n":1,"zz":"some"}"#), "some");
        assert_eq!(
            about("Grep", r#"{"path":"/src","pattern":"fn main"}"#),
            "fn main in /src"
        );
        assert_eq!(
            about(
                "TodoWrite",
                r#"{"todos":[{"content":"a","status":"completed"},{"content":"b","status":"pending"}]}"#
            ),
            "open: b | done: a"
        );
        assert_eq!(about("x", "not json"), "");
        assert_eq!(about("x", "[]"), "");
    }

    #[test]
    fn files_are_told_apart() {
        let files = |name: &str, arguments: &str| Call::new(name, arguments).files;
        assert_eq!(
            files("Read", r#"{"file_path":"/a/b.rs"}"#),
            [("/a/b.rs".to_owned(), FileUse::Read)]
        );
        assert_eq!(
            files("str_replace_editor", r#"{"path":"b.rs"}"#),
            [("b.rs".to_owned(), FileUse::Changed)]
        );
        assert_eq!(files("Grep", r#"{"path":"/a"}"#), []);
        assert_eq!(
            files(
                "apply_patch",
                r#"{"input":"*** Begin Patch\n*** Update File: a/b.ts\n@@"}"#
            ),
            [("a/b.ts".to_owned(), FileUse::Changed)]
        );
    }

    #[test]
    fn errors_are_told_from_talk_of_errors() {
        let errors = |text: &str| output(text).errors;
        assert_eq!(
            errors("ok\nerror[E0382]: borrow of moved value\n  |\ntest result: FAILED. 1 failed"),
            [
                "error[E0382]: borrow of moved value",
                "test result: FAILED. 1 failed"
            ]
        );
        assert_eq!(
            errors("fn error_kind() {}\n0 errors\nlog.error('x')"),
            [] as [&str; 0]
        );
        assert_eq!(output("a\n\nlast line\n---\n").last, "last line");
        assert_eq!(output("").last, "");
    }

    #[test]
    fn the_head_and_the_tail_of_a_huge_result_are_seen() {
        let huge = format!("error: first\n{}\nfatal: last", "x\n".repeat(240_000));
        let seen = output(&huge);
        assert_eq!(seen.errors, ["error: first", "fatal: last"]);
        assert_eq!(seen.last, "fatal: last");
    }
}
