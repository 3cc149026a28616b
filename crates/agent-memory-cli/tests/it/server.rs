//! `mcp` as a process: its token, and the end of its input.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::support::{Home, fixture, linked_worktree, program};

/// A server process that is stopped at the end of the test.
struct Server {
    process: Child,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn home() -> Home {
    let home = Home::new();
    let file = home.file(
        "talk.jsonl",
        "{\"role\":\"user\",\"content\":\"the lighthouse is white\"}\n",
    );
    home.ok(&["import", "--session", "talk", file.to_str().unwrap()]);
    home
}

fn start(home: &Home, arguments: &[&str], token: Option<&str>) -> Server {
    start_in(home, home.path(), arguments, token)
}

fn start_in(home: &Home, folder: &Path, arguments: &[&str], token: Option<&str>) -> Server {
    let mut command = home.process(program());
    command
        .current_dir(folder)
        .envs(token.map(|token| ("AGENT_MEMORY_TOKEN", token)))
        .arg("mcp")
        .args(arguments)
        .stdin(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let stderr = BufReader::new(process.stderr.take().unwrap());
    Server { process, stderr }
}

impl Server {
    /// Returns the rest of the line on stderr after this text.
    fn told(&mut self, text: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(
                self.stderr.read_line(&mut line).unwrap() > 0,
                "no line has {text}"
            );
            if let Some((_, rest)) = line.split_once(text) {
                return rest.trim_end().to_owned();
            }
        }
    }
}

fn post(port: &str, authorization: &str) -> (String, String) {
    let params = json!({"name": "memory_grep", "arguments": {"pattern": "lighthouse"}});
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let mut connection = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    write!(
        connection,
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{authorization}\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut reply = String::new();
    connection.read_to_string(&mut reply).unwrap();
    let status = reply.split(' ').nth(1).unwrap_or_default().to_owned();
    (status, reply)
}

#[test]
fn over_http_the_token_is_asked_for() {
    let home = home();
    let own = "a-token-of-my-own-1";
    let mut random = Vec::new();
    for token in [None, None, Some(own)] {
        let mut server = start(&home, &["--session", "talk", "--http", "0"], token);
        let told = server.told("Authorization: Bearer ");
        let port = server.told("http://127.0.0.1:");
        let port = port.trim_end_matches("/mcp");
        let shown = match token {
            Some(token) => {
                assert_eq!(told, "TOKEN", "a token that is set is not printed");
                token
            }
            None => {
                assert_eq!(told.len(), 64);
                random.push(told.clone());
                &told
            }
        };
        let (status, reply) = post(port, "");
        assert!(status == "401" && !reply.contains("white"), "{reply}");
        let (status, reply) = post(port, "Authorization: Bearer 0000\r\n");
        assert!(status == "401" && !reply.contains("white"), "{reply}");
        let (status, reply) = post(port, &format!("Authorization: Bearer {shown}\r\n"));
        assert!(status == "200" && reply.contains("white"), "{reply}");
    }
    assert_ne!(random[0], random[1]);
}

#[test]
fn a_token_that_is_easily_guessed_is_refused() {
    let home = home();
    let mut server = start(&home, &["--session", "talk", "--http", "0"], Some("secret"));
    let error = server.told("error: ");
    assert!(
        error.contains("AGENT_MEMORY_TOKEN") && !error.contains("secret"),
        "{error}"
    );
    assert_eq!(server.process.wait().unwrap().code(), Some(2));
}

/// The server answers pending requests after the client has closed its side, and then exits.
#[test]
fn a_closed_input_is_answered_and_ends_the_program() {
    let home = home();
    let mut server = start(&home, &["--session", "talk"], None);
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}});
    let params = json!({"name": "memory_grep", "arguments": {"pattern": "lighthouse"}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    let mut stdin = server.process.stdin.take().unwrap();
    writeln!(stdin, "{hello}\n{call}\nno JSON").unwrap();
    drop(stdin);
    let mut out = String::new();
    server
        .process
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    let replies: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(replies.len(), 3, "{out}");
    assert!(
        replies
            .iter()
            .any(|reply| reply["id"] == 2 && reply.to_string().contains("white")),
        "{out}"
    );
    assert!(
        replies.iter().any(|reply| reply["error"]["code"] == -32700),
        "{out}"
    );
    assert_eq!(server.process.wait().unwrap().code(), Some(0));
}

/// Sends these requests after the handshake, and returns the replies with the ids from 2 on.
fn replies(home: &Home, arguments: &[&str], requests: &[Value]) -> Vec<Value> {
    let arguments = [&["--session", "talk"], arguments].concat();
    replies_in(home, home.path(), &arguments, requests)
}

/// Sends requests to a server that was started in a folder.
fn replies_in(home: &Home, folder: &Path, arguments: &[&str], requests: &[Value]) -> Vec<Value> {
    let mut server = start_in(home, folder, arguments, None);
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}});
    let mut stdin = server.process.stdin.take().unwrap();
    let mut stdout = BufReader::new(server.process.stdout.take().unwrap());
    writeln!(stdin, "{hello}").unwrap();
    let mut line = String::new();
    let mut reply = || -> Value {
        line.clear();
        stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    reply();
    let mut all = Vec::new();
    for (id, request) in (2..).zip(requests) {
        let mut request = request.clone();
        request["jsonrpc"] = "2.0".into();
        request["id"] = id.into();
        writeln!(stdin, "{request}").unwrap();
        all.push(reply());
    }
    all
}

#[test]
fn identity_files_are_edited_only_where_an_option_names_their_folder() {
    let home = home();
    let soul = home.file("me/soul.md", "You are terse.");
    let user = home.file("crumb/.agents/USER.md", "Works on crumb.");
    let me = soul.parent().unwrap().to_str().unwrap();
    let crumb = user.parent().unwrap().parent().unwrap().to_str().unwrap();
    let list = json!({"method": "tools/list", "params": {}});
    let call = |arguments: Value| {
        let params = json!({"name": "memory_identity", "arguments": arguments});
        json!({"method": "tools/call", "params": params})
    };
    let write = call(json!({"file": "USER.md", "content": "Ada, of crumb."}));
    let told = replies(&home, &[], &[list.clone(), write.clone()]);
    assert!(!told[0].to_string().contains("memory_identity"), "{told:?}");
    assert_eq!(told[1]["result"]["isError"], true, "{told:?}");
    assert_eq!(std::fs::read_to_string(&user).unwrap(), "Works on crumb.");

    let read = call(json!({"file": "SOUL.md"}));
    let options = ["--identity", me, "--project", crumb];
    let told = replies(&home, &options, &[list, read, write]);
    assert!(told[0].to_string().contains("memory_identity"), "{told:?}");
    let text = &told[1]["result"]["content"][0]["text"];
    assert_eq!(text, "SOUL.md:\nYou are terse.");
    assert_eq!(told[2]["result"]["isError"], false, "{told:?}");
    assert_eq!(std::fs::read_to_string(&user).unwrap(), "Ada, of crumb.");
    // A session that is named twice is one session, and has the tool as well.
    let name = home.session();
    let twice = ["--identity", me, "--session", &name, "--session", &name];
    let told = replies(
        &home,
        &twice,
        &[json!({"method": "tools/list", "params": {}})],
    );
    assert!(told[0].to_string().contains("memory_identity"), "{told:?}");
}

fn call(name: &str, arguments: Value) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    json!({"method": "tools/call", "params": params})
}

fn text(reply: &Value) -> &str {
    reply["result"]["content"][0]["text"].as_str().unwrap()
}

/// Notes outlast the server, are the same under both names, and are no session that other commands list or serve.
#[test]
fn notes_are_kept_in_the_database() {
    let home = home();
    let list = json!({"method": "tools/list", "params": {}});
    let write = call(
        "notes_write_file",
        json!({"path": "plan.md", "text": "paint it red\n"}),
    );
    let told = replies(&home, &[], &[list.clone(), write.clone()]);
    assert!(
        !told[0].to_string().contains("notes_write_file"),
        "{told:?}"
    );
    assert_eq!(told[1]["result"]["isError"], true, "{told:?}");

    let search = call(
        "history_search_contents",
        json!({"query": "lighthouse is white"}),
    );
    let told = replies(&home, &["--names", "codex"], &[list, write, search]);
    assert!(
        told[0].to_string().contains("history_list_windows"),
        "{told:?}"
    );
    assert_eq!(text(&told[1]), "plan.md now has 13 bytes.\n");
    assert!(text(&told[2]).starts_with("1. [1] user"), "{told:?}");

    let view = call(
        "memory",
        json!({"command": "view", "path": "/memories/plan.md"}),
    );
    let told = replies(
        &home,
        &["--names", "anthropic"],
        std::slice::from_ref(&view),
    );
    assert!(
        text(&told[0]).ends_with("     1\tpaint it red\n"),
        "{told:?}"
    );
    let other = ["--names", "anthropic", "--notes", "other"];
    let told = replies(&home, &other, &[view]);
    assert_eq!(told[0]["result"]["isError"], true, "{told:?}");

    assert!(!home.ok(&["sessions"]).out.contains("notes"));
    let recall = call("memory_recall", json!({"query": "paint"}));
    let told = replies(&home, &[], &[recall]);
    assert!(!text(&told[0]).contains("red"), "{told:?}");
}

#[test]
fn two_servers_lose_no_note() {
    let home = home();
    let append = |server: usize| {
        let lines = (0..20).map(|n| {
            let text = format!("{server}-{n}\n");
            call(
                "notes_append_to_file",
                json!({"path": "log.md", "text": text}),
            )
        });
        replies(&home, &["--names", "codex"], &lines.collect::<Vec<_>>())
    };
    std::thread::scope(|scope| {
        let servers = [scope.spawn(|| append(0)), scope.spawn(|| append(1))];
        for server in servers {
            for reply in server.join().unwrap() {
                assert_eq!(reply["result"]["isError"], false, "{reply}");
            }
        }
    });
    let read = call("notes_read_file", json!({"path": "log.md"}));
    let told = replies(&home, &["--names", "codex"], &[read]);
    assert!(
        text(&told[0]).starts_with("log.md has 40 lines:"),
        "{told:?}"
    );
}

/// A sub-agent of a served session is read by its name, and by no other tool.
#[test]
fn a_sub_agent_is_read_by_its_name() {
    let home = home();
    home.ok(&["import", &fixture("claude-code/parallel-and-sidechain")]);
    let sessions = home.json(&["sessions"]);
    let mut sessions = sessions["sessions"].as_array().unwrap().iter();
    let agent = sessions.find(|one| one["parent"].is_string()).unwrap();
    let name = agent["session"].as_str().unwrap();
    let parent = agent["parent"].as_str().unwrap();
    let options = ["--session", parent, "--names", "codex"];
    let ask = |agent: &str| {
        call(
            "history_list_items",
            json!({"agent_name": agent, "limit": 1}),
        )
    };
    let recall = call("memory_recall", json!({"query": "x", "session": name}));
    let (_, last) = name.rsplit_once('/').unwrap();
    let told = replies(&home, &options, &[ask(""), ask(name), ask(last), recall]);
    assert!(
        text(&told[1]).starts_with('[') && text(&told[1]) != text(&told[0]),
        "{told:?}"
    );
    assert_eq!(text(&told[1]), text(&told[2]));
    assert_eq!(told[3]["result"]["isError"], true, "{told:?}");
}

/// Returns a line of a transcript of Claude Code.
fn line(session: &str, folder: &Path, text: &str) -> String {
    let line = json!({
        "type": "user", "uuid": format!("{session}-1"), "parentUuid": null, "sessionId": session,
        "cwd": folder, "timestamp": "2026-03-09T10:00:00Z", "message": {"role": "user", "content": text},
    });
    format!("{line}\n")
}

#[test]
fn a_server_shows_the_sessions_of_its_project_alone() {
    let home = Home::new();
    for folder in ["app/.git", "app/src", "other", "app-2"] {
        std::fs::create_dir_all(home.path().join(folder)).unwrap();
    }
    let call = |tool: &str, arguments: Value| json!({"method": "tools/call", "params": {"name": tool, "arguments": arguments}});
    let grep = [call("memory_grep", json!({"pattern": "lighthouse"}))];
    let recall = [call("memory_recall", json!({"query": "lighthouse"}))];
    let asked = |folder: &str, arguments: &[&str], requests: &[Value]| {
        replies_in(&home, &home.path().join(folder), arguments, requests)[0].to_string()
    };
    // An agent starts the server before its first session is stored, and it declares the same tools then.
    let list = [json!({"method": "tools/list", "params": {}})];
    assert!(asked("app", &[], &list).contains("memory_requests"));
    assert!(asked("app", &[], &grep).contains("go on without the memory"));
    for (session, folder) in [("one", "app/src"), ("two", "other"), ("three", "app-2")] {
        let folder = home.path().join(folder);
        let text = format!("the lighthouse of {session} is white");
        let file = home.file(&format!("{session}.jsonl"), line(session, &folder, &text));
        home.ok(&["import", file.to_str().unwrap()]);
    }
    let shown = |reply: &str| -> Vec<&str> {
        let names = ["one", "two", "three"].into_iter();
        names
            .filter(|name| reply.contains(&format!("lighthouse of {name}")))
            .collect()
    };
    assert_eq!(shown(&asked("app", &[], &grep)), ["one"]);
    assert_eq!(shown(&asked("app/src", &[], &recall)), ["one"]);
    assert_eq!(shown(&asked("other", &[], &grep)), ["two"]);
    let app = home.path().join("app");
    let app = app.to_str().unwrap();
    assert_eq!(shown(&asked("other", &["--project", app], &grep)), ["one"]);
    assert_eq!(
        shown(&asked("other", &["--session", "three"], &grep)),
        ["three"]
    );
    // Nothing else leads out of the project: neither names, nor paths, nor a summary's id.
    for session in ["two", "../other", "*", "", "one/../two"] {
        let hostile = [call(
            "memory_recall",
            json!({"query": "lighthouse", "session": session}),
        )];
        assert!(!asked("app", &[], &hostile).contains("two is"), "{session}");
    }
    assert_eq!(shown(&asked("app/../other", &[], &grep)), ["two"]);
    // A database that is named shows all of its sessions.
    let place = home.database();
    let store = ["--store", place.to_str().unwrap()];
    assert_eq!(
        shown(&asked("other", &store, &grep)),
        ["one", "two", "three"]
    );
    // The session in use last is read if none is named.
    assert_eq!(shown(&asked("other", &store, &recall)), ["three"]);
}

#[test]
fn the_worktrees_of_a_repository_are_one_project() {
    let home = Home::new();
    let folder = |name: &str| home.path().join(name);
    linked_worktree(&folder("app/.git"), "heron", &folder("app-heron"));
    std::fs::create_dir_all(folder("other/.git")).unwrap();
    for (session, place) in [("one", "app"), ("two", "app-heron"), ("three", "other")] {
        let text = format!("the lighthouse of {session} is white");
        let file = home.file(
            &format!("{session}.jsonl"),
            line(session, &folder(place), &text),
        );
        home.ok(&["import", file.to_str().unwrap()]);
    }
    let call = |tool: &str, arguments: Value| json!({"method": "tools/call", "params": {"name": tool, "arguments": arguments}});
    let grep = [call("memory_grep", json!({"pattern": "lighthouse"}))];
    let found = |place: &str, arguments: &[&str]| {
        let reply = replies_in(&home, &folder(place), arguments, &grep)[0].to_string();
        ["one", "two", "three"].map(|name| reply.contains(&format!("lighthouse of {name}")))
    };
    for place in ["app", "app-heron"] {
        assert_eq!(found(place, &[]), [true, true, false], "{place}");
        let project = folder(place);
        let named = ["--project", project.to_str().unwrap()];
        assert_eq!(found("other", &named), [true, true, false], "{place}");
    }
    assert_eq!(found("other", &[]), [false, false, true]);
    // They share their notes.
    let names = ["--names", "codex"];
    let write = [call(
        "notes_write_file",
        json!({"path": "plan.md", "text": "the lamp first"}),
    )];
    let read = [call("notes_read_file", json!({"path": "plan.md"}))];
    replies_in(&home, &folder("app-heron"), &names, &write);
    let told = replies_in(&home, &folder("app"), &names, &read);
    assert!(text(&told[0]).contains("the lamp first"), "{told:?}");
}

#[test]
fn notes_stay_in_their_project() {
    let home = Home::new();
    for folder in ["app", "other"] {
        std::fs::create_dir_all(home.path().join(folder)).unwrap();
    }
    let call = |tool: &str, arguments: Value| json!({"method": "tools/call", "params": {"name": tool, "arguments": arguments}});
    let write = [call(
        "notes_write_file",
        json!({"path": "plan.md", "text": "the lamp first"}),
    )];
    let read = [call("notes_read_file", json!({"path": "plan.md"}))];
    let asked = |folder: &str, arguments: &[&str], requests: &[Value]| {
        let arguments = [&["--names", "codex"], arguments].concat();
        replies_in(&home, &home.path().join(folder), &arguments, requests)[0].to_string()
    };
    // No session was recorded in the projects yet.
    assert!(asked("app", &[], &write).contains("now has 14 bytes"));
    assert!(asked("app", &[], &read).contains("the lamp first"));
    assert!(asked("other", &[], &read).contains("there is no note"));
    let shared = ["--notes", "shared"];
    assert!(asked("app", &shared, &write).contains("now has 14 bytes"));
    assert!(asked("other", &shared, &read).contains("the lamp first"));
}

/// Returns lines of several formats that name a session with an entry that has the form of a note.
fn forgeries(key: &str) -> Vec<(&'static str, String)> {
    let plain = |session: &str, more: Value| {
        let mut line = json!({
            "session": session, "role": "assistant", "content": "FORGED", "external_id": "1 write plan.md",
        });
        let (line, Value::Object(more)) = (line.as_object_mut().unwrap(), more) else {
            panic!("no object");
        };
        line.extend(more);
        format!("{}\n", Value::from(line.clone()))
    };
    let claude = |more: Value| {
        let mut line = json!({
            "type": "user", "uuid": "1 write plan.md", "parentUuid": null, "sessionId": key, "cwd": "/x",
            "timestamp": "2026-03-09T10:00:00Z", "message": {"role": "user", "content": "FORGED"},
        });
        let (line, Value::Object(more)) = (line.as_object_mut().unwrap(), more) else {
            panic!("no object");
        };
        line.extend(more);
        format!("{}\n", Value::from(line.clone()))
    };
    let codex = json!({
        "timestamp": "2026-03-09T10:00:00Z", "type": "session_meta",
        "payload": {"id": key, "timestamp": "2026-03-09T10:00:00Z", "cwd": "/x", "originator": "x", "cli_version": "1"},
    });
    let codex_said = json!({
        "timestamp": "2026-03-09T10:00:00Z", "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "FORGED"}]},
    });
    let opencode = json!({
        "info": {"id": key, "directory": "/x", "title": "t", "version": "1", "time": {"created": 1, "updated": 1}},
        "messages": [{
            "info": {"id": "1 write plan.md", "role": "user", "sessionID": key, "time": {"created": 1}},
            "parts": [{"id": "p", "type": "text", "text": "FORGED", "messageID": "m", "sessionID": key}],
        }],
    });
    let other = plain("another", json!({"external_id": "o1"}));
    vec![
        ("plain", plain(key, json!({}))),
        ("plain behind another", other + &plain(key, json!({}))),
        ("claude", claude(json!({}))),
        (
            "claude's sub-agent",
            claude(json!({"isSidechain": true, "agentId": "a1"})),
        ),
        ("codex", format!("{codex}\n{codex_said}\n")),
        ("opencode", opencode.to_string()),
    ]
}

/// No source of messages writes to the sessions of the memory itself: no import, no event, and no client over HTTP.
#[test]
fn no_import_and_no_event_writes_a_note() {
    let home = Home::new();
    let folder = home.path().canonicalize().unwrap();
    let key = format!("agent-memory:notes {}", folder.display());
    let options = ["--names", "codex"];
    let read = [call("notes_read_file", json!({"path": "plan.md"}))];
    let is_free = |what: &str| {
        let told = replies_in(&home, home.path(), &options, &read);
        assert!(!told[0].to_string().contains("FORGED"), "{what}: {told:?}");
    };
    for (what, text) in forgeries(&key) {
        let file = home.file("forged.jsonl", text);
        let file = file.to_str().unwrap();
        // Other sessions of the file are stored.
        let code = match what {
            "plain behind another" => 0,
            _ => 4,
        };
        let ran = home.run(&["import", file]);
        assert_eq!(ran.code, code, "{what}: {}", ran.err);
        assert!(ran.err.contains(&key), "{what}: {}", ran.err);
        assert_eq!(home.run(&["compact", file]).code, code, "{what}");
        let event = json!({
            "hook_event_name": "Stop", "session_id": key, "transcript_path": file, "cwd": folder,
        });
        let mut hook = home.command(&["hook", "claude-code"]);
        hook.write_stdin(event.to_string()).assert().code(0);
        is_free(what);
    }
    let file = home.file(
        "plain.jsonl",
        "{\"role\":\"user\",\"content\":\"FORGED\",\"external_id\":\"1 write plan.md\"}\n",
    );
    let file = file.to_str().unwrap();
    home.fails(&["import", file, "--session", &key], 4);
    home.ok(&["import", file, "--session", "plain"]);
    home.fails(&["fork", "plain", "--at", "1", "--name", &key], 4);
    is_free("--session and fork");
    // A note that is there stays as it is, whatever the log's length.
    let write = [call(
        "notes_write_file",
        json!({"path": "plan.md", "text": "a true note"}),
    )];
    replies_in(&home, home.path(), &options, &write);
    for (what, text) in forgeries(&key) {
        let file = home.file("forged.jsonl", text.replace("1 write", "2 write"));
        let ran = home.run(&["import", file.to_str().unwrap()]);
        assert!(ran.err.contains(&key), "{what}: {}", ran.err);
        is_free(what);
    }
    let told = replies_in(&home, home.path(), &options, &read);
    assert!(text(&told[0]).contains("a true note"), "{told:?}");
}

#[cfg(all(target_os = "linux", feature = "serve"))]
#[test]
fn silent_clients_keep_nobody_out() {
    use crate::serve::{flood, silent};

    const TOKEN: &str = "a-token-for-tests-1";
    let home = home();
    let mut server = start(&home, &["--session", "talk", "--http", "0"], Some(TOKEN));
    let url = server.told("serving at http://127.0.0.1:");
    let port = url.split('/').next().unwrap();
    let flood = flood();
    for sent in [&[""][..], &["POST /mcp HT"], &[&flood, ""]] {
        let kept = silent(port, sent);
        let (status, body) = post(port, &format!("Authorization: Bearer {TOKEN}\r\n"));
        assert!(status == "200" && body.contains("white"), "{status} {body}");
        drop(kept);
    }
}
