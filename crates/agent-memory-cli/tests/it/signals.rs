//! Being stopped: SIGINT, SIGTERM and kill, and what a run afterwards finds.
#![cfg(unix)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use sqlx::{Connection as _, SqliteConnection};

use crate::support::{Home, Ran, fixture};

/// A model's endpoint. It tells of every request; it answers, or holds the connection and says nothing.
struct Endpoint {
    url: String,
    asked: Receiver<()>,
}

impl Endpoint {
    fn silent() -> Self {
        Self::start(false)
    }

    fn answering() -> Self {
        Self::start(true)
    }

    fn start(answers: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (tell, asked) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let tell = tell.clone();
                std::thread::spawn(move || {
                    serve(stream.unwrap(), answers, &|| tell.send(()).is_ok())
                });
            }
        });
        Self { url, asked }
    }
}

fn serve(mut stream: TcpStream, answers: bool, tell: &dyn Fn() -> bool) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let (mut length, mut line) = (0, String::new());
        loop {
            line.clear();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() || !tell() {
            return;
        }
        if answers {
            let body = json!({
                "id": "1", "object": "chat.completion", "created": 1, "model": "m",
                "choices": [{"index": 0, "finish_reason": "stop",
                    "message": {"role": "assistant", "content": "They worked on it."}}],
            });
            let body = body.to_string();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
            if write!(stream, "{head} {}\r\n\r\n{body}", body.len()).is_err() {
                return;
            }
        }
    }
}

/// A home with a session that needs several summaries.
fn home() -> (Home, String) {
    let home = Home::new();
    let imported = home.json(&["import", &fixture("claude-code/release-week")]);
    let key = imported["sessions"][0]["session"]
        .as_str()
        .unwrap()
        .to_owned();
    (home, key)
}

fn compact(home: &Home, key: &str, url: &str) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("agent-memory"));
    command
        .args([
            "--json",
            "compact",
            key,
            "--summarizer",
            "openai:m",
            "--base-url",
            url,
        ])
        .current_dir(home.path())
        .env("XDG_DATA_HOME", home.path())
        .env("OPENAI_API_KEY", "k")
        .env_remove("AGENT_MEMORY_STORE")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Starts a compaction, and comes back when it waits for the model.
fn waiting(home: &Home, key: &str, endpoint: &Endpoint) -> Child {
    let child = compact(home, key, &endpoint.url).spawn().unwrap();
    endpoint.asked.recv().unwrap();
    child
}

/// Sends a signal, such as `INT`.
fn signal(child: &Child, name: &str) {
    let mut kill = Command::new("kill");
    let sent = kill.args(["-s", name, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

fn end(child: Child) -> Ran {
    Ran::from(child.wait_with_output().unwrap())
}

/// Compacts once more, with a model that answers: nobody stands in the way.
fn completes(home: &Home, key: &str) {
    let endpoint = Endpoint::answering();
    let ran = end(compact(home, key, &endpoint.url).spawn().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let answer: Value = serde_json::from_str(&ran.out).unwrap();
    assert_ne!(answer["stop_reason"], "held", "{answer}");
    assert!(
        answer["summaries"]["leaf"].as_u64().unwrap() > 0,
        "{answer}"
    );
}

fn error(ran: &Ran) -> Value {
    let last = ran.err.lines().last().unwrap_or_default();
    let json: Value = serde_json::from_str(last).unwrap_or_else(|_| panic!("{}", ran.err));
    json["error"].clone()
}

#[test]
fn a_signal_gives_the_leases_back() {
    for (number, code) in [("INT", 130), ("TERM", 143)] {
        let (home, key) = home();
        let endpoint = Endpoint::silent();
        let child = waiting(&home, &key, &endpoint);
        signal(&child, number);
        let ran = end(child);
        assert_eq!(ran.code, code, "{}", ran.err);
        assert_eq!(error(&ran)["kind"], "stopped", "{}", ran.err);
        assert!(
            !home.path().join("agent-memory/memory.db-wal").exists(),
            "the store was closed"
        );
        completes(&home, &key);
    }
}

#[test]
fn what_a_killed_process_held_is_free_at_once() {
    let (home, key) = home();
    let endpoint = Endpoint::silent();
    let mut child = waiting(&home, &key, &endpoint);
    child.kill().unwrap();
    child.wait().unwrap();
    completes(&home, &key);
}

#[test]
fn a_run_beside_another_says_who_is_at_work_and_until_when() {
    let (home, key) = home();
    let endpoint = Endpoint::silent();
    let first = waiting(&home, &key, &endpoint);
    let second = Endpoint::answering();
    let ran = end(compact(&home, &key, &second.url).spawn().unwrap());
    // Four summaries are asked for at the same time: the others are made.
    let answer: Value = serde_json::from_str(&ran.out).unwrap();
    let made = answer["summaries"]["leaf"].as_u64().unwrap();
    let third = end(compact(&home, &key, &second.url).spawn().unwrap());
    assert_eq!(third.code, 10, "{made}: {}", third.err);
    let error = error(&third);
    assert_eq!(error["kind"], "held", "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains(&format!("process {}", first.id())),
        "{message}"
    );
    // A time, to the second, in UTC.
    assert!(
        message.contains("until 20") && message.contains('Z'),
        "{message}"
    );
    assert!(second.asked.try_iter().count() > 0 || made == 0);
    signal(&first, "INT");
    assert_eq!(end(first).code, 130);
    completes(&home, &key);
}

#[test]
fn a_second_signal_ends_at_once() {
    let (home, key) = home();
    let endpoint = Endpoint::silent();
    let mut command = compact(&home, &key, &endpoint.url);
    let child = command.args(["--lock-timeout", "3600"]).spawn().unwrap();
    endpoint.asked.recv().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    // Nothing can be given back while somebody else writes.
    let held = runtime.block_on(async {
        let url = format!("sqlite://{}", home.database().display());
        let mut connection = SqliteConnection::connect(&url).await.unwrap();
        let done = sqlx::raw_sql("begin immediate")
            .execute(&mut connection)
            .await;
        done.unwrap();
        connection
    });
    signal(&child, "INT");
    // It says that it heard; the second one comes after that.
    let mut child = child;
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut heard = String::new();
    while !heard.contains("again") {
        assert_ne!(err.read_line(&mut heard).unwrap(), 0, "{heard}");
    }
    signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(143));
    runtime.block_on(held.close()).unwrap();
    completes(&home, &key);
}

#[test]
fn a_command_that_holds_nothing_ends_at_the_first_signal() {
    // The reader of its output has gone to sleep.
    let (home, key) = home();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("agent-memory"))
        .args(["export", &key])
        .env("XDG_DATA_HOME", home.path())
        .env_remove("AGENT_MEMORY_STORE")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut some = [0; 100];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut some)
        .unwrap();
    signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(143));
}
