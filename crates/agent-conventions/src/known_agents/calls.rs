//! Reads calls of tools: the action, the subject, and the files and edits that a call names.

use memory_model::conventions::{FileAccess, Shell, ToolAction, ToolArguments, ToolUse, is_path};
use serde_json::Value;

use super::commands::changed_files;
use super::edits::{PATCH, moved_files, patched_files, patches};
use super::tasks::{squeeze, task_change, tasks};

/// Names of arguments that hold the subject of a call, most specific first.
const SUBJECTS: [&str; 24] = [
    "command",
    "cmd",
    "script",
    "file_path",
    "filePath",
    "absolute_path",
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
const PATHS: [&str; 9] = [
    "file_path",
    "filePath",
    "absolute_path",
    "notebook_path",
    "path",
    "filename",
    "file",
    "target_file",
    "relative_path",
];
const COMMANDS: [&str; 3] = ["command", "cmd", "script"];
/// Part of the names of editors with a `command`, and the command that only shows the file.
const EDITOR: &str = "str_replace";
const VIEW: &str = "view";
const CONTENTS: [&str; 4] = ["content", "contents", "file_text", "new_source"];
/// Parts of the names of tools that change files.
const EDITING: [&str; 10] = [
    "write", "edit", "create", "patch", "replace", "insert", "delete", "remove", "rename", "move",
];
/// Parts of the names of tools that rename or move a file.
const MOVING: [&str; 2] = ["rename", "move"];
const REMOVING: &str = "remove";
/// Parts of the names of tools that open files.
const OPENING: [&str; 4] = ["read", "view", "open", "cat"];
/// Parts of the names of tools that only read.
const READING: [&str; 3] = ["read", "view", "fetch"];
const SEARCHING: [&str; 6] = ["grep", "glob", "search", "list", "find", "ls"];
/// Names of tools that start another agent.
const DELEGATES: [&str; 5] = ["task", "agent", "delegate", "subagent", "spawn_agent"];
/// Arguments that name the folder of a command.
const FOLDERS: [&str; 3] = ["workdir", "dir_path", "directory"];
/// Flag between a shell and the command that it runs.
const SHELL_FLAG: &str = "sh -lc ";

/// Returns the action, subject, files and edits of a call, by the names of its tool and of its arguments.
pub(super) fn tool_use(original: &str, arguments: &str) -> ToolUse {
    let name = original.to_lowercase();
    let arguments = ToolArguments::parse(arguments);
    let mut use_ = ToolUse::default();
    let editor = arguments.text("command").filter(|_| name.contains(EDITOR));
    let subjects = match editor {
        Some(_) => SUBJECTS.get(COMMANDS.len()..).unwrap_or_default(),
        None => &SUBJECTS[..],
    };
    let (key, subject) = arguments.subject(subjects);
    use_.subject = subject;
    let asks = name.contains("ask") && name.contains("question") || name.contains("ask_user");
    if asks {
        let mut asked = Vec::new();
        questions(arguments.value(), &mut asked);
        if !asked.is_empty() {
            use_.subject = asked.join(" ");
        }
    }
    use_.files = named_files(&name, &arguments, editor.as_deref(), &use_.subject);
    let is_command = editor.is_none() && COMMANDS.iter().any(|name| arguments.text(name).is_some());
    if is_command {
        if let Some((shell, command)) = use_.subject.split_once(SHELL_FLAG)
            && !shell.contains(char::is_whitespace)
        {
            use_.subject = command.to_owned();
        }
        if use_.files.is_empty() {
            use_.files = changed_files(&use_.subject);
        }
    }
    let changed = use_.files.iter().any(|file| file.changed);
    let tasks = tasks(arguments.value());
    use_.action = match () {
        () if tasks.is_some() => ToolAction::UpdateTasks,
        () if asks => ToolAction::AskUser,
        () if is_command => ToolAction::RunCommand,
        () if editor.as_deref() == Some(VIEW) => ToolAction::Read,
        () => named_action(&name, &arguments, changed),
    };
    if tasks.is_none() {
        use_.arguments = arguments.others(key);
    }
    if changed {
        use_.edits = arguments.edits(&CONTENTS);
        if use_.edits.is_empty() {
            use_.edits = patches(&arguments, &use_.subject);
        }
    }
    // The lines of a patch are in its edits.
    if use_.action == ToolAction::Edit && use_.subject.contains(PATCH) {
        let paths: Vec<&str> = use_.files.iter().map(|file| file.path.as_str()).collect();
        use_.subject = paths.join(", ");
    }
    if use_.action == ToolAction::RunCommand {
        use_.shell = shell(original, &arguments);
    }
    use_.task = task_change(original, &arguments);
    if use_.task.is_some() {
        use_.action = ToolAction::ChangeTask;
    }
    // The subject of a changed task is its number and its new state.
    let moved = arguments.text("taskId").zip(arguments.text("status"));
    if let Some(tasks) = tasks.or(moved.map(|(task, status)| format!("{task}: {status}"))) {
        use_.subject = tasks;
    } else if use_.action != ToolAction::RunCommand
        && key != Some("pattern")
        && let Some(pattern) = arguments
            .text("pattern")
            .or_else(|| arguments.text("regex"))
    {
        use_.subject = format!("{pattern} in {}", use_.subject);
    }
    use_
}

/// Returns whether a name has one of these parts.
fn has(name: &str, parts: &[&str]) -> bool {
    parts.iter().any(|part| name.contains(part))
}

/// Returns the files that a call names: those of a patch, or the one in its arguments, or the two of a move.
fn named_files(
    name: &str,
    arguments: &ToolArguments,
    editor: Option<&str>,
    subject: &str,
) -> Vec<FileAccess> {
    let mut files = patched_files(subject);
    if files.is_empty() && (has(name, &EDITING) || has(name, &OPENING)) {
        let path = PATHS.iter().find_map(|name| arguments.text(name));
        let changed = has(name, &EDITING) && editor != Some(VIEW);
        let file = path.filter(|path| is_path(path));
        files.extend(file.map(|path| FileAccess { path, changed }));
    }
    if has(name, &MOVING) && !name.contains(REMOVING) && files.is_empty() {
        files = moved_files(arguments);
    }
    files
}

/// Returns the action that the name of a tool says. The argument `changed` is whether the call changes a file.
fn named_action(name: &str, arguments: &ToolArguments, changed: bool) -> ToolAction {
    match () {
        () if DELEGATES.contains(&name) || arguments.value().get("subagent_type").is_some() => {
            ToolAction::Delegate
        }
        () if has(name, &READING) => ToolAction::Read,
        () if has(name, &SEARCHING) => ToolAction::Search,
        () if changed => ToolAction::Edit,
        () => ToolAction::Other,
    }
}

/// Returns the folder in which a command runs.
fn shell(original: &str, arguments: &ToolArguments) -> Shell {
    match FOLDERS.iter().find_map(|name| arguments.text(name)) {
        Some(folder) => Shell::In(folder),
        // Claude Code's shell stays in the folder of the call before. Its messages name the folder.
        None if original == "Bash" => Shell::Unknown,
        None => Shell::New,
    }
}

/// Adds the questions of a call.
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

#[cfg(test)]
mod tests {
    use super::{tool_use as of, *};

    #[test]
    fn a_call_is_told_by_what_it_is_about() {
        for (name, arguments, subject) in [
            ("x", r#""{\"path\":\"a.rs\"}""#, "a.rs"),
            ("x", r#"{"n":1,"zz":"some"}"#, "some"),
            (
                "Grep",
                r#"{"path":"/src","pattern":"fn main"}"#,
                "fn main in /src",
            ),
            (
                "TodoWrite",
                r#"{"todos":[{"content":"a","status":"completed"},{"content":"b","status":"pending"}]}"#,
                "open: b | done: a",
            ),
            ("TaskUpdate", r#"{"taskId":"3","status":"done"}"#, "3: done"),
            ("x", "not json", ""),
            ("x", "[]", ""),
        ] {
            assert_eq!(of(name, arguments).subject, subject, "{name} {arguments}");
        }
    }

    #[test]
    fn files_are_read_or_changed_by_the_tools_name() {
        let files = |name: &str, arguments: &str| {
            let files = of(name, arguments).files.into_iter();
            files
                .map(|file| (file.path, file.changed))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            files("Read", r#"{"file_path":"/a/b.rs"}"#),
            [("/a/b.rs".to_owned(), false)]
        );
        assert_eq!(
            files("str_replace_editor", r#"{"path":"b.rs"}"#),
            [("b.rs".to_owned(), true)]
        );
        assert_eq!(files("Grep", r#"{"path":"/a"}"#), []);
        assert_eq!(
            files(
                "apply_patch",
                r#"{"input":"*** Begin Patch\n*** Update File: a/b.ts\n@@"}"#
            ),
            [("a/b.ts".to_owned(), true)]
        );
    }

    /// A call's tool and arguments, and its action and files, each with whether it is changed.
    type Case = (
        &'static str,
        &'static str,
        ToolAction,
        Vec<(&'static str, bool)>,
    );

    fn assert_files<const N: usize>(cases: [Case; N]) {
        for (name, arguments, action, files) in cases {
            let use_ = of(name, arguments);
            assert_eq!(use_.action, action, "{name}");
            let found = use_.files.iter();
            let found: Vec<_> = found
                .map(|file| (file.path.as_str(), file.changed))
                .collect();
            assert_eq!(found, files, "{name}");
        }
    }

    #[test]
    fn files_of_editors_and_moves_are_read_or_changed() {
        assert_files([
            (
                "edit",
                r#"{"filePath":"/a/b.vue","oldString":"a","newString":"b"}"#,
                ToolAction::Edit,
                vec![("/a/b.vue", true)],
            ),
            (
                "read",
                r#"{"filePath":"/a/b.vue"}"#,
                ToolAction::Read,
                vec![("/a/b.vue", false)],
            ),
            (
                "str_replace_based_edit_tool",
                r#"{"command":"str_replace","path":"/a.ts","old_str":"a","new_str":"b"}"#,
                ToolAction::Edit,
                vec![("/a.ts", true)],
            ),
            (
                "str_replace_editor",
                r#"{"command":"view","path":"/a.ts"}"#,
                ToolAction::Read,
                vec![("/a.ts", false)],
            ),
            (
                "write_to_file",
                r#"{"path":"a.md","content":"x"}"#,
                ToolAction::Edit,
                vec![("a.md", true)],
            ),
            (
                "mcp__filesystem__move_file",
                r#"{"source":"/a.rs","destination":"/b.rs"}"#,
                ToolAction::Edit,
                vec![("/a.rs", true), ("/b.rs", true)],
            ),
            (
                "edit_text",
                r#"{"from":"/a.rs","to":"/b.rs"}"#,
                ToolAction::Other,
                vec![],
            ),
            (
                "remove_lines",
                r#"{"from":"1.","to":"2."}"#,
                ToolAction::Other,
                vec![],
            ),
        ]);
        let subject = of("str_replace_editor", r#"{"command":"view","path":"/a.ts"}"#).subject;
        assert_eq!(subject, "/a.ts");
        let search = r#"{"path":"src","regex":"fn main"}"#;
        assert_eq!(of("search_files", search).subject, "fn main in src");
    }

    #[test]
    fn files_of_commands_are_changed() {
        assert_files([
            (
                "shell",
                r#"{"command":["bash","-lc","sed -i 's/a b/c/' six.cfg"]}"#,
                ToolAction::RunCommand,
                vec![("six.cfg", true)],
            ),
            (
                "exec_command",
                r#"{"cmd":"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a.py\n+mv b.py c.py\n*** End Patch\nEOF"}"#,
                ToolAction::RunCommand,
                vec![("a.py", true)],
            ),
            (
                "exec_command",
                r#"{"cmd":"bash -lc 'git mv a.rs b.rs'"}"#,
                ToolAction::RunCommand,
                vec![("a.rs", true), ("b.rs", true)],
            ),
            (
                "bash",
                r#"{"command":"cat a.rs && ls b"}"#,
                ToolAction::RunCommand,
                vec![],
            ),
        ]);
    }
}
