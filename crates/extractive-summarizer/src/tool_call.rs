//! What a tool call did, in a line, and what its result says.

use std::borrow::Cow;

use serde_json::Value;

use crate::edits::changes;
use crate::text::{clip, squeeze, verbatim, window};

/// How much of a result's start and end is looked through, in bytes each.
pub(crate) const RESULT_BYTES: usize = 16 * 1024;
/// How much of what a call is about is read, in bytes.
const ABOUT_BYTES: usize = 4_000;
/// A call that is about a text, such as a plan, is named by so many characters of it.
const ABOUT_CHARS: usize = 80;

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
pub(crate) enum FileUse {
    Changed,
    Read,
}

/// A tool call, understood as far as needed.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) about: String,
    /// What it is about, line by line, where that is a text such as a plan.
    pub(crate) text: Vec<String>,
    /// What it changes in a file.
    pub(crate) changed: Vec<String>,
    /// What else it was called with, line by line.
    pub(crate) detail: Vec<String>,
    pub(crate) files: Vec<(String, FileUse)>,
    /// It ran a command, so that its output may hold errors and an outcome.
    pub(crate) command: bool,
    /// It asked the user, so that its result is the user's word.
    pub(crate) asks: bool,
    /// It only looked at something.
    pub(crate) looks: bool,
    /// It changed something that lasts.
    pub(crate) lasting: bool,
    /// It wrote down the state of a list of tasks, which the next such call replaces.
    pub(crate) tasks: bool,
    /// It had somebody else work, whose report is its result.
    pub(crate) delegates: bool,
}

impl Call {
    pub(crate) fn new(name: &str, arguments: &str) -> Self {
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
        let asks =
            lower.contains("ask") && lower.contains("question") || lower.contains("ask_user");
        if asks {
            let mut asked = Vec::new();
            questions(&value, &mut asked);
            if !asked.is_empty() {
                about = Some(asked.join(" "));
            }
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
        let told = about;
        let about = match (tasks.as_ref().or(moved.as_ref()), &command) {
            (Some(tasks), _) => tasks.clone(),
            (None, Some(command)) => one_line(command),
            (None, None) => format!("{searched}{}", one_line(&told)),
        };
        let command = command.is_some();
        let document = !command && files.is_empty() && told.len() > 200 && told.lines().count() > 2;
        let about = match document {
            true => clip(&about, ABOUT_CHARS),
            false => about,
        };
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
            asks,
            text: match document {
                true => verbatim(&told, RESULT_BYTES, RESULT_BYTES),
                false => Vec::new(),
            },
            changed: match files.iter().any(|(_, kind)| *kind == FileUse::Changed) {
                true => changes(&value, files.iter().any(|(path, _)| is_prose(path))),
                false => Vec::new(),
            },
            delegates: matches!(lower.as_str(), "task" | "agent" | "delegate" | "subagent")
                || value.get("subagent_type").is_some(),
            tasks: tasks.is_some(),
            about,
            detail,
            files,
        }
    }
}

impl Call {
    /// Whether what it changes is told in full, so that its arguments tell nothing more.
    pub(crate) fn tells_all(&self) -> bool {
        let told = |text: &str| self.changed.iter().any(|line| line.contains(text));
        !self.changed.is_empty()
            && self.detail.iter().all(|line| {
                let (_, text) = line.split_once(": ").unwrap_or(("", line));
                line.ends_with(':') || told(text.trim())
            })
    }
}

/// The questions that a call asks.
fn questions(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| match value.as_str() {
            Some(text) if key == "question" => out.push(squeeze(text)),
            Some(_) => {}
            None => questions(value, out),
        }),
        Value::Array(list) => list.iter().for_each(|value| questions(value, out)),
        _ => {}
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

/// A command without the `cd` before it.
pub(crate) fn command(line: &str) -> &str {
    match line.split_once("&&") {
        Some((before, after)) if before.starts_with("cd ") => after.trim_start(),
        _ => line,
    }
}

/// A command of git without the folder that it is told to work in.
pub(crate) fn anywhere(command: &str) -> Cow<'_, str> {
    let told = command.strip_prefix("git -C ");
    match told.and_then(|after| after.split_once(' ')) {
        Some((_, after)) => Cow::Owned(format!("git {after}")),
        None => Cow::Borrowed(command),
    }
}

/// The part of a chain of commands that changes something that lasts, with what comes after it;
/// else the command without the `cd` before it.
pub(crate) fn lasting(line: &str) -> &str {
    let line = command(line);
    let mut rest = line;
    while let Some((first, after)) = rest.split_once(" && ") {
        if LASTING.iter().any(|word| first.contains(word)) {
            return rest;
        }
        rest = after;
    }
    match LASTING.iter().any(|word| rest.contains(word)) {
        true => rest,
        false => line,
    }
}

/// Whether a command only looks at something; a `cd` before it does not count.
fn is_look(line: &str) -> bool {
    let command = anywhere(command(line));
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

fn is_prose(path: &str) -> bool {
    let end = path.rsplit('.').next().unwrap_or("");
    matches!(end, "md" | "mdx" | "markdown" | "txt" | "rst" | "adoc")
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

/// Lines of a result that report an error, first ones first, at most three; looked for at its head
/// and its tail.
pub(crate) fn errors(text: &str) -> Vec<String> {
    let (head, tail) = window(text, RESULT_BYTES, RESULT_BYTES);
    let mut out = Vec::new();
    for line in head.lines().chain(tail.lines()) {
        if line.len() > 4_000 && !line.get(..200).is_some_and(is_error_line) {
            continue;
        }
        if is_error_line(line) {
            let line = squeeze(window(line, 400, 0).0);
            if !out.contains(&line) {
                out.push(line);
            }
            if out.len() == 3 {
                break;
            }
        }
    }
    out
}

/// The last four lines of a result that say something, the last one first.
pub(crate) fn last_lines(text: &str) -> Vec<String> {
    let lines = window(text, 0, RESULT_BYTES);
    let end = if lines.1.is_empty() { lines.0 } else { lines.1 };
    end.lines()
        .rev()
        .map(|line| squeeze(window(line, 400, 0).0))
        .filter(|line| line.chars().any(char::is_alphanumeric))
        .take(4)
        .collect()
}

/// Whether a line of a command's output reports an error, and does not merely speak of one.
pub(crate) fn is_error_line(line: &str) -> bool {
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
        "npm error",
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
        || holds.iter().any(|mark| line.contains(mark))
        || is_numbered_error(line);
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

/// Whether a line only says with which code a command ended.
pub(crate) fn is_exit_code(line: &str) -> bool {
    let line = line.trim().to_lowercase();
    let starts = ["exit code ", "exit status ", "command exited with code "];
    let code = starts.iter().find_map(|start| line.strip_prefix(start));
    code.is_some_and(|code| code.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether a line holds `error TS2739:` or another compiler's number for an error.
fn is_numbered_error(line: &str) -> bool {
    let Some((_, after)) = line.split_once("error ") else {
        return false;
    };
    let code = after.split([':', ' ']).next().unwrap_or("");
    let digits = code.trim_start_matches(|c: char| c.is_ascii_uppercase());
    digits.len() < code.len()
        && digits.len() > 2
        && digits.bytes().all(|b| b.is_ascii_digit())
        && after
            .get(code.len()..)
            .is_some_and(|rest| rest.starts_with(':'))
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
    fn a_look_is_a_look_wherever_it_is_taken() {
        let looks = |command: &str| {
            Call::new(
                "bash",
                &serde_json::json!({ "command": command }).to_string(),
            )
            .looks
        };
        assert!(looks("ls -l") && looks("cd /a && git status") && looks("git -C /a status"));
        assert!(!looks("git -C /a push") && !looks("cd /a && make"));
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
    fn what_an_edit_changes_depends_on_the_kind_of_file() {
        let changed = |name: &str, arguments: serde_json::Value| {
            Call::new(name, &arguments.to_string()).changed
        };
        let text = "# Use\nfn code() {}\n";
        let write = |path: &str| {
            changed(
                "write",
                serde_json::json!({ "path": path, "content": text }),
            )
        };
        assert_eq!(write("a.md"), ["+ fn code() {}", "new: Use", "+2 -0 lines"]);
        assert_eq!(write("a.rs"), ["+ fn code() {}", "+2 -0 lines"]);
        let path = serde_json::json!({ "path": "a.rs", "content": text });
        assert_eq!(changed("read", path), [] as [&str; 0]);
    }

    #[test]
    fn errors_are_told_from_talk_of_errors() {
        assert_eq!(
            errors("ok\nerror[E0382]: borrow of moved value\n  |\ntest result: FAILED. 1 failed"),
            [
                "error[E0382]: borrow of moved value",
                "test result: FAILED. 1 failed"
            ]
        );
        assert_eq!(
            errors("a.ts(2,3): error TS2304: Cannot\nno error TS without a number: x"),
            ["a.ts(2,3): error TS2304: Cannot"]
        );
        assert_eq!(
            errors("fn error_kind() {}\n0 errors\nlog.error('x')"),
            [] as [&str; 0]
        );
        assert_eq!(last_lines("a\n\nlast line\n---\n"), ["last line", "a"]);
        assert_eq!(last_lines(""), [] as [&str; 0]);
    }

    #[test]
    fn the_head_and_the_tail_of_a_huge_result_are_seen() {
        let huge = format!("error: first\n{}\nfatal: last", "x\n".repeat(240_000));
        assert_eq!(errors(&huge), ["error: first", "fatal: last"]);
        assert_eq!(last_lines(&huge)[0], "fatal: last");
    }
}
