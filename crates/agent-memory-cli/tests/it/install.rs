//! `install` and `doctor`, in homes of agents that the tests make.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;

#[cfg(unix)]
use crate::support::mode;
use crate::support::{self, Home, Ran, fixture, is, program, tells};

const AGENTS: [&str; 6] = [
    "claude-code",
    "codex",
    "gemini-cli",
    "opencode",
    "pi",
    "qwen-code",
];

/// Creates the homes of all agents.
fn agents() -> Home {
    let home = Home::new();
    for folder in [
        ".claude",
        ".codex",
        ".gemini",
        ".config/opencode",
        ".pi/agent",
        ".qwen",
    ] {
        std::fs::create_dir_all(home.path().join(folder)).unwrap();
    }
    home
}

/// Writes configurations with comments, in an odd order and layout.
fn configure(home: &Home) {
    let hooks = r#"{
   // mine
   "zeta" : 1, "hooks": {"Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "beep"}]}],
   /* none */ "Other": []},
   "alpha": [1,2, 3],
}"#;
    for file in [
        ".claude/settings.json",
        ".gemini/settings.json",
        ".qwen/settings.json",
    ] {
        home.file(file, hooks);
    }
    home.file(
        ".claude.json",
        "{\"numStartups\":7,\"mcpServers\":{\"b\":{\"command\":\"x\"}}}",
    );
    home.file(
        ".codex/hooks.json",
        hooks.replace("// mine", "").replace("/* none */", ""),
    );
    home.file(
        ".codex/config.toml",
        "# mine\nmodel = 'x'   # odd\n\n[mcp_servers.b]\ncommand = \"y\"\n[a]\nz=1\n# end\n",
    );
    home.file(
        ".config/opencode/opencode.jsonc",
        "{\r\n\t// mine\r\n\t\"model\": \"m\"\r\n}\r\n",
    );
    home.file(
        ".pi/agent/mcp.json",
        "{\"mcpServers\": {\"b\": {\"command\": \"y\"}}}\n",
    );
}

/// Returns the contents of all files in the homes of agents.
fn files(home: &Home) -> BTreeMap<String, String> {
    fn add(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                add(root, &path, files);
                continue;
            }
            let name = path.strip_prefix(root).unwrap().to_str().unwrap();
            let content = std::fs::read_to_string(&path).unwrap();
            files.insert(name.replace('\\', "/"), content);
        }
    }
    let mut all = BTreeMap::new();
    add(home.path(), home.path(), &mut all);
    all.retain(|name, _| name.starts_with('.'));
    all
}

/// Returns the files with these names as one text, with a placeholder for the path of the program.
fn shown(home: &Home, is_shown: impl Fn(&str) -> bool) -> String {
    let program = program().canonicalize().unwrap();
    let program = program.to_str().unwrap().replace('\\', "/");
    let files = files(home).into_iter().filter(|(name, _)| is_shown(name));
    let files = files.map(|(name, content)| format!("=== {name}\n{content}\n"));
    let text = files.collect::<String>();
    text.replace(&program, "PROGRAM").replace('\r', "")
}

#[test]
fn a_fresh_installation_writes_these_files_and_a_removal_deletes_them() {
    let home = agents();
    for agent in AGENTS {
        home.ok(&["install", agent]).shows("created: ");
    }
    insta::assert_snapshot!("fresh", shown(&home, |_| true));
    for agent in AGENTS {
        home.ok(&["install", agent, "--remove"]).shows("deleted: ");
    }
    assert_eq!(files(&home), BTreeMap::new());
    assert!(!home.path().join(".claude/skills").exists());
}

#[test]
fn an_existing_configuration_keeps_its_comments_and_order() {
    let home = agents();
    configure(&home);
    let before = files(&home);
    for agent in AGENTS {
        home.ok(&["install", agent]);
    }
    let written = files(&home);
    let backups = |name: &&String| name.ends_with(".before-agent-memory");
    for name in written.keys().filter(backups) {
        let original = name.strip_suffix(".before-agent-memory").unwrap();
        assert_eq!(written.get(name), before.get(original), "{name}");
    }
    assert_eq!(written.keys().filter(backups).count(), before.len());
    let is_edited = |name: &str| before.contains_key(name);
    insta::assert_snapshot!("existing", shown(&home, is_edited));
    for agent in AGENTS {
        home.ok(&["install", agent]).shows("already installed");
        assert_eq!(files(&home), written, "{agent}");
    }
    for agent in AGENTS {
        home.ok(&["install", agent, "--remove"]);
    }
    assert_eq!(files(&home), before);
}

#[test]
fn a_removal_keeps_what_was_written_meanwhile() {
    let home = agents();
    configure(&home);
    for agent in AGENTS {
        home.ok(&["install", agent]);
    }
    for (name, content) in files(&home) {
        if name.ends_with(".json") || name.ends_with(".jsonc") {
            let more = content.replacen('{', "{\n  \"later\": true, // theirs\n", 1);
            home.file(&name, more);
        }
    }
    let config = home.path().join(".codex/config.toml");
    let more = std::fs::read_to_string(&config).unwrap() + "\n[later]\nx = 1\n";
    home.file(".codex/config.toml", more);
    for agent in AGENTS {
        home.ok(&["install", agent, "--remove"]);
    }
    let left = files(&home);
    for (name, content) in &left {
        assert!(!content.contains("agent-memory"), "{name}: {content}");
        assert!(content.contains("later"), "{name}: {content}");
    }
    assert!(left[".claude/settings.json"].contains("// mine"));
    assert!(left[".claude/settings.json"].contains("beep"));
    assert!(left[".codex/config.toml"].contains("model = 'x'   # odd"));
}

#[test]
fn an_installation_of_another_path_is_replaced_and_removed() {
    let home = agents();
    let old = "/old/agent-memory hook";
    home.file(
        ".qwen/settings.json",
        json!({
            "hooks": {
                "Stop": [{"hooks": [{"type": "command", "command": format!("{old} qwen-code"), "timeout": 9}]}],
                "Gone": [{"hooks": [{"type": "command", "command": old}, {"type": "command", "command": "beep"}]}],
            },
            "mcpServers": {"agent-memory": {"command": "/old/agent-memory", "args": [], "trust": true}},
        })
        .to_string(),
    );
    let is_different = |state: &str| {
        let report = home.json(&["doctor"]);
        let parts = report["agents"][5]["parts"].as_array().unwrap();
        assert_eq!(parts.len(), 2);
        for part in parts {
            is(part, json!({"state": state}));
        }
    };
    is_different("different");
    home.ok(&["install", "qwen-code"]);
    is_different("installed");
    let text = files(&home)[".qwen/settings.json"].clone();
    assert!(!text.contains("/old/"), "{text}");
    let settings: serde_json::Value = serde_json::from_str(&text).unwrap();
    is(
        &settings["hooks"]["Stop"][0]["hooks"][0],
        json!({"timeout": 9}),
    );
    is(
        &settings["hooks"]["Gone"][0],
        json!({"hooks": [{"command": "beep"}]}),
    );
    is(
        &settings["mcpServers"]["agent-memory"],
        json!({"trust": true, "args": ["mcp"]}),
    );
    home.file(
        ".qwen/settings.json",
        text.replace("agent-memory hook", "x/agent-memory.exe hook"),
    );
    home.ok(&["install", "qwen-code", "--remove"]);
    let settings: serde_json::Value =
        serde_json::from_str(&files(&home)[".qwen/settings.json"]).unwrap();
    assert_eq!(
        settings,
        json!({"hooks": {"Gone": [{"hooks": [{"type": "command", "command": "beep"}]}]}})
    );
}

/// Changes the path of the program in the agents' files, as if it had been at `old` when it was installed.
fn installed_from(home: &Home, old: &str) {
    let program = program().canonicalize().unwrap();
    let program = program.to_str().unwrap().replace('\\', "/");
    for (name, content) in files(home) {
        home.file(&name, content.replace(&program, old));
    }
}

#[test]
fn a_removal_takes_out_the_installations_of_all_places_of_the_program() {
    let odd = "{\n\t\"a\":1 , \"hooks\" :{}}";
    for is_configured in [false, true] {
        for moves in [
            &["/old/agent-memory"][..],
            &["/old/agent-memory", "/opt/x/agent-memory-1.0-linux"],
        ] {
            for is_installed_again in [false, true] {
                let home = agents();
                if is_configured {
                    configure(&home);
                    home.file(".config/opencode/opencode.json", odd);
                }
                let before = files(&home);
                for agent in AGENTS {
                    for place in moves {
                        home.ok(&["install", agent]);
                        installed_from(&home, place);
                    }
                    if is_installed_again {
                        home.ok(&["install", agent]).shows("installed");
                        home.ok(&["install", agent]).shows("already installed");
                    }
                    home.ok(&["install", agent, "--remove"]).shows("removed");
                    assert_eq!(files(&home), before, "{agent} {moves:?}");
                    home.ok(&["install", agent, "--remove"])
                        .shows("not installed");
                }
            }
        }
    }
}

#[test]
fn both_configurations_of_opencode_are_cleaned() {
    let home = agents();
    home.ok(&["install", "opencode"]);
    home.file(
        ".config/opencode/opencode.jsonc",
        "{\"model\": \"m\"} // mine",
    );
    installed_from(&home, "/old/agent-memory");
    home.ok(&["install", "opencode"]);
    let config = files(&home)[".config/opencode/opencode.json"].clone();
    assert!(!config.contains("/old/"), "{config}");
    home.ok(&["install", "opencode", "--remove"]);
    let left = BTreeMap::from([(
        ".config/opencode/opencode.jsonc".to_owned(),
        "{\"model\": \"m\"} // mine".to_owned(),
    )]);
    assert_eq!(files(&home), left);
}

#[test]
fn a_dry_run_prints_a_diff_and_writes_nothing() {
    let home = agents();
    configure(&home);
    let before = files(&home);
    let ran = home.ok(&["install", "claude-code", "--dry-run"]);
    ran.shows("--- /dev/null");
    ran.shows("agent-memory hook claude-code\"\n+");
    assert_eq!(files(&home), before);
    home.ok(&["install", "claude-code"]);
    let written = files(&home);
    let ran = home.ok(&["install", "claude-code", "--remove", "--dry-run"]);
    ran.shows("+++ /dev/null");
    assert_eq!(files(&home), written);
    let answer = home.json(&["install", "codex", "--dry-run"]);
    is(
        &answer,
        json!({"agent": "codex", "dry_run": true, "files": [{"change": "changed"}, {"change": "changed"}]}),
    );
    tells(&answer["steps"][0], "/hooks");
}

#[test]
fn a_broken_file_is_named_and_no_file_is_changed() {
    for (agent, file, broken) in [
        ("claude-code", ".claude.json", "{\"a\": 1 \"b\"}"),
        ("codex", ".codex/config.toml", "a = = 1"),
        ("gemini-cli", ".gemini/settings.json", "{'a': 1"),
        ("opencode", ".config/opencode/opencode.json", "[]"),
        ("pi", ".pi/agent/mcp.json", "{\"mcpServers\": []}"),
        (
            "qwen-code",
            ".qwen/settings.json",
            "{\"hooks\": {\"Stop\": 1}}",
        ),
    ] {
        let home = agents();
        home.file(file, broken);
        let before = files(&home);
        let ran = home.fails(&["install", agent], 4);
        ran.says(file.rsplit('/').next().unwrap());
        ran.says("no file was changed");
        assert_eq!(files(&home), before);
        home.ok(&["doctor"]).shows(&format!("{agent}: "));
    }
}

#[test]
fn foreign_things_with_our_name_are_left_alone() {
    let home = agents();
    let server = r#"{"mcpServers": {"agent-memory": {"command": "other"}}}"#;
    home.file(".pi/agent/mcp.json", server);
    home.file(".config/opencode/plugin/agent-memory.js", "// theirs");
    let before = files(&home);
    home.fails(&["install", "pi"], 4).says("of another program");
    home.fails(&["install", "opencode"], 4).says("move it away");
    for agent in ["pi", "opencode"] {
        home.ok(&["install", agent, "--remove"])
            .shows("not installed");
    }
    assert_eq!(files(&home), before);
}

#[test]
fn an_agent_without_a_home_is_an_error() {
    let home = Home::new();
    for agent in AGENTS {
        let ran = home.fails(&["install", agent], 3);
        ran.says("there is no folder");
        home.ok(&["install", agent, "--remove"]);
    }
    assert_eq!(files(&home), BTreeMap::new());
    home.ok(&["doctor"]).shows("codex: no folder");
}

#[cfg(unix)]
#[test]
fn links_are_followed_permissions_stay_and_read_only_files_are_errors() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let home = agents();
    let real = home.file("dotfiles/settings.json", "{\"a\": 1}");
    let link = home.path().join(".claude/settings.json");
    symlink(&real, &link).unwrap();
    let mode = |mode| std::fs::set_permissions(&real, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o444);
    let ran = home.fails(&["install", "claude-code"], 1);
    ran.says("settings.json is read-only");
    assert!(!home.path().join(".claude.json").exists());
    mode(0o640);
    home.ok(&["install", "claude-code"]);
    assert!(link.is_symlink());
    let meta = std::fs::metadata(&real).unwrap();
    assert_eq!(meta.permissions().mode() & 0o777, 0o640);
    home.ok(&["install", "claude-code", "--remove"]);
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "{\"a\": 1}");
    std::fs::remove_file(&real).unwrap();
    let ran = home.fails(&["install", "claude-code"], 4);
    ran.says("leads to no file");
}

#[test]
fn the_named_database_and_odd_paths_are_part_of_the_commands() {
    let home = agents();
    let store = home.path().join("it's mine.db");
    home.ok(&["--store", store.to_str().unwrap(), "install", "codex"]);
    let text = files(&home)[".codex/hooks.json"].clone();
    assert!(text.contains(r"it'\\''s mine.db' hook codex"), "{text}");
    let config = files(&home)[".codex/config.toml"].clone();
    assert!(config.contains("AGENT_MEMORY_STORE = "), "{config}");
    home.ok(&["install", "codex", "--remove"]);
    assert_eq!(files(&home), BTreeMap::new());
}

#[test]
fn doctor_tells_of_events_and_of_transcripts_that_are_deleted_soon() {
    let home = agents();
    home.ok(&["import", &fixture("claude-code/bugfix")]);
    home.file(
        ".claude/settings.json",
        "{\"cleanupPeriodDays\": 3} // short",
    );
    home.file(".claude/projects/p/not-stored.jsonl", "{}\n");
    let stored = home.session();
    home.file(&format!(".claude/projects/p/{stored}.jsonl"), "{}\n");
    let line = |ms: u64, result: &str| json!({"at": 1, "agent": "codex", "event": "Stop", "session": "s", "ms": ms, "result": result, "detail": "why"});
    let log = home.database().with_file_name("memory.db-hook.log");
    std::fs::write(
        &log,
        format!("{}\nbroken\n{}\n", line(5_000, "error"), line(7, "ok")),
    )
    .unwrap();
    home.ok(&["install", "codex"]);
    let report = home.json(&["doctor"]);
    is(&report["database"], json!({"sessions": 1}));
    is(
        &report["agents"][0],
        json!({"agent": "claude-code", "deletion": {"days": 3, "transcripts": 2}}),
    );
    let missing = report["agents"][0]["deletion"]["not_stored"]
        .as_array()
        .unwrap();
    assert_eq!(missing.len(), 1);
    tells(&missing[0], "not-stored.jsonl");
    is(
        &report["agents"][1]["events"],
        json!({"events": 2, "errors": 1, "slow": 1, "p50_ms": 7, "p99_ms": 5000, "last": {"ms": 7}, "last_error": {"detail": "why"}}),
    );
    let ran = home.ok(&["doctor"]);
    ran.shows("codex: hooks installed, server installed");
    ran.shows("whether its hooks are trusted is unknown");
    ran.shows("1 of them not in the database");
    ran.shows("pi: not installed");
}

#[test]
fn line_ends_and_marks_of_files_stay() {
    let home = agents();
    let toml = "\u{feff}# mine\r\nmodel = \"x\"\r\n\r\n[a]\r\nb = 1\r\n";
    home.file(".codex/config.toml", toml);
    home.file(".codex/hooks.json", "\u{feff}{\r\n  \"a\": 1\r\n}\r\n");
    home.ok(&["install", "codex"]);
    let text = std::fs::read_to_string(home.path().join(".codex/config.toml")).unwrap();
    assert!(text.starts_with(toml), "{text:?}");
    for file in [".codex/config.toml", ".codex/hooks.json"] {
        let text = std::fs::read_to_string(home.path().join(file)).unwrap();
        assert!(text.starts_with('\u{feff}'), "{text:?}");
        assert!(!text.replace("\r\n", "").contains('\n'), "{text:?}");
    }
    home.ok(&["install", "codex"]).shows("already installed");
}

#[test]
fn a_key_that_comes_twice_is_an_error_because_agents_take_the_last() {
    let home = agents();
    for text in [
        r#"{"hooks": {}, "hooks": {}}"#,
        r#"{"hooks": {"Stop": [], "Stop": []}}"#,
        r#"{"mcpServers": {}, "mcpServers": {}}"#,
        r#"{"mcpServers": {"agent-memory": {"command": "agent-memory"}, "agent-memory": {"command": "agent-memory"}}}"#,
    ] {
        let path = home.file(".qwen/settings.json", text);
        let failure = home.fails(&["--json", "install", "qwen-code"], 4).error();
        tells(&failure["message"], "twice");
        assert_eq!(std::fs::read_to_string(path).unwrap(), text);
    }
}

#[cfg(feature = "postgres")]
#[test]
fn a_password_is_in_no_file_of_an_agent() {
    let url = "postgres://me:cr3t@127.0.0.1:1/d?sslmode=disable&password=cr3t";
    for by_option in [false, true] {
        let home = agents();
        configure(&home);
        let run = |arguments: &[&str]| {
            let mut command = match by_option {
                true => home.command(&[&["--store", url], arguments].concat()),
                false => home.command(arguments),
            };
            if !by_option {
                command.env("AGENT_MEMORY_STORE", url);
            }
            let ran = Ran::from(command.output().unwrap()).ended(0);
            assert!(
                !ran.out.contains("cr3t") && !ran.err.contains("cr3t"),
                "{}",
                ran.out
            );
            ran
        };
        for agent in AGENTS {
            run(&["install", agent, "--dry-run"]);
            let told = run(&["--json", "install", agent]).json();
            tells(&told["steps"][0], "~/.pgpass");
            assert!(run(&["install", agent]).out.contains("already installed"));
        }
        for (path, text) in files(&home) {
            assert!(!text.contains("cr3t"), "{path:?}: {text}");
        }
        let settings = home.path().join(".claude/settings.json");
        let settings = std::fs::read_to_string(settings).unwrap();
        assert!(settings.contains("me@127.0.0.1:1/d"), "{settings}");
    }
    // Without a password there is nothing left to do.
    let home = agents();
    let store = [
        "--store",
        "postgres://me@127.0.0.1:1/d",
        "--json",
        "install",
        "codex",
    ];
    assert!(!home.ok(&store).out.contains("pgpass"));
}

/// A configuration may be a link, but not a pipe, a device or a file of any size.
#[cfg(target_os = "linux")]
#[test]
fn odd_configurations_are_refused() {
    let home = agents();
    let path = home.path().join(".claude/settings.json");
    let pipe = home.path().join("pipe");
    support::pipe(&pipe);
    let large = home.path().join("large");
    std::fs::File::create(&large)
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    for target in [&pipe, &large, Path::new("/dev/zero")] {
        let _ = std::fs::remove_file(&path);
        std::os::unix::fs::symlink(target, &path).unwrap();
        let before = files_named(&home);
        home.fails(&["install", "claude-code"], 4)
            .says("cannot read");
        home.run(&["doctor"]).shows("unreadable");
        assert_eq!(files_named(&home), before);
    }
    std::fs::remove_file(&path).unwrap();
    std::fs::rename(&pipe, &path).unwrap();
    home.fails(&["install", "claude-code"], 4);
}

#[cfg(unix)]
/// Returns the names of the files in the agents' homes.
fn files_named(home: &Home) -> Vec<std::path::PathBuf> {
    let mut names = Vec::new();
    let mut folders = vec![home.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => names.push(path),
            }
        }
    }
    names.sort();
    names
}

/// What an installation creates is for the user alone, for any umask.
#[cfg(unix)]
#[test]
fn new_files_and_folders_are_private() {
    for umask in ["000", "077", "777"] {
        let home = agents();
        let before = files_named(&home);
        let mut install = support::with_umask(&home, umask, &["install", "claude-code"]);
        Ran::from(install.output().unwrap()).ended(0);
        for path in files_named(&home) {
            if before.contains(&path) {
                continue;
            }
            assert_eq!(mode(&path), 0o600, "{umask} {path:?}");
            let folder = path.parent().unwrap();
            if folder != home.path() && folder != home.path().join(".claude") {
                assert_eq!(mode(folder), 0o700, "{umask} {folder:?}");
            }
        }
    }
}
