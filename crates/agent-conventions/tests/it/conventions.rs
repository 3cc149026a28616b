//! The wording of Codex, Gemini CLI and Qwen Code.

use agent_conventions::KnownAgents;
use memory_model::RawJson;
use memory_model::conventions::{AgentConventions, Shell, ToolAction, ToolUse};

fn of(name: &str, arguments: &str) -> ToolUse {
    KnownAgents.tool_use(name, arguments)
}

#[test]
fn tools_of_codex_gemini_cli_and_qwen_code_are_known() {
    let files = |name: &str, arguments: &str| {
        let files = of(name, arguments).files.into_iter();
        let files: Vec<_> = files.map(|file| (file.path, file.changed)).collect();
        files
    };
    let file = |path: &str, changed| (path.to_owned(), changed);
    // A patch as one string, with a file that moves.
    let patch = "*** Begin Patch\n*** Add File: a.py\n+x\n*** Update File: b.py\n*** Move to: c.py\n@@\n-1\n+2\n*** Delete File: d.py\n*** End Patch";
    let arguments = serde_json::json!(patch).to_string();
    let changed = ["a.py", "b.py", "c.py", "d.py"].map(|path| file(path, true));
    assert_eq!(files("apply_patch", &arguments), changed);
    assert_eq!(of("apply_patch", &arguments).action, ToolAction::Edit);
    assert_eq!(of("apply_patch", &arguments).edits.len(), 2);
    let shell = of(
        "shell",
        r#"{"command":["zsh","-lc","ls -l"],"workdir":"/a"}"#,
    );
    assert_eq!(
        (shell.action, &*shell.subject),
        (ToolAction::RunCommand, "ls -l")
    );
    assert_eq!(shell.shell, Shell::In("/a".to_owned()));
    let command = of("exec_command", r#"{"cmd":"cat a | sh -lc b"}"#);
    assert_eq!(command.subject, "cat a | sh -lc b");
    assert_eq!(
        of("spawn_agent", r#"{"message":"Count."}"#).action,
        ToolAction::Delegate
    );
    for name in ["replace", "edit"] {
        let edit = of(
            name,
            r#"{"file_path":"/a.py","old_string":"1","new_string":"2"}"#,
        );
        assert_eq!(edit.action, ToolAction::Edit, "{name}");
        assert_eq!((&*edit.edits[0].old, &*edit.edits[0].new), ("1", "2"));
    }
    let write = r#"{"file_path":"/a.py","content":"x"}"#;
    assert_eq!(files("write_file", write), [file("/a.py", true)]);
    for path in ["file_path", "absolute_path"] {
        let read = format!(r#"{{"{path}":"/a.py"}}"#);
        assert_eq!(files("read_file", &read), [file("/a.py", false)]);
        assert_eq!(of("read_file", &read).action, ToolAction::Read);
    }
    let run = of("run_shell_command", r#"{"command":"ls","directory":"/b"}"#);
    assert_eq!(
        (run.action, run.shell),
        (ToolAction::RunCommand, Shell::In("/b".to_owned()))
    );
}

#[test]
fn an_output_stands_without_the_programs_words() {
    let call = of("exec_command", r#"{"cmd":"ls"}"#);
    let told = |text: &str, is_error| {
        let outcome = KnownAgents.tool_result(Some(&call), text, is_error);
        (
            outcome.text.into_owned(),
            outcome.is_error,
            outcome.is_interrupted,
        )
    };
    for (text, output) in [
        (
            "Chunk ID: 8cd\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\na\nOutput:\nb",
            "a\nOutput:\nb",
        ),
        (
            "Exit code: 0\nWall time: 1 seconds\nOutput:\n(no output)",
            "",
        ),
        (r#"{"output":"a\n","metadata":{"exit_code":0}}"#, "a\n"),
        (
            r#"{ "metadata": {"exit_code": 0}, "output" : "a\n" }"#,
            "a\n",
        ),
        (r#"{"output":"a"}"#, r#"{"output":"a"}"#),
        ("<untrusted_context>\nOutput: a\n</untrusted_context>", "a"),
        ("Wall time: nothing follows", "Wall time: nothing follows"),
    ] {
        assert_eq!(
            told(text, false),
            (output.to_owned(), false, false),
            "{text}"
        );
    }
    let failed = "Chunk ID: 8\nProcess exited with code 1\nOutput:\nno such file";
    assert_eq!(told(failed, true), ("no such file".to_owned(), true, false));
    let stopped = "Wall time: 3.6 seconds\naborted by user";
    assert_eq!(told(stopped, true), (stopped.to_owned(), false, true));
}

#[test]
fn who_wrote_a_message_is_told_by_its_provenance() {
    let typed = |text: &str, meta: &str| {
        let meta = RawJson::parse(meta).unwrap();
        let text = KnownAgents.user_text(text, Some(&meta));
        (text.typed.into_owned(), text.injected.len())
    };
    let (user, program) = (("go".to_owned(), 0), (String::new(), 1));
    assert_eq!(
        typed("go", r#"{"a":[{"provenance":{"type":"user"}}]}"#),
        user
    );
    assert_eq!(typed("go", r#"{"provenance":"real_user"}"#), user);
    assert_eq!(
        typed(
            "go",
            r#"{"a":[{"provenance":{"type":"harness","hook":true}}]}"#
        ),
        program
    );
    assert_eq!(typed("go", r#"{"provenance":"system"}"#), program);
    // Blanks and escapes change nothing, and words in a text say nothing.
    assert_eq!(
        typed(
            "go",
            r#"{ "a" : [ { "provenance" : { "x": 1, "type" : "user" } } ] }"#
        ),
        user
    );
    assert_eq!(typed("go", r#"{"provenance" : "real_user"}"#), user);
    assert_eq!(
        typed("go", r#"{"provenance" : {"type" : "harness"}}"#),
        program
    );
    assert_eq!(typed("go", r#"{ "isMeta" : true }"#), program);
    assert_eq!(typed("go", r#"{"is\u004deta": true}"#), program);
    assert_eq!(typed("go", r#"{"synthetic" : true}"#), program);
    assert_eq!(typed("go", r#"{"a":"\"isMeta\":true"}"#), user);
    let summary = RawJson::parse(r#"{ "isCompactSummary" : true }"#).unwrap();
    assert!(KnownAgents.user_text("go", Some(&summary)).is_document);
    let folder = RawJson::parse(r#"{ "cwd" : "/pond" }"#).unwrap();
    assert_eq!(
        KnownAgents.working_folder(Some(&folder)).as_deref(),
        Some("/pond")
    );
    assert_eq!(typed("# AGENTS.md instructions for /a\n\nx", "{}"), program);
    let text = KnownAgents.user_text("<hook_context>x</hook_context>\n\ngo", None);
    assert_eq!((text.typed.trim(), text.injected.len()), ("go", 1));
}
