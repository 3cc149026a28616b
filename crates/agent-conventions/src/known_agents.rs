//! The conventions of the agents with transcripts that `message-formats` reads: the names of tools and arguments, and the
//! texts that their programs write around results and around a user's words.

mod answers;
mod commands;
mod edits;
mod results;
mod users;

use std::borrow::Cow;

use memory_model::RawJson;
use memory_model::conventions::{
    AgentConventions, FileAccess, Rejection, Shell, TaskChange, TaskState, ToolAction,
    ToolArguments, ToolOutcome, ToolUse, UserText, is_path,
};
use serde_json::Value;

use answers::{ASKED, answers, some_answers};
use commands::changed_files;
use edits::{PATCH, moved_files, patched_files, patches};
use results::{REASONS, is_interrupted, is_no_output, is_refused, output, report};
pub use results::{is_aborted, output_of_command};
use users::{Marks, is_by_program, is_instructions, typed_and_injected, without_reminders};

/// The conventions of Claude Code, Codex, Gemini CLI, pi, Qwen Code and similar agents, all in one. Their names do not
/// contradict each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KnownAgents;

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

/// Text before and behind the id of a new task, in the result of the call that creates the task.
const CREATED: (&str, &str) = ("Task #", " created");

impl AgentConventions for KnownAgents {
    fn id(&self) -> &str {
        "known-agents@2"
    }

    fn tool_use(&self, original: &str, arguments: &str) -> ToolUse {
        let name = original.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
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
        use_.files = patched_files(&use_.subject);
        if use_.files.is_empty() && (has(&EDITING) || has(&OPENING)) {
            let path = PATHS.iter().find_map(|name| arguments.text(name));
            let changed = has(&EDITING) && editor.as_deref() != Some(VIEW);
            let file = path.filter(|path| is_path(path));
            use_.files
                .extend(file.map(|path| FileAccess { path, changed }));
        }
        if has(&MOVING) && !name.contains(REMOVING) && use_.files.is_empty() {
            use_.files = moved_files(&arguments);
        }
        let is_command =
            editor.is_none() && COMMANDS.iter().any(|name| arguments.text(name).is_some());
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
            () if DELEGATES.contains(&name.as_str())
                || arguments.value().get("subagent_type").is_some() =>
            {
                ToolAction::Delegate
            }
            () if has(&READING) => ToolAction::Read,
            () if has(&SEARCHING) => ToolAction::Search,
            () if changed => ToolAction::Edit,
            () => ToolAction::Other,
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
            use_.shell = match FOLDERS.iter().find_map(|name| arguments.text(name)) {
                Some(folder) => Shell::In(folder),
                // Claude Code's shell stays in the folder of the call before. Its messages name the folder.
                None if original == "Bash" => Shell::Unknown,
                None => Shell::New,
            };
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

    fn tool_result<'a>(
        &self,
        call: Option<&ToolUse>,
        text: &'a str,
        is_error: bool,
    ) -> ToolOutcome<'a> {
        let action = call.map_or(ToolAction::Other, |call| call.action);
        let some = match action {
            ToolAction::AskUser if is_error => some_answers(text),
            _ => None,
        };
        if let Some(text) = some {
            return ToolOutcome {
                text: Cow::Owned(text),
                is_error: false,
                rejection: None,
                is_interrupted: false,
            };
        }
        let is_interrupted = is_error && is_interrupted(text);
        let rejection = (is_error && is_refused(text)).then(|| {
            let mut reasons = REASONS.iter().filter_map(|before| text.split_once(before));
            let reason = reasons.next().map_or("", |(_, reason)| reason);
            // In a refusal with answers to some questions, the program's instructions come before the answers.
            let reason = reason
                .split_once(ASKED)
                .map_or(reason, |(_, answers)| answers);
            let notice = text.strip_suffix(reason).unwrap_or(text);
            Rejection { notice, reason }
        });
        let text = match action {
            ToolAction::AskUser if !is_error => Cow::Owned(answers(text)),
            ToolAction::Delegate if !is_error => Cow::Borrowed(report(text)),
            _ => match output(text) {
                Cow::Borrowed(text) if !is_error && is_no_output(text) => Cow::Borrowed(""),
                text => text,
            },
        };
        ToolOutcome {
            text,
            is_error: is_error && !is_interrupted,
            rejection,
            is_interrupted,
        }
    }

    fn created_task<'a>(&self, call: &ToolUse, result: &'a str) -> Option<&'a str> {
        let task = call.task.as_ref().filter(|task| task.id.is_none())?;
        task.subject.as_ref()?;
        let (id, _) = result.strip_prefix(CREATED.0)?.split_once(CREATED.1)?;
        (!id.contains(char::is_whitespace)).then_some(id)
    }

    fn working_folder<'a>(&self, meta: Option<&'a RawJson>) -> Option<Cow<'a, str>> {
        let folder = Marks::of(meta).folder?;
        folder.starts_with('/').then_some(Cow::Owned(folder))
    }

    fn without_reminders<'a>(&self, text: &'a str) -> &'a str {
        without_reminders(text)
    }

    fn is_instructions(&self, injected: &str) -> bool {
        is_instructions(injected)
    }

    fn user_text<'a>(&self, text: &'a str, meta: Option<&RawJson>) -> UserText<'a> {
        // Claude Code, Codex, opencode and Qwen Code mark messages that their user did not write.
        let marks = Marks::of(meta);
        if marks.is_by_program() || is_by_program(text) {
            return UserText {
                typed: Cow::Borrowed(""),
                injected: vec![text.to_owned()],
                is_document: false,
            };
        }
        let (typed, injected) = typed_and_injected(text);
        UserText {
            typed,
            injected,
            is_document: marks.is_document,
        }
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

/// Returns a list of tasks with states as one line: tasks in progress, then open ones, then finished ones.
fn tasks(value: &Value) -> Option<String> {
    let list = ["todos", "plan", "tasks", "task_list"]
        .iter()
        .find_map(|key| value.get(key)?.as_array())?;
    let text = |task: &Value, keys: &[&str]| {
        let text = keys.iter().find_map(|key| task.get(key)?.as_str());
        text.map(squeeze)
    };
    let mut groups = ["doing", "open", "done"].map(|state| (state, Vec::new()));
    for task in list {
        let what = text(
            task,
            &["content", "step", "text", "title", "subject", "description"],
        )?;
        let state = text(task, &["status", "state"]).unwrap_or_default();
        let group = match task_state(&state) {
            TaskState::Doing => 0,
            TaskState::Done => 2,
            TaskState::Dropped => continue,
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

fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the task that a call creates or changes.
fn task_change(name: &str, arguments: &ToolArguments) -> Option<TaskChange> {
    let mut change = TaskChange::default();
    match name {
        "TaskCreate" => change.subject = Some(squeeze(&arguments.text("subject")?)),
        "TaskUpdate" => {
            change.id = Some(arguments.text("taskId")?);
            change.subject = arguments.text("subject").map(|text| squeeze(&text));
            change.state = arguments.text("status").map(|state| task_state(&state));
        }
        _ => return None,
    }
    Some(change)
}

fn task_state(state: &str) -> TaskState {
    match state {
        "completed" | "done" => TaskState::Done,
        "in_progress" | "in-progress" | "doing" => TaskState::Doing,
        "cancelled" | "canceled" | "deleted" => TaskState::Dropped,
        _ => TaskState::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_that_say_something_else_are_told() {
        assert_eq!(
            answers("\"A?\"=\"x\" user notes: y, \"B?\"=\"z\" user notes: z"),
            "A → x (y)\nB → z"
        );
    }

    #[test]
    fn each_question_is_told_with_its_answer() {
        assert_eq!(
            answers(
                "User has answered your questions: \"Which store? One file, please.\"=\"a, \"b\", c\", \"How?\"=\"so\" \
                 selected markdown:\n## Plan\n1, \"x\". You can now continue with the user's answers in mind."
            ),
            "Which store? One file, please. → a, \"b\", c\nHow → so\n## Plan\n1, \"x\""
        );
        assert_eq!(answers("They did not say."), "They did not say.");
        let call = of(
            "AskUserQuestion",
            r#"{"questions":[{"question":"Which port?"}]}"#,
        );
        let text = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n\
                    Start by asking.\n\nQuestions asked:\n- \"Which port?\"\n  Answer: 8031\n- \"Which host?\"\n  \
                    (No answer provided)";
        let outcome = KnownAgents.tool_result(Some(&call), text, true);
        assert_eq!(
            outcome.text,
            "Which port → 8031\nWhich host → (No answer provided)"
        );
        assert!(!outcome.is_error && outcome.rejection.is_none());
    }

    #[test]
    fn an_interruption_is_no_failure() {
        for text in [
            "Exit code 137\n[Request interrupted by user for tool use]\n=== RUN",
            "some output\n\nCommand aborted",
            "<tool_use_error>Sibling tool call errored</tool_use_error>",
        ] {
            let outcome = KnownAgents.tool_result(None, text, true);
            assert!(outcome.is_interrupted && !outcome.is_error, "{text}");
            let outcome = KnownAgents.tool_result(None, text, false);
            assert!(!outcome.is_interrupted, "{text}");
        }
    }

    #[test]
    fn tasks_are_created_and_changed_one_by_one() {
        let create = of("TaskCreate", r#"{"subject":"Fix it","description":"x"}"#);
        assert_eq!(create.action, ToolAction::ChangeTask);
        let result = "Task #7 created successfully: Fix it";
        assert_eq!(KnownAgents.created_task(&create, result), Some("7"));
        let update = of("TaskUpdate", r#"{"taskId":"7","status":"deleted"}"#);
        let change = update.task.as_ref().unwrap();
        assert_eq!(
            (change.id.as_deref(), change.state),
            (Some("7"), Some(TaskState::Dropped))
        );
        assert_eq!(KnownAgents.created_task(&update, result), None);
        // Cancelled steps of a plan are left out.
        let plan =
            r#"{"plan":[{"step":"a","status":"cancelled"},{"step":"b","status":"in_progress"}]}"#;
        assert_eq!(of("update_plan", plan).subject, "doing: b");
    }

    #[test]
    fn a_message_tells_the_folder_of_its_calls() {
        let meta = RawJson::parse(r#"{"cwd":"/srv/app","version":"2"}"#).unwrap();
        let folder = KnownAgents.working_folder(Some(&meta));
        assert_eq!(folder.as_deref(), Some("/srv/app"));
        assert_eq!(KnownAgents.working_folder(None), None);
        let shell = |name: &str, arguments: &str| of(name, arguments).shell;
        assert_eq!(shell("Bash", r#"{"command":"ls"}"#), Shell::Unknown);
        assert_eq!(shell("bash", r#"{"command":"ls"}"#), Shell::New);
        assert_eq!(
            shell("exec_command", r#"{"cmd":"ls","workdir":"/a"}"#),
            Shell::In("/a".to_owned())
        );
    }

    fn of(name: &str, arguments: &str) -> ToolUse {
        KnownAgents.tool_use(name, arguments)
    }

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

    #[test]
    fn files_of_editors_moves_and_commands_are_read_or_changed() {
        for (name, arguments, action, files) in [
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
        ] {
            let use_ = of(name, arguments);
            assert_eq!(use_.action, action, "{name}");
            let found = use_.files.iter();
            let found: Vec<_> = found
                .map(|file| (file.path.as_str(), file.changed))
                .collect();
            assert_eq!(found, files, "{name}");
        }
        let subject = of("str_replace_editor", r#"{"command":"view","path":"/a.ts"}"#).subject;
        assert_eq!(subject, "/a.ts");
        let search = r#"{"path":"src","regex":"fn main"}"#;
        assert_eq!(of("search_files", search).subject, "fn main in src");
    }

    #[test]
    fn what_opencode_adds_is_not_the_users() {
        let meta = RawJson::parse(r#"{"synthetic":true}"#).unwrap();
        let text = KnownAgents.user_text("Called the Read tool.", Some(&meta));
        assert_eq!((&*text.typed, text.injected.len()), ("", 1));
    }

    #[test]
    fn a_refusal_is_told_in_many_words() {
        let read = |text, is_error| KnownAgents.tool_result(None, text, is_error);
        for text in [
            "exec command rejected by user",
            "patch rejected by user",
            "exec_command failed for `cat <<E\nE`: CreateProcess { message: \"Rejected(\\\"rejected by user\\\")\" }",
            "User rejected tool use",
            "user rejected MCP tool call",
            "The user has declined to run this tool. DO NOT call it again.",
            "Tool call declined by the user",
            "The user denied this operation.",
            "exec_command failed for `grep 'user rejected'\nE`: CreateProcess { message: \"Rejected(\\\"rejected by user\\\")\" }",
            "aborted by user after 3.6s",
            "Wall time: 3.6 seconds\naborted by user",
        ] {
            let rejection = read(text, true).rejection;
            assert_eq!(rejection.map(|found| found.notice), Some(text));
            assert_eq!(read(text, false).rejection, None, "{text}");
        }
        for text in [
            "Error: the card was declined",
            "exec_command failed for `grep 'user rejected'\nE`: CreateProcess { message: \"no such file\" }",
            "Access denied for user 'root'",
            "Exit code 1\nthe request was rejected by user rules",
            "Exit code: 1\nWall time: 1 seconds\nOutput:\ndeclined by user",
        ] {
            assert_eq!(read(text, true).rejection, None, "{text}");
        }
        let text =
            "The user rejected permission to use this tool with the following feedback: ask\nme";
        assert_eq!(read(text, true).rejection.unwrap().reason, " ask\nme");
    }

    #[test]
    fn a_refusal_has_a_notice_and_a_reason() {
        let text = "The user doesn't want to proceed with this tool use. To tell you how to \
                    proceed, the user said:\nno new exports please";
        let result = KnownAgents.tool_result(None, text, true);
        let rejection = result.rejection.unwrap();
        assert_eq!(rejection.reason, "\nno new exports please");
        assert!(rejection.notice.ends_with("the user said:"));
        let text = "The user doesn't want to proceed with this tool use. To tell you how to \
                    proceed, the user said:\nThe user wants to clarify these questions. Start by \
                    asking.\n\nQuestions asked:\n- \"Which port?\"\n  Answer: 8031";
        let rejection = KnownAgents.tool_result(None, text, true).rejection;
        let reason = rejection.unwrap().reason;
        assert_eq!(reason, "\n- \"Which port?\"\n  Answer: 8031");
        assert!(
            KnownAgents
                .tool_result(None, text, false)
                .rejection
                .is_none()
        );
    }
}
