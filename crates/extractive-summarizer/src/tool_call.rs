//! A tool call as one line, and the informative lines of its result.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use memory_model::conventions::{ToolAction, ToolUse};

use crate::edits::changes;
use crate::failure::{self, is_error_line};
use crate::item::COMMAND;
use crate::shell::{command, is_look};
use crate::text::{clip, squeeze, verbatim, window};

/// Number of bytes that are read at the start of a tool result, and again at its end.
pub(crate) const RESULT_BYTES: usize = 16 * 1024;
/// Maximum length that is read of a call's subject, in bytes.
const ABOUT_BYTES: usize = 4_000;
/// Maximum number of candidate lines of a tool result, from which the lines that describe an error best are chosen.
const ERRORS: usize = 12;
/// Maximum length of a call's subject in its line if the subject is a text such as a plan, in characters.
const ABOUT_CHARS: usize = 80;

/// Words of commands that change something beyond a file, such as `commit`.
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

/// A tool call, as an extract shows it.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// Action, subject and files of the call, by the agent's conventions.
    pub(crate) told: ToolUse,
    /// Subject of the call, on one line.
    pub(crate) about: String,
    /// Subject of the call, line by line, if it is a text such as a plan.
    pub(crate) text: Vec<String>,
    /// Changes that the call makes in a file, as lines of a diff.
    pub(crate) changed: Vec<String>,
    /// Other arguments of the call, line by line.
    pub(crate) detail: Vec<String>,
    /// Whether the call runs a command that changes something lasting.
    pub(crate) lasting: bool,
    /// Whether the call only looks at something.
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

    /// Returns the label of the call's line: the tool's name, or the label of a command.
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

/// Returns the texts of arguments, line by line.
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
    /// Returns whether the lines in `changed` show all of the call's arguments.
    pub(crate) fn tells_all(&self) -> bool {
        let told = |text: &str| self.changed.iter().any(|line| line.contains(text));
        !self.changed.is_empty()
            && self.detail.iter().all(|line| {
                let (_, text) = line.split_once(": ").unwrap_or(("", line));
                line.ends_with(':') || told(text.trim())
            })
    }
}

/// Returns the part of a chain of commands that changes something lasting, with the commands after it. Otherwise
/// returns the chain without the `cd` at its start.
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

/// Returns whether a command changes something lasting.
pub(crate) fn is_lasting(line: &str) -> bool {
    let lower = line.to_lowercase();
    !is_look(line) && LASTING.iter().any(|word| lower.contains(word))
}

/// Returns a command or another subject on one line, otherwise verbatim.
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

/// Returns the three lines of a tool result that describe an error best, from its start and its end, without
/// repetitions.
pub(crate) fn errors(text: &str) -> Vec<String> {
    let (head, tail) = window(text, RESULT_BYTES, RESULT_BYTES);
    let mut out: Vec<String> = Vec::new();
    for line in head.lines().chain(tail.lines()) {
        if line.len() > 4_000 && !line.get(..200).is_some_and(is_error_line) {
            continue;
        }
        if is_error_line(line) {
            let line = squeeze(window(line, 400, 0).0);
            if !out.contains(&line) {
                out.push(line);
            }
            if out.len() == ERRORS {
                break;
            }
        }
    }
    let mut out = failure::lines(out, &BTreeSet::new());
    let mut order: Vec<u8> = out.iter().map(|line| failure::tells(line)).collect();
    order.sort_by_key(|tells| Reverse(*tells));
    if let Some(least) = order.get(2) {
        out.retain(|line| failure::tells(line) >= *least);
        out.truncate(3);
    }
    out
}

/// Returns the last four lines of a tool result with words, last line first.
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
        assert!(looks("cd /a; cat b | head -5 && ls") && looks("gh api repos/a/b"));
        assert!(!looks("ls && make") && !looks("cat > a.txt") && !looks("gh api a -X POST"));
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
            errors("fn error_kind() {}\n0 errors\nlog.error('x')\nErrors are ignored here"),
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
