//! The program on a PostgreSQL server: the same answers as with a file, copies between both, and workers.
#![allow(clippy::print_stderr, clippy::disallowed_methods)]

use std::io::{BufRead as _, Read as _, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

use crate::support::{Home, PATIENCE, Ran, fixture, program, words};

/// A schema of the server for tests, which is dropped at the end.
struct Schema {
    server: String,
    name: String,
}

impl Schema {
    /// Returns a schema that does not exist. Says that a test is left out if there is no server.
    fn new(name: &str) -> Option<Self> {
        const URL: &str = "AGENT_MEMORY_TEST_POSTGRES_URL";
        let Some(server) = std::env::var(URL).ok().filter(|url| !url.is_empty()) else {
            assert!(
                std::env::var_os("AGENT_MEMORY_REQUIRE_POSTGRES").is_none(),
                "{URL} is not set: run the tests by `cargo xtask postgres`"
            );
            eprintln!("left out: {URL} is not set");
            return None;
        };
        let name = format!("program_{}_{name}", std::process::id());
        Some(Self { server, name })
    }

    fn url(&self) -> String {
        let sign = if self.server.contains('?') { '&' } else { '?' };
        format!("{}{sign}schema={}", self.server, self.name)
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let drop = format!("drop schema if exists {} cascade", self.name);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let mut connection = PgConnection::connect(&self.server).await.unwrap();
            let drop = sqlx::AssertSqlSafe(drop);
            sqlx::raw_sql(drop).execute(&mut connection).await.unwrap();
        });
    }
}

/// Runs a command with a database, and returns its output without what differs from run to run.
fn answer(home: &Home, store: &str, line: &str) -> String {
    let arguments = [&["--store", store, "--json"], &words(line)[..]].concat();
    let mut value = home.ok(&arguments).json();
    forget(&mut value);
    value.to_string()
}

/// Removes times of the clock, durations, and names of databases.
fn forget(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for name in [
                "updated_at",
                "created_at",
                "duration_ms",
                "database",
                "bytes",
                "parts",
                "folder",
                "cursor",
                "at",
            ] {
                fields.remove(name);
            }
            fields.values_mut().for_each(forget);
        }
        Value::Array(items) => items.iter_mut().for_each(forget),
        _ => {}
    }
}

#[test]
fn every_command_answers_as_with_a_file() {
    let Some(schema) = Schema::new("answers") else {
        return;
    };
    let (url, home) = (schema.url(), Home::new());
    let file = home.path().join("m.db").display().to_string();
    let transcript = fixture("claude-code/release-week");
    let side = fixture("claude-code/parallel-and-sidechain");
    let session = "120981b4-fb17-4e97-a418-8bc95aab0bc4";
    let lines = [
        format!("import {transcript} {side}"),
        format!("compact {session}"),
        format!("context {session} --budget 3000"),
        format!("grep {session} error"),
        format!("grep {session} deploy --scope summaries"),
        format!("recall {session} release"),
        format!("recall {session} message:7"),
        format!("files {session}"),
        format!("view {session}"),
        format!("view {session} --history"),
        format!("fork {session} --at 9 --name other"),
        "sessions".to_owned(),
        format!("index {session} --rebuild"),
        format!("erase {session} --from 3 --to 4 --reason asked"),
        format!("context {session} --budget 9000"),
        "verify other".to_owned(),
        "delete other --reason asked".to_owned(),
        "sessions --all".to_owned(),
        "verify".to_owned(),
        "stats".to_owned(),
    ];
    for line in lines {
        let expected = answer(&home, &file, &line);
        assert_eq!(answer(&home, &url, &line), expected, "{line}");
    }
    let export = |store: &str| home.ok(&["--store", store, "export", session]).out;
    assert_eq!(export(&url), export(&file));
    let erased = home.ok(&[
        "--store", &url, "erase", session, "--from", "6", "--reason", "asked",
    ]);
    erased.says("write-ahead log");
}

#[test]
fn sessions_move_to_a_server_and_back() {
    let Some(schema) = Schema::new("moved") else {
        return;
    };
    let (url, home) = (schema.url(), Home::new());
    let path = |name: &str| home.path().join(name).display().to_string();
    let (file, back) = (path("m.db"), path("back.db"));
    for name in [
        "claude-code/release-week",
        "pi/branched",
        "jsonl/hard-content",
    ] {
        let transcript = fixture(name);
        home.ok(&["--store", &file, "compact", &transcript]);
    }
    let moved = home.json(&["migrate", "--from", &file, "--to", &url]);
    assert_eq!(moved["verify"]["ok"], true, "{moved}");
    assert!(
        moved["copied"].as_u64() >= Some(3) && moved["known"] == 0,
        "{moved}"
    );
    let again = home.json(&["migrate", "--from", &file, "--to", &url]);
    assert_eq!(
        (&again["copied"], &again["known"]),
        (&json!(0), &moved["copied"])
    );
    home.ok(&["--store", &url, "migrate", "--to", &back]);
    for line in ["sessions --all", "verify"] {
        let expected = answer(&home, &file, line);
        for store in [&url, &back] {
            assert_eq!(answer(&home, store, line), expected, "{line}");
        }
    }
    // A database with other sessions is not filled.
    let other = path("other.db");
    home.ok(&["--store", &other, "import", &fixture("jsonl/tiny")]);
    let before = home.ok(&["--store", &url, "sessions"]).out;
    home.fails(&["migrate", "--from", &other, "--to", &url], 4)
        .says("copy to an empty database");
    assert_eq!(home.ok(&["--store", &url, "sessions"]).out, before);
    home.fails(&["migrate", "--from", &file, "--to", &file], 2)
        .says("the same database");
    home.fails(&["migrate", "--from", &path("none.db"), "--to", &url], 3)
        .says("there is no database");
}

#[test]
fn workers_share_the_sessions_of_a_server() {
    let Some(schema) = Schema::new("work") else {
        return;
    };
    let (url, home) = (schema.url(), Home::new());
    for number in 0..6 {
        let lines: String = (0..60)
            .map(|n| {
                let role = ["user", "assistant"][n % 2];
                let text = format!("line {n} of chat {number} {}", "word ".repeat(200));
                json!({"role": role, "content": text, "session": format!("chat {number}")})
                    .to_string()
                    + "\n"
            })
            .collect();
        let path = home.file(&format!("{number}.jsonl"), lines);
        home.ok(&["--store", &url, "import", &path.display().to_string()]);
    }
    let start = || {
        let mut process = home.process(program());
        process.args(["--store", &url, "--json", "work", "--once"]);
        process.spawn().unwrap()
    };
    let workers = [start(), start(), start()];
    let reports = workers.map(|worker| Ran::from(worker.wait_with_output().unwrap()).ended(0));
    let sum = |field: &str| -> u64 {
        reports
            .iter()
            .map(|ran| ran.json()[field].as_u64().unwrap())
            .sum()
    };
    assert_eq!((sum("compacted"), sum("failed")), (6, 0));
    let idle = home.json(&["--store", &url, "work", "--once"]);
    assert_eq!(
        (&idle["compacted"], &idle["failed"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(home.json(&["--store", &url, "verify"])["ok"], true);
}

#[cfg(feature = "serve")]
#[test]
fn a_worker_ends_with_a_signal_and_works_on_files_too() {
    let home = Home::new();
    home.ok(&["import", &fixture("claude-code/release-week")]);
    let done = home.json(&["work", "--once"]);
    assert!(
        done["compacted"] == 1 && done["summaries"].as_u64() > Some(0),
        "{done}"
    );
    let mut process = home.process(program());
    let mut worker = process
        .args(["work", "--metrics", "0"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The worker says which database it has opened and where its counts are, and then waits.
    let mut lines = std::io::BufReader::new(worker.stderr.take().unwrap()).lines();
    let mut line = || lines.next().unwrap().unwrap();
    assert!(line().contains("database: "));
    let counts = line();
    let (_, address) = counts.split_once("http://").unwrap();
    let (address, path) = address.split_once('/').unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(
        answer.contains("\nagent_memory_work_sessions_total "),
        "{answer}"
    );
    let id = worker.id().to_string();
    let kill = home.process("kill").args(["-TERM", &id]).status().unwrap();
    assert!(kill.success());
    assert_eq!(worker.wait().unwrap().code(), Some(0));
}

#[test]
fn events_of_agents_go_to_a_server() {
    let Some(schema) = Schema::new("hook") else {
        return;
    };
    let (url, home) = (schema.url(), Home::new());
    let transcript = fixture("claude-code/release-week");
    let event = json!({
        "hook_event_name": "Stop", "session_id": "120981b4-fb17-4e97-a418-8bc95aab0bc4",
        "transcript_path": transcript, "cwd": "/srv/tide",
    });
    let mut process = home.process(program());
    process.arg("hook").env("AGENT_MEMORY_STORE", &url);
    let mut child = process.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let _ = stdin.write_all(event.to_string().as_bytes());
    drop(stdin);
    Ran::from(child.wait_with_output().unwrap()).ended(0);
    // The work goes on after the answer, and writes its line to the log at the end. The log is in the home.
    let folder = home.path().join("agent-memory");
    let began = std::time::Instant::now();
    let log = loop {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut logs = entries.map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("server-") && name.ends_with("-hook.log")
        });
        match logs
            .next()
            .map(|path| std::fs::read_to_string(path).unwrap())
        {
            Some(log) if log.contains("\"result\":\"ok\"") => break log,
            _ => assert!(began.elapsed() < PATIENCE, "no event is in the log"),
        }
        std::thread::yield_now();
    };
    assert!(!log.contains("\"result\":\"failed\""), "{log}");
    let sessions = home.json(&["--store", &url, "sessions"]);
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn a_server_that_cannot_be_reached_is_named_without_its_password() {
    let home = Home::new();
    let url = "postgres://me:cret@127.0.0.1:1/none";
    let ran = home.run(&["--store", url, "sessions"]);
    assert_ne!(ran.code, 0);
    ran.says("cannot be reached");
    assert!(!ran.err.contains("cret"), "{}", ran.err);
    let ran = home.run(&["--store", "postgres://me:cret@h/d?partition=2", "sessions"]);
    ran.says("partition");
    assert!(ran.code != 0 && !ran.err.contains("cret"), "{}", ran.err);
}
