//! A tool call in a line, and the telling lines of its result.

use std::borrow::Cow;

use memory_model::conventions::{ToolAction, ToolUse};

use crate::edits::changes;
use crate::item::COMMAND;
use crate::text::{clip, squeeze, verbatim, window};

/// Maximum length that is read of a result's start and of its end, in bytes each.
pub(crate) const RESULT_BYTES: usize = 16 * 1024;
/// Maximum length that is read of a call's subject, in bytes.
const ABOUT_BYTES: usize = 4_000;
/// Maximum length of the name of a call whose subject is a text, such as a plan, in characters.
const ABOUT_CHARS: usize = 80;

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

/// Beginnings of commands that only look at something.
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

/// A tool call, as an extract tells it.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// Action of the call.
    pub(crate) told: ToolUse,
    /// Subject of the call, on one line.
    pub(crate) about: String,
    /// Subject of the call, line by line, where it is a text such as a plan.
    pub(crate) text: Vec<String>,
    /// Changes in a file, as lines.
    pub(crate) changed: Vec<String>,
    /// Other arguments, line by line.
    pub(crate) detail: Vec<String>,
    /// Whether it changes something that lasts.
    pub(crate) lasting: bool,
    /// Whether it only looks at something.
    pub(crate) looks: bool,
}

impl Call {
    pub(crate) fn new(name: &str, told: ToolUse) -> Self {
        let about = one_line(&told.subject);
        let command = told.action == ToolAction::RunCommand;
        let subject = &told.subject;
        let document =
            !command && told.files.is_empty() && subject.len() > 200 && subject.lines().count() > 2;
        let (about, text) = match document {
            true => (
                clip(&about, ABOUT_CHARS),
                verbatim(subject, RESULT_BYTES, RESULT_BYTES),
            ),
            false => (about, Vec::new()),
        };
        let looks = match told.action {
            ToolAction::RunCommand => is_look(&about),
            ToolAction::Read | ToolAction::Search => true,
            _ => false,
        };
        let prose = told.files.iter().any(|file| is_prose(&file.path));
        let changed = changes(&told.edits, prose);
        Self {
            name: squeeze(name),
            lasting: command && is_lasting(&about),
            looks,
            text,
            changed,
            about,
            detail: detail(&told.arguments),
            told,
        }
    }

    pub(crate) fn is(&self, action: ToolAction) -> bool {
        self.told.action == action
    }

    /// How a line names it: the tool, or the mark of a command.
    pub(crate) fn label(&self) -> &str {
        match self.is(ToolAction::RunCommand) {
            true => COMMAND,
            false => &self.name,
        }
    }

    pub(crate) fn path(&self) -> Option<&str> {
        Some(self.told.files.first()?.path.as_str())
    }
}

/// The texts of arguments, line by line.
fn detail(arguments: &[(String, String)]) -> Vec<String> {
    let mut out = Vec::new();
    for (name, text) in arguments {
        let lines = verbatim(text, RESULT_BYTES, RESULT_BYTES);
        match lines.as_slice() {
            [line] => out.push(format!("{name}: {}", line.trim())),
            _ => {
                out.push(format!("{name}:"));
                out.extend(lines);
            }
        }
    }
    out
}

impl Call {
    /// Whether `changed` tells all of its arguments.
    pub(crate) fn tells_all(&self) -> bool {
        let told = |text: &str| self.changed.iter().any(|line| line.contains(text));
        !self.changed.is_empty()
            && self.detail.iter().all(|line| {
                let (_, text) = line.split_once(": ").unwrap_or(("", line));
                line.ends_with(':') || told(text.trim())
            })
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

/// Whether a command changes something that lasts.
pub(crate) fn is_lasting(line: &str) -> bool {
    let lower = line.to_lowercase();
    !is_look(line) && LASTING.iter().any(|word| lower.contains(word))
}

/// Whether a command only looks at something; a `cd` before it does not count.
pub(crate) fn is_look(line: &str) -> bool {
    let command = anywhere(command(line));
    LOOKING.iter().any(|start| command.starts_with(start))
}

/// A command or another subject on one line, otherwise verbatim.
fn one_line(text: &str) -> String {
    let mut rest = window(text, ABOUT_BYTES, 0).0.trim();
    for shell in ["bash -lc ", "bash -c ", "sh -c "] {
        rest = rest.strip_prefix(shell).unwrap_or(rest).trim();
    }
    let words: Vec<&str> = rest.split_whitespace().collect();
    words.join(" ")
}

fn is_prose(path: &str) -> bool {
    let end = path.rsplit('.').next().unwrap_or("");
    matches!(end, "md" | "mdx" | "markdown" | "txt" | "rst" | "adoc")
}

/// The first three lines of a result that report an error, in its head and its tail.
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

/// The last four lines of a result with words, the last one first.
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

/// Whether a line of a command's output reports an error, rather than mentions one.
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
    let reports = starts.iter().any(|mark| line.starts_with(mark))
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
    reports && !harmless.iter().any(|mark| line.contains(mark))
}

/// Whether a line only says with which code a command ended.
pub(crate) fn is_exit_code(line: &str) -> bool {
    let line = line.trim().to_lowercase();
    let words: Vec<&str> = line.split(' ').collect();
    let [said @ .., "code" | "status", code] = words.as_slice() else {
        return false;
    };
    let exits = said.len() < 4 && said.iter().any(|word| word.starts_with("exit"));
    exits && code.bytes().all(|b| b.is_ascii_digit())
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
    use memory_model::conventions::{AgentConventions as _, GenericConventions};
    use serde_json::json;

    use super::*;

    fn call(arguments: &serde_json::Value) -> Call {
        let told = GenericConventions.tool_use("tool", &arguments.to_string());
        Call::new("tool", told)
    }

    #[test]
    fn a_command_is_told_on_one_line() {
        let about = |arguments| call(&arguments).about;
        assert_eq!(
            about(json!({"description": "Run", "command": "cd /a/b && cargo test -p x\n\necho"})),
            "cd /a/b && cargo test -p x echo"
        );
        assert_eq!(
            about(json!({"command": ["bash", "-lc", "ls  -l"]})),
            "ls -l"
        );
    }

    #[test]
    fn a_look_is_a_look_wherever_it_is_taken() {
        let looks = |command: &str| call(&json!({ "command": command })).looks;
        assert!(looks("ls -l") && looks("cd /a && git status") && looks("git -C /a status"));
        assert!(!looks("git -C /a push") && !looks("cd /a && make"));
    }

    #[test]
    fn what_an_edit_changes_depends_on_the_kind_of_file() {
        let text = "# Use\nfn code() {}\n";
        let write = |path: &str| call(&json!({ "path": path, "content": text })).changed;
        assert_eq!(write("a.md"), ["+ fn code() {}", "new: Use", "+2 -0 lines"]);
        assert_eq!(write("a.rs"), ["+ fn code() {}", "+2 -0 lines"]);
        assert_eq!(call(&json!({ "path": "a.rs" })).changed, [""; 0]);
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
